"""``scrapy work``: collects the targets of all open jobs, together with any number of other workers."""

from __future__ import annotations

import argparse
import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.crawler import AsyncCrawlerProcess

from crawler.components import install
from crawler.configuration.command import CheckedCommand
from crawler.errors import StoreUnavailable
from crawler.jobs.location import open_jobs
from crawler.platforms import platforms
from crawler.runtime.garbage_collection import tune_garbage_collector

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

POLL_SECONDS = 1.0
"""Interval in seconds at which a platform without work looks for new jobs in the store."""


class Command(CheckedCommand):
    """Collect the targets of all open jobs of STORE, together with other workers.

    Exit codes: 0 after SIGTERM or Ctrl-C, or with --drain when no target is left, 1 if a crawl failed, 2 for wrong use.
    """

    requires_crawler_process = True

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--drain", action="store_true", help="end when no open job has targets left")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from twisted.internet import reactor  # noqa: PLC0415  # Scrapy installs the reactor when it makes the process

        assert isinstance(self.crawler_process, AsyncCrawlerProcess)  # the class for the asyncio reactor
        self.process = self.crawler_process
        install(self.settings)
        self.drain: bool = opts.drain
        self.stopping: asyncio.Task[None] | None = None
        jobs = open_jobs(self.settings)
        tune_garbage_collector(collect=False)

        async def work() -> None:
            try:
                await asyncio.gather(*(self._work(jobs, platform) for platform in platforms()))
            finally:
                await jobs.close()
                reactor.stop()

        def begin() -> None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._end)
            self.task = asyncio.get_running_loop().create_task(work())

        reactor.callLater(0, begin)
        self.process.start(stop_after_crawl=False, install_signal_handlers=False)

    def _end(self) -> None:
        """End the crawls. Each crawl stores the outcomes of its targets, and releases targets without an outcome."""
        if self.stopping is None:
            self.stopping = asyncio.get_running_loop().create_task(self.process.stop())

    async def _work(self, jobs: Jobs, platform: str) -> None:
        from crawler.service.jobs.billing import account_settings  # noqa: PLC0415  # imports SQLAlchemy: 0.1 s

        while self.stopping is None:
            job = None
            with suppress(StoreUnavailable):
                job, others = await self._next(jobs, platform)
                if job is None and self.drain and not others:
                    return
            if job is None:
                await asyncio.sleep(POLL_SECONDS)
                continue
            crawler = self.process.create_crawler(platform)
            if job.owner:  # a client's job of the endpoint
                crawler.settings.setdict(account_settings(job.owner), priority="cmdline")
            # A spider's constructor or an extension may raise any exception. Scrapy logs it, and the other platforms
            # continue. The stats then have no finish reason.
            with suppress(Exception):
                await self.process.crawl(crawler, job=job.name)
            assert crawler.stats is not None
            reason = crawler.stats.get_value("finish_reason")
            if reason != "finished" and self.stopping is None:
                self.fail(f"{platform}: the crawl of the job {job.name} ended: {reason}")
                await asyncio.sleep(POLL_SECONDS)

    async def _next(self, jobs: Jobs, platform: str) -> tuple[Job | None, bool]:
        """Return the first open job with unfinished targets of a platform, and whether a job of any platform is open.

        Jobs with waiting targets have priority. A worker in the sandbox takes only jobs of the sandbox, and other
        workers take only other jobs.
        """
        from crawler.jobs.queue import first_waiting, open_jobs_of  # noqa: PLC0415  # imports SQLAlchemy: 0.1 s

        sandbox = self.settings.getbool("SANDBOX")
        found = await open_jobs_of(jobs, platform, lambda job: job.options.sandbox == sandbox)
        if job := await first_waiting(jobs, found, platform):
            return job, True
        for job in found:  # other workers have its last targets, but may exit
            if await jobs.has_unfinished(job.id, platform):
                return job, True
        return None, bool(found)
