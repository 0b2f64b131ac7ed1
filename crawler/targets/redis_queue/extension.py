"""``-a queue=NAME``: makes a crawl one of the workers of a queue.

When a target is stored, its entry in the queue is completed.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, cast

import structlog
from scrapy import signals
from scrapy.exceptions import CloseSpider

from crawler.outputs.feeds import target_buffered, target_stored
from crawler.targets.target import Outcome, TargetParser
from crawler.targets.tracker import TargetTracker

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider
    from crawler.targets.redis_queue.source import StreamSource

logger = structlog.get_logger(__name__)


class Queue:
    """Extension that replaces the spider's source with the queue. Does nothing without ``-a queue=``."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.source: StreamSource | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Queue:
        queue = cls(crawler)
        connect = crawler.signals.connect
        connect(queue.spider_opened, signals.spider_opened)
        connect(queue.target_buffered, target_buffered)
        connect(queue.target_stored, target_stored)
        connect(queue.spider_closed, signals.spider_closed)
        connect(queue.engine_stopped, signals.engine_stopped)
        return queue

    def spider_opened(self, spider: PlatformSpider) -> None:
        """Replace the spider's source with the queue.

        Raises:
            CloseSpider: REDIS_URL is not set or not valid, or the Redis client is not installed.
        """
        if spider.args.queue is None:
            return
        settings = self.crawler.settings
        url = settings["REDIS_URL"]
        if not url:
            raise CloseSpider("REDIS_URL is not set: a queue needs Redis")
        try:
            from crawler.targets.redis_queue.source import StreamSource  # noqa: PLC0415  # an extra
            from crawler.targets.redis_queue.stream import TargetStream  # noqa: PLC0415  # likewise

            worker, idle = f"{socket.gethostname()}-{os.getpid()}", settings.getfloat("QUEUE_IDLE")
            stream = TargetStream(url, spider.args.queue, spider.name, idle=idle, worker=worker)
        except ImportError:
            raise CloseSpider("a queue needs the Redis client: install the extra 'redis'") from None
        except ValueError as error:
            raise CloseSpider(f"REDIS_URL is not a valid Redis URL: {error}") from None
        tries = settings.getint("QUEUE_TRIES")
        self.source = StreamSource(stream, TargetParser(spider.scrapers), tries, spider.args.wait)
        spider.source = self.source
        cast("TargetTracker", self.crawler.get_spider_middleware(TargetTracker)).leave_unfinished = True
        self._count()

    def target_buffered(self, outcome: Outcome) -> None:
        """Push the target's follow-ups to the queue. Its entry is kept until the file with its line is closed."""
        if self.source:
            self.source.buffered(outcome)

    def target_stored(self, outcome: Outcome) -> None:
        """Complete the target's entry in the queue."""
        if self.source:
            self.source.stored(outcome)

    def spider_closed(self) -> None:
        """Set the final value of the stat ``queue/taken``."""
        if self.source:
            self._count()

    async def engine_stopped(self) -> None:
        """Close the source. All feeds have been closed before this signal."""
        if self.source:
            await self.source.close()

    def _count(self) -> None:
        assert self.crawler.stats is not None
        assert self.source is not None
        self.crawler.stats.set_value("queue/taken", self.source.taken)
