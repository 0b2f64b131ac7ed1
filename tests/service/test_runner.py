"""Running the targets of clients' jobs when the platform refuses them, or targets hang."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.settings import Settings

from crawler.errors import CircuitOpen, Overloaded, ScrapeError, ShuttingDown, TargetNotFound, UpstreamRateLimited
from crawler.jobs import worker
from crawler.jobs.job import Claim, InputLine, Job
from crawler.jobs.lifecycle import Jobs
from crawler.registry import scrapers
from crawler.service.jobs import runs
from crawler.service.jobs.runs import Runs
from crawler.targets.target import Outcome, Target, target_key

SEARCH = scrapers()["retail-search-v4"]
Fetch = Callable[[Target], Awaitable[ScrapeError | None]]
QUICK = {
    runs: {"POLL_SECONDS": 0.01, "REST_SECONDS": 0.01, "RESTART_SECONDS": 0.01},
    worker: {"RETRY_SECONDS": 0.01, "TEND_SECONDS": 0.05, "FLUSH_SECONDS": 0.01},
}


@dataclass
class Slots:
    """Replaces the lanes and the crawler of a platform that has a given number of slots."""

    fetch: Fetch
    concurrency: int = 2
    spacing: float = 0.0
    in_flight: int = 0
    unhealthy: bool = False
    settings: Settings = field(default_factory=lambda: Settings({"BREAKER_COOLDOWN": 0.01}))

    @property
    def lanes(self) -> Slots:
        return self

    def free_in(self, started: int) -> float:
        return 0.0 if started < self.concurrency else 0.001

    async def scrape(self, target: Target) -> Outcome:
        return Outcome(target, None, await self.fetch(target), 0)


def runs_of(jobs: Jobs, fetch: Fetch, slots: int = 2) -> Runs:
    """Return the runner of a service with one platform, which ``fetch`` replaces."""
    crawlers = SimpleNamespace(of={"retail": Slots(fetch, slots)}, draining=False)
    return Runs(jobs, cast("Any", crawlers), lease=0.6, exits=5)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the intervals at which the store is checked."""
    for module, names in QUICK.items():
        for name, seconds in names.items():
            monkeypatch.setattr(module, name, seconds)


@asynccontextmanager
async def running(folder: Path, fetch: Fetch, slots: int = 2) -> AsyncIterator[Jobs]:
    """Run the jobs in a store. ``fetch`` replaces the platform. At the end, the books of all jobs must balance."""
    jobs = Jobs(str(folder / "service.sqlite3"))
    running = runs_of(jobs, fetch, slots)
    running.open()
    yield jobs
    running.stop()
    async for job in jobs.every():
        assert await jobs.check(job) == []
    await running.close()


async def made(jobs: Jobs, client: str, *queries: str) -> Job:
    """Make an open job of a client with a target for each query."""
    job = await jobs.begin(f"job of {client}", client)
    lines = []
    for row, query in enumerate(queries):
        work: dict[str, Any] = {"id": str(row), "scraper": SEARCH.name, "params": {"query": query}}
        lines.append(InputLine(row, str(row), target_key(SEARCH.name, work["params"]), "retail", work))
    await jobs.push(job, lines)
    await jobs.open(job)
    return job


async def has(jobs: Jobs, job: Job, **counts: int) -> dict[str, int]:
    """Wait until the job has these numbers of targets by state."""
    while True:
        found = await jobs.get(job.id)
        assert found is not None
        if counts.items() <= found.counts.items():
            return found.counts
        await asyncio.sleep(0.01)


LIMITED, GONE = UpstreamRateLimited("later"), TargetNotFound("Gone.")


@pytest.mark.parametrize(
    ("errors", "tries", "code"),
    [
        pytest.param([CircuitOpen("Blocked.", retry_after=0)] * 2, 3, "OK", id="the circuit is open"),
        pytest.param([Overloaded("Full.", retry_after=0)] * 2, 3, "OK", id="the crawler is full"),
        pytest.param([ShuttingDown("Draining.")] * 2, 3, "OK", id="the crawler shuts down"),
        pytest.param([RuntimeError("a bug")], 2, "OK", id="an unexpected exception"),
        pytest.param([LIMITED], 2, "OK", id="a rate limit"),
        pytest.param([LIMITED] * 3, 2, LIMITED.code, id="a rate limit at the second try, too"),
        pytest.param([GONE], 1, GONE.code, id="an error of the platform"),
    ],
)
async def test_a_refused_target_waits_again_and_an_error_of_the_platform_is_the_outcome(
    tmp_path: Path, errors: list[Exception], tries: int, code: str
) -> None:
    left = [*errors]
    ids: list[str] = []

    async def fetch(target: Target) -> ScrapeError | None:
        if target.params.model_dump()["query"] == "honey":
            return None
        ids.append(target.id)
        error = left.pop() if left else None
        if error is None or isinstance(error, ScrapeError):
            return error
        raise error

    async with running(tmp_path, fetch) as jobs:
        job = await made(jobs, "acme", "mustard", "honey")
        await has(jobs, job, waiting=0, running=0)
        tallies = await jobs.tallies(job.id)
    expected = Counter([code, "OK"])
    assert {key: tallies["code", key] for key in expected} == expected
    # The crawler may still have an earlier try, whose lease was lost. The same id would be a duplicate.
    assert len(ids) == len({*ids}) == tries


async def test_a_worker_that_ends_with_the_same_error_starts_ever_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of a clock that is not real, in which each worker ends at once."""
    now, starts, sleep = 0.0, [], asyncio.sleep

    async def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds
        await (sleep(0) if now < 86_400 else asyncio.Event().wait())

    class Broken:
        def __init__(self, *_: object, **__: object) -> None:
            starts.append(now)

        async def __aenter__(self) -> None:
            nonlocal now
            now += runs.MAX_RESTART_SECONDS + (now > 50_000) if now > 40_000 else 0
            raise worker.WorkerStoppedError("the disk is full" if now < 10_000 else "a bug")

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError

    monkeypatch.setattr(runs, "Worker", Broken)
    monkeypatch.setattr(runs, "RESTART_SECONDS", 5.0)
    monkeypatch.setattr(runs, "monotonic", lambda: now)
    running = runs_of(Jobs(str(tmp_path / "s")), cast("Any", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crawler.service.jobs.runs.asyncio.sleep", pass_time)
        running.open()
        for _ in range(2_000):
            await sleep(0)
    running.stop()
    await running.close()
    assert starts[:9] == [0, 5, 15, 35, 75, 155, 315, 615, 915]
    assert len(starts) < 86_400 / 300 + 20
    (changed, again, *_) = (each for each in starts if each >= 10_000)
    assert again - changed == 5, "another error"
    pauses = {begin: later - begin for begin, later in pairwise(starts) if begin > 40_000}
    assert {pause for begin, pause in pauses.items() if begin < 50_000 - 601} == {300 + 300}
    assert {pause for begin, pause in pauses.items() if begin > 50_000} == {301 + 5}, "the worker ran for long"


async def test_a_worker_that_cannot_be_closed_does_not_delay_the_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(worker.Worker):
        async def close(self) -> None:
            await super().close()
            raise worker.WorkerStoppedError("The store was deleted while the worker ran.")

    monkeypatch.setattr(runs, "Worker", Failing)
    monkeypatch.setattr(runs, "RESTART_SECONDS", math.inf)
    running = runs_of(Jobs(str(tmp_path / "store.sqlite3")), cast("Any", None))
    running.open()
    await asyncio.sleep(0.1)
    running.stop()
    async with asyncio.timeout(60) as limit:
        await running.close()
    assert not limit.expired(), "the worker waits for its next start"


async def test_hanging_targets_of_one_client_leave_a_slot_for_the_others(tmp_path: Path) -> None:
    hangs = asyncio.Event()

    async def fetch(target: Target) -> None:
        if target.params.model_dump()["query"].startswith("row"):
            await hangs.wait()

    async with running(tmp_path, fetch, slots=3) as jobs:
        busy = await made(jobs, "busy", *(f"row {row}" for row in range(9)))
        await has(jobs, busy, running=2)
        await has(jobs, await made(jobs, "other", "mustard", "honey"), done=2)
        assert (await has(jobs, busy, done=0))["running"] == 2
        hangs.set()
        await has(jobs, busy, done=9)


async def test_a_target_of_a_removed_job_is_stopped(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def fetch(_: Target) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with running(tmp_path, fetch) as jobs:
        job = await made(jobs, "acme", "mustard")
        await has(jobs, job, running=1)
        await jobs.remove(job)
        async with asyncio.timeout(60):
            await stopped.wait()


async def test_the_targets_that_met_a_rate_limit_are_remembered_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of deleted jobs never come back."""

    async def fetch(_: Target) -> ScrapeError:
        return LIMITED

    monkeypatch.setattr(runs, "MAX_LIMITED", 3)
    slots = Slots(fetch)
    running = runs_of(Jobs(str(tmp_path / "store.sqlite3")), fetch)
    work = {"scraper": SEARCH.name, "id": "a", "params": {"query": "mustard"}}
    claims = [Claim(1, str(row).encode(), 1, "retail", work, row, None) for row in range(5)]
    for claim in claims:
        with pytest.raises(UpstreamRateLimited):
            await running._scrape_target(cast("Any", slots), claim)
    ended = await running._scrape_target(cast("Any", slots), claims[4])
    assert ended.code == "UPSTREAM_RATE_LIMITED"
    assert len(running._limited) == 2
    with pytest.raises(UpstreamRateLimited):
        await running._scrape_target(cast("Any", slots), claims[0])
    await running.close()
