"""Connections to SQLite files that several processes may share, and their transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from crawler.storage.files import create_file

BUSY_TIMEOUT = 30.0
"""The default of ``SqliteFile.busy_timeout``, in seconds."""


@dataclass(frozen=True)
class SqliteFile:
    """An SQLite file and its schema: statements that create missing tables, and run each time the file is opened."""

    path: Path
    schema: tuple[str, ...]
    many_writes: bool = False
    """Whether many rows are written and deleted.

    The file has a write-ahead log, which makes small writes fast: its modification time no longer shows whether the
    data has changed. In a file that was created with this option, ``PRAGMA incremental_vacuum`` frees the disk space
    of deleted rows.
    """
    busy_timeout: float = BUSY_TIMEOUT
    """Maximum seconds for which a statement waits for the lock of another connection."""

    def connect(self) -> sqlite3.Connection:
        """Open the file, or create it for its owner only. Use ``transaction()`` for writes.

        The connection may be used in another thread.

        Raises:
            sqlite3.Error: the file or its folder cannot be created, opened or read.
        """
        try:
            create_file(self.path)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        connection = sqlite3.connect(
            self.path, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            if self.many_writes:
                if not connection.execute("PRAGMA page_count").fetchone()[0]:
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # needs the write lock
                # No transaction is lost if the process is killed. A power cut may lose the last transactions.
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
        """Open the file, run the ``with`` block in a transaction, and close the file."""
        with closing(self.connect()) as connection, transaction(connection):
            yield connection


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
    """Run the ``with`` block in a transaction, which is committed at the end and rolled back if the block raises.

    The write lock is taken at the start, because a transaction that starts with a read may later fail to get it.
    """
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    with connection:
        yield
