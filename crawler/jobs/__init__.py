"""Jobs: targets and their outcomes in a database, SQLite or PostgreSQL, which several processes may share."""
