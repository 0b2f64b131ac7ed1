"""Helpers for page objects: they find JSON in pages, and convert text to values."""
