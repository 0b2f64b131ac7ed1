"""Leases: the targets of workers that exit, are suspended, or have a wrong clock."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from crawler.errors import StoreUnavailable
from crawler.jobs import worker as worker_module
from crawler.jobs.job import Claim, Finished
from crawler.jobs.lifecycle import Jobs
from tests.jobs.workers import Process, assert_books, done, new_job, outcomes
from tests.tiers import ON_POSTGRESQL


def unanswered(claim: Claim) -> None:
    """Give a target no outcome, so that it stays in flight."""


async def until(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_targets_of_an_exited_worker_are_claimed_by_another(jobs: Jobs, location: str) -> None:
    job = await new_job(jobs, 10)
    exited = Process(jobs, unanswered, {"lease": 0.5})
    assert len(await exited.claim(4)) == 4  # its leases are not renewed
    other = Jobs(location)
    process = Process(other, options={"lease": 0.5})
    await process.run(job)
    await assert_books(jobs, job, done=10)
    assert [row.exits for row in await jobs.read("SELECT exits FROM targets ORDER BY exits")] == [0] * 6 + [1] * 4
    await other.close()


async def test_leases_of_a_running_worker_are_renewed(jobs: Jobs, location: str) -> None:
    job = await new_job(jobs, 4)
    slow = Process(jobs, unanswered, {"lease": 0.6})
    other = Jobs(location)
    async with slow.worker:
        claims = await slow.claim(4)
        waiting = Process(other, options={"lease": 0.6})
        async with waiting.worker:
            for _ in range(8):
                assert await waiting.claim() == []
                await asyncio.sleep(0.25)
        for claim in claims:
            slow.worker.finish(done(claim))
        await until(lambda: len(slow.stored) == 4)
    assert slow.lost == []
    await assert_books(jobs, job, done=4)
    await other.close()


async def test_a_worker_that_was_suspended_stores_nothing_for_targets_that_it_lost(jobs: Jobs, location: str) -> None:
    job = await new_job(jobs, 6)
    suspended = Process(jobs, unanswered, {"lease": 0.5})
    claims = await suspended.claim(6)
    other = Jobs(location)
    process = Process(other, options={"lease": 0.5})
    await process.run(job)
    async with suspended.worker:  # continues, and has results
        for claim in claims:
            suspended.worker.finish(Finished(claim, "failed", "UPSTREAM_ERROR", {}))
        await until(lambda: len(suspended.lost) == 6)
    assert suspended.stored == []
    await assert_books(jobs, job, done=6)
    await other.close()


async def test_a_worker_drops_targets_that_its_renewal_does_not_find(jobs: Jobs) -> None:
    job = await new_job(jobs, 3)
    process = Process(jobs, unanswered, {"lease": 0.6})
    async with process.worker:
        await process.claim(3)
        await jobs.remove(job)
        await until(lambda: len(process.lost) == 3)
        assert process.worker.held == {}


async def test_a_target_that_no_worker_survives_is_dead(jobs: Jobs) -> None:
    job = await new_job(jobs, 2)
    for _ in range(3):  # two exits are allowed
        exited = Process(jobs, unanswered, {"lease": 0.3, "exits": 2})
        await until_claimed(exited, 2)
    survivor = Process(jobs, options={"lease": 0.3, "exits": 2})
    await survivor.run(job)
    await assert_books(jobs, job, dead=2)
    lines = await outcomes(jobs, job)
    assert {line.code for line in lines} == {"INTERNAL_ERROR"}
    assert lines[0].outcome is not None
    assert lines[0].outcome["error"]["message"] == "3 workers exited while the target was in progress."
    late = Finished(next(iter(exited.worker.held.values())), "done", record={})
    async with exited.worker:
        exited.worker.finish(late)
        await until(lambda: exited.lost)
    assert exited.stored == []
    await assert_books(jobs, job, dead=2)


async def until_claimed(process: Process, n: int) -> None:
    """Claim ``n`` targets as soon as the leases of their earlier worker have expired, then stop renewing leases."""
    async with asyncio.timeout(300):
        tending = asyncio.create_task(process.worker._tend())
        while len(process.worker.held) < n:
            await process.claim(n)
            await asyncio.sleep(0.05)
        tending.cancel()


async def test_targets_that_are_released_have_no_exits(jobs: Jobs) -> None:
    job = await new_job(jobs, 40)
    for _ in range(7):
        process = Process(jobs, unanswered)
        async with process.worker:
            assert len(await process.claim(40)) == 40
    last = Process(jobs)
    await last.run(job)
    await assert_books(jobs, job, done=40)
    assert {row.exits for row in await jobs.read("SELECT exits FROM targets")} == {0}
    assert {each.claim.tries for each in last.stored} == {8}


async def test_closing_stores_what_is_finished_and_releases_the_rest(jobs: Jobs) -> None:
    job = await new_job(jobs, 10)
    process = Process(jobs, lambda claim: done(claim) if claim.key[0] % 2 else None)
    async with process.worker:
        claims = await process.claim(10)
    odd = sum(claim.key[0] % 2 for claim in claims)
    assert len(process.stored) == odd
    await assert_books(jobs, job, done=odd, waiting=10 - odd)


async def test_a_claim_that_is_cancelled_leaves_no_target_behind(jobs: Jobs) -> None:
    job = await new_job(jobs, 10)
    process = Process(jobs)
    async with process.worker:
        for _ in range(20):
            claiming = asyncio.create_task(process.worker.claim("retail", 2))
            await asyncio.sleep(0)
            claiming.cancel()
            await asyncio.gather(claiming, return_exceptions=True)
    await assert_books(jobs, job, waiting=10)


async def test_a_cancelled_claim_that_fails_is_no_unhandled_error(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(jobs)

    async def unavailable(_: object) -> None:
        await asyncio.sleep(0.01)
        raise StoreUnavailable("The server was killed.")

    monkeypatch.setattr(process.worker, "_transact", unavailable)
    claiming = asyncio.create_task(process.worker.claim("retail", 2))
    await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.sleep(0.1)
    gc.collect()  # asyncio logs exceptions that nothing has retrieved
    assert not caplog.records
    assert await process.worker.claim("retail", 2) == []


async def test_at_10_a_jump_of_the_clock_ends_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the host is 26 hours ahead, or behind, for some time."""
    real = time.time
    offset = 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)
    jobs, others = Jobs(str(tmp_path / "jobs.sqlite3")), Jobs(str(tmp_path / "jobs.sqlite3"))
    job = await new_job(jobs, 10)
    holder = Process(jobs, unanswered, {"lease": 6})
    async with holder.worker:
        claims = await holder.claim(10)
        other = Process(others, options={"lease": 6})
        async with other.worker:
            for jump in (26 * 3_600, 0, -26 * 3_600, 0):
                offset = jump
                deadline = time.monotonic() + 2.5
                while time.monotonic() < deadline:
                    assert await other.claim() == []
                    await asyncio.sleep(0.1)
        for claim in claims:
            holder.worker.finish(done(claim))
        await until(lambda: len(holder.stored) == 10)
    assert holder.lost == []
    await assert_books(jobs, job, done=10)
    await jobs.close()
    await others.close()


async def test_at_10_a_lease_that_was_renewed_while_the_clock_was_ahead_ends(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    offset = 26 * 3_600.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)
    jobs = Jobs(str(tmp_path / "jobs.sqlite3"))
    job = await new_job(jobs, 3)
    await Process(jobs, unanswered, {"lease": 0.5}).claim()
    offset = 0
    process = Process(jobs, options={"lease": 0.5})
    await process.run(job)
    await assert_books(jobs, job, done=3)
    await jobs.close()


@ON_POSTGRESQL  # all processes of an SQLite store have the clock of one host
async def test_at_9_the_time_of_a_worker_does_not_matter_on_postgresql(
    jobs: Jobs, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await new_job(jobs, 4)
    holder = Process(jobs, unanswered, {"lease": 6})
    async with holder.worker:
        claims = await holder.claim()
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 20)
        ahead = Jobs(location)
        other = Process(ahead, options={"lease": 6})
        async with other.worker:
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                assert await other.claim() == []
                await asyncio.sleep(0.1)
        for claim in claims:
            holder.worker.finish(done(claim))
        await until(lambda: len(holder.stored) == 4)
    await assert_books(jobs, job, done=4)
    await ahead.close()


async def test_after_an_outage_workers_can_renew_before_their_targets_expire(
    jobs: Jobs, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage, in which no lease was renewed, the first worker must not take the others' targets."""
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", 0.05)
    job = await new_job(jobs, 8)
    others = Jobs(location)
    processes = [Process(store, unanswered, {"lease": 1.2}) for store in (jobs, others)]
    run = type(jobs.writes)._run
    for process in processes:
        await process.worker.__aenter__()
        assert len(await process.claim(4)) == 4
    await asyncio.sleep(0.5)

    def unavailable(*_: Any, **__: Any) -> None:
        raise OSError("the database is unavailable")

    monkeypatch.setattr(type(jobs.writes), "_run", unavailable)
    await asyncio.sleep(2.5)
    monkeypatch.setattr(type(jobs.writes), "_run", run)
    await asyncio.sleep(1.5)
    for process in processes:
        for claim in process.worker.held.values():
            process.worker.finish(done(claim))
        await process.worker.close()
    assert [process.lost for process in processes] == [[], []]
    await assert_books(jobs, job, done=8)
    await others.close()
