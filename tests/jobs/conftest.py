"""Stores of jobs on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from crawler.jobs.lifecycle import Jobs
from tests.service.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The location of an empty store."""
    if request.param == "sqlite":
        yield str(tmp_path / "jobs.sqlite3")
        return
    server = request.getfixturevalue("postgresql")
    name = f"jobs_{os.getpid()}_{next(numbers)}"
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield server.replace("/postgres?", f"/{name}?")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    engine.dispose()


@pytest.fixture
def jobs(location: str) -> Iterator[Jobs]:
    opened = Jobs(location)
    yield opened
    asyncio.run(opened.close())
