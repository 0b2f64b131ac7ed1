"""Runs the targets of clients' jobs in the endpoint's open crawlers.

A target is claimed only if its platform has a free slot that no synchronous call waits for. So synchronous calls start
at the next free slot. The targets that this process does not claim are taken by other processes of the endpoint, or by
``scrapy work``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from crawler.errors import (
    CircuitOpen,
    Overloaded,
    ScrapeError,
    ShuttingDown,
    StoreUnavailable,
    UpstreamRateLimited,
)
from crawler.jobs.job import Finished
from crawler.jobs.leases import Holder, Skipped
from crawler.jobs.source import finished
from crawler.jobs.worker import Worker, WorkerStoppedError
from crawler.service.jobs.uploads import all_targets
from crawler.service.usage import store_bills
from crawler.targets.target import InvalidTarget, Outcome, SavedTarget

if TYPE_CHECKING:
    from crawler.jobs.job import Claim, Key
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.open_crawlers import OpenCrawler, OpenCrawlers

logger = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Interval in seconds at which a platform without work looks for targets in the store."""
GATHER_SECONDS = 0.02
"""Seconds for which new targets wait for more while other targets run, so that one transaction claims them all."""
REST_SECONDS = 1.0
"""Seconds until the next claim after a target could not start, if the error has no ``retry_after``."""
MAX_REST_SECONDS = 60.0
RUN_SECONDS = 120.0
"""Timeout in seconds of a target after its claim: the longest timeout of a call."""
TEMPORARY = (CircuitOpen, Overloaded, ShuttingDown)
"""After these errors, a target waits for another attempt."""
MAX_LIMITED = 10_000
RESTART_SECONDS, MAX_RESTART_SECONDS = 5.0, 300.0
"""Seconds until a new worker starts after one has stopped: at first, and at most. They double after each error that
equals the last one, unless the worker ran for longer than the maximum."""


@dataclass
class _Queue:
    """The state of the claims for one platform in this process."""

    platform: str
    crawler: OpenCrawler
    due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when targets may have been added to the store."""
    running: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """The task of each running target -> its owner."""
    rests_until: float = 0.0
    """Time of the event loop before which no target is claimed, because a target could not start."""
    is_holding: bool = False
    """Whether the last claim skipped clients with a running target."""


class Runs:
    """Runs a worker in a process of the endpoint. After an outage or the loss of the store, a new worker starts."""

    def __init__(self, jobs: Jobs, crawlers: OpenCrawlers, lease: float, exits: int) -> None:
        self.jobs = jobs
        self.crawlers = crawlers
        self.lease, self.exits = lease, exits
        self.parser = all_targets()
        self._queues = {platform: _Queue(platform, crawler) for platform, crawler in crawlers.of.items()}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        """The targets that this process scrapes."""
        self._job_rests: dict[int, float] = {}
        """Job -> the event loop's time before which none of its targets is claimed."""
        self._limited: dict[Key, None] = {}
        """The targets that met a rate limit, and are scraped once more: at most the newest ``MAX_LIMITED``, as
        nothing tells that a waiting target was deleted."""
        self._main: asyncio.Task[None] | None = None
        self._stopping = False

    def open(self) -> None:
        """Start the worker."""
        self._main = asyncio.ensure_future(self._run())

    def added(self, platform: str | None = None) -> None:
        """Claim targets now, because targets of a platform were added to the store. None: of any platforms."""
        for each in self._queues if platform is None else (platform,):
            self._queues[each].due.set()

    def cancel(self, target: Key) -> None:
        """Stop scraping a target that was deleted."""
        if task := self._tasks.get(target):
            task.cancel()

    def stop(self) -> None:
        """Stop claiming targets. Targets in flight continue until they have an outcome."""
        self._stopping = True
        if self._main is not None:
            self._main.cancel()

    async def close(self) -> None:
        """Store the outcomes of the targets in flight, and release the other targets."""
        if self._main is not None:
            with suppress(asyncio.CancelledError):
                await self._main
        await self.jobs.close()

    async def _run(self) -> None:
        error, pause = "", 0.0
        while True:
            began, former = monotonic(), error
            holder = Holder(lease=self.lease, exits=self.exits, owned_only=True, also_store=store_bills)
            worker = Worker(self.jobs.writes, on_lost=lambda claim: self.cancel(claim.target), holder=holder)
            try:
                async with worker:
                    try:
                        async with asyncio.TaskGroup() as group:
                            for queue in self._queues.values():
                                group.create_task(self._work(worker, queue))
                    finally:
                        await self._end_tasks(worker)
            except* WorkerStoppedError as stopped:
                error = str(stopped.exceptions[0])
                logger.error("job_worker_stopped", error=error)  # noqa: TRY400
            except* Exception as failed:
                error = repr(failed.exceptions[0])
                logger.exception("job_worker_failed")  # the calls of the endpoint continue
            if self._stopping:  # a worker that cannot be closed raises its own error instead of the cancellation
                return
            # An error that does not pass repeats ever more seldom, and the end of an outage is still noticed.
            is_new = error != former or monotonic() - began > MAX_RESTART_SECONDS
            pause = RESTART_SECONDS if is_new else min(2 * pause, MAX_RESTART_SECONDS)
            logger.warning("job_worker_restarts", seconds=pause)
            await asyncio.sleep(pause)

    async def _end_tasks(self, worker: Worker) -> None:
        """Wait for the targets in flight. If their outcomes cannot be stored any more, cancel them."""
        tasks = set(self._tasks.values())
        for task in tasks if worker.failure is not None else ():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _work(self, worker: Worker, queue: _Queue) -> None:
        loop, crawler, running = asyncio.get_running_loop(), queue.crawler, queue.running
        while True:
            while (seconds := self._seconds_until_free(queue)) > 0:  # noqa: ASYNC110
                await asyncio.sleep(min(seconds, REST_SECONDS))
            queue.due.clear()
            n, skipped = self._wanted(queue)
            claims = await worker.claim(queue.platform, n, skipped)
            if self._seconds_until_free(queue) > 0:
                await self._release(worker, claims)  # a synchronous call has taken the slot in the meantime
                continue
            new = set()
            for claim in claims:
                if claim.target in self._tasks:  # its lease has expired before this process could renew it
                    self.cancel(claim.target)
                    await self._release(worker, [claim])
                    continue
                task = loop.create_task(self._scrape(worker, crawler, claim))
                self._tasks[claim.target] = task
                running[task] = claim.owner
                new.add(task)
                task.add_done_callback(self._forget(worker, queue, claim))
            if new:  # wait until their downloads have taken slots, which otherwise count as free
                await asyncio.wait(new, timeout=crawler.lanes.spacing)
            if len(claims) < n:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await queue.due.wait()
                if running:
                    await asyncio.sleep(GATHER_SECONDS)

    def _wanted(self, queue: _Queue) -> tuple[int, Skipped]:
        """Return the number of targets to claim, and the clients and jobs to skip.

        The last slot is kept for clients without a running target: if all targets of a client hang, other clients must
        not wait for their timeouts.
        """
        crawler, running = queue.crawler, queue.running
        now, slots = asyncio.get_running_loop().time(), crawler.lanes.concurrency
        self._job_rests = {job: until for job, until in self._job_rests.items() if until > now}
        queue.is_holding = 1 < slots <= len(running) + 1
        free = slots - max(crawler.in_flight, len(running)) - (slots > 1)
        held = frozenset(running.values() if queue.is_holding else ())
        return 1 if crawler.lanes.spacing else max(1, free), Skipped(held, frozenset(self._job_rests))

    def _forget(self, worker: Worker, queue: _Queue, claim: Claim) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            del queue.running[task]
            if queue.is_holding:  # the next target of the client may have waited for this one
                queue.due.set()
            if self._tasks.get(claim.target) is task:
                del self._tasks[claim.target]
            if not task.cancelled() and (error := task.exception()) is not None:  # a cancelled target is not held
                logger.error("target_failed", exc_info=error)
                worker.drop(claim)  # after its lease, the target is tried again

        return forget

    @staticmethod
    def _seconds_until_free(queue: _Queue) -> float:
        rest = queue.rests_until - asyncio.get_running_loop().time()
        if rest > 0 or queue.crawler.unhealthy:
            return max(rest, POLL_SECONDS)
        try:
            return queue.crawler.free_in(len(queue.running))
        except CircuitOpen as error:
            return float(error.retry_after or REST_SECONDS)

    async def _scrape(self, worker: Worker, crawler: OpenCrawler, claim: Claim) -> None:
        """Scrape a target, and store its outcome. If it cannot start now, return it to its queue."""
        try:
            outcome = await self._scrape_target(crawler, claim)
        except (*TEMPORARY, UpstreamRateLimited) as error:
            cooldown = crawler.settings.getfloat("BREAKER_COOLDOWN")
            otherwise = cooldown if isinstance(error, UpstreamRateLimited) else REST_SECONDS
            rest = min(error.retry_after or otherwise, MAX_REST_SECONDS)
            until = asyncio.get_running_loop().time() + rest
            if isinstance(error, CircuitOpen | UpstreamRateLimited):
                self._job_rests[claim.job] = until
            else:
                self._queues[claim.platform].rests_until = until
            await self._release(worker, [claim])
        else:
            worker.finish(outcome)

    async def _scrape_target(self, crawler: OpenCrawler, claim: Claim) -> Finished:
        """Scrape a target of a job.

        Raises:
            CircuitOpen, Overloaded, ShuttingDown: the target must wait again.
            UpstreamRateLimited: likewise, but only for the target's first rate limit.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        loaded = self.parser.load(SavedTarget.model_validate(claim.work), row=claim.row)
        if isinstance(loaded, InvalidTarget):
            return finished(claim, Outcome(loaded, None, loaded.error, 0))
        # A target whose lease was lost may be claimed again while the crawler still has the earlier try.
        target_id = f"{claim.job}.{claim.key.hex()}.{claim.tries}"
        target = replace(loaded, id=target_id, deadline=begin + RUN_SECONDS, background=True)
        try:
            outcome = await crawler.scrape(target)
        except ScrapeError as error:
            outcome = Outcome(target, None, error, math.ceil((loop.time() - begin) * 1_000))
        if isinstance(outcome.error, TEMPORARY):
            raise outcome.error
        is_first = claim.target not in self._limited
        self._limited.pop(claim.target, None)
        if is_first and isinstance(outcome.error, UpstreamRateLimited):
            self._limited[claim.target] = None
            if len(self._limited) > MAX_LIMITED:
                del self._limited[next(iter(self._limited))]
            raise outcome.error
        return finished(claim, outcome)

    @staticmethod
    async def _release(worker: Worker, claims: list[Claim]) -> None:
        while claims and worker.failure is None:
            try:
                return await worker.release(claims)
            except StoreUnavailable:
                await asyncio.sleep(POLL_SECONDS)
            except WorkerStoppedError:
                return None  # the worker's own tasks report the outage
        return None
