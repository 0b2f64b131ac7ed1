"""The version of a store, and the plans of its statements."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.reflection import Inspector

from crawler.jobs import prepare, store, store_location
from crawler.jobs import tables as sql
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Store, StoreTime, _compiled, compiled
from crawler.jobs.tables import StoreVersionError
from tests.jobs.workers import lines, new_job


async def test_a_store_of_another_version_is_refused(jobs: Jobs, location: str) -> None:
    await new_job(jobs, 3)
    await jobs.writes.transact(lambda session: session.run("UPDATE schema_version SET version = 99"))
    message = "The tables of the store have version 99, and this program needs version [0-9]+: use the program"
    with pytest.raises(StoreVersionError, match=message):
        Store(location).transact_sync(lambda _: None)
    with pytest.raises(UsageError, match=message):
        prepare(location)


def test_a_store_of_version_0_2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE usage (client TEXT)")
    message = re.escape(
        "The store is of version 0.2, which this version cannot read: print its usage with version 0.2 ("
    )
    with pytest.raises(UsageError, match=message):
        prepare(str(path))


def test_a_store_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables appear between the queries that look for them."""
    path, has_table = str(tmp_path / "store.sqlite3"), Inspector.has_table
    asked: list[str] = []

    def and_then_made(inspector: Inspector, name: str) -> bool:
        found = has_table(inspector, name)
        asked.append(name)
        if len(asked) == 1:
            Store(path).transact_sync(lambda _: None)
        return found

    monkeypatch.setattr(Inspector, "has_table", and_then_made)
    Store(path).transact_sync(lambda _: None)
    assert len(asked) > 1


def test_the_default_store_of_version_0_2_is_opened_and_so_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")
    (tmp_path / ".scrapy").mkdir()
    monkeypatch.chdir(tmp_path)
    assert store_location(Settings({"STORE": None})).endswith("/.scrapy/store.sqlite3")
    (tmp_path / ".scrapy/service.sqlite3").touch()
    assert store_location(Settings({"STORE": None})).endswith("/.scrapy/service.sqlite3")
    (tmp_path / ".scrapy/store.sqlite3").touch()
    assert store_location(Settings({"STORE": None})).endswith("/.scrapy/store.sqlite3")


TABLES = """
jobs id* name owner run revision key? kind state whole_roots options created loaded ended? seq waiting running paused \
done failed dead cancelled
tallies job* kind* name* n
inputs job* row* key id columns? line? note
targets job* key* root? parent? row? platform work state worker? tries exits lease_until? code? outcome? note? seq?
records job* seq* data
limits key* scope fact ends
seen listing* ids
usage client* day* scraper* code* calls billable partial
totals scraper* code* targets records
outbox id* client body created due tries
writes id* stored
schema_version version
"""
"""The tables of version 4: ``*`` marks the primary key, ``?`` columns that may be null."""


def test_the_tables_of_a_version_stay_as_they_are() -> None:
    """A store that another release of the same version has made is opened without a check of its columns."""
    assert sql.VERSION == 4, "with a new version, correct the tables, too"
    lines = []
    for name, table in sql.metadata.tables.items():
        marks = (f"{each.name}{'?' * bool(each.nullable)}{'*' * each.primary_key}" for each in table.columns)
        lines.append(f"{name} {' '.join(marks)}\n")
    assert "".join(lines) == TABLES.removeprefix("\n")


async def test_a_statement_is_compiled_once_for_all_connections(jobs: Jobs) -> None:
    """A connection is replaced after each outage."""
    numbers = []
    for _ in range(4):
        await jobs.begin("job")
        await jobs.read(sql.OPEN_JOBS)
        numbers.append(_compiled.cache_info().currsize)
        jobs.writes.disconnect()
        jobs.reads.disconnect()
    assert numbers == [numbers[0]] * 4


def test_scrapy_cloud_needs_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHUB_JOBKEY", "1/2/3")
    with pytest.raises(UsageError, match="set STORE to a postgresql:// URL"):
        store_location(Settings({"STORE": None}))
    assert store_location(Settings({"STORE": "postgresql://host/db"})) == "postgresql://host/db"


def test_the_space_of_deleted_rows_can_be_freed(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "jobs.sqlite3"))
    assert store.transact_sync(lambda session: session.rows("PRAGMA auto_vacuum")) == [(2,)]
    store.disconnect()


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("TO_CLAIM", {"job": 1, "platform": "retail", "limit": 32}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0]}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0]}, "targets_leases"),
        ("EXPIRED", {"now": 0.0, "far": 9e9, "limit": 500}, "targets_leases"),
        ("BY_SEQ", {"job": 1, "after": 0, "until": 9, "limit": 500}, "targets_seq"),
        ("FOLLOWUPS", {"job": 1, "last": 9, "row_": 0, "key_": b"", "limit": 500}, "targets_followups"),
        ("ROOT_TO_CLAIM", {"job": 1, "root": b"x"}, "targets_roots"),
        ("HELD", {"job_": 1, "keys": [b"x", b"y"]}, "sqlite_autoindex_targets_1 (job=? AND key=?)"),
        (
            "START",
            {"job_": 1, "keys": [b"x"], "worker_": "", "until": 0.0},
            "sqlite_autoindex_targets_1 (job=? AND key",
        ),
        (
            "RENEW",
            {"job_": 1, "keys": [b"x"], "worker_": "", "until": 0.0},
            "sqlite_autoindex_targets_1 (job=? AND key",
        ),
        ("INPUTS_OF", {"job": 1, "keys": [b"x"]}, "inputs_key"),
    ],
)
async def test_a_statement_uses_its_index(tmp_path: Path, name: str, values: dict[str, object], index: str) -> None:
    jobs = Jobs(str(tmp_path / "jobs.sqlite3"))
    job = await jobs.begin("job")
    await jobs.push(job, lines(500))
    statement = getattr(sql, name)

    def plan() -> str:
        text = compiled(sqlite.dialect(), statement, values)
        database = sqlite3.connect(tmp_path / "jobs.sqlite3")
        try:
            return str(database.execute(f"EXPLAIN QUERY PLAN {text.text}", text.arguments(values)).fetchall())
        finally:
            database.close()

    found = plan()
    assert index in found, found
    running = "SCAN targets USING INDEX targets_leases"  # this index has the running targets only
    assert "SCAN targets" not in found.replace(running, "")
    await jobs.close()


async def test_transactions_observe_the_clock_of_the_database_each_second(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [1_000.0]
    clock = StoreTime(needed=1.5, monotonic=lambda: here[0])
    monkeypatch.setattr("crawler.jobs.store.STORE_TIME", clock)
    for connection in (store._SqliteConnection, store._PostgreSqlConnection):
        monkeypatch.setattr(connection, "now", lambda _: here[0] + 7e8)
    found = []
    for seconds in (0, 0.9, 0.2, 0.9, 0.2):
        here[0] += seconds
        [job async for job in jobs.every()]
        found.append((clock.is_due, clock.is_steady, round(clock.now() - here[0])))
    assert found == [(False, steady, 700_000_000) for steady in (False, False, False, False, True)]
