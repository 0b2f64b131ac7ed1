"""One open crawler per spider, fed from a queue that never ends: a call costs a fraction of a crawler's start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog
from scrapy.crawler import AsyncCrawlerRunner

from crawler.errors import Overloaded, ServiceError, ShuttingDown, UpstreamTimeout
from crawler.registry import spiders
from crawler.targets import QueueSource, Rejected, Target

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.outcomes import Outcome
    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

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
    "TARGETS_IN_FLIGHT": 256,  # the platforms' budgets decide
}

GRACE = 1.0
"""Seconds after a call's deadline at which it is answered even if its crawler says nothing."""

RESTART_PAUSE = 1.0
"""Seconds before a crawler that died is opened anew."""


class OpenCrawler:
    """A spider's crawler, opened again whenever it ends, and the calls that wait for its outcomes."""

    def __init__(self, spider: type[PlatformSpider], settings: Settings) -> None:
        self.spider = spider
        self.settings = settings.copy()
        self.settings.setdict(OVERLAY, priority="cmdline")
        self.limit = settings.getint("SERVICE_MAX_WAITING")
        self.recycle_after = settings.getint("SERVICE_RECYCLE_TARGETS")
        self.recycle_minutes = settings.getfloat("SERVICE_RECYCLE_MINUTES")
        self.source = QueueSource(self._settled)
        self._calls: dict[str, asyncio.Future[Outcome]] = {}
        self._served = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """How many calls wait for an outcome."""
        return len(self._calls)

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
            ScrapeError: its error; ``Overloaded`` where the line is full or its turn did not come.
        """
        if len(self.source) >= self.limit:
            raise Overloaded(f"{self.limit} calls are waiting already.", retry_after=5)
        assert target.deadline is not None
        loop = asyncio.get_running_loop()
        self._calls[target.id] = loop.create_future()
        self.source.put(target)
        try:
            async with asyncio.timeout_at(target.deadline + GRACE):
                outcome = await self._calls[target.id]
        except TimeoutError:
            if self.source.discard(target.id):
                raise Overloaded("Its turn did not come before the deadline.", retry_after=5) from None
            raise UpstreamTimeout("The deadline passed before the platform had answered.") from None
        finally:
            # Also where the caller is gone: what has not started never will.
            del self._calls[target.id]
            self.source.discard(target.id)
        if outcome.error:
            raise outcome.error
        assert outcome.data is not None
        return outcome.data

    def _settled(self, outcome: Outcome) -> None:
        assert not isinstance(outcome.target, Rejected)
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
            crawl = runner.crawl(self.spider, source=self.source)
            timer = asyncio.get_running_loop().call_later(self.recycle_minutes * 60, self.source.renew)
            (result,) = await asyncio.gather(crawl, return_exceptions=True)
            timer.cancel()
            if self._closing:
                return
            if isinstance(result, BaseException) or not self.source.renewing:
                logger.error("crawler_died", spider=self.spider.name, exc_info=result)
                await asyncio.sleep(RESTART_PAUSE)


class OpenCrawlers:
    """The open crawlers of all platforms."""

    def __init__(self, settings: Settings) -> None:
        self._crawlers = {name: OpenCrawler(spider, settings) for name, spider in spiders().items()}
        self.draining = False

    @property
    def in_flight(self) -> int:
        """How many calls wait for an outcome."""
        return sum(crawler.in_flight for crawler in self._crawlers.values())

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
        return await crawler.call(target)

    async def drain(self) -> None:
        """Refuses new calls, and ends when those in flight are answered."""
        self.draining = True
        while self.in_flight:  # noqa: ASYNC110  # once in a service's life; an event would be kept up to date for it
            await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.gather(*(c.close() for c in self._crawlers.values())), timeout=10)
