"""Targets: where they come from, which are in progress, how each one ended."""
