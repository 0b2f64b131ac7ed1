"""The simulated photoapp platform."""
