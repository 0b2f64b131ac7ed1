"""Helpers that read JSON from pages, and convert text to values."""
