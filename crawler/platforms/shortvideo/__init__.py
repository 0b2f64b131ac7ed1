"""The shortvideo platform."""
