"""Workers: each target has one outcome, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from crawler.jobs.lifecycle import Jobs
from tests.jobs.workers import Process, assert_books, current, done, lines, new_job, outcomes


async def test_a_job_is_done_with_its_followups(jobs: Jobs) -> None:
    job = await new_job(jobs, 50)
    process = Process(jobs, lambda claim: done(claim, followups=2))
    await process.run(job)
    await assert_books(jobs, job, done=150)
    assert len(process.stored) == 150
    found = await current(jobs, job)
    assert (found.state, found.seq, found.ended is not None) == ("done", 150, True)
    assert await jobs.tallies(job.id) == {("code", "OK"): 150}


async def test_three_workers_share_a_job(jobs: Jobs, another: Callable[[], Jobs]) -> None:
    job = await new_job(jobs, 300)
    stores = [another() for _ in range(3)]
    processes = [Process(store, lambda claim: done(claim, followups=1)) for store in stores]
    for process in processes:  # each worker gets targets before one of them can take all
        assert len(await process.claim(10)) == 10
    await asyncio.gather(*(process.run(job) for process in processes))
    await assert_books(jobs, job, done=600)
    assert all(process.stored for process in processes)
    stored = [each.claim.target for process in processes for each in process.stored]
    assert len(stored) == len(set(stored)) == 600


async def test_the_same_key_pushed_twice_is_one_target(jobs: Jobs) -> None:
    job = await new_job(jobs, 10)
    assert await jobs.push(job, lines(10)) == 0
    again = [
        line.__class__(line.row + 10, f"again-{line.row}", line.key, line.platform, line.work) for line in lines(10)
    ]
    assert await jobs.push(job, again) == 0
    process = Process(jobs)
    await process.run(job)
    await assert_books(jobs, job, done=10)
    assert all(
        [each.id for each in line.inputs] == [f"id-{line.row}", f"again-{line.row}"]
        for line in await outcomes(jobs, job)
    )


async def test_a_dropped_target_is_not_held_but_a_later_claim_of_it_is(jobs: Jobs) -> None:
    await new_job(jobs, 2)
    process = Process(jobs, lambda _: None)
    one, two = await process.claim(2)
    process.worker.drop(replace(one))
    assert list(process.worker.held.values()) == [one, two]
    process.worker.drop(one)
    assert list(process.worker.held.values()) == [two]
