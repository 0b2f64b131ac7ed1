"""Rows into a database: SQLite or PostgreSQL, the same tables and the same content in both. Needs the extra ``sql``.

Every table ``<platform>_<entity>`` holds the newest state of each thing under its natural key, and beside it
``<table>_history`` holds one row for each time that a price or count of it changed. A row that is as it was is not
written again. Several processes may write to the same database: what was fetched later stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateColumn, CreateTable

from crawler.outputs.columns import Scalar
from crawler.outputs.sql.rows import Row, TableSpec

CHUNK = 500
"""Rows of one statement: databases bound the number of values of one."""
LOCK_TIMEOUT = 60
"""Seconds for which SQLite waits for another process's writing."""
SETUP_LOCK = 7_403_811
"""PostgreSQL's advisory lock under which tables are made: "if not exists" alone is no protection from others."""


class Moment(sa.TypeDecorator[datetime]):
    """A moment, with its time zone in every database; SQLite keeps none, so that all are in UTC."""

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


@dataclass(frozen=True)
class WriteCounts:
    """What became of rows."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    history: int = 0

    def __add__(self, other: WriteCounts) -> WriteCounts:
        return WriteCounts(
            self.new + other.new,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.history + other.history,
        )


class SqlSink:
    """A database with the tables of a platform. Everything here blocks: it is called from threads."""

    def __init__(self, url: str, tables: Iterable[TableSpec]) -> None:
        self.engine = _engine(url)
        self.metadata = sa.MetaData()
        self.tables = {table.name: self._tables(table) for table in tables}

    def _tables(self, shape: TableSpec) -> tuple[sa.Table, sa.Table]:
        def columns(names: Iterable[str]) -> list[sa.Column[Any]]:
            return [sa.Column(n, TYPES[shape.columns[n]], primary_key=n in shape.key) for n in names]

        newest = sa.Table(
            shape.name,
            self.metadata,
            *columns(shape.columns),
            sa.Column("row_first_seen", Moment(), nullable=False),
            sa.Column("row_changed", Moment(), nullable=False),
            sa.Column("row_digest", sa.Text(), nullable=False),
        )
        history = sa.Table(
            f"{shape.name}_history",
            self.metadata,
            *columns(shape.key),
            sa.Column("row_seen", Moment(), primary_key=True),
            *columns(name for name in shape.history if name not in shape.key),
        )
        return newest, history

    def open(self) -> None:
        """Makes the tables that are missing, and adds the columns that a newer data model has.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: the database cannot be reached, or refuses.
        """
        with self.engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SETUP_LOCK)))
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
        """Gives the connections back."""
        self.engine.dispose()

    def write(self, rows: Iterable[Row]) -> WriteCounts:
        """Writes rows in one transaction: all of them, or none.

        Raises:
            ConnectionError: the database cannot be reached, is locked or full: the same rows may be written later.
            sqlalchemy.exc.SQLAlchemyError: it refuses these rows.
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
                for _, found in sorted(by_table.items()):
                    # In the order of their keys: two processes that wait for each other's rows would wait for ever.
                    ordered = [row for _, row in sorted(found.items())]
                    for start in range(0, len(ordered), CHUNK):
                        written += self._write_chunk(connection, ordered[start : start + CHUNK])
        except sa.exc.OperationalError as error:
            raise ConnectionError(str(error.orig).partition("\n")[0]) from error
        return written

    def _write_chunk(self, connection: sa.Connection, rows: list[Row]) -> WriteCounts:
        shape = rows[0].table
        table, history = self.tables[shape.name]
        key = [table.c[name] for name in shape.key]
        kept = [table.c[name] for name in shape.history]
        wanted = [row.key for row in rows]
        before = {
            tuple(found[: len(key)]): found[len(key) :]
            for found in connection.execute(
                sa.select(*key, table.c.row_digest, *kept).where(sa.tuple_(*key).in_(wanted)).with_for_update()
            )
        }
        differing = [row for row in rows if row.key not in before or before[row.key][0] != row.digest]
        if not differing:
            return WriteCounts(unchanged=len(rows))
        accepted = self._upsert(connection, table, shape, differing)
        past = [
            {**{n: row.values[n] for n in (*shape.key, *shape.history)}, "row_seen": row.fetched_at}
            for row in differing
            if row.key in accepted and shape.history and _moved(row, before.get(row.key))
        ]
        if past:
            connection.execute(_insert(connection, history).on_conflict_do_nothing(), past)
        new = sum(row.key not in before for row in differing if row.key in accepted)
        return WriteCounts(new, len(accepted) - new, len(rows) - len(accepted), len(past))

    @staticmethod
    def _upsert(connection: sa.Connection, table: sa.Table, shape: TableSpec, rows: list[Row]) -> set[tuple[str, ...]]:
        """Writes rows, and returns the keys of those that were not there as they are, or newer."""
        insert = _insert(connection, table)
        given = insert.excluded
        fixed = {*shape.key, "row_first_seen"}
        statement = insert.on_conflict_do_update(
            index_elements=list(shape.key),
            set_={column.name: given[column.name] for column in table.columns if column.name not in fixed},
            where=(table.c.row_digest != given.row_digest) & (table.c.row_changed <= given.row_changed),
        ).returning(*(table.c[name] for name in shape.key))
        values = [
            {
                **row.values,
                "row_first_seen": row.fetched_at,
                "row_changed": row.fetched_at,
                "row_digest": row.digest,
            }
            for row in rows
        ]
        return {tuple(found) for found in connection.execute(statement, values)}


def _moved(row: Row, before: Any) -> bool:
    """Whether a price or count is not what it was."""
    return before is None or [row.values[name] for name in row.table.history] != list(before[1:])


def _insert(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def _engine(url: str) -> sa.Engine:
    """The engine of a URL, or of a path of an SQLite file.

    Raises:
        ValueError: another database.
    """
    parsed = sa.make_url(url) if "://" in url else sa.URL.create("sqlite", database=url)
    if parsed.drivername in {"postgresql", "postgres"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(parsed, pool_pre_ping=True)
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(f"the SQL sink writes to SQLite and PostgreSQL, not to {parsed.get_backend_name()}")
    engine = sa.create_engine(parsed, connect_args={"timeout": LOCK_TIMEOUT})
    sa.event.listen(engine, "connect", _own_transactions)
    sa.event.listen(engine, "begin", _lock_at_once)
    return engine


def _own_transactions(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins its transactions too late to protect what was read
    connection.execute("PRAGMA journal_mode=WAL")  # readers do not wait for the crawl


def _lock_at_once(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
