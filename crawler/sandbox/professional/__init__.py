"""The simulated professional platform."""
