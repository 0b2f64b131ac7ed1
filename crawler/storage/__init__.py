"""Where the project keeps what outlives a run: files, SQLite, Redis."""
