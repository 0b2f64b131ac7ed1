"""The version of a store's tables, and the steps that bring earlier versions up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa


class StoreVersionError(Exception):
    """Raised when a later version of this project has changed the tables of a store."""


@dataclass(frozen=True)
class VersionedSchema:
    """Tables with a version. ``create`` makes the tables of the newest version in an empty database.

    ``steps[0]`` changes the tables of version 1 to those of version 2, and so on.
    """

    create: Callable[[sa.Connection], None]
    steps: tuple[Callable[[sa.Connection], None], ...] = ()

    def version(self, connection: sa.Connection) -> int:
        """Return the version of a database, 0 if it has no tables."""
        import sqlalchemy as sa  # noqa: PLC0415  # takes 0.1 s, and the service needs it for PostgreSQL only

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
            StoreVersionError: as for ``is_current``.
        """
        import sqlalchemy as sa  # noqa: PLC0415  # takes 0.1 s, and the service needs it for PostgreSQL only

        if self.is_current(connection):
            return
        found = self.version(connection)
        if found:
            for step in self.steps[found - 1 :]:
                step(connection)
        else:
            connection.execute(sa.text("CREATE TABLE schema_version (version INTEGER NOT NULL)"))
            connection.execute(sa.text("INSERT INTO schema_version VALUES (0)"))
            self.create(connection)
        connection.execute(sa.text("UPDATE schema_version SET version = :version"), {"version": len(self.steps) + 1})
