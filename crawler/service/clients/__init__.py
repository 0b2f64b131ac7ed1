"""Clients: their API keys, their limits, and the counts of their calls."""
