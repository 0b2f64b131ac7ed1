"""The database of the service, for usage counts and stored responses.

SQLite serves the worker processes of one host. PostgreSQL (extra ``postgresql``) also serves several hosts. Both
databases accept all statements. Parameters are named (``:client``): sqlite3 supports them, and SQLAlchemy translates
them for PostgreSQL. Binary columns have PostgreSQL's type ``BYTEA``, because SQLite accepts any type name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
"""The number of the PostgreSQL advisory lock that is held while tables are created.

Without it, ``CREATE TABLE IF NOT EXISTS`` can fail if several processes run it at the same time.
"""

Row = tuple[Any, ...]
T = TypeVar("T")


def store_location(settings: BaseSettings) -> str:
    """Return the path or URL of the store: ``SERVICE_STORE``, else a file in the project's ``.scrapy`` folder."""
    return str(settings["SERVICE_STORE"] or data_file("service.sqlite3"))


@dataclass(frozen=True)
class NewColumn:
    """A column that tables of earlier versions lack. In a schema, it follows the statement that creates its table."""

    table: str
    name: str
    definition: str

    @property
    def sql(self) -> str:
        """The statement that adds the column."""
        return f"ALTER TABLE {self.table} ADD COLUMN {self.name} {self.definition}"


Schema = tuple[str | NewColumn, ...]
"""Statements that can be repeated without effect, and the columns that later versions added."""


@dataclass(frozen=True)
class Session:
    """An open transaction."""

    execute: Callable[[str, dict[str, Any]], Any]

    def run(self, sql: str, /, **values: Any) -> int:
        """Run a statement. Return the number of changed rows."""
        return int(self.execute(sql, values).rowcount)

    def rows(self, sql: str, /, **values: Any) -> list[Row]:
        """Run a query. Return its rows."""
        return [tuple(row) for row in self.execute(sql, values).fetchall()]


class Store:
    """Runs transactions in order, in one thread with one connection, so that they do not block the event loop."""

    def __init__(self, location: str, schema: Schema) -> None:
        """``location``: path of a file, or a ``postgresql://`` URL."""
        self.location = location
        connection = _PostgreSqlConnection if "://" in location else _SqliteConnection
        self._connect: Callable[[], _Connection] = partial(connection, location, schema)
        self._connection: _Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def transact(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in a transaction, in the store's thread. It completes even if the caller is cancelled."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self.transact_sync, work))

    def transact_sync(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in a transaction, in the caller's thread. Commands use this, because they have no event loop."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            with self._connection.begin():
                return work(Session(self._connection.execute))
        except Exception:
            self._disconnect()  # the next transaction gets a new connection
            raise

    async def close(self) -> None:
        """Disconnect after all pending transactions."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _SqliteConnection:
    def __init__(self, path: str, schema: Schema) -> None:
        statements = tuple(each for each in schema if isinstance(each, str))
        self.connection = SqliteFile(Path(path), statements, wal=True).connect()
        self.close = self.connection.close
        with self.begin():
            for column in schema:
                if isinstance(column, NewColumn) and not self._has(column):
                    self.execute(column.sql, {})

    def _has(self, column: NewColumn) -> bool:
        query = "SELECT 1 FROM pragma_table_info(:table) WHERE name = :name"
        return self.execute(query, {"table": column.table, "name": column.name}).fetchone() is not None

    def begin(self) -> AbstractContextManager[object]:
        return transaction(self.connection)

    def execute(self, sql: str, values: dict[str, Any]) -> sqlite3.Cursor:
        return self.connection.execute(sql, values)


class _PostgreSqlConnection:
    def __init__(self, url: str, schema: Schema) -> None:
        import psycopg  # noqa: PLC0415  # needs the extra "postgresql"
        import sqlalchemy as sa  # noqa: PLC0415  # likewise

        # psycopg parses the URL, because SQLAlchemy does not support all URLs of libpq, such as several hosts.
        engine = sa.create_engine(
            "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=sa.pool.NullPool
        )
        self.connection = engine.connect().execution_options(preserve_rowcount=True)
        self.close = self.connection.close
        self._text = sa.text
        with self.begin():
            self.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": SCHEMA_LOCK})
            for each in schema:
                statement = each if isinstance(each, str) else each.sql.replace(" COLUMN ", " COLUMN IF NOT EXISTS ")
                self.execute(statement, {})

    def begin(self) -> AbstractContextManager[object]:
        return self.connection.begin()

    def execute(self, sql: str, values: dict[str, Any]) -> sa.CursorResult[Any]:
        return self.connection.execute(self._text(sql), values)


_Connection = _SqliteConnection | _PostgreSqlConnection
