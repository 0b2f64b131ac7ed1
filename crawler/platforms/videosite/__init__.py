"""The videosite platform."""
