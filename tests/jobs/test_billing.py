"""Records of a client's job are billed in the transaction that stores them."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from crawler.jobs import transactions
from crawler.jobs.job import Claim, Finished, InputLine, Job, target_key
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.transactions import Holder, Skipped
from crawler.service.clients import quotas, usage
from crawler.service.jobs import billing
from tests.jobs.workers import Process

SCRAPER = "retail-search-v4"


async def owned_job(jobs: Jobs, owner: str, n: int, quota: int = 1_000, start: int = 0) -> Job:
    job = await jobs.create(f"job {start}", owner)
    keys = [target_key(SCRAPER, {"query": str(row)}) for row in range(start, start + n)]
    work = {"scraper": SCRAPER}
    lines = [InputLine(row, str(row), key, "retail", work) for row, key in enumerate(keys)]
    lines += [
        InputLine(n + row, "again", key, "retail", work) for row, key in enumerate(keys)
    ]  # lines of known targets
    lines.append(InputLine(2 * n, "invalid", target_key("", {"job": start}), "", {"scraper": None}))
    await jobs.push(job, lines, room=partial(quotas.room, client=owner, quota=quota) if owner else None)
    await jobs.open(job)
    return await current(jobs, job)


async def current(jobs: Jobs, job: Job) -> Job:
    found = await jobs.get(job.id)
    assert found is not None
    return found


async def report(jobs: Jobs, quota: int = 10) -> tuple[int, int]:
    """The billed and the reserved records of the client."""
    state = await jobs.reads.transact(lambda s: quotas.report(s, "acme", quota), write=False)
    return state["used"], state["reserved"]


def end(claim: Claim) -> Finished:
    """The first row fails, the second has no new data, the third has warnings."""
    if claim.row == 0:
        return Finished(claim, "failed", "TARGET_NOT_FOUND", {})
    warnings = [{"source": "listing"}] if claim.row == 2 else []
    return Finished(claim, "done", "OK", {"warnings": warnings}, None if claim.row == 1 else {"row": claim.row})


async def work(jobs: Jobs, n: int = 32) -> None:
    process = Process(jobs, end, {"also_store": billing.store_bills})
    async with process.worker:
        await process.claim(n)


@pytest.mark.parametrize("owner", ["acme", ""])
async def test_each_record_is_billed_once_and_nothing_stays_reserved(jobs: Jobs, owner: str) -> None:
    await owned_job(jobs, owner, 8)
    assert await report(jobs) == (0, 8 if owner else 0)
    await work(jobs)
    used = await jobs.reads.transact(lambda s: usage.report(s, owner), write=False)
    assert (used["calls"], used["billable"], used["partial"]) == ((8, 6, 1) if owner else (0, 0, 0))
    assert await report(jobs) == ((6, 0) if owner else (0, 0))


async def test_a_target_whose_workers_exited_is_counted_as_a_failed_call(jobs: Jobs) -> None:
    job = await owned_job(jobs, "acme", 1)
    holder = Holder("exited", lease=-1, exits=0)
    await jobs.writes.transact(lambda s: transactions.claim(s, holder, "retail", 1, Skipped()))
    await jobs.writes.transact(lambda s: transactions.expire(s, holder, lambda _: True, billing.store_bills))
    assert (await current(jobs, job)).counts["dead"] == 1
    used = await jobs.reads.transact(lambda s: usage.report(s, "acme"), write=False)
    assert (used["billable"], used["usage"][0]["outcomes"]) == (0, {"INTERNAL_ERROR": 1})


async def test_targets_beyond_the_quota_are_paused_until_there_is_room(jobs: Jobs) -> None:
    other = await owned_job(jobs, "acme", 3, quota=10)
    job = await owned_job(jobs, "acme", 12, quota=10, start=100)
    assert (job.counts["waiting"], job.counts["paused"]) == (7 + 1, 5)
    assert await report(jobs) == (0, 10)
    await jobs.cancel(other)
    assert await report(jobs) == (0, 7)
    await jobs.resume(job, partial(quotas.room, client="acme", quota=10))
    assert (await current(jobs, job)).counts["paused"] == 2
    assert await report(jobs) == (0, 10)
    await work(jobs)  # row 0 fails, row 1 has no record
    assert await report(jobs) == (8, 0)
    for _ in range(2):
        assert await jobs.retry(job, partial(quotas.room, client="acme", quota=9)) in {0, 1}
    assert await report(jobs) == (8, 1)
    assert await jobs.check(await current(jobs, job)) == []


async def test_concurrent_uploads_reserve_no_more_than_the_quota(jobs: Jobs, location: str) -> None:
    stores = [Jobs(location) for _ in range(3)]
    made = await asyncio.gather(*(owned_job(each, "acme", 8, 10, 100 * n) for n, each in enumerate(stores)))
    assert sum(job.counts["paused"] for job in made) == 14
    assert await report(jobs) == (0, 10)
    await asyncio.gather(*(each.close() for each in stores))
