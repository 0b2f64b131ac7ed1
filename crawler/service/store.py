"""The service's state beyond a process: one small database, used in a thread of its own.

SQLite for the workers of one host; PostgreSQL by URL (extra ``postgresql``) for several hosts. Statements are SQL that
both accept, with named parameters (``:client``): sqlite3 takes them as they are, SQLAlchemy translates for PostgreSQL.
Binary columns are ``BYTEA``, which SQLite takes as a name like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.storage.data_files import data_file
from crawler.storage.sqlite import SqliteFile, transaction

if TYPE_CHECKING:
    import sqlite3

    import sqlalchemy as sa
    from scrapy.settings import BaseSettings

SCHEMA_LOCK = 7_403_812
"""PostgreSQL's advisory lock for creating tables: "if not exists" alone does not protect from other processes."""

Row = tuple[Any, ...]
T = TypeVar("T")


def store_of(settings: BaseSettings) -> str:
    """Where the service's memory is: ``SERVICE_STORE``, else a file in the project's ``.scrapy`` folder."""
    return str(settings["SERVICE_STORE"] or data_file("service.sqlite3"))


@dataclass(frozen=True)
class Session:
    """An open transaction."""

    execute: Callable[[str, dict[str, Any]], Any]

    def run(self, sql: str, /, **values: Any) -> int:
        """Run a statement; return the number of rows that it changed."""
        return int(self.execute(sql, values).rowcount)

    def rows(self, sql: str, /, **values: Any) -> list[Row]:
        """Run a query."""
        return [tuple(row) for row in self.execute(sql, values).fetchall()]


class Store:
    """One connection in one thread: work is done in the order of its arrival, and never blocks the event loop."""

    def __init__(self, where: str, schema: Iterable[str]) -> None:
        """``where``: path of a file, or a ``postgresql://`` URL. ``schema``: statements that may be repeated."""
        connection = _PostgreSqlConnection if "://" in where else _SqliteConnection
        self._connect: Callable[[], _Connection] = partial(connection, where, tuple(schema))
        self._connection: _Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def transact(self, work: Callable[[Session], T]) -> T:
        """Do ``work`` in a transaction, in the store's thread. It is done even where the caller is cancelled."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self.transact_here, work))

    def transact_here(self, work: Callable[[Session], T]) -> T:
        """Do ``work`` in a transaction, in the caller's thread: for commands, which have no event loop."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            with self._connection.begin():
                return work(Session(self._connection.execute))
        except Exception:
            self._disconnect()  # whatever the reason: the next transaction gets a connection that works
            raise

    async def close(self) -> None:
        """Disconnect when all work is done."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _SqliteConnection:
    def __init__(self, path: str, schema: tuple[str, ...]) -> None:
        self.connection = SqliteFile(Path(path), schema, wal=True).connect()
        self.close = self.connection.close

    def begin(self) -> AbstractContextManager[object]:
        return transaction(self.connection)

    def execute(self, sql: str, values: dict[str, Any]) -> sqlite3.Cursor:
        return self.connection.execute(sql, values)


class _PostgreSqlConnection:
    def __init__(self, url: str, schema: tuple[str, ...]) -> None:
        import psycopg  # noqa: PLC0415  # an extra: only for those who give its URL
        import sqlalchemy as sa  # noqa: PLC0415  # likewise

        # psycopg reads the URL itself, since libpq knows forms that SQLAlchemy does not (several hosts).
        engine = sa.create_engine(
            "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=sa.pool.NullPool
        )
        self.connection = engine.connect().execution_options(preserve_rowcount=True)
        self.close = self.connection.close
        self._text = sa.text
        with self.begin():
            self.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": SCHEMA_LOCK})
            for statement in schema:
                self.execute(statement, {})

    def begin(self) -> AbstractContextManager[object]:
        return self.connection.begin()

    def execute(self, sql: str, values: dict[str, Any]) -> sa.CursorResult[Any]:
        return self.connection.execute(self._text(sql), values)


_Connection = _SqliteConnection | _PostgreSqlConnection
