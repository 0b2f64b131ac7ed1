"""Jobs: targets with one outcome each in one database, SQLite or PostgreSQL, which several processes may share."""
