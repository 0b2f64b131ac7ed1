"""The loop of ``collect``, ``work`` and ``serve`` for crawls of jobs: on each platform, one job after the other."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from scrapy import signals

from crawler.errors import StoreUnavailable
from crawler.jobs import statements as sql
from crawler.jobs.job import Job
from crawler.platforms import platforms
from crawler.targets.reporter import outcomes_by_code

if TYPE_CHECKING:
    from scrapy.crawler import AsyncCrawlerRunner

    from crawler.jobs.lifecycle import Jobs

logger = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Interval in seconds at which a platform without work looks for jobs in the store."""
RESTS = (1.0, 5.0)
"""Seconds until a job is crawled again after a failed crawl, and after another one with the same error. After one more,
the job is given up."""


@dataclass(frozen=True)
class _Failure:
    """The last failed crawl of a job on a platform."""

    reason: str
    times: int
    """How many crawls in sequence ended with this reason and without an outcome."""
    rests_until: float
    """The event loop's time before which the job is not crawled again. ``inf``: it is given up."""


@dataclass
class JobCrawls:
    """Crawls open jobs until ``stop()``, or with ``drain`` until no job is left.

    ``runner``: runs the crawls. ``is_wanted``: whether to crawl a job. ``account_of``: owner of a client's job -> the
    settings of its crawl. ``arguments``: further spider arguments.
    """

    jobs: Jobs
    runner: AsyncCrawlerRunner
    is_wanted: Callable[[Job], bool]
    account_of: Callable[[str], dict[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    drain: bool = False
    waits: bool = True
    """Whether to crawl jobs whose last targets other workers have: these may exit, or find follow-ups."""
    rests: tuple[float, ...] = RESTS
    given_up: list[str] = field(default_factory=list)
    """A sentence for each job that was given up, because its crawls failed repeatedly with the same error."""
    _failures: dict[tuple[str, int], _Failure] = field(default_factory=dict)
    """(platform, job) -> its last failed crawl."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a crawl ends or the loop is stopped. Then another event takes its place."""
    _stopping: bool = False

    async def run(self) -> None:
        """Crawl jobs on all platforms."""
        await asyncio.gather(*(self._work(platform) for platform in platforms()))

    async def stop(self) -> None:
        """End the crawls. Each crawl stores the outcomes of its targets, and releases targets without an outcome."""
        self._stopping = True
        self._wake()
        await self.runner.stop()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _work(self, platform: str) -> None:
        while not self._stopping:
            job, is_left = None, True
            with suppress(StoreUnavailable):
                job, is_left = await self._next(platform)
            if job is not None:
                await self._crawl(job, platform)
            elif self.drain and not is_left:
                return
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), POLL_SECONDS)

    async def _next(self, platform: str) -> tuple[Job | None, bool]:
        """Return the job to crawl on a platform, and whether a job of any platform is left.

        Jobs with waiting targets are first, those of the owner with the fewest running targets before others.
        """
        found = [job for job in map(Job.of, await self.jobs.read(sql.OPEN_JOBS)) if self.is_wanted(job)]
        numbers: dict[int, int] = dict(await self.jobs.read(sql.RUNNING_ON, platform=platform))
        running: Counter[str] = Counter()
        for job in found:
            running[job.owner] += numbers.get(job.id, 0)
        now = asyncio.get_running_loop().time()
        rests = {job for (of, job), each in self._failures.items() if of == platform and each.rests_until > now}
        ready = sorted((job for job in found if job.id not in rests), key=lambda job: running[job.owner])
        for job in ready:
            if job.counts["waiting"] and await self.jobs.has_waiting(job.id, platform):
                return job, True
        for job in ready if self.waits else ():
            if await self.jobs.has_unfinished(job.id, platform):
                return job, True
        given_up = {job for (_, job), each in self._failures.items() if each.rests_until == math.inf}
        return None, any(job.id not in given_up for job in found)

    async def _crawl(self, job: Job, platform: str) -> None:
        crawler = self.runner.create_crawler(platform)
        if job.owner:
            crawler.settings.setdict(self.account_of(job.owner), priority="cmdline")

        async def end_if_stopping() -> None:
            if self._stopping:
                assert crawler.engine is not None
                await crawler.engine.stop_async()

        # The runner's stop() does nothing for a crawl that is still opening.
        crawler.signals.connect(end_if_stopping, signals.engine_started)
        try:
            await self.runner.crawl(crawler, job=job.name, run=job.run, **self.arguments)
        except Exception as error:  # a spider or an extension may raise any exception: other jobs continue
            logger.exception("job_crawl_failed", job=job.name, platform=platform)
            reason, has_outcomes = f"{type(error).__name__}: {error}", False
        else:
            assert crawler.stats is not None
            stats = crawler.stats.get_stats()
            reason, has_outcomes = str(stats.get("finish_reason")), bool(outcomes_by_code(stats))
        former = self._failures.pop((platform, job.id), None)
        if reason != "finished" and not self._stopping:
            is_equal = former is not None and former.reason == reason and not has_outcomes
            self._failed(job, platform, reason, former.times + 1 if former is not None and is_equal else 1)
        self._wake()

    def _failed(self, job: Job, platform: str, reason: str, times: int) -> None:
        """Let a job rest after a failed crawl, or give it up: an error that does not pass must not repeat for ever."""
        rest = self.rests[times - 1] if times <= len(self.rests) else math.inf
        until = asyncio.get_running_loop().time() + rest
        self._failures[platform, job.id] = _Failure(reason, times, until)
        logger.warning("job_crawl_ended", job=job.name, platform=platform, reason=reason, times=times)
        if rest == math.inf:
            again = f" {times} times with the same error" if times > 1 else ""
            self.given_up.append(f"{platform}: the crawl of the job {job.name} ended{again}: {reason}")
            logger.error("job_given_up", job=job.name, platform=platform, reason=reason)
