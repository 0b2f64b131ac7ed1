"""Targets: their sources, their tracking, and their outcomes."""
