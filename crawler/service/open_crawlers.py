"""One open crawler per spider, fed from a queue that never ends: a call costs a fraction of a crawler's start."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import structlog
from scrapy.crawler import AsyncCrawlerRunner

from crawler.downloads.shared import SharedState, platform_state
from crawler.errors import Overloaded, ServiceError, ShuttingDown, UpstreamTimeout
from crawler.registry import spiders
from crawler.targets.sources import QueueSource
from crawler.targets.target import InvalidTarget, Target

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.spiders.base import PlatformSpider
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

RETRY_AFTER = 5
"""Seconds after which a call that found no room may try again, where nothing better is known."""

OVERLAY: dict[str, Any] = {
    # What a crawl wants and an open crawler must not have: outputs of its own, ports, statistics per crawl.
    "FEEDS": {},
    "FAILURES_FEED": None,
    "JOBDIR": None,
    "SANDBOX": False,  # the service starts it once, for all crawlers
    "STATS_DUMP": False,
    "LOGSTATS_INTERVAL": 0,
    "MEMUSAGE_ENABLED": False,  # it would end the crawler for everybody
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_ITEMCOUNT": 0,
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_ERRORCOUNT": 0,
    "LOG_INSTALL_ROOT_HANDLER": False,  # the service's own handlers stay
}

MIN_IN_FLIGHT = 4
"""Targets that an open crawler works on at once, however few its platform's budget lets download."""

GRACE = 1.0
"""Seconds after a call's deadline at which it is answered even if its crawler says nothing."""

RESTART_PAUSE = 1.0
"""Seconds before a crawler that died is opened anew."""
MAX_CRASHES = 2
"""Deaths in a row, without an outcome in between, after which nobody is kept waiting for it any more."""


class OpenCrawler:
    """A spider's crawler, opened again whenever it ends, and the calls that wait for its outcomes."""

    def __init__(self, spider: type[PlatformSpider], settings: Settings, shared: SharedState) -> None:
        self.shared = shared
        self.spider = spider
        self.settings = settings.copy()
        self.budget = platform_state(shared, spider.name, settings).budget
        # Those that wait do so in line, where they can be counted and called off, and not inside the crawler; there
        # a target's next request would have to queue behind the first ones of all others.
        in_flight = max(MIN_IN_FLIGHT, 2 * self.budget.concurrency)
        self.settings.setdict(OVERLAY | {"TARGETS_IN_FLIGHT": in_flight}, priority="cmdline")
        self.limit = in_flight + settings.getint("SERVICE_MAX_WAITING")
        self.recycle_after = settings.getint("SERVICE_RECYCLE_TARGETS")
        self.recycle_minutes = settings.getfloat("SERVICE_RECYCLE_MINUTES")
        self.source = QueueSource(self._completed)
        self._calls: dict[str, asyncio.Future[Outcome]] = {}
        self._served = 0
        self._deaths = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """How many calls wait for an outcome."""
        return len(self._calls)

    @property
    def unhealthy(self) -> bool:
        """Whether it keeps dying as soon as it is opened."""
        return self._deaths >= MAX_CRASHES and not self.source.iterated

    def open(self) -> None:
        """Starts to take calls."""
        self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        """Ends when all that was put is settled."""
        self._closing = True
        self.source.close()
        if self._task:
            await self._task

    async def call(self, target: Target) -> dict[str, Any]:
        """The target's data.

        Raises:
            ScrapeError: its error; ``Overloaded`` where the line is full or its turn did not, or cannot, come in time.
        """
        assert target.deadline is not None
        loop = asyncio.get_running_loop()
        self._admit(target.deadline, loop.time())
        self._calls[target.id] = loop.create_future()
        self.source.put(target)
        try:
            async with asyncio.timeout_at(target.deadline + GRACE):
                outcome = await self._calls[target.id]
        except TimeoutError:
            if self.source.discard(target.id):
                raise Overloaded("Its turn did not come before the deadline.", retry_after=RETRY_AFTER) from None
            raise UpstreamTimeout("The deadline passed before the platform had answered.") from None
        finally:
            # Also where the caller is gone: what has not started never will.
            del self._calls[target.id]
            self.source.discard(target.id)
        if outcome.error:
            raise outcome.error
        assert outcome.data is not None
        return outcome.data

    def _admit(self, deadline: float, now: float) -> None:
        if self.unhealthy:
            raise _broken(self.spider.name)
        if self.in_flight >= self.limit:
            wait = min(max(RETRY_AFTER, math.ceil(self.budget.earliest() - now)), 3_600)
            raise Overloaded(f"{self.limit} calls to this platform are in flight already.", retry_after=wait)
        late = self.budget.earliest(ahead=len(self.source)) - deadline
        if late >= 0:
            raise Overloaded("Its turn cannot come before the deadline.", retry_after=max(1, math.ceil(late)))

    def _completed(self, outcome: Outcome) -> None:
        self._deaths = 0
        assert not isinstance(outcome.target, InvalidTarget)
        waiting = self._calls.get(outcome.target.id)
        if waiting and not waiting.done():
            waiting.set_result(outcome)
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
                self._deaths += 1
                if self.unhealthy:
                    self._fail_waiting()
                await asyncio.sleep(RESTART_PAUSE)

    def _fail_waiting(self) -> None:
        """Tells those in line that nobody comes."""
        for target_id, waiting in self._calls.items():
            if self.source.discard(target_id) and not waiting.done():
                waiting.set_exception(_broken(self.spider.name))


def _broken(platform: str) -> ServiceError:
    return ServiceError(f"The crawler of {platform} cannot be opened; the service's log says why.")


class OpenCrawlers:
    """The open crawlers of all platforms."""

    def __init__(self, settings: Settings, shared: SharedState) -> None:
        self.shared = shared
        self._crawlers = {name: OpenCrawler(spider, settings, shared) for name, spider in spiders().items()}
        self.limit = settings.getint("SERVICE_MAX_CALLS")
        self.draining = False

    @property
    def in_flight(self) -> int:
        """How many calls wait for an outcome."""
        return sum(crawler.in_flight for crawler in self._crawlers.values())

    @property
    def state(self) -> dict[str, Any]:
        """Whether calls are taken, and the platforms whose calls are not."""
        unhealthy = [name for name, crawler in self._crawlers.items() if crawler.unhealthy]
        status = "draining" if self.draining else "broken" if len(unhealthy) == len(self._crawlers) else "ready"
        return {"status": status, "broken": unhealthy}

    @property
    def load(self) -> dict[str, tuple[int, int]]:
        """Of each platform: calls that no crawler has taken yet, and all that wait for an outcome."""
        return {name: (len(crawler.source), crawler.in_flight) for name, crawler in self._crawlers.items()}

    def open(self) -> None:
        """Opens every crawler."""
        for crawler in self._crawlers.values():
            crawler.open()

    async def call(self, target: Target) -> dict[str, Any]:
        """The target's data, from its platform's crawler.

        Raises:
            ScrapeError: the target's error, or the service's.
        """
        if self.draining:
            raise ShuttingDown("The service is shutting down; another one will take the call.", retry_after=5)
        crawler = self._crawlers.get(target.scraper.platform)
        if crawler is None:
            raise ServiceError(f"No crawler is open for {target.scraper.platform}.")
        if self.in_flight >= self.limit and crawler.in_flight >= self.limit / len(self._crawlers):
            raise Overloaded(f"{self.limit} calls are in flight already.", retry_after=RETRY_AFTER)
        return await crawler.call(target)

    async def drain(self) -> None:
        """Refuses new calls, and ends when those in flight are answered."""
        self.draining = True
        while self.in_flight:  # noqa: ASYNC110  # once in a service's life; an event would be kept up to date for it
            await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.gather(*(c.close() for c in self._crawlers.values())), timeout=10)
