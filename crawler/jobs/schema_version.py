"""The version of a store's tables, and the steps that bring earlier versions up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa


class StoreVersionError(Exception):
    """Raised when this version cannot use the tables of a store, which a later or a much earlier version has made."""


@dataclass(frozen=True)
class VersionedSchema:
    """Tables with a version.

    ``create`` makes the tables of the newest version in an empty database. ``steps[0]``
    changes the tables of version 1 to those of version 2, and so on.
    """

    create: Callable[[sa.Connection], None]
    steps: tuple[Callable[[sa.Connection], None], ...] = ()

    def version(self, connection: sa.Connection) -> int:
        """Return the version of a database, or 0 if it has none: it is empty, or of version 0.2 of this project."""
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


def refuse_version_0_2(connection: sa.Connection) -> None:
    """Check that a database without a version is not a store of version 0.2, whose tables have other columns.

    Raises:
        StoreVersionError: it is one.
    """
    if sa.inspect(connection).has_table("usage"):
        raise StoreVersionError(
            "The store is of version 0.2, which this version cannot read: print its usage with version 0.2 (scrapy keys"
            " usage), then remove it, or set STORE to a new file or database (CHANGELOG.md)."
        )
