"""The output format ``sql``: the tables of a scraper in SQLite or PostgreSQL, with the same content in both.

A scraper has a table of its records, and a table for each list of objects in them. A table has a column for each value
of the data model: the keys of nested objects are joined with underscores, and other lists are JSON. A row is inserted,
or replaces the row with the same key, unless that row was fetched later:

- A record has the natural key that its data model declares (``Mark.KEY``), or else the params of its target.
- The entries of a list with a natural key, such as products, are identified by it. They stay if they leave the list.
- The entries of any other list, such as positions of a profile, belong to their record, and are replaced with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.schema import CreateColumn, CreateTable

from crawler.outputs.columns import (
    ListOf,
    RecordPath,
    Scalar,
    Struct,
    coerce,
    column_type_of_models,
    record_paths,
    value_at,
)
from crawler.platforms.model import Mark

if TYPE_CHECKING:
    from crawler.targets.target import Scraper

MAX_NAME = 63
"""Maximum length of a name in bytes: PostgreSQL's own limit."""
WAIT_SECONDS = 60
"""Maximum seconds for which a transaction waits for those of other processes."""
CONNECT_SECONDS = 10
"""Maximum seconds for connecting to PostgreSQL."""
BEGIN = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'; SELECT pg_advisory_xact_lock(7403811)",
}
"""The begin of a transaction. It excludes all other writers: two that lock the same rows in different orders would end
in a deadlock, and two that create the same table in an error."""

TYPES: dict[Scalar, sa.types.TypeEngine[Any]] = {
    "text": sa.Text(),
    "integer": sa.BigInteger(),
    "number": sa.Double(),
    "boolean": sa.Boolean(),
    "json": sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql"),
}
TIME = sa.DateTime(timezone=True)


class DatabaseError(OSError):
    """Raised when a database cannot be used. The message names the database without its password."""


def identifier(*parts: str) -> str:
    """Return the name of a table or column: lower case, so that no database needs quotes, and at most 63 bytes.

    >>> identifier("retail-category-v4", "products"), identifier("price", "current_price")
    ('retail_category_v4_products', 'price_current_price')
    >>> identifier("polaris" * 5, "ordered" * 5)
    'polarispolarispolarispolarispolaris_orderedorderedorde_a5538a05'
    >>> identifier("é" * 31 + "s") == "é" * 31 + "s", len(identifier("é" * 32).encode())
    (True, 63)
    """
    name = "_".join(parts).replace("-", "_").lower()
    if len(name.encode()) <= MAX_NAME:
        return name
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return name.encode()[: MAX_NAME - 1 - len(digest)].decode(errors="ignore") + f"_{digest}"


@dataclass(frozen=True)
class Column:
    """A column, and the path of its value in a row's object."""

    name: str
    path: tuple[str, ...]
    kind: Scalar

    def value(self, row: dict[str, Any]) -> Any:
        """Return the value in an object; None if a key is missing, or for an integer of more than 64 bits."""
        found = value_at(row, self.path)
        return _storable(found if self.kind == "json" else coerce(found, self.kind))


def columns_of(fields: Struct, parents: tuple[str, ...] = ()) -> Iterator[Column]:
    """Yield the columns for an object and the objects in it. A list is one column, with JSON."""
    for name, kind in fields.of.items():
        path = (*parents, name)
        if isinstance(kind, Struct):
            yield from columns_of(kind, path)
        else:
            yield Column(identifier(*path), path, "json" if isinstance(kind, ListOf) else kind)


class Table:
    """A table, and the statement that inserts or replaces its rows."""

    def __init__(
        self, name: str, about: dict[str, sa.types.TypeEngine[Any]], data: list[Column], key: list[str]
    ) -> None:
        """``about``: the columns that precede those of the data. ``key``: the names of the key columns."""
        self.data = data
        types = [*about.items(), *((each.name, TYPES[each.kind]) for each in data)]
        self.table = sa.Table(name, sa.MetaData(), *(sa.Column(n, kind, primary_key=n in key) for n, kind in types))
        new = insert(self.table)  # SQLite has the same ON CONFLICT
        changed = {each.name: new.excluded[each.name] for each in self.table.columns if each.name not in key}
        is_newer = self.table.c.fetched_at <= new.excluded.fetched_at
        upsert = new.on_conflict_do_update(index_elements=key, set_=changed, where=is_newer)
        self.upsert = upsert.execution_options(preserve_rowcount=True)

    def values(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the data's columns for an object."""
        return {column.name: column.value(row) for column in self.data}

    def prepare(self, connection: sa.Connection) -> None:
        """Create the table, or add the columns that it lacks.

        Raises:
            DatabaseError: the table has another key, or a column of another type.
        """
        inspector = sa.inspect(connection)
        name = self.table.name
        if not inspector.has_table(name):
            connection.execute(CreateTable(self.table))
            return
        key, expected = inspector.get_pk_constraint(name)["constrained_columns"], self.table.primary_key.columns.keys()
        if set(key) != set(expected):
            raise DatabaseError(
                f"the table {name} has the key ({', '.join(key)}), not ({', '.join(expected)}): rename or drop it"
            )
        known = {each["name"]: each["type"].compile(connection.dialect) for each in inspector.get_columns(name)}
        for column in self.table.columns:
            kind = column.type.compile(connection.dialect)
            if column.name not in known:
                added = CreateColumn(column).compile(dialect=connection.dialect)
                quoted = connection.dialect.identifier_preparer.format_table(self.table)
                connection.exec_driver_sql(f"ALTER TABLE {quoted} ADD COLUMN {added}")
            elif known[column.name] != kind:
                raise DatabaseError(
                    f"the table {name} has the column {column.name} of type {known[column.name]}, not {kind}: rename"
                    " or drop the table"
                )


class ListTable(Table):
    """The table of a list of objects in a scraper's records."""

    def __init__(self, scraper: Scraper, path: RecordPath, records: Table) -> None:
        self.path = path
        self.of_record = {identifier("record", each.name): each for each in records.table.primary_key.columns}
        self.key = [identifier(*each) for each in path.fields.marked(Mark.KEY)]
        about = {name: each.type for name, each in self.of_record.items()}
        about |= {path.position_column: TYPES["integer"], "fetched_at": TIME}
        key = self.key or [*self.of_record, path.position_column]
        super().__init__(
            identifier(scraper.name, *([path.name] if path.name else path.path)), about, [*columns_of(path.fields)], key
        )
        conditions = [self.table.c[name] == sa.bindparam(f"{name}_") for name in self.of_record]
        self.remove = sa.delete(self.table).where(*conditions)

    def rows(self, data: dict[str, Any], record: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of a record's list. ``record``: the row of the record."""
        about = {name: record[each.name] for name, each in self.of_record.items()} | {
            "fetched_at": record["fetched_at"]
        }
        found = self.path.distinct_rows(data).values()
        return [{**about, self.path.position_column: at, **self.values(row)} for at, row in found]


class ScraperTables:
    """The tables of a scraper."""

    def __init__(self, scraper: Scraper) -> None:
        self.scraper = scraper
        fields = column_type_of_models([scraper.data])
        lists = [each for each in record_paths(fields) if each.is_list]
        own = {each.path for each in lists}
        about = dict.fromkeys(("target_id", "root", "params"), TYPES["text"])
        about |= {"columns": TYPES["json"], "fetched_at": TIME, "warnings": TYPES["json"], "note": TYPES["text"]}
        data = [each for each in columns_of(fields) if each.path not in own]
        key = [identifier(*path) for path in fields.marked(Mark.KEY)] or ["params"]
        self.records = Table(identifier(scraper.name), about, data, key)
        self.lists = [ListTable(scraper, each, self.records) for each in lists]

    def write(self, connection: sa.Connection, line: dict[str, Any]) -> None:
        """Write the rows of a record."""
        record = self._about(line) | self.records.values(line["data"])
        is_newest = connection.execute(self.records.upsert, record).rowcount
        for each in self.lists:
            rows = each.rows(line["data"], record)
            if not each.key and is_newest:
                connection.execute(each.remove, {f"{name}_": record[of.name] for name, of in each.of_record.items()})
            if rows and (each.key or is_newest):
                connection.execute(each.upsert, rows)

    def _about(self, line: dict[str, Any]) -> dict[str, Any]:
        meant = self.scraper.params.model_validate(line["params"]).identity()
        return {
            "target_id": _storable(line["id"]),
            "root": _storable(line.get("root")),
            "params": orjson.dumps(_storable(meant), option=orjson.OPT_SORT_KEYS).decode(),
            "columns": _storable(line.get("columns")),
            "fetched_at": datetime.fromisoformat(line["fetched_at"]),
            "warnings": _storable(line["warnings"]),
            "note": _storable(line["note"]),
        }


class Database:
    """A database with the tables of scrapers. All methods block."""

    def __init__(self, uri: str, password: str | None = None) -> None:
        """``uri``: a URL of SQLAlchemy, without a password.

        Raises:
            ValueError: the URL is wrong, or the driver of the database is not installed.
        """
        self.name = uri
        """The URL of the database, without its password."""
        self._tables: dict[str, ScraperTables] = {}
        try:
            url = sa.make_url(uri)
            if url.get_backend_name() == "sqlite":
                options: dict[str, Any] = {"timeout": WAIT_SECONDS}
            else:
                url = url.set(drivername="postgresql+psycopg", password=password)
                options = {"connect_timeout": CONNECT_SECONDS}
            self._path = url.database if url.drivername == "sqlite" else None
            self._engine = sa.create_engine(
                url, connect_args=options, pool_pre_ping=True, json_serializer=_json, hide_parameters=True
            )
        except ImportError as error:
            raise ValueError(f"{uri} needs a driver ({error}): install the extra 'postgresql'") from None
        except (sa.exc.ArgumentError, ValueError) as error:
            raise ValueError(f"{uri} is not the URL of a database: {error}") from None
        if not url.database:
            raise ValueError(f"{uri} names no database: use sqlite:///file or postgresql://user@host/database")
        sa.event.listen(self._engine, "begin", _begin)
        if self._path is not None:
            sa.event.listen(self._engine, "connect", _set_up_sqlite)

    def prepare(self, scrapers: Iterable[Scraper]) -> None:
        """Connect to the database, and create the missing tables and columns for scrapers.

        Raises:
            DatabaseError: the database cannot be used, or has other tables of the same name.
        """
        try:
            if self._path is not None:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            with self._engine.begin() as connection:
                for scraper in scrapers:
                    self._tables[scraper.name] = tables = ScraperTables(scraper)
                    for each in (tables.records, *tables.lists):
                        each.prepare(connection)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            self.close()
            raise self._error(error) from None

    def write(self, lines: Iterable[dict[str, Any]]) -> None:
        """Write records in one transaction. ``lines``: their lines, as those of feeds.

        Raises:
            DatabaseError: the database cannot be used, or refuses a row.
        """
        try:
            with self._engine.begin() as connection:
                for line in lines:
                    self._tables[line["scraper"]].write(connection, line)
        except sa.exc.SQLAlchemyError as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _error(self, error: Exception) -> DatabaseError:
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        return DatabaseError(f"{self.name}: {reason}")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _storable(value: Any) -> Any:
    """Remove NUL characters from all texts. PostgreSQL cannot store them, and SQLite must have the same content."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return value


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(BEGIN[connection.dialect.name])


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # otherwise the driver begins transactions, and not before CREATE TABLE
    connection.execute("PRAGMA synchronous=NORMAL")  # a commit does not wait for the disk; a power cut may undo it
    with suppress(sqlite3.OperationalError):  # does not wait for the lock of another process: a later connection tries
        connection.execute("PRAGMA journal_mode=WAL")  # others can read during a write
