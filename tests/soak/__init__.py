"""The long figures: run with ``scripts/test --soak``."""
