"""The version of a store, and the plans of its statements."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from sqlalchemy.dialects import sqlite

from crawler.errors import StoreUnavailable
from crawler.jobs import statements as sql
from crawler.jobs.databases import compiled
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.location import prepare, store_location
from crawler.jobs.schema_version import StoreVersionError, VersionedSchema
from crawler.jobs.store import Store
from crawler.jobs.tables import SCHEMA, metadata
from tests.jobs.workers import lines, new_job


def version(store: Store) -> int:
    return int(store.transact_sync(lambda session: session.rows("SELECT version FROM schema_version"))[0][0])


def closed(store: Store) -> int:
    found = version(store)
    store.disconnect()
    return found


def add_column(connection: sa.Connection) -> None:
    connection.execute(sa.text("ALTER TABLE jobs ADD COLUMN mark INTEGER"))


def fail(connection: sa.Connection) -> None:
    add_column(connection)
    connection.execute(sa.text("SELECT * FROM missing"))


async def test_a_store_of_an_earlier_version_is_brought_up_to_date(jobs: Jobs, location: str) -> None:
    await new_job(jobs, 3)
    newer = replace(SCHEMA, steps=(*SCHEMA.steps, add_column))
    assert closed(Store(location, SCHEMA)) == 2
    with pytest.raises(StoreUnavailable):
        version(Store(location, replace(SCHEMA, steps=(*SCHEMA.steps, fail))))
    assert closed(Store(location, SCHEMA)) == 2, "a step that fails changes nothing"
    assert closed(Store(location, newer)) == 3
    assert closed(Store(location, newer)) == 3
    with pytest.raises(StoreVersionError, match="version 3, and this program supports versions up to 2"):
        version(Store(location, SCHEMA))


VERSION_1 = (
    "DELETE FROM schema_version",
    "INSERT INTO schema_version VALUES (1)",
    "ALTER TABLE targets ADD COLUMN ready DOUBLE PRECISION",
    "ALTER TABLE targets ADD COLUMN expires DOUBLE PRECISION",
    "CREATE INDEX targets_expires ON targets (expires)",
    *(
        f"CREATE TABLE {name} (x INTEGER)"
        for name in ("idempotency", "quotas", "reservations", "processes", "outcomes", "unread", "successes")
    ),
    "DROP TABLE outbox",
    "CREATE TABLE webhooks (x INTEGER)",
    "CREATE TABLE deliveries (x INTEGER)",
    """INSERT INTO jobs (name, owner, kind, state, whole_roots, options, created, waiting)
    SELECT 'calls', 'acme', 'calls', 'open', whole_roots, options, created, 1 FROM jobs""",
    "UPDATE targets SET job = (SELECT id FROM jobs WHERE kind = 'calls') WHERE row = 0",
)
"""Makes a store of version 1 from one of version 2 with one job."""


async def test_calls_and_reservations_of_version_1_are_dropped(jobs: Jobs, location: str) -> None:
    job = await new_job(jobs, 3)
    for statement in VERSION_1:
        await jobs.writes.transact(lambda session, text=statement: session.run(text))  # type: ignore[misc]
    assert closed(Store(location, SCHEMA)) == 2
    rows = await jobs.reads.transact(lambda session: session.rows("SELECT kind, job FROM jobs, targets"), write=False)
    assert [tuple(row) for row in rows] == [("job", job.id)] * 2


def test_a_store_of_version_0_2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE usage (client TEXT)")
    message = re.escape(
        "The store is of version 0.2, which this version cannot read: print its usage with version 0.2 ("
    )
    with pytest.raises(UsageError, match=message):
        prepare(str(path))


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


async def test_a_new_store_has_the_newest_version(location: str) -> None:
    def create(connection: sa.Connection) -> None:
        metadata.create_all(connection)
        add_column(connection)

    store = Store(location, VersionedSchema(create, steps=(add_column,)))
    assert closed(store) == 2


def test_the_space_of_deleted_rows_can_be_freed(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "jobs.sqlite3"), SCHEMA)
    assert store.transact_sync(lambda session: session.rows("PRAGMA auto_vacuum")) == [(2,)]
    store.disconnect()


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("TO_CLAIM", {"job": 1, "platform": "retail", "limit": 32}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0]}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0]}, "targets_leases"),
        ("EXPIRED", {"now": 0.0, "limit": 500}, "targets_leases"),
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
    job = await jobs.create("job")
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
    assert "SCAN targets" not in found
    await jobs.close()
