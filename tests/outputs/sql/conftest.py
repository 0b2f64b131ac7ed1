"""Databases of the SQL sink's tests: SQLite files, and databases of a PostgreSQL server of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The value of ``SQL_SINK`` for an empty database, once for SQLite and once for PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "out.db")
    return empty_database(str(request.getfixturevalue("postgresql")), tmp_path.name)


def empty_database(server: str, name: str) -> str:
    """Create a database on a server, and return its URL."""
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'create database "{name}"')
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")
