"""Connections to SQLite files that several processes share, and transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

BUSY_TIMEOUT = 30.0
"""Seconds for which SQLite waits for another process's write lock."""


@dataclass(frozen=True)
class SqliteFile:
    """A file with its schema. The schema's statements run each time the file is opened."""

    path: Path
    schema: tuple[str, ...]
    wal: bool = False
    """Write-ahead log: fast for many small writes. The file's modification time no longer shows when it was changed."""

    def connect(self) -> sqlite3.Connection:
        """Open the file. Transactions are explicit; a connection may move between threads."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
        try:
            if self.wal:
                # Survives a killed process. Only a power cut may lose the last transactions.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            for statement in self.schema:
                connection.execute(statement)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction."""
        with closing(self.connect()) as connection, transaction(connection):
            yield connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction: committed at its end, rolled back when it raises.

    The write lock is taken at the start: a transaction that begins by reading may fail to get it later.
    """
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield
