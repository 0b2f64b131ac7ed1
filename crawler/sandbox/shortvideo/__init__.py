"""The simulated shortvideo platform."""
