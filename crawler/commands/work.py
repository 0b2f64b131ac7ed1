"""``scrapy work``: collects the targets of all open jobs, together with any number of other workers."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy.crawler import AsyncCrawlerProcess
from twisted.internet.error import ReactorNotRunning
from twisted.internet.task import LoopingCall

from crawler.components import install
from crawler.configuration.command import CheckedCommand
from crawler.jobs import open_jobs
from crawler.runtime import COLLECT_SECONDS, tune_garbage_collector

if TYPE_CHECKING:
    from crawler.jobs.job import Job

END_SECONDS = 30.0
"""Seconds after ``CLOSE_GRACE`` in which crawls must store their outcomes after a signal. Then the process ends."""


class Command(CheckedCommand):
    """Collect the targets of all open jobs of STORE, together with other workers.

    A worker in the sandbox takes only jobs of the sandbox, and other workers take only other jobs. A job whose crawls
    fail three times with the same error is given up by this worker.

    Exit codes: 0 after SIGTERM or Ctrl-C, or with --drain when no target is left, 1 if a job was given up, 2 for wrong
    use.
    """

    requires_crawler_process = True

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--drain", action="store_true", help="end when no open job has targets left")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        install(self.settings)
        sandbox = self.settings.getbool("SANDBOX")
        crawl_jobs(self, lambda job: job.options.sandbox == sandbox, drain=opts.drain)


def crawl_jobs(command: CheckedCommand, is_wanted: Callable[[Job], bool], **how: Any) -> None:
    """Run the reactor, and crawl jobs in it until all are done (``drain``), or until SIGTERM or Ctrl-C.

    Print each job that was given up, and set the command's exit code. A second signal ends the process without waiting
    for the crawls. Without it, the process ends at most ``CLOSE_GRACE`` + ``END_SECONDS`` seconds after the first one.
    ``how``: as for ``JobCrawls``.
    """
    from twisted.internet import reactor  # noqa: PLC0415  # Scrapy installs the reactor when it makes the process

    from crawler.jobs.crawls import JobCrawls  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
    from crawler.service.usage import account_settings  # noqa: PLC0415  # imports SQLAlchemy, too

    process, jobs = command.crawler_process, open_jobs(command.settings)
    assert isinstance(process, AsyncCrawlerProcess)  # the class for the asyncio reactor
    crawls = JobCrawls(jobs, process, is_wanted, account_settings, **how)
    seconds = command.settings.getfloat("CLOSE_GRACE") + END_SECONDS
    tasks: list[asyncio.Task[None]] = []

    def stop_reactor() -> None:
        with suppress(ReactorNotRunning):  # it stops already
            reactor.stop()

    async def work() -> None:
        try:
            await crawls.run()
        finally:
            await jobs.close()
            stop_reactor()

    def end() -> None:
        if len(tasks) > 1:
            stop_reactor()
        else:
            tasks.append(asyncio.get_running_loop().create_task(crawls.stop()))
            reactor.callLater(seconds, late)

    def late() -> None:
        command.fail(f"The crawls have not ended within {seconds:g} s: other workers take their targets over.")
        stop_reactor()

    def begin() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        tasks.append(loop.create_task(work()))
        LoopingCall(gc.collect).start(COLLECT_SECONDS, now=False)

    reactor.callLater(0, begin)
    tune_garbage_collector(collect=False)
    process.start(stop_after_crawl=False, install_signal_handlers=False)
    if tasks[0].done():
        tasks[0].result()
    for sentence in crawls.given_up:
        command.fail(sentence)
