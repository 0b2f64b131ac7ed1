"""Targets: their sources, the tracker of targets in flight, and their outcomes."""
