"""The database of the SQL sink. SQLite and PostgreSQL have the same tables and content.

A table ``<platform>_<entity>`` has one row for each entity, with its newest state and its natural key. A table
``<table>_history`` has one row for the first prices and counts of an entity, and one for each change. Unchanged rows
are not written again. Several processes may write to the same database: the state that was fetched last is stored,
whichever process writes last.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateColumn, CreateTable

from crawler.outputs.columns import Scalar
from crawler.outputs.sql.rows import Row, TableSpec

ROWS_PER_STATEMENT = 500
"""Maximum number of rows per statement, because databases limit the number of values in a statement."""
LOCK_TIMEOUT_SECONDS = 60
"""Maximum seconds for which SQLite waits until another process releases the write lock."""
SETUP_LOCK_ID = 7_403_811
"""The number of the PostgreSQL advisory lock that is held while tables are created.

Without this lock, two processes that create the same table at the same time can fail.
"""
WRITE_LOCK_ID = 7_403_812
"""The first number of the PostgreSQL advisory locks of writers. The second number is the hash of a table's name.

Writers of the same table wait for each other, as in SQLite. Sorted rows would not prevent deadlocks: a writer locks
existing rows before it inserts new ones, so two writers can lock the same rows in different orders.
"""


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A column type for times in UTC. Its values have a time zone even in SQLite, which does not store time zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return value and (value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC))


TYPES: dict[Scalar, sa.types.TypeEngine[Any]] = {
    "text": sa.Text(),
    "integer": sa.BigInteger(),
    "number": sa.Double(),
    "boolean": sa.Boolean(),
    "json": sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql"),
}


WriteCounts = Counter[str]
"""The numbers of rows that a write inserted (``new``), ``changed``, left ``unchanged``, and added to the
``history``."""


class SqlSink:
    """The connection to a database, and the tables for a platform. All methods block: call them in a thread."""

    def __init__(self, url: str, tables: Iterable[TableSpec]) -> None:
        self.engine = _engine(url)
        self.metadata = sa.MetaData()
        self.tables = {table.name: self._tables(table) for table in tables}

    def _tables(self, spec: TableSpec) -> tuple[sa.Table, sa.Table]:
        def columns(names: Iterable[str]) -> list[sa.Column[Any]]:
            return [sa.Column(n, TYPES[spec.columns[n]], primary_key=n in spec.key) for n in names]

        newest = sa.Table(
            spec.name,
            self.metadata,
            *columns(spec.columns),
            sa.Column("row_first_seen", UtcDateTime(), nullable=False),
            sa.Column("row_changed", UtcDateTime(), nullable=False),
            sa.Column("row_digest", sa.Text(), nullable=False),
            sa.Column("row_warnings", TYPES["json"]),
        )
        history = sa.Table(
            f"{spec.name}_history",
            self.metadata,
            *columns(spec.key),
            sa.Column("row_seen", UtcDateTime(), primary_key=True),
            *columns(name for name in spec.history if name not in spec.key),
        )
        return newest, history

    def open(self) -> None:
        """Create missing tables, and add missing columns to existing tables.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: the database cannot be reached, or rejects a statement.
        """
        with self.engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SETUP_LOCK_ID)))
            inspector = sa.inspect(connection)
            for table in self.metadata.sorted_tables:
                if not inspector.has_table(table.name):
                    connection.execute(CreateTable(table))
                    continue
                known = {column["name"] for column in inspector.get_columns(table.name)}
                for column in table.columns:
                    if column.name not in known:
                        added = CreateColumn(column).compile(dialect=connection.dialect)
                        name = connection.dialect.identifier_preparer.format_table(table)
                        connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {added}")

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def write(self, rows: Iterable[Row]) -> WriteCounts:
        """Write rows in one transaction.

        Raises:
            ConnectionError: the database cannot be reached, is locked or is full. The caller may retry.
            sqlalchemy.exc.SQLAlchemyError: the database rejects the rows.
        """
        by_table: dict[str, dict[tuple[str, ...], Row]] = {}
        total = 0
        for row in rows:
            total += 1
            same = by_table.setdefault(row.table.name, {})
            if row.key not in same or same[row.key].fetched_at <= row.fetched_at:
                same[row.key] = row
        written = WriteCounts(unchanged=total - sum(map(len, by_table.values())))
        try:
            with self.engine.begin() as connection:
                for name, found in sorted(by_table.items()):  # all writers take the locks in the same order
                    if connection.dialect.name == "postgresql":
                        lock = sa.func.pg_advisory_xact_lock(WRITE_LOCK_ID, sa.func.hashtext(name))
                        connection.execute(sa.select(lock))
                    ordered = [*found.values()]
                    for start in range(0, len(ordered), ROWS_PER_STATEMENT):
                        written += self._write_chunk(connection, ordered[start : start + ROWS_PER_STATEMENT])
        except sa.exc.OperationalError as error:
            raise ConnectionError(str(error.orig).partition("\n")[0]) from error
        return written

    def _write_chunk(self, connection: sa.Connection, rows: list[Row]) -> WriteCounts:
        spec = rows[0].table
        table, history = self.tables[spec.name]
        key = [table.c[name] for name in spec.key]
        kept = [table.c[name] for name in spec.history]
        keys = [row.key for row in rows]
        before = {
            tuple(found[: len(key)]): found[len(key) :]
            for found in connection.execute(sa.select(*key, table.c.row_digest, *kept).where(sa.tuple_(*key).in_(keys)))
        }
        differing = [row for row in rows if row.key not in before or before[row.key][0] != row.digest]
        if not differing:
            return WriteCounts(unchanged=len(rows))
        accepted = self._upsert(connection, table, spec, differing)
        past = [
            {**{n: row.values[n] for n in (*spec.key, *spec.history)}, "row_seen": row.fetched_at}
            for row in differing
            if row.key in accepted and spec.history and _history_changed(row, before.get(row.key))
        ]
        if past:
            connection.execute(postgresql.insert(history).on_conflict_do_nothing(), past)
        new = sum(row.key not in before for row in differing if row.key in accepted)
        return WriteCounts(new=new, changed=len(accepted) - new, unchanged=len(rows) - len(accepted), history=len(past))

    @staticmethod
    def _upsert(connection: sa.Connection, table: sa.Table, spec: TableSpec, rows: list[Row]) -> set[tuple[str, ...]]:
        """Write rows. Return the keys of the rows that were inserted or updated."""
        insert = postgresql.insert(table)  # SQLite has the same ON CONFLICT
        excluded = insert.excluded
        fixed = {*spec.key, "row_first_seen"}
        statement = insert.on_conflict_do_update(
            index_elements=list(spec.key),
            set_={column.name: excluded[column.name] for column in table.columns if column.name not in fixed},
            where=(table.c.row_digest != excluded.row_digest) & (table.c.row_changed <= excluded.row_changed),
        ).returning(*(table.c[name] for name in spec.key))
        values = [
            {
                **row.values,
                "row_first_seen": row.fetched_at,
                "row_changed": row.fetched_at,
                "row_digest": row.digest,
                "row_warnings": row.warnings,
            }
            for row in rows
        ]
        return {tuple(found) for found in connection.execute(statement, values)}


def _history_changed(row: Row, before: Any) -> bool:
    """Whether a price or count in the row differs from the stored state, or no state is stored."""
    return before is None or [row.values[name] for name in row.table.history] != list(before[1:])


def _engine(url: str) -> sa.Engine:
    """Return the SQLAlchemy engine for a URL, or for the path of an SQLite file.

    Raises:
        ValueError: the database is neither SQLite nor PostgreSQL.
    """
    parsed = sa.make_url(url) if "://" in url else sa.URL.create("sqlite", database=url)
    if parsed.drivername in {"postgresql", "postgres"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(parsed, pool_pre_ping=True)
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(f"the SQL sink writes to SQLite and PostgreSQL, not to {parsed.get_backend_name()}")
    engine = sa.create_engine(parsed, connect_args={"timeout": LOCK_TIMEOUT_SECONDS})
    sa.event.listen(engine, "connect", _disable_driver_transactions)
    sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def _disable_driver_transactions(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # otherwise the driver begins a transaction only before the first write
    # In WAL mode, other processes can read while the crawl writes. SQLite does not wait for the lock that the change of
    # mode needs. If another connection holds the lock, a later connection changes the mode.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
