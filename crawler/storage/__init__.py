"""Connections to persistent storage: files, SQLite and Redis."""
