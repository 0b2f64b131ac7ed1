"""Leases: the targets of workers that exit, are suspended, or have a wrong clock, on a clock that the tests turn."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from crawler.errors import StoreUnavailable
from crawler.jobs import leases, store
from crawler.jobs import worker as worker_module
from crawler.jobs.job import Claim, Finished, Stored
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Session, SteadyClock
from tests.jobs.workers import Process, assert_books, done, new_job, outcomes

LEASE = 60.0
HOURS = 26 * 3_600.0


class Clock:
    """The monotonic time of all workers, and the time of the database, which is ``ahead``. It stands until turned."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.ahead = 1_700_000_000.0
        self.sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Wait, as a worker does, until the clock was turned."""
        self.sleeping.append((self.seconds + seconds, asyncio.get_running_loop().create_future()))
        await self.sleeping[-1][1]

    async def turn(self, seconds: float, *workers: Process) -> None:
        """Let the time pass for running workers: each of them tends its leases whenever this is due."""
        end = self.seconds + seconds
        while True:
            while len(self.sleeping) < len(workers):  # noqa: ASYNC110  # the others use the store
                await asyncio.sleep(0.001)
            self.sleeping.sort(key=lambda each: each[0])
            if not self.sleeping or self.sleeping[0][0] > end:
                break
            self.seconds, due = self.sleeping.pop(0)
            due.set_result(None)
        self.seconds = end


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    turned = Clock()
    monkeypatch.setattr(worker_module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": turned.sleep}))
    monkeypatch.setattr(worker_module, "SteadyClock", partial(SteadyClock, monotonic=turned.monotonic))
    for module in (worker_module, leases):
        monkeypatch.setattr(module, "lease_clock", turned.monotonic)
    for connection in (store._SqliteConnection, store._PostgreSqlConnection):
        monkeypatch.setattr(connection, "now", lambda _: turned.seconds + turned.ahead)
    return turned


def holding(jobs: Jobs, **options: Any) -> Process:
    """A worker whose targets stay in flight."""
    return Process(jobs, lambda _: None, {"lease": LEASE, **options})


async def exits(jobs: Jobs) -> list[int]:
    return [row.exits for row in await jobs.read("SELECT exits FROM targets ORDER BY exits")]


async def test_targets_of_an_exited_worker_are_claimed_by_another_when_their_lease_has_ended(
    jobs: Jobs, clock: Clock
) -> None:
    job = await new_job(jobs, 10)
    assert len(await holding(jobs).claim(4)) == 4  # its leases are not renewed
    process = Process(jobs, options={"lease": LEASE})
    async with process.worker:
        assert len(await process.claim()) == 6
        await clock.turn(LEASE - 1, process)
        assert await process.claim() == []
        await clock.turn(3, process)
        assert len(await process.claim()) == 4
    await assert_books(jobs, job, done=10)
    assert await exits(jobs) == [0] * 6 + [1] * 4


async def test_leases_of_a_running_worker_are_renewed(
    jobs: Jobs, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWED_PER_STATEMENT", 3)
    job = await new_job(jobs, 4)
    slow, waiting = holding(jobs), holding(jobs)
    async with slow.worker, waiting.worker:
        claims = await slow.claim(4)
        for _ in range(4):
            await clock.turn(LEASE, slow, waiting)
            assert await waiting.claim() == []
        for claim in claims:
            slow.worker.finish(done(claim))
    assert (slow.lost, len(slow.stored)) == ([], 4)
    await assert_books(jobs, job, done=4)


async def test_a_worker_that_was_suspended_stores_nothing_for_targets_that_it_lost(jobs: Jobs, clock: Clock) -> None:
    job = await new_job(jobs, 6)
    suspended, process = holding(jobs), Process(jobs, options={"lease": LEASE})
    claims = await suspended.claim(6)
    async with process.worker:
        await clock.turn(LEASE + 2, process)
        await process.claim()
    async with suspended.worker:  # continues, and has results
        for claim in claims:
            suspended.worker.finish(Finished(claim, "failed", "UPSTREAM_ERROR", {}))
    assert (len(suspended.lost), suspended.stored) == (6, [])
    await assert_books(jobs, job, done=6)


async def test_an_outcome_of_an_earlier_try_is_lost_although_the_same_worker_has_the_target(jobs: Jobs) -> None:
    await new_job(jobs, 1)
    holder = leases.Holder(lease=LEASE)

    def claim_released(session: Session) -> list[Claim]:
        first = leases.claim(session, holder, "retail", 1, leases.Skipped())
        leases.release(session, holder, first)
        return first + leases.claim(session, holder, "retail", 1, leases.Skipped())

    first, second = await jobs.writes.transact(claim_released)
    assert (first.target, first.tries, second.tries) == (second.target, 1, 2)
    late, current = Stored.of(done(first)), Stored.of(done(second))
    results, _ = await jobs.writes.transact(lambda session: leases.finish(session, holder, [late]))
    assert results == ["lost"]
    results, _ = await jobs.writes.transact(lambda session: leases.finish(session, holder, [current]))
    assert results == ["stored"]


async def test_a_worker_drops_targets_that_its_renewal_does_not_find(jobs: Jobs, clock: Clock) -> None:
    job = await new_job(jobs, 3)
    process = holding(jobs)
    async with process.worker:
        await process.claim(3)
        await jobs.remove(job)
        await clock.turn(LEASE / 3 + 1, process)
        assert (len(process.lost), process.worker.held) == (3, {})


async def test_a_target_that_no_worker_survives_is_dead(jobs: Jobs, clock: Clock) -> None:
    job = await new_job(jobs, 2)
    survivor = Process(jobs, options={"lease": LEASE, "exits": 2})
    async with survivor.worker:
        for _ in range(3):  # two exits are allowed
            exited = holding(jobs)
            assert len(await exited.claim(2)) == 2
            await clock.turn(LEASE + 2, survivor)
        assert await survivor.claim() == []
    await assert_books(jobs, job, dead=2)
    lines = await outcomes(jobs, job)
    assert {line.code for line in lines} == {"INTERNAL_ERROR"}
    assert lines[0].outcome is not None
    assert lines[0].outcome["error"]["message"] == "3 workers exited while the target was in progress."
    late = Finished(next(iter(exited.worker.held.values())), "done", record={})
    async with exited.worker:
        exited.worker.finish(late)
    assert (len(exited.lost), exited.stored) == (1, [])
    await assert_books(jobs, job, dead=2)


async def test_targets_that_are_released_have_no_exits(jobs: Jobs) -> None:
    job = await new_job(jobs, 40)
    for _ in range(7):
        process = holding(jobs)
        async with process.worker:
            assert len(await process.claim(40)) == 40
    last = Process(jobs)
    await last.run(job)
    await assert_books(jobs, job, done=40)
    assert set(await exits(jobs)) == {0}
    assert {each.claim.tries for each in last.stored} == {8}


async def test_a_dropped_target_is_not_held_but_a_later_claim_of_it_is(jobs: Jobs) -> None:
    await new_job(jobs, 2)
    process = holding(jobs)
    one, two = await process.claim(2)
    process.worker.drop(replace(one))
    assert list(process.worker.held.values()) == [one, two]
    process.worker.drop(one)
    assert list(process.worker.held.values()) == [two]


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
    process, fails = Process(jobs), asyncio.Event()

    async def unavailable(_: object) -> None:
        await fails.wait()
        raise StoreUnavailable("The server was killed.")

    monkeypatch.setattr(process.worker, "_transact", unavailable)
    claiming = asyncio.create_task(process.worker.claim("retail", 2))
    await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.wait({claiming})
    fails.set()
    assert await process.worker.claim("retail", 2) == []
    gc.collect()  # asyncio logs exceptions that nothing has retrieved
    assert not caplog.records


async def test_a_jump_of_the_clock_ends_nothing(jobs: Jobs, clock: Clock) -> None:
    """The clock of the host is 26 hours ahead, or behind, for some time."""
    job = await new_job(jobs, 10)
    holder, other = holding(jobs), holding(jobs)
    async with holder.worker, other.worker:
        claims = await holder.claim(10)
        for jump in (HOURS, -HOURS, -HOURS, HOURS):
            clock.ahead += jump
            for seconds in (1, 5, 10, 20):
                await clock.turn(seconds, holder, other)
                assert await other.claim() == []
        for claim in claims:
            holder.worker.finish(done(claim))
    assert (holder.lost, len(holder.stored)) == ([], 10)
    await assert_books(jobs, job, done=10)


async def test_a_lease_that_was_renewed_while_the_clock_was_ahead_ends(jobs: Jobs, clock: Clock) -> None:
    job = await new_job(jobs, 3)
    clock.ahead += HOURS
    await holding(jobs).claim()
    clock.ahead -= HOURS
    process = Process(jobs, options={"lease": LEASE})
    async with process.worker:
        await clock.turn(LEASE / 2 + 2, process)
        assert len(await process.claim()) == 3
    await assert_books(jobs, job, done=3)


async def test_the_time_of_a_worker_does_not_matter_on_postgresql(
    postgresql_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes of an SQLite store have the clock of one host."""
    jobs, real = Jobs(postgresql_store), time.time()
    monkeypatch.setattr(time, "time", lambda: real + HOURS)
    assert abs(await jobs.reads.transact(lambda session: session.now()) - real) < HOURS / 2
    await jobs.close()


async def test_after_an_outage_workers_can_renew_before_their_targets_expire(
    jobs: Jobs, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage, in which no lease was renewed, the first worker must not take the others' targets."""
    job = await new_job(jobs, 8)
    processes = [holding(jobs), holding(jobs)]

    def unavailable(*_: Any, **__: Any) -> None:
        raise OSError("the database is unavailable")

    async with processes[0].worker, processes[1].worker:
        for process in processes:
            assert len(await process.claim(4)) == 4
        await clock.turn(LEASE, *processes)
        with monkeypatch.context() as patch:
            patch.setattr(store.Store, "_run", unavailable)
            await clock.turn(2 * LEASE, *processes)
        await clock.turn(2 * LEASE, *processes)
        for process in processes:
            for claim in process.worker.held.values():
                process.worker.finish(done(claim))
    assert [process.lost for process in processes] == [[], []]
    await assert_books(jobs, job, done=8)
