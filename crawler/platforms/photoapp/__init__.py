"""The photoapp platform."""
