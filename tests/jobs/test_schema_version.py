"""The version of a store, and the plans of its statements."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from crawler.errors import StoreUnavailable
from crawler.jobs import statements as sql
from crawler.jobs.databases import compiled
from crawler.jobs.lifecycle import Jobs
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
    newer = replace(SCHEMA, steps=(add_column,))
    assert closed(Store(location, SCHEMA)) == 1
    with pytest.raises(StoreUnavailable):
        version(Store(location, replace(SCHEMA, steps=(fail,))))
    assert closed(Store(location, SCHEMA)) == 1, "a step that fails changes nothing"
    assert closed(Store(location, newer)) == 2
    assert closed(Store(location, newer)) == 2
    with pytest.raises(StoreVersionError, match="version 2, and this program supports versions up to 1"):
        version(Store(location, SCHEMA))


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


DUE = {"now": 0.0, "far": 1.0}


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("TO_CLAIM", {"job": 1, "platform": "retail", "limit": 32, **DUE}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0], **DUE}, "targets_waiting"),
        ("JOBS_TO_CLAIM", {"platform": "retail", "skipped": [0], **DUE}, "targets_leases"),
        ("CALLS_WAITING", {"platforms": ["retail"]}, "targets_waiting (platform=? AND job=?)"),
        ("WAITING_CALLS", {"platform": "retail"}, "targets_waiting (platform=? AND job=?)"),
        ("EXPIRED_CALLS", {"now": 0.0, "limit": 500}, "targets_expires"),
        ("LIST_CALLS", {"job": 1, "before": b"", "states": ["done"], "limit": 9, "now": 0.0}, "autoindex_targets_1"),
        ("CALL", {"owner": "", "key": b"", "now": 0.0}, "autoindex_targets_1 (job=? AND key=?)"),
        ("LATE", {"now": 0.0, "limit": 500}, "targets_expires"),
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
