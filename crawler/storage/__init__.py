"""Connections to persistent storage: files and SQLite."""
