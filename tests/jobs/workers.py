"""Input lines of jobs, and workers that finish targets without scraping them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from crawler.errors import StoreUnavailable
from crawler.jobs.job import Claim, Finished, Followup, InputLine, Job
from crawler.jobs.leases import Holder
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.outcomes import Cursor, Line, by_seq
from crawler.jobs.worker import Worker
from crawler.targets.target import followup_key, target_key

SCRAPER = "retail-search-v4"


def lines(n: int, start: int = 0, platform: str = "retail") -> Iterator[InputLine]:
    """``n`` input lines with different targets."""
    for row in range(start, start + n):
        params = {"query": f"query {row}"}
        yield InputLine(row, f"id-{row}", target_key(SCRAPER, params), platform, {"params": params})


async def new_job(jobs: Jobs, n: int, name: str = "job", owner: str = "", **options: Any) -> Job:
    """Create and open a job of ``n`` targets."""
    job = await jobs.begin(name, owner, **options)
    await jobs.push(job, lines(n))
    await jobs.open(job)
    return job


async def current(jobs: Jobs, job: Job) -> Job:
    """The job as it is now."""
    found = await jobs.get(job.id)
    assert found is not None
    return found


def done(claim: Claim, followups: int = 0, **values: Any) -> Finished:
    """The outcome OK with a record. A target that is not a follow-up itself also gets ``followups`` follow-ups."""
    parts = [f"page={page}" for page in range(2, 2 + followups)] if "part" not in claim.work else []
    found = tuple(Followup(followup_key(claim.key, part), claim.platform, {"part": part}) for part in parts)
    record = {"of": claim.key.hex(), "text": "x" * 100}
    return Finished(claim, "done", "OK", {"warnings": []}, record, found, **values)


@dataclass
class Process:
    """A worker and its reported outcomes. ``answer`` returns the outcome of a claim; None leaves it in flight."""

    jobs: Jobs
    answer: Callable[[Claim], Finished | None] = done
    options: dict[str, Any] = field(default_factory=dict)
    stored: list[Finished] = field(default_factory=list)
    lost: list[Claim] = field(default_factory=list)
    own: list[Claim] = field(default_factory=list)
    """Follow-ups that the worker got without a claim."""

    def __post_init__(self) -> None:
        self.worker = Worker(
            self.jobs.writes, self.stored.append, self.lost.append, self._take_own, Holder(**self.options)
        )

    def _take_own(self, claims: list[Claim]) -> None:
        self.own += claims
        self._take(claims)

    def _take(self, claims: list[Claim]) -> None:
        for claim in claims:
            finished = self.answer(claim)
            if finished is not None:
                self.worker.finish(finished)

    async def claim(self, n: int = 32, platform: str = "retail") -> list[Claim]:
        claims = await self.worker.claim(platform, n)
        self._take(claims)
        return claims

    async def run(self, job: Job, seconds: float = 120) -> None:
        """Work until the job is neither open nor loading, for at most ``seconds``."""
        async with asyncio.timeout(seconds), self.worker:
            while True:
                if not await self.claim():
                    with suppress(StoreUnavailable):
                        found = await self.jobs.get(job.id)
                        if found is None or found.state not in {"open", "loading"}:
                            return
                    await asyncio.sleep(0.02)


async def outcomes(jobs: Jobs, job: Job) -> list[Line]:
    """All outcomes of a job, in the order of their commits."""
    found: list[Line] = []
    cursor = Cursor(job.id)
    while page := await by_seq(jobs, cursor):
        found += page
        cursor = Cursor(job.id, page[-1].seq or 0)
    return found


async def assert_books(jobs: Jobs, job: Job, **counts: int) -> None:
    """Assert that a job's counters equal the given numbers, and the states and records of its targets."""
    assert await jobs.check(job) == []
    found = await current(jobs, job)
    assert {state: n for state, n in found.counts.items() if n} == counts
    stored = await outcomes(jobs, job)
    assert [line.seq for line in stored] == sorted({line.seq or 0 for line in stored})
    assert Counter(line.state for line in stored) == Counter(
        {state: n for state, n in counts.items() if state in {"done", "failed", "dead"}}
    )
