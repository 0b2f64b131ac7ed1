"""JSON in pages, and text as values."""
