"""Runs the clients' jobs that have spider arguments: ``max_pages``, ``exhaustive`` and ``since``.

The spiders of such jobs keep state between the pages of a listing, so each job has a crawl of its own. As with other
jobs, the downloads of synchronous calls have priority over those of these crawls.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner

from crawler.jobs.queue import first_waiting, open_jobs_of
from crawler.registry import spiders
from crawler.service.calls.open_crawlers import OVERLAY
from crawler.service.jobs.billing import account_settings
from crawler.service.periodic import logged

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.downloads.shared_state import SharedState
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

logger = structlog.get_logger(__name__)

POLL_SECONDS = 2.0
"""Interval in seconds at which a platform without work looks for jobs in the store."""
RESTART_SECONDS = 30.0
"""Seconds until a job whose crawl has failed is crawled again. Other jobs are crawled meanwhile."""


class Listings:
    """Runs the crawls of these jobs, one at a time for each platform."""

    def __init__(self, jobs: Jobs, settings: Settings, shared: SharedState) -> None:
        self.jobs = jobs
        self.shared = shared
        self.sandbox = settings.getbool("SANDBOX")
        crawl = settings.copy()
        crawl.setdict(OVERLAY, priority="cmdline")
        self.runner = AsyncCrawlerRunner(crawl)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._rests: dict[int, float] = {}
        """Job -> the event loop's time before which it is not crawled, because its last crawl has failed."""

    def open(self) -> None:
        """Start to look for jobs."""
        self._tasks = [asyncio.ensure_future(self._work(platform)) for platform in spiders()]

    def stop(self) -> None:
        """End the crawls. Targets in flight are completed, or released for other workers."""
        self._stopping = True
        self._tasks.append(asyncio.ensure_future(self.runner.stop()))

    async def close(self) -> None:
        """Wait until the crawls have ended and stored their outcomes."""
        await asyncio.gather(*self._tasks)

    async def _work(self, platform: str) -> None:
        while not self._stopping:
            job = None
            with logged("listings_failed", platform=platform):
                job = await self._next(platform)
            if job is not None:
                await self._crawl(job, platform)
                continue
            await asyncio.sleep(POLL_SECONDS)

    async def _next(self, platform: str) -> Job | None:
        now = asyncio.get_running_loop().time()
        self._rests = {job: until for job, until in self._rests.items() if until > now}

        def is_wanted(job: Job) -> bool:
            is_listing = bool(job.owner) and job.whole_roots and job.id not in self._rests
            return is_listing and job.options.sandbox == self.sandbox

        return await first_waiting(self.jobs, await open_jobs_of(self.jobs, platform, is_wanted), platform)

    async def _crawl(self, job: Job, platform: str) -> None:
        reason = None
        with logged("listing_failed", job=job.id, platform=platform):
            crawler = self.runner.create_crawler(spiders()[platform])
            crawler.settings.setdict(account_settings(job.owner, waits=False), priority="cmdline")

            async def end_if_stopping() -> None:
                if self._stopping:
                    assert crawler.engine is not None
                    await crawler.engine.stop_async()

            # The runner's stop() does nothing for a crawl that is still opening.
            crawler.signals.connect(end_if_stopping, signals.engine_started)
            await self.runner.crawl(crawler, job=job.name, shared=self.shared)
            assert crawler.stats is not None
            reason = crawler.stats.get_value("finish_reason")
        if reason != "finished" and not self._stopping:
            logger.warning("listing_ended", job=job.id, platform=platform, reason=reason)
            self._rests[job.id] = asyncio.get_running_loop().time() + RESTART_SECONDS
