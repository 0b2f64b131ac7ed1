"""Databases to write to: SQLite files, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa


def _program(name: str) -> str | None:
    """A program of PostgreSQL's: on the path, or where Debian keeps those of each version."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(packaged[-1]) if packaged else None)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server that listens on a socket file only, run by a user without rights where the tests are root."""
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no PostgreSQL on this machine (Debian and Ubuntu: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    as_user = {}
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"
    make = [initdb, "-D", str(data), "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
    subprocess.run(make, check=True, capture_output=True, cwd=folder, **as_user)  # type: ignore[call-overload]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [postgres, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stderr=subprocess.DEVNULL,
        cwd=folder,
        **as_user,
    )
    try:
        url = f"postgresql://tests@/postgres?host={folder}"
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        for _ in range(200):
            try:
                engine.connect().close()
                break
            except sa.exc.OperationalError:
                time.sleep(0.05)
        engine.dispose()
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # SIGTERM waits for those who are connected
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


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
