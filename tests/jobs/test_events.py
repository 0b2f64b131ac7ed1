"""The events of clients' jobs are stored once, in the transaction that ends the job, and claimed when they are due."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from crawler.jobs import store
from crawler.jobs.job import Claim, Finished, Job
from crawler.jobs.lifecycle import Jobs, Rules
from crawler.jobs.store import Session
from crawler.jobs.tables import ADD_EVENT, outbox
from crawler.service import webhooks
from tests.jobs.workers import Process, done, lines, new_job

OWNER = "acme"


async def stored(jobs: Jobs) -> list[dict[str, Any]]:
    """The events in the outbox, in their order."""
    rows = await jobs.reads.transact(lambda s: s.execute(outbox.select().order_by(outbox.c.id), {}).fetchall())
    assert {row.client for row in rows} <= {OWNER}
    return [orjson.loads(row.body) for row in rows]


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
    await jobs.retry(job, every=True)
    await work(jobs)
    await jobs.remove(job)


async def be_cancelled(jobs: Jobs, job: Job) -> None:
    """A target is running when the job is cancelled."""
    process = Process(jobs, lambda _: None)
    async with process.worker:
        (claim,) = await process.claim(1)
        await jobs.cancel(job)
        process.worker.finish(done(claim, followups=1))
    await jobs.cancel(job)
    await jobs.remove(job)


async def be_paused(jobs: Jobs, job: Job) -> None:
    await work(jobs, 1, paused)
    assert await stored(jobs) == []
    await jobs.resume(job)
    await work(jobs, answer=done)


async def be_removed(jobs: Jobs, job: Job) -> None:
    await jobs.remove(job)


async def be_removed_while_loading(jobs: Jobs, job: Job) -> None:
    """Two jobs, one without lines, are removed before their uploads have ended."""
    await jobs.remove(job)
    for n in (0, 2):
        loading = await jobs.begin("loading", OWNER)
        await jobs.push(loading, lines(n))
        await jobs.remove(loading)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (become_done, [{"done": 2, "failed": 1}]),
        (be_done_again, [{"done": 2, "failed": 1}, {"done": 3}]),
        (be_cancelled, []),
        (be_paused, [{"done": 3}]),
        (be_removed, []),
        (be_removed_while_loading, []),
    ],
)
async def test_each_completion_of_a_job_is_one_event_with_counts(
    jobs: Jobs, change: Callable[[Jobs, Job], Awaitable[None]], expected: list[dict[str, int]]
) -> None:
    job = await new_job(jobs, 3, owner=OWNER, rules=Rules(key="nightly"))
    await change(jobs, job)
    found = await stored(jobs)
    assert [{name: n for name, n in each["data"].pop("targets").items() if n} for each in found] == [
        {"total": 3, **counts} for counts in expected
    ]
    for revision, each in enumerate(found, start=1):
        data = each.pop("data")
        assert data.pop("revision") == revision
        assert data.pop("created_at") <= data.pop("ended_at") <= each.pop("timestamp")
        named = {"job_id": str(job.id), "name": "job", "run": 1, "idempotency_key": "nightly"}
        assert data == {**named, "state": "done"}, "the first try adds the changes"
        assert each == {"type": "job.done"}


async def test_a_job_of_the_command_line_has_no_event(jobs: Jobs) -> None:
    await new_job(jobs, 2, owner="")
    await work(jobs)
    assert await stored(jobs) == []


async def test_an_event_is_stored_in_the_transaction_that_ends_the_job(jobs: Jobs) -> None:
    await new_job(jobs, 1, owner=OWNER)
    run = jobs.writes.transact_sync
    seen: list[tuple[str, int]] = []

    def watched(work: Callable[[Session], Any], *, write: bool = True) -> Any:
        found = run(work, write=write)
        seen.append(run(lambda s: (s.rows("SELECT state FROM jobs")[0][0], len(s.rows("SELECT id FROM outbox")))))
        return found

    jobs.writes.transact_sync = watched  # type: ignore[method-assign]
    await work(jobs)
    assert set(seen) == {("open", 0), ("done", 1)}


NOW, FAR = 1_000_000.0, 1_000_000.0 + 7_920
"""A time of the store, and the time after which no try is delayed."""


@pytest.fixture
def add(jobs: Jobs) -> Callable[..., Awaitable[None]]:
    """A function that stores an event with an id, a client and the time at which it is due."""

    async def add(own: str, due: float, client: str = OWNER) -> None:
        row = {"id": own, "client": client, "body": b"{}", "created": NOW, "due": due}
        await jobs.writes.transact(lambda session: session.execute(ADD_EVENT, row))

    return add


async def due(jobs: Jobs, now: float = NOW, busy: tuple[str, ...] = ()) -> list[str]:
    found = await jobs.reads.transact(lambda session: webhooks.due_events(session, now, now + FAR - NOW, busy))
    return [each.id for each in found]


async def test_events_are_due_at_their_time_or_if_the_clock_had_jumped(
    jobs: Jobs, add: Callable[..., Awaitable[None]]
) -> None:
    """The third event was delayed while the clock was 26 hours ahead."""
    await add("1", NOW)
    await add("2", NOW + 1)
    await add("3", NOW + 26 * 3_600)
    await add("4", FAR)
    assert await due(jobs) == ["1", "3"]
    assert await due(jobs, NOW + 1) == ["1", "2", "3"]


async def test_a_clock_that_jumps_delays_no_new_event(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends while the clock of the store is an hour ahead."""
    ahead = time.time() + 3_600
    for connection in (store._SqliteConnection, store._PostgreSqlConnection):
        monkeypatch.setattr(connection, "now", lambda _: ahead)
    await new_job(jobs, 1, owner=OWNER)
    await work(jobs)
    assert len(await due(jobs, time.time())) == 1


async def test_no_client_takes_all_places(jobs: Jobs, add: Callable[..., Awaitable[None]]) -> None:
    for n in range(6):
        await add(f"a{n}", -n)
    await add("b", 0, "other")
    assert await due(jobs) == ["a2", "a3", "a4", "a5", "b"], "those that are due for longer"
    assert await due(jobs, busy=(OWNER,)) == ["b"]


async def test_an_event_is_claimed_once_and_its_claim_ends(jobs: Jobs, add: Callable[..., Awaitable[None]]) -> None:
    """The process that lost its claim must not change the time of the next try."""
    await add("1", NOW)
    found = await jobs.reads.transact(lambda session: webhooks.due_events(session, NOW, FAR, ()))
    (mine,) = await jobs.writes.transact(lambda session: webhooks.claim_events(session, found, NOW + 30))
    assert await jobs.writes.transact(lambda session: webhooks.claim_events(session, found, NOW + 30)) == []
    assert await due(jobs) == []
    again = await jobs.reads.transact(lambda session: webhooks.due_events(session, NOW + 30, FAR, ()))
    (other,) = await jobs.writes.transact(lambda session: webhooks.claim_events(session, again, NOW + 60))
    assert (mine.id, mine.tries, other.tries) == ("1", 1, 2)
    await jobs.writes.transact(lambda session: webhooks.delay_event(session, mine, NOW + 31))
    assert await due(jobs, NOW + 31) == []
    await jobs.writes.transact(lambda session: webhooks.delay_event(session, other, NOW + 40))
    assert await due(jobs, NOW + 40) == ["1"]
