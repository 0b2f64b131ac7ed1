"""The simulated videosite platform."""
