"""Stores written by version 0.2 (from git): usage is kept, and nothing is lost without a message."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from structlog.testing import capture_logs

from crawler.jobs.location import default_file, prepare, store_location
from crawler.jobs.store import Store
from crawler.service.clients import usage
from crawler.service.clients.key_store import KeyRing, KeyStore

ROOT = Path(__file__).parents[2]
RELEASE = "70154a8edc"
"""The commit that set version 0.2.0."""

MAKE = """
import asyncio, sys
from pathlib import Path
from crawler.service import usage
from crawler.service.keys import KeyStore
from crawler.service.store import Store
from crawler.service.usage import Usage

async def main(location, keys):
    store = Store(location, usage.SCHEMA)
    counts = Usage(store)
    for client, code in (("acme", "OK"), ("acme", "OK"), ("acme", "UPSTREAM_ERROR"), ("other", "OK")):
        counts.count(client, "retail-search-v4", code, billable=code == "OK")
    await counts.flush()
    await store.close()
    print(KeyStore(Path(keys)).create("acme"))

asyncio.run(main(*sys.argv[1:]))
"""
RESPONSE = """
import asyncio, sys
from crawler.registry import scrapers
from crawler.service.envelope import Served
from crawler.service.idempotency import SCHEMA, Idempotency
from crawler.service.store import Store
from crawler.targets.target import Target, check_params

async def main(location):
    store = Store(location, SCHEMA)
    scraper = scrapers()["retail-search-v4"]
    deadline = asyncio.get_running_loop().time() + 60
    target = Target("req_1", scraper, check_params(scraper, {"query": "mustard"}), deadline=deadline)
    async def serve():
        return Served({"a": 1})
    await Idempotency(store, 3600).once("k", "acme", target, serve)
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of version 0.2."""
    packed = subprocess.run(
        ["/usr/bin/env", "git", "archive", RELEASE, "crawler"], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        pytest.skip("the tests run without the history of the project, which has version 0.2")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(release: Path, code: str, *arguments: str) -> str:
    """Run code in version 0.2. Return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(release), "SCRAPY_SETTINGS_MODULE": "crawler.settings"}
    command = [sys.executable, "-P", "-c", code, *arguments]
    done = subprocess.run(command, cwd=release, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def earlier(location: str, tmp_path: Path, release: Path) -> tuple[str, str]:
    """A store of version 0.2, and an API key."""
    return location, run(release, MAKE, location, str(tmp_path / "keys.sqlite"))


def reported(location: str, client: str) -> tuple[int, int]:
    store = Store(location)
    report = store.transact_sync(lambda session: usage.report(session, client))
    store.disconnect()
    return report["calls"], report["billable"]


async def test_keys_and_usage_are_taken_over_once(earlier: tuple[str, str], tmp_path: Path) -> None:
    location, key = earlier
    with capture_logs() as logged:
        prepare(location)
        prepare(location)
    file = None if "://" in location else f"{location}.0.2"
    assert [(each["event"], each["usage_calls"], each["kept_as"]) for each in logged] == [("store_taken_over", 4, file)]
    assert (reported(location, "acme"), reported(location, "other")) == ((3, 2), (1, 1))
    assert (await KeyRing(KeyStore(tmp_path / "keys.sqlite")).holder(key)).client == "acme"
    if file is not None:
        assert Path(file).stat().st_mode & 0o077 == 0  # noqa: ASYNC240
        with closing(sqlite3.connect(file)) as kept:
            assert kept.execute("SELECT SUM(calls) FROM usage").fetchone() == (4,)
            assert not kept.execute("SELECT 1 FROM sqlite_master WHERE name = 'jobs'").fetchall()
        with closing(sqlite3.connect(location)) as database:
            assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def change(location: str, statement: str) -> None:
    if "://" in location:
        import psycopg  # noqa: PLC0415  # an extra

        with psycopg.connect(location) as connection:
            connection.execute(statement)
    else:
        with closing(sqlite3.connect(location)) as database, database:
            database.execute(statement)


CALLS = "CREATE TABLE calls (request_id TEXT PRIMARY KEY, state TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL)"


def test_open_calls_and_stored_responses_are_refused_until_they_expire_or_are_given_up(
    earlier: tuple[str, str], release: Path
) -> None:
    location, _ = earlier
    change(location, CALLS)
    for state, lost in {
        "waiting": "asynchronous calls that are not",
        "done": "responses of asynchronous calls",
    }.items():
        change(location, f"INSERT INTO calls VALUES ('req_1', '{state}', 4e9)")  # noqa: S608
        with pytest.raises(UsageError, match=f"1 {lost}.*DELETE /v1/calls/ID"):
            prepare(location)
        change(location, "DELETE FROM calls")
    run(release, RESPONSE, location)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"1 responses of calls with an Idempotency-Key.* expires at 2"):
            prepare(location)
    for statement in ("UPDATE idempotency SET expires = 1", "DROP TABLE idempotency"):
        change(location, statement)
    prepare(location)
    assert reported(location, "acme") == (3, 2)


def test_the_file_of_version_0_2_in_the_project_folder_is_used(
    release: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    location = str(tmp_path / "service.sqlite3")
    run(release, MAKE, location, str(tmp_path / "keys.sqlite"))
    monkeypatch.setattr("crawler.jobs.location.data_file", lambda name, **_: tmp_path / name)
    assert [default_file() for _ in range(2)] == [tmp_path / "store.sqlite3"] * 2
    assert not Path(location).exists()
    prepare(str(tmp_path / "store.sqlite3"))
    assert reported(str(tmp_path / "store.sqlite3"), "acme") == (3, 2)


def test_service_store_is_an_alias_with_a_warning(tmp_path: Path) -> None:
    path = str(tmp_path / "own.sqlite3")
    with capture_logs() as logged:
        assert store_location(Settings({"STORE": path, "SERVICE_STORE": "other"})) == path
        assert store_location(Settings({"STORE": None, "SERVICE_STORE": path})) == path
    assert logged == [{"event": "setting_renamed", "old": "SERVICE_STORE", "new": "STORE", "log_level": "warning"}]
