"""Databases to write to: SQLite files, and those of a PostgreSQL server of the tests' own."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The value of ``SQL_SINK`` for an empty database, once of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "out.db")
    return empty_database(str(request.getfixturevalue("postgresql")), tmp_path.name)


def empty_database(server: str, name: str) -> str:
    """The URL of a new database of a server."""
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'create database "{name}"')
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")
