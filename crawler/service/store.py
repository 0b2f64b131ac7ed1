"""What the service must remember beyond a process: one small database, in a thread of its own.

SQLite for the workers of one host; PostgreSQL by URL (extra ``postgresql``) for several hosts.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.data_files import data_file

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

BUSY = 10.0
"""Seconds for which SQLite waits for another worker's write."""

Row = tuple[Any, ...]
T = TypeVar("T")


def store_of(settings: BaseSettings) -> str:
    """Where the service's memory is: ``SERVICE_STORE``, else a file in the project's ``.scrapy`` folder."""
    return str(settings["SERVICE_STORE"] or data_file("service.sqlite3"))


@dataclass(frozen=True)
class Session:
    """An open transaction. SQL is written with ``?`` and in what both databases understand."""

    connection: Any
    placeholder: str

    def run(self, sql: str, values: Iterable[Any] = ()) -> int:
        """Runs a statement; the number of rows that it changed."""
        return int(self.connection.execute(sql.replace("?", self.placeholder), tuple(values)).rowcount)

    def rows(self, sql: str, values: Iterable[Any] = ()) -> list[Row]:
        """Runs a query."""
        return list(self.connection.execute(sql.replace("?", self.placeholder), tuple(values)).fetchall())


class Store:
    """One connection in one thread: what is asked of it is done in order, and never stops the event loop."""

    def __init__(self, where: str, schema: Iterable[str]) -> None:
        """``where``: path of a file, or a ``postgresql://`` URL. ``schema``: statements that may be repeated."""
        self.where = where
        self.schema = tuple(schema)
        self._remote = "://" in where
        self._connection: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def transact(self, work: Callable[[Session], T]) -> T:
        """Does ``work`` in one transaction of its own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.transact_here, work)

    def transact_here(self, work: Callable[[Session], T]) -> T:
        """The same in the caller's thread: for commands, which have no event loop."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            with self._connection.transaction() if self._remote else self._connection:  # commits, or rolls back
                if not self._remote:
                    # Its place among the writers now: a transaction that begins by reading may lose it, and fail.
                    self._connection.execute("BEGIN IMMEDIATE")
                return work(Session(self._connection, "%s" if self._remote else "?"))
        except Exception:
            self._disconnect()  # whatever it is: the next one begins with a connection that works
            raise

    async def close(self) -> None:
        """Ends when all that was asked is done."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _connect(self) -> Any:
        if self._remote:
            import psycopg  # noqa: PLC0415  # an extra: only for those who give its URL

            connection: Any = psycopg.connect(self.where, autocommit=True)
        else:
            Path(self.where).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.where, timeout=BUSY, check_same_thread=False, isolation_level=None)
            # Survives a process that is killed; only a machine that loses power may lose the last moments.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        binary = "BYTEA" if self._remote else "BLOB"
        for statement in self.schema:
            connection.execute(statement.replace("BLOB", binary))
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
