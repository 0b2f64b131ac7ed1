"""Persistent storage: files, SQLite, Redis."""
