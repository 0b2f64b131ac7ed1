"""The SQL sink: one table for each entity with the newest rows, and one with the history of prices and counts."""
