"""Helpers for page objects: they find JSON in pages, read it by contracts, and convert text to values."""
