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

from crawler.errors import ServiceError, StoreUnavailable
from crawler.jobs import tables as sql
from crawler.jobs.job import ACCOUNT, Finished, Job
from crawler.jobs.leases import Holder
from crawler.jobs.worker import MAX_UNSTORED, Worker, WorkerStoppedError
from crawler.platforms import platforms
from crawler.targets.reporter import outcomes_by_code

if TYPE_CHECKING:
    from scrapy.crawler import AsyncCrawlerRunner

    from crawler.jobs.lifecycle import Jobs

logger = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Interval in seconds at which a platform without work looks for jobs in the store."""
END_SECONDS = 0.05
"""Interval in seconds at which the targets of a job that is given up are counted, until all have their outcome."""
RESTART_SECONDS = (1.0, 5.0)
"""Seconds until a job is crawled again after a failed crawl, and after another one with the same error. After one more,
its waiting targets end with this error: the job has an end, and a retry of its targets is a new start."""


@dataclass(frozen=True)
class _Failure:
    """The last failed crawl of a job on a platform."""

    reason: str
    seq: int
    """The sequence number of the job's last outcome before the crawl."""
    times: int
    """How many crawls in sequence ended with this reason, while no worker stored an outcome of the job."""
    waits_until: float
    """The event loop's time before which the job is not crawled again. ``inf``: it is given up. Then only targets that
    wait begin another crawl: retried ones, or those that another worker has released."""


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
    restarts: tuple[float, ...] = RESTART_SECONDS
    """As ``RESTART_SECONDS``. (): a job is given up after its first failed crawl, and its targets stay for other
    commands."""
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
        of_owner: Counter[str] = Counter()
        for job in found:
            of_owner[job.owner] += numbers.get(job.id, 0)
        now = asyncio.get_running_loop().time()
        failed = {job: each.waits_until for (of, job), each in self._failures.items() if of == platform}
        given_up = {job for job, until in failed.items() if until == math.inf}
        waiting = {job for job, until in failed.items() if until > now and (job not in given_up or not self.restarts)}
        ready = sorted((job for job in found if job.id not in waiting), key=lambda job: of_owner[job.owner])
        for running in (False, True) if self.waits else (False,):
            for job in ready:
                may_crawl = job.id not in given_up if running else job.counts["waiting"]
                if may_crawl and await self.jobs.has_left(job.id, platform, running=running):
                    return job, True
        given_up = {job for (_, job), each in self._failures.items() if each.waits_until == math.inf}
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
            is_equal = former is not None and (former.reason, former.seq) == (reason, job.seq) and not has_outcomes
            await self._failed(job, platform, reason, former.times + 1 if former is not None and is_equal else 1)
        self._wake()

    async def _failed(self, job: Job, platform: str, reason: str, times: int) -> None:
        """Restart a failed crawl later, or give its job up: an error that does not pass must not repeat for ever."""
        logger.warning("job_crawl_ended", job=job.name, platform=platform, reason=reason, times=times)
        seconds = self.restarts[times - 1] if times <= len(self.restarts) else math.inf
        if seconds == math.inf:
            again = f" {times} times with the same error" if times > 1 else ""
            self.given_up.append(f"{platform}: the crawl of the job {job.name} ended{again}: {reason}")
            logger.error("job_given_up", job=job.name, platform=platform, reason=reason)
        until = asyncio.get_running_loop().time() + seconds
        self._failures[platform, job.id] = _Failure(reason, job.seq, times, until)
        if seconds == math.inf and self.restarts:
            cause = "its operator finds the error in the log" if job.owner else reason
            await self._end(job, platform, ServiceError(f"The crawl of the job ended {times} times: {cause}."))

    async def _end(self, job: Job, platform: str, error: ServiceError) -> None:
        """End the waiting targets of a job on a platform. Targets of other workers stay theirs."""
        also_store = self.account_of(job.owner)[ACCOUNT].also_store if job.owner else None
        outcome = {"error": error.as_dict() | {"retryable": error.retryable}}
        holder = Holder(job=job.id, needs_roots=False, also_store=also_store)
        worker = Worker(self.jobs.writes, holder=holder)
        try:
            async with worker:
                while not self._stopping and (claims := await worker.claim(platform, MAX_UNSTORED)):
                    for claim in claims:
                        worker.finish(Finished(claim, "failed", error.code, outcome))
                    # The worker reports no event.
                    while worker.held and worker.failure is None and not self._stopping:  # noqa: ASYNC110
                        await asyncio.sleep(END_SECONDS)
        except WorkerStoppedError as stopped:
            logger.error("job_not_ended", job=job.name, error=str(stopped))  # noqa: TRY400  # the message is a sentence
