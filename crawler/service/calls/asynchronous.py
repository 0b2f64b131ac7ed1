"""Asynchronous calls in this process: scrapes claimed calls, and wakes the requests that wait for them.

The worker of the clients' jobs (``jobs/runs.py``) claims a call only if no synchronous call waits for a slot.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from crawler.downloads.throttle import NO_SLOT
from crawler.errors import CircuitOpen, ConcurrencyLimited, Overloaded, ScrapeError, ShuttingDown
from crawler.jobs.clock import STORE_TIME, store_time
from crawler.jobs.job import Claim, Finished, Key
from crawler.registry import scrapers
from crawler.service import metrics
from crawler.service.calls import stored
from crawler.service.calls.envelope import unexpected
from crawler.service.calls.stored import Room
from crawler.service.clients.keys import Holder
from crawler.targets.parser import check_params
from crawler.targets.target import Target

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.store import Store
    from crawler.service.calls.cache import Cache
    from crawler.service.calls.envelope import Served
    from crawler.service.calls.open_crawlers import OpenCrawlers
    from crawler.service.calls.stored import StoredCall
    from crawler.service.clients.limits import KeyLimits
    from crawler.service.periodic import Periodic

logger = structlog.get_logger(__name__)

RUN_SECONDS = 120.0
"""Timeout in seconds of an asynchronous call after its claim: the longest timeout of a synchronous call."""
TICK_SECONDS = 0.5
"""Interval in seconds at which a process looks for calls that other processes have completed or deleted."""
LOAD_SECONDS = 5.0
"""Interval in seconds at which the numbers and the size of the stored calls are read, and expired ones are deleted."""
DELETED_AT_ONCE = 500
"""Maximum number of expired calls that one transaction deletes, so that each transaction is short."""
TEMPORARY = (CircuitOpen, Overloaded, ShuttingDown)
"""After these errors, a call or a target of a job waits for another attempt."""


class AsyncCalls:
    """Runs the asynchronous calls of all platforms in this process, and waits for calls of other processes."""

    def __init__(
        self, store: Store, crawlers: OpenCrawlers, cache: Cache, limits: KeyLimits, settings: BaseSettings
    ) -> None:
        self.store = store
        self.crawlers = crawlers
        self.cache = cache
        self.limits = limits
        self.max_seconds = settings.getfloat("CALL_MAX_HOURS") * 3_600
        """Maximum seconds for which a call may wait."""
        self.result_seconds = settings.getfloat("CALL_RESULT_HOURS") * 3_600
        """Seconds for which an ended call is stored, unless its ``Idempotency-Key`` is stored for longer."""
        self.idempotency_seconds = settings.getfloat("IDEMPOTENCY_HOURS") * 3_600
        self.max_bytes = settings.getint("CALL_STORE_MB") * 1_000_000
        self.stored_bytes = 0
        """The size of all stored calls, as it was at most ``LOAD_SECONDS`` ago."""
        self._waiters: defaultdict[Key, set[asyncio.Future[None]]] = defaultdict(set)
        """Job and key of a call -> the HTTP requests that wait for its response."""
        self._scraping: dict[Key, asyncio.Task[Any]] = {}
        """Job and key of a call that this process scrapes -> the task."""
        self._stopped = False

    @property
    def periodic(self) -> tuple[Periodic, ...]:
        """The work that the endpoint repeats."""
        return (self._wake, TICK_SECONDS, "calls_failed"), (self._maintain, LOAD_SECONDS, "calls_failed")

    def stop(self) -> None:
        """Wake all requests that wait for calls, because the service shuts down."""
        self._stopped = True
        for key in [*self._waiters]:
            self.notify(key)

    async def wait(self, call: StoredCall, seconds: float) -> None:
        """Wait until a call is done or deleted, or the service shuts down. Wait at most ``seconds``."""
        if self._stopped:
            return
        key = (call.job, call.request_id.encode())
        ended = asyncio.get_running_loop().create_future()
        self._waiters[key].add(ended)
        try:
            await asyncio.wait([ended], timeout=seconds)
        finally:
            self._waiters[key].discard(ended)
            if not self._waiters[key]:
                del self._waiters[key]

    def notify(self, key: Key) -> None:
        """Wake the requests that wait for a call."""
        for waiter in self._waiters.get(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    def deleted(self, key: Key) -> None:
        """Stop scraping a call, and wake the requests that wait for it."""
        self.notify(key)
        if task := self._scraping.get(key):
            task.cancel()

    def seconds_until_done(self, platform: str, ahead: int | None) -> int:
        """Estimate the seconds until a call has a response. ``ahead``: number of calls ahead of it; None if it runs."""
        lanes = self.crawlers.of[platform].lanes
        rate = lanes.targets_per_second
        seconds = (1 if ahead is None else ahead + 1) / rate if rate else 0.0
        return max(1, math.ceil(lanes.usable_in + seconds))

    def room(self, platform: str, quota: int | None) -> Room:
        """Return the limits for a new call of a client with this quota, by the estimated speed of the platform."""
        lanes = self.crawlers.of[platform].lanes
        rate = lanes.targets_per_second
        max_ahead = (self.max_seconds - lanes.usable_in) * rate if rate else math.inf
        return Room(max_ahead, 1 / rate if rate else 0.0, self.stored_bytes >= self.max_bytes, quota)

    async def scrape(self, claim: Claim) -> Finished:
        """Scrape the target of a call. Return the outcome to store.

        Raises:
            ConcurrencyLimited: the API key has its maximum number of calls in flight.
            CircuitOpen, Overloaded, ShuttingDown: the call must wait for another attempt.
        """
        request_id, work = claim.key.decode(), claim.work
        task = asyncio.current_task()
        assert task is not None
        self._scraping[claim.target] = task
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                scraper = scrapers()[work["scraper"]]
                deadline = asyncio.get_running_loop().time() + RUN_SECONDS
                params = check_params(scraper, work["params"])
                target = Target(request_id, scraper, params, deadline=deadline, background=True)
                holder = Holder(claim.owner, work["key_id"], concurrency=work["concurrency"])
                async with self.limits.in_flight(holder):
                    served = await self.cache.served(target, work["cache_control"])
                return self.done(claim, served)
            except (ConcurrencyLimited, *TEMPORARY):
                raise
            except ScrapeError as error:
                if error.reason == NO_SLOT:
                    raise Overloaded(error.message) from error
                return self.failed(claim, error)
            except Exception:
                logger.exception("request_failed")
                return self.failed(claim, unexpected())
            finally:
                if self._scraping.get(claim.target) is task:
                    del self._scraping[claim.target]

    def done(self, claim: Claim, served: Served) -> Finished:
        """Return the outcome to store for a call with a record."""
        outcome = _times(claim) | {"billable": served.billable, "headers": served.headers}
        outcome["warnings"] = [each.as_dict() for each in served.warnings]
        kept = self.result_seconds
        if claim.work["key"] is not None:
            outcome["key_until"] = store_time() + self.idempotency_seconds
            kept = max(kept, self.idempotency_seconds)
        record = orjson.Fragment(orjson.dumps(served.data))
        return Finished(claim, "done", "OK", outcome, record, expires=store_time() + kept)

    def failed(self, claim: Claim, error: ScrapeError) -> Finished:
        """Return the outcome to store for a call with an error."""
        outcome = _times(claim) | {"error": error.as_dict() | {"retryable": error.retryable}}
        return Finished(claim, "failed", error.code, outcome, expires=store_time() + self.result_seconds)

    def late(self, claim: Claim) -> Finished:
        """Return the outcome to store for a call that has waited for too long."""
        message = "The call could not start within the time for which calls may wait (CALL_MAX_HOURS)."
        return self.failed(claim, Overloaded(message))

    def completed(self, finished: Finished) -> None:
        """Count a call whose outcome is stored, and wake the requests that wait for it."""
        claim, outcome = finished.claim, finished.outcome
        metrics.count_completed(claim.work["scraper"], finished.code, billable=outcome.get("billable", False))
        logger.info(
            "call_completed",
            request_id=claim.key.decode(),
            client=claim.owner,
            scraper=claim.work["scraper"],
            code=finished.code,
            duration_ms=outcome["duration_ms"],
        )
        self.notify(claim.target)

    async def _wake(self) -> None:
        """Wake the requests whose calls another process has completed or deleted, and stop scraping deleted calls."""
        known = [*{*self._waiters, *self._scraping}]
        if known:
            left = await self.store.transact(lambda session: stored.unfinished(session, known), write=False)
            for key in known:
                if key[1] not in left:
                    self.deleted(key)

    async def _maintain(self) -> None:
        """Read how many calls are stored and how large they are, and delete expired calls.

        Nothing is deleted just after the clock was changed.
        """
        platforms = [*self.crawlers.of]
        load = await self.store.transact(lambda session: stored.load(session, platforms), write=False)
        self.stored_bytes = load[1]
        metrics.collect_calls(load)
        while STORE_TIME.is_steady:
            number = await self.store.transact(lambda session: stored.delete_expired(session, DELETED_AT_ONCE))
            if number < DELETED_AT_ONCE:
                break


def _times(claim: Claim) -> dict[str, Any]:
    now = store_time()
    return {"completed": now, "duration_ms": round((now - claim.work["accepted"]) * 1_000)}
