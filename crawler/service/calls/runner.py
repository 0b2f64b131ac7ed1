"""Runs asynchronous calls: claims them from the service's store when their platform has a free slot.

A waiting call is only a row of the store. It is claimed, and passed to a crawler, when no synchronous call of this
process waits for a slot. So synchronous calls start at the next free slot.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import orjson
import structlog

from crawler.downloads.throttle import NO_SLOT
from crawler.errors import (
    CircuitOpen,
    ConcurrencyLimited,
    Overloaded,
    ScrapeError,
    ShuttingDown,
    StoreUnavailable,
)
from crawler.jobs.clock import STORE_TIME, store_time
from crawler.service import metrics
from crawler.service.calls import call_leases
from crawler.service.calls.call_leases import Result
from crawler.service.calls.envelope import failure, internal_error, success
from crawler.service.clients.keys import Holder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crawler.jobs.store import Session, Store
    from crawler.service.calls.cache import Cache
    from crawler.service.calls.call_store import CallSettings, StoredCall
    from crawler.service.calls.open_crawlers import OpenCrawler, OpenCrawlers
    from crawler.service.clients.limits import KeyLimits

logger = structlog.get_logger(__name__)

RUN_SECONDS = 120.0
"""Timeout in seconds of a call after it was claimed: the longest timeout of a synchronous call."""
LEASE_SECONDS = 15.0
"""If a process was killed, its calls wait again after at most this many seconds."""
RENEW_SECONDS = 4.0
"""Interval in seconds at which a process renews its leases."""
TICK_SECONDS = 0.5
"""Interval in seconds of the checks for calls that other processes have accepted or completed."""
LOAD_SECONDS = 5.0
"""Interval in seconds at which the numbers and the size of the stored calls are read."""
RETRY_SECONDS = 1
"""Seconds until the next try, if the store is unavailable or an API key has its maximum of calls in flight."""
MAX_REST_SECONDS = 60.0
"""After a temporary error, the next call of a platform or scraper is tried after at most this many seconds."""
END_CALLS = 100
"""Maximum number of calls that are ended between two checks because they have waited for too long.

Leases are renewed in the checks."""
DRAIN_SECONDS = 5.0
"""Seconds for which the responses of completed calls may still be stored when the service shuts down."""

T = TypeVar("T")

TEMPORARY = (CircuitOpen, Overloaded, ShuttingDown)
"""The errors after which a call waits again."""


@dataclass
class _PlatformQueue:
    """The queue of one platform, as this process sees it."""

    crawler: OpenCrawler
    due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set if calls may be waiting in the store."""
    running: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """The task of each running call -> its client."""
    is_holding: bool = False
    """Whether the last claim was for clients without a running call only."""
    rests_until: float = 0.0
    """Time of the event loop before which no call is started, because the last one had a temporary error."""

    @property
    def without(self) -> set[str]:
        """The clients whose calls must wait, because the last slot is kept for clients without a running call.

        The targets of one client may all hang. The calls of other clients must not wait for their timeouts.
        """
        slots = self.crawler.slots
        return {*self.running.values()} if 1 < slots <= len(self.running) + 1 else set()


class Runner:
    """Runs the asynchronous calls of all platforms in this process. Requests can wait until a call is done."""

    def __init__(  # noqa: PLR0913  # the parts of the service that it uses
        self,
        store: Store,
        crawlers: OpenCrawlers,
        cache: Cache,
        limits: KeyLimits,
        settings: CallSettings,
        *,
        service_url: str = "",
    ) -> None:
        self.store = store
        self.crawlers = crawlers
        self.cache = cache
        self.limits = limits
        self.settings = settings
        self.service_url = service_url
        self.owner = uuid.uuid4().hex
        """Identifies this process in leases."""
        self._queues = {platform: _PlatformQueue(crawlers.of(platform)) for platform in crawlers.platforms}
        self._running: dict[str, asyncio.Task[None]] = {}
        """Id of a call that this process runs -> its task."""
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        """Id of a call -> the requests that wait for its end."""
        self._tasks: list[asyncio.Task[None]] = []
        self.stored_bytes = 0
        """The size of all stored calls, as it was at most ``LOAD_SECONDS`` ago."""
        self._renew_at = self._load_at = 0.0
        self._stopped = False

    def open(self) -> None:
        """Begin to run calls."""
        self._tasks = [
            asyncio.ensure_future(self._run_queue(platform, queue)) for platform, queue in self._queues.items()
        ]
        self._tasks.append(asyncio.ensure_future(self._watch()))
        for task in self._tasks:
            task.add_done_callback(_log_failure)

    def stop(self) -> None:
        """Claim no further calls, and end the requests that wait for calls."""
        self._stopped = True
        for request_id in [*self._waiters]:
            self._notify(request_id)
        for queue in self._queues.values():
            queue.due.set()

    async def close(self) -> None:
        """Wait at most ``DRAIN_SECONDS`` until completed calls are stored. The other calls run again later."""
        tasks = {*self._tasks, *self._running.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def accepted(self, platform: str) -> None:
        """Start to claim calls of a platform, because one was accepted."""
        self._queues[platform].due.set()

    def cancel(self, request_id: str) -> None:
        """Stop running a call that its client has deleted."""
        self._notify(request_id)
        if (task := self._running.get(request_id)) is not None:
            task.cancel()

    async def wait(self, request_id: str, seconds: float) -> None:
        """Wait until a call is done or deleted, or the service shuts down. ``seconds``: the maximum."""
        if self._stopped:
            return
        ended = asyncio.get_running_loop().create_future()
        self._waiters[request_id].add(ended)
        try:
            await asyncio.wait([ended], timeout=seconds)
        finally:
            self._waiters[request_id].discard(ended)
            if not self._waiters[request_id]:
                del self._waiters[request_id]

    def seconds_until_done(self, platform: str, ahead: int | None) -> int:
        """Estimate the seconds until a call has a response. ``ahead``: number of calls ahead of it; None if it runs."""
        lanes = self._queues[platform].crawler.lanes
        rate = lanes.targets_per_second
        seconds = (1 if ahead is None else ahead + 1) / rate if rate else 0.0
        return max(1, math.ceil(lanes.usable_in + seconds))

    def max_ahead(self, platform: str, seconds: float) -> float:
        """Estimate the number of calls of a platform that can start within ``seconds``."""
        lanes = self._queues[platform].crawler.lanes
        rate = lanes.targets_per_second
        return (seconds - lanes.usable_in) * rate if rate else math.inf

    async def _run_queue(self, platform: str, queue: _PlatformQueue) -> None:
        """Start the calls of a platform, each when a slot is free."""
        while not self._stopped:
            await queue.due.wait()
            queue.due.clear()
            with _survived():  # ``_watch`` sets ``due`` again
                has_more = True
                while has_more:
                    call, has_more = await self._claim_next(platform, queue)
                    if call is not None:
                        await self._start(call, queue)

    async def _claim_next(self, platform: str, queue: _PlatformQueue) -> tuple[StoredCall | None, bool]:
        """Claim the next call in the queue of a platform when a slot is free. Return it, and whether others wait."""
        while not self._stopped:
            if (seconds := self._seconds_until_slot(queue)) > 0:
                await asyncio.sleep(min(seconds, RETRY_SECONDS))
                continue
            lease, without = store_time() + LEASE_SECONDS, queue.without
            queue.is_holding = bool(without)
            call, has_more = await self.store.transact(
                partial(call_leases.claim, platform=platform, owner=self.owner, lease=lease, without=without)
            )
            if call is None or self._seconds_until_slot(queue) <= 0:
                return call, has_more
            await self._put_back(call, store_time())  # a synchronous call has taken the slot in the meantime
        return None, False

    @staticmethod
    def _seconds_until_slot(queue: _PlatformQueue) -> float:
        """Return 0 or less if a slot of the platform is free, and no synchronous call waits for it.

        Otherwise return the seconds after which to try again.
        """
        try:
            rest = queue.rests_until - asyncio.get_running_loop().time()
            return max(rest, queue.crawler.free_in(len(queue.running)))
        except CircuitOpen as error:
            return float(error.retry_after or RETRY_SECONDS)

    async def _start(self, call: StoredCall, queue: _PlatformQueue) -> None:
        """Start a call, and wait until it can have taken its slot. Otherwise, the slot would still count as free."""
        running = self._running.get(call.request_id)
        if running is not None and not running.done():
            return  # its lease had expired, and this process has claimed it again before it could cancel the task
        task = asyncio.ensure_future(self._run(call, queue))
        self._running[call.request_id] = task
        queue.running[task] = call.client

        def ended(_: asyncio.Task[None]) -> None:
            queue.running.pop(task, None)
            if queue.is_holding:  # its client's next call may have waited for this
                queue.due.set()
            if self._running.get(call.request_id) is task:  # else the call was put back and is already run again
                del self._running[call.request_id]
            _log_failure(task)

        task.add_done_callback(ended)
        await asyncio.wait([task], timeout=queue.crawler.lanes.spacing)

    async def _run(self, call: StoredCall, queue: _PlatformQueue) -> None:
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            try:
                result = await self._scrape(call)
            except ConcurrencyLimited as error:
                ready = store_time() + (error.retry_after or RETRY_SECONDS)
                await self._persist(lambda session: call_leases.hold_key(session, call.key_id, ready))
                await self._put_back(call, ready)
            except CircuitOpen as error:  # other scrapers of the platform may need other sources
                ready = store_time() + _rest(error)
                await self._persist(lambda session: call_leases.hold_scraper(session, call.scraper, ready))
                await self._put_back(call, ready)
            except TEMPORARY as error:
                queue.rests_until = asyncio.get_running_loop().time() + _rest(error)
                await self._put_back(call, store_time())
            else:
                await self._complete(call, result)

    async def _scrape(self, call: StoredCall) -> Result:
        """Scrape the target of a call. Return its response.

        Raises:
            ConcurrencyLimited: the API key has its maximum of calls in flight.
            CircuitOpen, Overloaded, ShuttingDown: the call must wait again.
        """
        envelope = call.call(self.service_url)
        try:
            target = call.target(deadline=asyncio.get_running_loop().time() + RUN_SECONDS)
            release = await self.limits.acquire(Holder(call.client, call.key_id, concurrency=call.concurrency))
            try:
                served = await self.cache.served(target, call.cache_control)
            finally:
                release()
            data = orjson.dumps(served.data)
        except (ConcurrencyLimited, *TEMPORARY):
            raise
        except ScrapeError as error:
            if error.reason == NO_SLOT:
                raise Overloaded(error.message) from error
            return Result(failure(envelope, error))
        except Exception:
            logger.exception("request_failed")
            return Result(internal_error(envelope))
        served = replace(served, data=orjson.Fragment(data))
        return Result(success(envelope, served), data, served.warnings)

    async def _put_back(self, call: StoredCall, ready: float) -> None:
        await self._persist(lambda session: call_leases.put_back(session, call, self.owner, ready))
        self._queues[call.platform].due.set()

    async def _complete(self, call: StoredCall, result: Result) -> None:
        """Store the response of a call and count it, unless its client has deleted it."""
        store = partial(call_leases.complete, call=call, owner=self.owner, result=result, settings=self.settings)
        if not await self._persist(store):
            return
        answer = result.answer
        metrics.count_completed(call.scraper, answer)
        logger.info(
            "call_completed",
            client=call.client,
            scraper=call.scraper,
            code=answer.code,
            status=answer.status,
            duration_ms=round((store_time() - call.accepted) * 1_000),
        )
        self._notify(call.request_id)

    async def _persist(self, work: Callable[[Session], T]) -> T:
        """Run a transaction. Repeat it until the store is available."""
        while True:
            try:
                return await self.store.transact(work)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch(self) -> None:
        """Check regularly for calls that can be claimed or have waited for too long, and renew the leases."""
        while not self._stopped or self._running:
            with _survived():
                await self._check()
            await asyncio.sleep(TICK_SECONDS)

    async def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        started = frozenset(self._running)
        waited_for = [*self._waiters]
        todo, unfinished = await self.store.transact(
            lambda session: (
                call_leases.pending(session, self.owner, self._queues),
                call_leases.unfinished(session, waited_for),
            ),
            write=False,
        )
        for request_id in set(waited_for) - unfinished:
            self._notify(request_id)
        for request_id in started - todo.owned:
            if (task := self._running.get(request_id)) is not None:
                task.cancel()
        if self._running and (todo.lost or now >= self._renew_at):
            self._renew_at = now + RENEW_SECONDS
            lease, running = store_time() + LEASE_SECONDS, [*self._running]
            await self.store.transact(lambda session: call_leases.renew(session, self.owner, running, lease))
        if todo.lost and STORE_TIME.is_steady:
            await self.store.transact(call_leases.clean_up)
        for platform in todo.platforms:
            self._queues[platform].due.set()
        if todo.expired and STORE_TIME.is_steady:
            await self._end_expired()
        if now >= self._load_at:
            self._load_at = now + LOAD_SECONDS
            load = await self.store.transact(call_leases.load, write=False)
            self.stored_bytes = load[1]
            metrics.collect_calls(load)

    async def _end_expired(self) -> None:
        lease = store_time() + LEASE_SECONDS
        message = "The call could not start within the time for which calls may wait (CALL_MAX_HOURS)."
        for _ in range(END_CALLS):
            call = await self.store.transact(lambda session: call_leases.claim_expired(session, self.owner, lease))
            if call is None:
                return
            await self._complete(call, Result(failure(call.call(self.service_url), Overloaded(message))))

    def _notify(self, request_id: str) -> None:
        """End the requests that wait for a call."""
        for waiter in self._waiters.get(request_id, ()):
            if not waiter.done():
                waiter.set_result(None)


def _rest(error: ScrapeError) -> float:
    """Return the seconds until calls are tried again after an error."""
    return min(error.retry_after or RETRY_SECONDS, MAX_REST_SECONDS)


@contextmanager
def _survived() -> Iterator[None]:
    """Log an unexpected exception, so that the task continues. An unavailable store has logged itself."""
    try:
        yield
    except StoreUnavailable:
        pass
    except Exception:
        logger.exception("calls_failed")


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log the exception of a task that failed unexpectedly. Its call runs again when the lease expires."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("calls_failed", exc_info=error)
