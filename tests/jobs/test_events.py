"""The events of clients' jobs are stored exactly once, in the transaction of the change that causes them. Issue 47."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from crawler.jobs.job import Claim, Finished, Job
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Session
from crawler.jobs.tables import deliveries
from crawler.service.webhooks import outbox
from tests.jobs.workers import Process, done, lines, new_job

OWNER = "acme"
SECRET = outbox.new_secret()


async def events(jobs: Jobs) -> list[dict[str, Any]]:
    """The events in the store, in their order."""
    statement = deliveries.select().order_by(deliveries.c.created, deliveries.c.id)
    rows = await jobs.reads.transact(lambda s: s.execute(statement, {}).fetchall(), write=False)
    assert {row.client for row in rows} <= {OWNER}
    return [orjson.loads(row.body) for row in rows]


async def watch(jobs: Jobs) -> None:
    await jobs.writes.transact(lambda s: outbox.put(s, OWNER, "https://example.com/", SECRET))


async def work(jobs: Jobs, n: int = 32, answer: Callable[[Claim], Finished | None] = done) -> None:
    process = Process(jobs, answer)
    async with process.worker:
        await process.claim(n)


def mixed(claim: Claim) -> Finished:
    return Finished(claim, "failed", "BLOCKED", {}) if claim.row == 0 else done(claim)


def paused(claim: Claim) -> Finished:
    return Finished(claim, "paused")


async def become_done(jobs: Jobs, _: Job) -> None:
    await work(jobs, answer=mixed)


async def be_done_again(jobs: Jobs, job: Job) -> None:
    """A job that is done, and to which lines are added that it already contains, is retried and done again."""
    await work(jobs, answer=mixed)
    await jobs.push(job, lines(3))
    await jobs.retry(job)
    await work(jobs)
    await jobs.remove(job)


async def be_cancelled(jobs: Jobs, job: Job) -> None:
    """A target is running when the job is cancelled. Its outcome is still counted."""
    process = Process(jobs, lambda _: None)
    async with process.worker:
        (claim,) = await process.claim(1)
        await jobs.cancel(job)
        assert await events(jobs) == []
        process.worker.finish(done(claim, followups=1))
    await jobs.cancel(job)
    await jobs.remove(job)


async def be_cancelled_while_waiting(jobs: Jobs, job: Job) -> None:
    await jobs.cancel(job)


async def be_paused(jobs: Jobs, job: Job) -> None:
    await work(jobs, 1, paused)
    await jobs.resume(job)
    await work(jobs, answer=done)


async def be_paused_as_a_whole(jobs: Jobs, job: Job) -> None:
    """All targets are paused twice. The job is resumed once."""
    await work(jobs, 1, paused)
    await work(jobs, answer=paused)
    await jobs.resume(job)
    await work(jobs, answer=paused)


async def be_removed(jobs: Jobs, job: Job) -> None:
    await jobs.remove(job)


async def be_removed_while_loading(jobs: Jobs, job: Job) -> None:
    """Two jobs, one without lines, are removed before their uploads have ended."""
    await jobs.remove(job)
    for n in (0, 2):
        loading = await jobs.create("loading", OWNER)
        await jobs.push(loading, lines(n))
        await jobs.remove(loading)


Counted = tuple[str, dict[str, int]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (become_done, [("job.done", {"done": 2, "failed": 1})]),
        (be_done_again, [("job.done", {"done": 2, "failed": 1}), ("job.done", {"done": 3})]),
        (be_cancelled, [("job.cancelled", {"done": 1, "cancelled": 3})]),
        (be_cancelled_while_waiting, [("job.cancelled", {"cancelled": 3})]),
        (be_paused, [("job.paused", {"paused": 1, "waiting": 2}), ("job.done", {"done": 3})]),
        (be_paused_as_a_whole, [("job.paused", {"paused": 1, "waiting": 2}), ("job.paused", {"paused": 3})]),
        (be_removed, []),
        (be_removed_while_loading, []),
    ],
)
async def test_each_end_of_a_job_is_one_event_with_counts(
    jobs: Jobs, change: Callable[[Jobs, Job], Awaitable[None]], expected: list[Counted]
) -> None:
    await watch(jobs)
    job = await new_job(jobs, 3, owner=OWNER, options={"key": "nightly"})
    await change(jobs, job)
    found = await events(jobs)
    assert [
        (each["type"], {name: n for name, n in each["data"]["targets"].items() if n and name != "total"})
        for each in found
    ] == expected
    for each in found:
        data = each["data"]
        assert (data["job_id"], f"job.{data['state']}", data["idempotency_key"]) == (
            str(job.id),
            each["type"],
            "nightly",
        )
        assert (data["ended_at"] is None) == (each["type"] == "job.paused")
        assert data["targets"]["total"] == sum(n for name, n in data["targets"].items() if name != "total")


@pytest.mark.parametrize(("owner", "watched"), [("", OWNER), ("other", OWNER), (OWNER, None)])
async def test_a_job_without_a_webhook_has_no_event(jobs: Jobs, owner: str, watched: str | None) -> None:
    if watched:
        await watch(jobs)
    await new_job(jobs, 2, owner=owner)
    await work(jobs)
    assert await events(jobs) == []


async def test_an_event_is_stored_in_the_transaction_that_ends_the_job(jobs: Jobs) -> None:
    await watch(jobs)
    await new_job(jobs, 1, owner=OWNER)
    run = jobs.writes.transact_sync
    seen: list[tuple[str, int]] = []

    def watched(work: Callable[[Session], Any], *, write: bool = True) -> Any:
        found = run(work, write=write)
        seen.append(run(lambda s: (s.rows("SELECT state FROM jobs")[0][0], len(s.rows("SELECT id FROM deliveries")))))
        return found

    jobs.writes.transact_sync = watched  # type: ignore[method-assign]
    await work(jobs)
    assert set(seen) == {("open", 0), ("done", 1)}
