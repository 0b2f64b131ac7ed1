"""The SQL sink. Each entity has a table of its newest state and a table with the history of its prices and counts."""
