"""Long-running tests. Run them with ``scripts/test --soak``."""
