"""The SQL sink: one table for each kind of thing, the newest row of each, and the history of its prices and counts."""
