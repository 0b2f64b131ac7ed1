"""The version of a store's tables, and the steps that bring earlier versions up to date.

The store of version 0.2 of this project has no version of its own: it contains usage, quotas and responses, but no
jobs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
import structlog

from crawler.jobs.clock import utc_text

logger = structlog.get_logger(__name__)

DROPPED = ("calls", "idempotency")
"""The tables of version 0.2 that are dropped: calls and responses, whose columns have changed."""
UNFINISHED = (
    ("calls", "state <> 'done'", "asynchronous calls that are not completed", "NULL"),
    ("calls", "state = 'done' AND expires > {now}", "responses of asynchronous calls", "MAX(expires)"),
    ("idempotency", "expires > {now}", "responses of calls with an Idempotency-Key", "MAX(expires)"),
)
"""Rows that prevent an update: table, condition, description, and SQL for the time at which the last row expires."""
NOW = {"sqlite": "strftime('%s', 'now')", "postgresql": "extract(epoch FROM clock_timestamp())"}


class StoreVersionError(Exception):
    """Raised when this version cannot use the tables of a store, which a later or a much earlier version has made."""


@dataclass(frozen=True)
class VersionedSchema:
    """Tables with a version.

    ``create`` makes the tables of the newest version in a database that is empty, or of version 0.2. ``steps[0]``
    changes the tables of version 1 to those of version 2, and so on.
    """

    create: Callable[[sa.Connection], None]
    steps: tuple[Callable[[sa.Connection], None], ...] = ()

    def version(self, connection: sa.Connection) -> int:
        """Return the version of a database, or 0 if it is empty, or of version 0.2 of this project."""
        if not sa.inspect(connection).has_table("schema_version"):
            return 0
        return int(connection.scalar(sa.text("SELECT version FROM schema_version")) or 0)

    def is_current(self, connection: sa.Connection) -> bool:
        """Whether a database has the newest version.

        Raises:
            StoreVersionError: its version is newer than those that this program supports.
        """
        found, newest = self.version(connection), len(self.steps) + 1
        if found > newest:
            raise StoreVersionError(
                f"The store has version {found}, and this program supports versions up to {newest}: update the program,"
                " or use another store."
            )
        return found == newest

    def update(self, connection: sa.Connection) -> None:
        """Bring a database to the newest version, within the caller's transaction.

        Raises:
            StoreVersionError: as for ``is_current()``, or ``create`` raises it.
        """
        if self.is_current(connection):
            return
        if found := self.version(connection):
            for step in self.steps[found - 1 :]:
                step(connection)
        else:
            connection.execute(sa.text("CREATE TABLE schema_version (version INTEGER NOT NULL)"))
            connection.execute(sa.text("INSERT INTO schema_version VALUES (0)"))
            self.create(connection)
        connection.execute(sa.text("UPDATE schema_version SET version = :version"), {"version": len(self.steps) + 1})


def take_over(connection: sa.Connection) -> None:
    """Convert the tables of a store of version 0.2 within the caller's transaction. Usage and quotas are kept.

    A copy of an SQLite file is kept as ``<file>.0.2``. A database without tables of version 0.2 is not changed.

    Raises:
        StoreVersionError: the store has calls or responses, which this version cannot read.
    """
    tables = {*sa.inspect(connection).get_table_names()}
    if "usage" not in tables:
        return
    _check(connection, tables)
    kept = _keep_copy(connection) if connection.dialect.name == "sqlite" else None
    for name in DROPPED:
        connection.execute(sa.text(f"DROP TABLE IF EXISTS {name}"))
    if "partial" not in {column["name"] for column in sa.inspect(connection).get_columns("usage")}:
        connection.execute(sa.text("ALTER TABLE usage ADD COLUMN partial BIGINT NOT NULL DEFAULT 0"))
    calls = connection.scalar(sa.text("SELECT COALESCE(SUM(calls), 0) FROM usage"))
    logger.warning("store_taken_over", from_version="0.2", usage_calls=int(calls or 0), kept_as=kept)


def _check(connection: sa.Connection, tables: set[str]) -> None:
    found, last = [], 0.0
    for table, condition, what, until in UNFINISHED:
        if table in tables:
            where = condition.format(now=NOW[connection.dialect.name])
            n, end = connection.execute(sa.text(f"SELECT COUNT(*), {until} FROM {table} WHERE {where}")).one()  # noqa: S608
            if n:
                found.append(f"{n} {what}")
                last = max(last, float(end or 0))
    if found:
        until = f" The last response expires at {utc_text(last)}." if last else ""
        raise StoreVersionError(
            f"The store of version 0.2 has {', '.join(found)}, which this version cannot read: serve it with version"
            f" 0.2 until they are completed and fetched (DELETE /v1/calls/ID deletes a call).{until} To give them up,"
            " delete the rows of its tables calls and idempotency."
        )


def _keep_copy(connection: sa.Connection) -> str:
    """Copy the SQLite file of a connection, whose transaction has the write lock and no changes yet."""
    path = Path(connection.execute(sa.text("PRAGMA database_list")).all()[0].file)
    kept, part = Path(f"{path}.0.2"), Path(f"{path}.0.2.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as copy:
        source.backup(copy)
    part.replace(kept)
    return str(kept)
