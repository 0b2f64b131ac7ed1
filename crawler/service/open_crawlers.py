"""An open crawler for each spider, which takes targets from a queue. Starting a crawler for each call is too slow."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import structlog
from scrapy.crawler import AsyncCrawlerRunner

from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import DEADLINE, Overloaded, ServiceError, ShuttingDown, UpstreamTimeout
from crawler.registry import spiders
from crawler.targets.sources import QueueSource
from crawler.targets.target import InvalidTarget, Target

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.spiders.base import PlatformSpider
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

RETRY_AFTER_SECONDS = 5
"""The default ``Retry-After`` value of refused calls."""

OVERLAY: dict[str, Any] = {
    # Features of a single crawl that must be off in an open crawler.
    "FEEDS": {},
    "FAILURES_FEED": None,
    "JOBDIR": None,
    "SANDBOX": False,  # the service starts one sandbox for all crawlers
    "STATS_DUMP": False,
    "DOWNLOADER_STATS": False,  # for the same reason as UNREAD_STATS
    "LOGSTATS_INTERVAL": 0,
    "MEMUSAGE_ENABLED": False,  # at its memory limit, it would close the crawler for all calls
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_ITEMCOUNT": 0,
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_ERRORCOUNT": 0,
    "LOG_INSTALL_ROOT_HANDLER": False,  # the service has its own log handlers
}

UNREAD_STATS = ("scrapy.extensions.corestats.CoreStats", "scrapy.extensions.logcount.LogCount")
"""Extensions that only count stats. Open crawlers run without them, because the metrics count calls and outcomes.

``LogCount`` would count each line of the log in each open crawler.
"""

MIN_IN_FLIGHT = 4
"""An open crawler may always have this many targets in flight, even if it has fewer download slots."""

DEADLINE_GRACE_SECONDS = 1.0
"""Seconds after a call's deadline at which the call fails if the crawler has reported no outcome."""

POLL_SECONDS = 0.02
"""Interval in seconds at which a busy crawler is checked for a free place for a target of the store."""

RESTART_SECONDS = 1.0
"""Seconds to wait before a crashed crawler is started again."""

CLOSE_SECONDS = 10.0
"""Maximum seconds for closing the crawlers when the service shuts down, after all calls have an outcome."""

MAX_CRASHES = 2
"""The calls in a crawler's queue fail after this many crashes in a row without an outcome in between."""


def settings_of_crawlers(settings: Settings) -> Settings:
    """Return the settings of all open crawlers, which share this copy: a copy takes a megabyte."""
    own = settings.copy()
    extensions = settings.getdict("EXTENSIONS") | dict.fromkeys(UNREAD_STATS)
    own.setdict(OVERLAY | {"EXTENSIONS": extensions}, priority="cmdline")
    return own


class OpenCrawler:
    """Runs a spider's crawler, starts a new one when the crawler ends, and returns the outcomes to the waiting calls.

    ``settings``: the result of ``settings_of_crawlers``.
    """

    def __init__(self, spider: type[PlatformSpider], settings: Settings, shared: SharedState) -> None:
        self.shared = shared
        self.spider = spider
        self.settings = settings
        self.lanes = platform_lanes(shared, spider.name, settings)
        self.max_waiting = settings.getint("SERVICE_MAX_WAITING")
        self.recycle_after = settings.getint("SERVICE_RECYCLE_TARGETS")
        self.recycle_minutes = settings.getfloat("SERVICE_RECYCLE_MINUTES")
        self.source = QueueSource(self._completed, self.has_room)
        self._calls: dict[str, asyncio.Future[Outcome]] = {}
        self._served = 0
        self._crashes = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """The number of calls and other targets that wait for an outcome, whether queued or running."""
        return len(self._calls)

    @property
    def max_in_flight(self) -> int:
        """The maximum of targets in flight: twice the crawler's download slots, but at least ``MIN_IN_FLIGHT``.

        The slots of suspended egresses do not count.

        Further calls wait in the source's queue, where they are counted and can be cancelled. If they waited in the
        crawler instead, a target's second request would wait for the first requests of all other targets.
        """
        return max(MIN_IN_FLIGHT, 2 * self.lanes.concurrency)

    def has_room(self, in_flight: int) -> bool:
        """Whether another target may start. ``in_flight``: the number of others."""
        return in_flight < MIN_IN_FLIGHT or in_flight < self.max_in_flight

    @property
    def limit(self) -> int:
        """The maximum number of calls that are running or waiting."""
        return self.max_in_flight + self.max_waiting

    def free_in(self, started: int) -> float:
        """Return 0 if a target can start now without delaying a synchronous call, else the seconds to wait.

        ``started``: number of targets that the caller has started, even if they are not in flight yet.

        Raises:
            CircuitOpen: all egresses of the platform are suspended.
        """
        if (seconds := self.lanes.idle_in()) > 0:
            return seconds
        is_busy = len(self.source) > 0 or max(self.in_flight, started) >= self.lanes.concurrency
        return POLL_SECONDS if is_busy else 0.0

    @property
    def unhealthy(self) -> bool:
        """Whether the crawler crashed repeatedly without an outcome, and is not running."""
        return self._crashes >= MAX_CRASHES and not self.source.iterated

    def open(self) -> None:
        """Start the crawler."""
        self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        """Close the crawler after all waiting targets are completed."""
        self._closing = True
        self.source.close()
        if self._task:
            await self._task

    async def scrape(self, target: Target, patience: float = math.inf) -> Outcome:
        """Scrape a target and return its outcome, which may have an error.

        ``patience``: maximum seconds for which the target's first request may wait for a download slot.

        Raises:
            Overloaded: the queue is full, or the target cannot start before its deadline or within ``patience``.
            UpstreamTimeout: the target has no outcome at its deadline.
            CircuitOpen: all egresses of the platform are suspended.
            ServiceError: the crawler cannot be started.
        """
        assert target.deadline is not None
        loop = asyncio.get_running_loop()
        self._check_capacity(target.deadline, loop.time(), patience)
        outcome: asyncio.Future[Outcome] = loop.create_future()
        self._calls[target.id] = outcome
        self.source.put(target)
        try:
            async with asyncio.timeout_at(target.deadline + DEADLINE_GRACE_SECONDS):
                return await outcome
        except TimeoutError:
            if self.source.discard(target.id):
                raise Overloaded(
                    "The call was still in the queue at its deadline.", retry_after=RETRY_AFTER_SECONDS
                ) from None
            raise UpstreamTimeout("The deadline passed before the platform responded.", reason=DEADLINE) from None
        finally:
            del self._calls[target.id]
            if outcome.cancelled():  # the client has disconnected: a target that still waits is not started
                self.source.discard(target.id)

    def _check_capacity(self, deadline: float, now: float, patience: float) -> None:
        if self._crashes and self.unhealthy:
            raise _unavailable(self.spider.name)
        if len(self._calls) > self.max_waiting and len(self._calls) >= self.limit:
            wait = min(max(RETRY_AFTER_SECONDS, math.ceil(self.lanes.start_in())), 3_600)
            raise Overloaded(
                f"This platform has its maximum of {self.limit} calls, running or waiting.", retry_after=wait
            )
        seconds = self.lanes.start_in(len(self.source), self.spider.required_sources)
        excess = seconds - min(deadline - now, patience)
        if excess >= 0:
            raise Overloaded(
                f"The platform's next download slot is free in {math.ceil(seconds)} s, and this call does not wait that"
                " long. The header Prefer: wait=N lets a call wait for up to 120 s.",
                retry_after=max(1, math.ceil(excess)),
            )

    def _completed(self, outcome: Outcome) -> None:
        self._crashes = 0
        assert not isinstance(outcome.target, InvalidTarget)
        future = self._calls.get(outcome.target.id)
        if future and not future.done():
            future.set_result(outcome)
        self._served += 1
        if self.recycle_after and self._served >= self.recycle_after:
            self.source.renew()

    async def _run(self) -> None:
        while True:
            self._served = 0
            runner = AsyncCrawlerRunner(self.settings)
            crawl = runner.crawl(self.spider, source=self.source, shared=self.shared)
            timer = asyncio.get_running_loop().call_later(self.recycle_minutes * 60, self.source.renew)
            (result,) = await asyncio.gather(crawl, return_exceptions=True)
            timer.cancel()
            if self._closing:
                return
            if isinstance(result, BaseException) or not self.source.renewing:
                logger.error("crawler_crashed", spider=self.spider.name, exc_info=result)
                self._crashes += 1
                if self.unhealthy:
                    self._fail_waiting()
                await asyncio.sleep(RESTART_SECONDS)

    def _fail_waiting(self) -> None:
        """Fail all calls whose targets are still in the queue, because the crawler cannot be started."""
        for target_id, future in self._calls.items():
            if self.source.discard(target_id) and not future.done():
                future.set_exception(_unavailable(self.spider.name))


def _unavailable(platform: str) -> ServiceError:
    return ServiceError(f"The crawler of {platform} cannot be started; see the log of the service.")


class OpenCrawlers:
    """The open crawlers of all platforms."""

    def __init__(self, settings: Settings, shared: SharedState) -> None:
        self.shared = shared
        own = settings_of_crawlers(settings)
        self.of = {name: OpenCrawler(spider, own, shared) for name, spider in spiders().items()}
        """The crawler of each platform."""
        self.limit = settings.getint("SERVICE_MAX_CALLS")
        self.draining = False

    @property
    def in_flight(self) -> int:
        """The number of calls and other targets of all platforms that wait for an outcome."""
        return sum(crawler.in_flight for crawler in self.of.values())

    @property
    def state(self) -> dict[str, Any]:
        """The readiness of the service, and the platforms whose crawlers fail to start."""
        unhealthy = [name for name, crawler in self.of.items() if crawler.unhealthy]
        status = "draining" if self.draining else "broken" if len(unhealthy) == len(self.of) else "ready"
        return {"status": status, "broken": unhealthy}

    def open(self) -> None:
        """Start all crawlers."""
        for crawler in self.of.values():
            crawler.open()

    def for_call(self, target: Target) -> OpenCrawler:
        """Return the crawler of a call's target.

        Raises:
            ShuttingDown: the service is shutting down.
            Overloaded: the service has too many calls in flight.
        """
        if self.draining:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)
        crawler = self.of[target.scraper.platform]
        if crawler.in_flight >= self.limit / len(self.of) and self.in_flight >= self.limit:
            raise Overloaded(
                f"The service is at its limit: {self.limit} calls are in flight.", retry_after=RETRY_AFTER_SECONDS
            )
        return crawler

    async def drain(self) -> None:
        """Refuse new calls, wait until the calls in flight have an outcome, and close the crawlers.

        A crawler that still runs a target whose client has disconnected is cancelled after ``CLOSE_SECONDS``.
        """
        self.draining = True
        while self.in_flight:  # noqa: ASYNC110  # polled only at shutdown: an event would cost time in every call
            await asyncio.sleep(0.05)
        closing = {asyncio.ensure_future(crawler.close()): platform for platform, crawler in self.of.items()}
        _, late = await asyncio.wait(closing, timeout=CLOSE_SECONDS)
        for each in late:
            each.cancel()
            logger.warning("crawler_cancelled", spider=closing[each])
        await asyncio.gather(*late, return_exceptions=True)
