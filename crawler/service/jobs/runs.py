"""Runs the targets of clients' jobs in the endpoint's open crawlers.

A target is claimed when its platform has a free slot and no synchronous call waits for it. Other processes of the
endpoint, and ``scrapy work``, take the other targets.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from crawler.errors import CircuitOpen, Overloaded, ScrapeError, ShuttingDown, StoreUnavailable
from crawler.jobs.intake import NO_PLATFORM
from crawler.jobs.job import Finished
from crawler.jobs.source import finished
from crawler.jobs.worker import BATCH, Worker, WorkerStoppedError
from crawler.service.jobs.billing import store_bills
from crawler.service.jobs.uploads import all_targets
from crawler.targets.target import InvalidTarget, Outcome, SavedTarget

if TYPE_CHECKING:
    from crawler.jobs.job import Claim, Key
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.calls.open_crawlers import OpenCrawler, OpenCrawlers

logger = structlog.get_logger(__name__)

RUN_SECONDS = 120.0
"""Timeout in seconds of a target, as of an asynchronous call."""
POLL_SECONDS = 1.0
"""Interval in seconds at which a platform without work searches the store."""
REST_SECONDS = 5.0
"""Seconds until the next claim of a platform, after a target could not start."""
RESTART_SECONDS = 5.0
"""Seconds until the next worker, after one has stopped."""
TEMPORARY = (CircuitOpen, Overloaded, ShuttingDown)
"""The errors after which a target waits again."""


class Runs:
    """The worker of a process of the endpoint. After an outage or the loss of the store, a new one starts."""

    def __init__(self, jobs: Jobs, crawlers: OpenCrawlers, lease: float, exits: int) -> None:
        self.jobs = jobs
        self.crawlers = crawlers
        self.lease, self.exits = lease, exits
        self.parser = all_targets()
        self.due = asyncio.Event()
        """Set when a job was made in this process."""
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        """The targets that this process scrapes."""
        self._rests: dict[str, float] = {}
        """Platform -> the event loop's time before which nothing is claimed."""
        self._main: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start the worker."""
        self._main = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Claim no more targets. Those in flight go on."""
        if self._main is not None:
            self._main.cancel()

    async def close(self) -> None:
        """Store the outcomes of the targets in flight, and release the other ones."""
        if self._main is not None:
            with suppress(asyncio.CancelledError):
                await self._main
        await self.jobs.close()

    async def _run(self) -> None:
        while True:
            worker = Worker(
                self.jobs.writes,
                lambda _: None,
                self._lost,
                lambda _: None,
                lease=self.lease,
                exits=self.exits,
                owned_only=True,
                also_store=store_bills,
            )
            try:
                async with worker:
                    try:
                        async with asyncio.TaskGroup() as group:
                            group.create_task(self._fail_invalid(worker))
                            for platform in self.crawlers.platforms:
                                group.create_task(self._work(worker, self.crawlers.of(platform), platform))
                    finally:
                        await self._end_tasks(worker)
            except* WorkerStoppedError as stopped:
                logger.error("job_worker_stopped", error=str(stopped.exceptions[0]))  # noqa: TRY400
            except* Exception:
                logger.exception("job_worker_failed")  # the calls of the endpoint go on
            await asyncio.sleep(RESTART_SECONDS)

    async def _end_tasks(self, worker: Worker) -> None:
        """Wait for the targets in flight. If their outcomes cannot be stored any more, cancel them."""
        tasks = set(self._tasks.values())
        for task in tasks if worker.failure is not None else ():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _fail_invalid(self, worker: Worker) -> None:
        """End the lines of jobs that are not targets."""
        while True:
            claims = await worker.claim(NO_PLATFORM, BATCH)
            for claim in claims:
                error = claim.work["error"]
                worker.finish(Finished(claim, "failed", error["code"], {"error": error}))
            if not claims:
                await asyncio.sleep(POLL_SECONDS)

    async def _work(self, worker: Worker, crawler: OpenCrawler, platform: str) -> None:
        loop = asyncio.get_running_loop()
        running: set[asyncio.Task[None]] = set()
        while True:
            while (seconds := self._seconds_until_free(crawler, platform, len(running))) > 0:  # noqa: ASYNC110
                await asyncio.sleep(min(seconds, REST_SECONDS))
            free = max(1, crawler.slots - max(crawler.in_flight, len(running)))
            claims = await worker.claim(platform, free)
            for claim in claims:
                task = loop.create_task(self._scrape(worker, crawler, claim))
                self._tasks[claim.target] = task
                running.add(task)
                task.add_done_callback(running.discard)
                task.add_done_callback(self._forget(claim.target))
            if not claims:
                self.due.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self.due.wait()

    def _forget(self, target: Key) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            if self._tasks.get(target) is task:
                del self._tasks[target]

        return forget

    def _seconds_until_free(self, crawler: OpenCrawler, platform: str, started: int) -> float:
        rest = self._rests.get(platform, 0.0) - asyncio.get_running_loop().time()
        if rest > 0 or crawler.unhealthy:
            return max(rest, POLL_SECONDS)
        try:
            return crawler.free_in(started)
        except CircuitOpen as error:
            return float(error.retry_after or REST_SECONDS)

    async def _scrape(self, worker: Worker, crawler: OpenCrawler, claim: Claim) -> None:
        """Scrape a target, and store its outcome. If it cannot start now, let it wait again."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        loaded = self.parser.load(SavedTarget.model_validate(claim.work), row=claim.row)
        if isinstance(loaded, InvalidTarget):
            worker.finish(finished(claim, Outcome(loaded, None, loaded.error, 0)))
            return
        target = replace(loaded, id=f"{claim.job}.{claim.key.hex()}", deadline=begin + RUN_SECONDS, background=True)
        try:
            outcome = await crawler.scrape(target)
        except ScrapeError as error:
            outcome = Outcome(target, None, error, math.ceil((loop.time() - begin) * 1_000))
        if isinstance(outcome.error, TEMPORARY):
            self._rests[claim.platform] = loop.time() + min(outcome.error.retry_after or REST_SECONDS, 60.0)
            await self._release(worker, claim)
        else:
            worker.finish(finished(claim, outcome))

    @staticmethod
    async def _release(worker: Worker, claim: Claim) -> None:
        while worker.failure is None:
            try:
                return await worker.release([claim])
            except StoreUnavailable:
                await asyncio.sleep(POLL_SECONDS)
            except WorkerStoppedError:
                return None  # the worker's own tasks report it
        return None

    def _lost(self, claim: Claim) -> None:
        """Stop a target that another worker may have taken."""
        if task := self._tasks.get(claim.target):
            task.cancel()
