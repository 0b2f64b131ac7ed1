"""Long-running tests: run with ``scripts/test --soak``."""
