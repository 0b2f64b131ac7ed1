"""Limits the time that a crawler takes to close. Scrapy itself waits for all downloads in progress, without a limit.

Scrapy has no signal for the start of closing: ``spider_closed`` is sent only when all downloads have ended. All causes
of closing (CLOSESPIDER settings, memory limit, ``CloseSpider``, a failing feed, SIGTERM, the end of the targets) call
the engine's documented method ``close_spider_async()``. ``AnnounceClosing`` therefore wraps this method and sends a
signal. Polling ``engine.needs_backout()`` is not an alternative: it is also true while CONCURRENT_REQUESTS downloads
are in progress, without any closing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from structlog.contextvars import unbind_contextvars

from crawler.errors import ShuttingDown

crawler_closing = object()
"""Signal: the crawler starts to close. Argument: ``reason``."""


class AnnounceClosing:
    """Extension that sends the signal ``crawler_closing`` once."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._announced = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AnnounceClosing:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Replace ``close_spider_async()`` of this crawler's engine with a method that sends the signal first."""
        engine = self.crawler.engine
        assert engine is not None
        close = engine.close_spider_async

        async def close_spider_async(*, reason: str = "cancelled") -> None:
            # The log context may belong to a target, whose id must not be in the log lines about closing.
            unbind_contextvars("request_id")
            self._announce(reason)
            await close(reason=reason)

        engine.close_spider_async = close_spider_async  # type: ignore[method-assign]

    def _announce(self, reason: str) -> None:
        if not self._announced:
            self._announced = True
            self.crawler.signals.send_catch_log(crawler_closing, reason=reason)


class Closing:
    """Ends the waits and downloads of its owner (such as a download handler) ``grace`` seconds after closing begins."""

    def __init__(self, crawler: Crawler, grace: float = 0.0) -> None:
        self.grace = grace
        self._end: float | None = None
        self._limits: set[asyncio.Timeout] = set()
        crawler.signals.connect(self._begin, crawler_closing)

    def check(self) -> None:
        """Raise an error if the crawler is closing and the grace period is over.

        Raises:
            ShuttingDown: the crawler is closing, and the grace period is over.
        """
        if self._end is not None and asyncio.get_running_loop().time() >= self._end:
            raise ShuttingDown("The crawl ended before the target was done.")

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Run a ``with`` block, but cancel it when the grace period is over.

        Raises:
            ShuttingDown: the block was cancelled or not started, because the crawler is closing.
        """
        if self._end is not None:
            self.check()
        limit = asyncio.timeout_at(self._end)
        self._limits.add(limit)
        try:
            async with limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise ShuttingDown("The crawl ended before the target was done.") from None
            raise
        finally:
            self._limits.remove(limit)

    def _begin(self) -> None:
        self._end = asyncio.get_running_loop().time() + self.grace
        for limit in self._limits:
            limit.reschedule(self._end)
