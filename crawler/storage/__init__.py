"""Files that later runs need: SQLite files, and responses that are kept without their secrets."""
