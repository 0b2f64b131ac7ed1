"""Targets: where they come from, how they are tracked, and how they end."""
