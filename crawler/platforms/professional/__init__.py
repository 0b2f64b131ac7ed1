"""The professional platform."""
