"""Faults of the database: an error at any statement or commit, values that it refuses, a lost file."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from crawler.jobs import leases
from crawler.jobs import tables as sql
from crawler.jobs import worker as worker_module
from crawler.jobs.job import Claim, Finished, Stored
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import SCHEMA_LOCK, Session, Store
from crawler.jobs.worker import WorkerStoppedError
from tests.jobs.store_faults import KilledError, faults, unavailable
from tests.jobs.workers import Process, assert_books, done, lines, new_job, outcomes
from tests.tiers import FAST_ON_POSTGRESQL, FAST_ON_SQLITE, ON_POSTGRESQL


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(worker_module, "TEND_SECONDS", 0.05)


async def work_ten(jobs: Jobs, location: str, name: str, at: int, error: Callable[[], BaseException]) -> bool:
    """Run a job of ten targets, each with a follow-up, with a fault. Return whether the fault occurred.

    If the fault kills the worker, another worker finishes the job.
    """
    job = await new_job(jobs, 10, name)
    mine = Jobs(location)
    process = Process(mine, lambda claim: done(claim, followups=1), {"lease": 0.3})
    with faults(at, error) as found, suppress(KilledError):
        await process.run(job)
    await mine.close()
    if found.killed:
        await Process(jobs, lambda claim: done(claim, followups=1), {"lease": 0.3}).run(job)
    else:
        stored = Counter(each.claim.target for each in process.stored)
        assert (len(stored), set(stored.values()), process.lost) == (20, {1}, [])
    await assert_books(jobs, job, done=20)
    await jobs.remove(job)
    return found.operations >= at


@FAST_ON_SQLITE
async def test_an_error_at_any_statement_loses_and_repeats_nothing(jobs: Jobs, location: str) -> None:
    at = 1
    while await work_ten(jobs, location, f"error {at}", at, lambda: unavailable(location)):
        at += 1
    assert at > 40


@FAST_ON_POSTGRESQL
async def test_a_kill_at_any_statement_loses_and_repeats_nothing(jobs: Jobs, location: str) -> None:
    at = 1
    while at < 40 and await work_ten(jobs, location, f"kill {at}", at, KilledError):
        at += 1 if at < 25 else 5
    assert at >= 40


@ON_POSTGRESQL  # SQLite has one writer at a time
async def test_a_deadlock_is_repeated_at_once(jobs: Jobs, location: str) -> None:
    with capture_logs() as logs:
        for at in (3, 9, 14):
            await work_ten(jobs, location, f"deadlock {at}", at, lambda: psycopg.errors.DeadlockDetected("deadlock"))
    assert "store_unavailable" not in {each["event"] for each in logs}


async def claim_forever(process: Process) -> None:
    async with asyncio.timeout(300):
        while True:
            await process.worker.claim("retail", 3)
            await asyncio.sleep(0.01)


async def test_a_worker_stops_after_a_long_outage(jobs: Jobs, location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "OUTAGE_SECONDS", 0.3)
    job = await new_job(jobs, 3)
    process = Process(jobs)

    def fail(*_: Any, **__: Any) -> Any:
        raise unavailable(location)

    await process.worker.__aenter__()
    claims = await process.worker.claim("retail", 3)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_run", fail)
        process.worker.finish(done(claims[0]))
        with pytest.raises(WorkerStoppedError, match=r"The store was unavailable for 0 s: (disk I/O|server closed)"):
            await claim_forever(process)
    with suppress(WorkerStoppedError):
        await process.worker.close()
    assert await jobs.check(job) == []


# Values


async def finish_32(jobs: Jobs, change: Callable[[Finished], Finished]) -> tuple[Any, Process]:
    """Finish 32 targets in one batch, one of them changed."""
    job = await new_job(jobs, 32)
    process = Process(jobs)
    first: list[bytes] = []

    def answer(claim: Claim) -> Finished:
        first.append(claim.key)
        return change(done(claim)) if len(first) == 7 else done(claim)

    process.answer = answer
    await process.run(job)
    return job, process


async def test_a_nul_in_a_record_is_stored(jobs: Jobs) -> None:
    text = "a\x00b"
    values: dict[str, Any] = {"record": {text: text}, "outcome": {"warnings": [text]}, "note": {"n": text}}
    job, _ = await finish_32(jobs, lambda each: replace(each, **values, tallies={("unread", text): 1}))
    await assert_books(jobs, job, done=32)
    assert [line.record for line in await outcomes(jobs, job)].count({text: text}) == 1
    assert (await jobs.tallies(job.id))["unread", text] == 1


@FAST_ON_SQLITE
@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"record": {"products": [{"title": "ok"}, {"title": "\ud800"}]}}, "data.products.1.title"),
        ({"record": {"ok": 1, "\udfff": 2}}, "data.\\udfff"),
        ({"record": {"n": 2**70}}, "data.n"),
        ({"outcome": {"warnings": [{"reason": "\ud800"}]}}, "outcome.warnings.0.reason"),
        ({"note": {"seen": {1, 2}}}, "note.seen"),
    ],
)
async def test_a_row_that_cannot_be_serialised_fails_alone(jobs: Jobs, values: Any, place: str) -> None:
    job, process = await finish_32(jobs, lambda each: replace(each, **values))
    await assert_books(jobs, job, done=31, failed=1)
    (failed,) = [line for line in await outcomes(jobs, job) if line.state == "failed"]
    assert failed.code == "INTERNAL_ERROR"
    assert failed.outcome is not None
    assert failed.outcome["error"]["message"].startswith(f"{place} cannot be stored: ")
    assert len(process.stored) == 32


LONG = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(250)).hex()
"""A name that is too long for an index of PostgreSQL, because it cannot be compressed."""


@pytest.mark.parametrize(
    ("location", "values"),
    [
        ("sqlite_store", {"code": "\ud800"}),
        ("postgresql_store", {"code": "\ud800"}),
        ("postgresql_store", {"code": "NUL \x00"}),  # SQLite stores a NUL
        ("postgresql_store", {"tallies": {("unread", LONG): 1}}),
    ],
    indirect=["location"],
    ids=["surrogate on SQLite", "surrogate", "NUL", "long name"],
)
async def test_a_row_that_the_database_refuses_fails_alone(jobs: Jobs, values: dict[str, Any]) -> None:
    job, _ = await finish_32(jobs, lambda each: replace(each, **values))
    await assert_books(jobs, job, done=31, failed=1)
    assert jobs.writes.failures == 0


async def test_what_else_is_stored_with_outcomes_is_in_their_transaction(jobs: Jobs) -> None:
    """Here, usage is stored with outcomes. If the usage of a batch cannot be stored, neither can its outcomes."""
    job = await new_job(jobs, 40)
    billed: list[int] = []

    def bill(session: Session, batch: Any) -> None:
        if any(each.finished.code == "OK" and each.finished.claim.row == 7 for each in batch):
            raise ValueError("row 7 cannot be billed")
        rows = [{"job": job.id, "kind": "bill", "name": b"acme", "n": len(batch)}]
        session.execute(sql.ADD_TALLIES, rows)
        billed.append(len(batch))

    process = Process(jobs, options={"also_store": bill})
    await process.run(job)
    await assert_books(jobs, job, done=39, failed=1)
    assert (await jobs.tallies(job.id))["bill", "acme"] == 40
    (failed,) = [line for line in await outcomes(jobs, job) if line.state == "failed"]
    assert failed.outcome is not None
    assert failed.outcome["error"]["message"] == "row 7 cannot be billed"


async def test_a_repeated_finish_is_already_stored(jobs: Jobs) -> None:
    job = await new_job(jobs, 3)
    process = Process(jobs, lambda _: None)
    claims = await process.claim()
    batch = [Stored.of(done(claim)) for claim in claims]
    holder = process.worker.holder
    for expected in ("stored", "already stored", "already stored"):
        results, _ = await jobs.writes.transact(lambda session: leases.finish(session, holder, batch))
        assert results == [expected] * 3
    await assert_books(jobs, job, done=3)
    other = replace(holder, worker="another")
    results, _ = await jobs.writes.transact(lambda session: leases.finish(session, other, batch))
    assert results == ["lost"] * 3


async def test_two_jobs_in_one_batch(jobs: Jobs) -> None:
    pair = [await new_job(jobs, 16, name, owner=name) for name in ("a", "b")]
    process = Process(jobs, lambda _: None)
    async with process.worker:
        claims = await process.claim(32)
        assert Counter(claim.job for claim in claims) == {pair[0].id: 16, pair[1].id: 16}
        for claim in claims:
            process.worker.finish(done(claim, followups=1))
    for job in pair:
        await assert_books(jobs, job, done=16, waiting=16)
    assert len(process.stored) == 32


# A lost store


@pytest.mark.parametrize("fault", ["deleted", "replaced"])
async def test_a_worker_stops_if_its_store_is_lost(tmp_path: Path, fault: str) -> None:
    """SQLite would continue to write to a file that no other process can open."""
    path = tmp_path / "jobs.sqlite3"
    jobs = Jobs(str(path))
    job = await new_job(jobs, 10)
    process = Process(jobs, lambda _: None)
    claims = await process.claim(4)
    path.unlink()
    if fault == "replaced":
        sqlite3.connect(path).close()
        path.touch()
    await process.worker.__aenter__()
    for claim in claims:
        process.worker.finish(done(claim))
    with pytest.raises(WorkerStoppedError, match="was deleted or replaced while the worker ran"):
        await claim_forever(process)
    with pytest.raises(WorkerStoppedError):
        await process.worker.close()
    assert process.stored == []
    again = await new_job(jobs, 10)  # a new process has a new store
    assert await jobs.check(again) == []
    assert job.name == again.name
    await jobs.close()


async def test_a_push_that_was_killed_can_be_repeated(jobs: Jobs) -> None:
    job = await jobs.begin("job")

    def killed() -> Any:
        yield from lines(1_200)
        raise KilledError

    with pytest.raises(KilledError):
        await jobs.push(job, killed())
    again = await jobs.begin("job")
    assert again.id == job.id
    assert again.state == "loading"
    await jobs.push(again, lines(1_500))
    await jobs.open(again)
    await assert_books(jobs, job, waiting=1_500)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions wait for 50 ms for a lock."""
    monkeypatch.setattr("crawler.jobs.store.BUSY_SECONDS", 0.05)


@contextmanager
def locked(location: str) -> Iterator[None]:
    """Let no other transaction write lines of jobs."""
    if "://" in location:
        with psycopg.connect(location) as connection:
            connection.execute("LOCK TABLE inputs IN EXCLUSIVE MODE")
            yield
        return
    database = sqlite3.connect(location, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    yield
    database.close()


@pytest.mark.usefixtures("impatient")
async def test_a_push_continues_when_a_lock_is_released(location: str, another: Callable[[], Jobs]) -> None:
    jobs = another()
    job = await jobs.begin("job")
    with locked(location):
        pushing = asyncio.ensure_future(jobs.push(job, lines(3)))
        while not jobs.writes.failures:  # noqa: ASYNC110  # counted in the store's thread
            await asyncio.sleep(0.01)
        assert not pushing.done()
    assert await pushing == 3
    await jobs.open(job)
    await assert_books(jobs, job, waiting=3)
    await jobs.close()


@pytest.mark.usefixtures("impatient")
async def test_a_process_waits_for_the_tables_that_another_one_creates(postgresql_store: str) -> None:
    jobs = Jobs(postgresql_store)
    with psycopg.connect(postgresql_store) as connection:
        connection.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
        creating = asyncio.ensure_future(jobs.begin("job"))
        await asyncio.sleep(0.5)
        assert not creating.done()
    assert (await creating).name == "job"
    await jobs.close()
