"""``-a queue=NAME``: a crawl as one of many workers. Knows when an outcome's line is safe, and when the worker goes."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, cast

import structlog
from scrapy import signals
from scrapy.exceptions import CloseSpider

from crawler.outputs.feeds import FAILED
from crawler.targets.checkpoint import by_line, exporters, place
from crawler.targets.target import Admission
from crawler.targets.tracker import Accounting, Outcome, target_settled

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot

    from crawler.spiders.base import PlatformSpider
    from crawler.targets.redis_queue.source import StreamSource

logger = structlog.get_logger(__name__)


class Queue:
    """Gives the spider its queue as source. Idle without ``-a queue=``.

    Its receivers must come before those of the feed exporters: a full batch is closed as its last line is written.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.source: StreamSource | None = None
        self._slots: dict[bool, list[FeedSlot]] = {False: [], True: []}
        """The open files of the feeds: of data (False), and of failures (True), as the last line found them."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Queue:
        queue = cls(crawler)
        connect = crawler.signals.connect  # here: what is connected once the spider is open comes after the exporters
        connect(queue.spider_opened, signals.spider_opened)
        connect(queue.target_settled, target_settled)
        connect(queue.slot_closed, signals.feed_slot_closed)
        connect(queue.spider_closed, signals.spider_closed)
        connect(queue.engine_stopped, signals.engine_stopped)
        return queue

    def spider_opened(self, spider: PlatformSpider) -> None:
        """Takes the place of the spider's own source.

        Raises:
            CloseSpider: there is no Redis to ask, or no client for it.
        """
        if spider.args.queue is None:
            return
        settings = self.crawler.settings
        url = settings["REDIS_URL"]
        if not url:
            raise CloseSpider("a queue is in Redis: name it with REDIS_URL")
        try:
            from crawler.targets.redis_queue.source import StreamSource  # noqa: PLC0415  # an extra
            from crawler.targets.redis_queue.stream import TargetStream  # noqa: PLC0415  # likewise

            me = f"{socket.gethostname()}-{os.getpid()}"
            stream = TargetStream(url, spider.args.queue, spider.name, idle=settings.getfloat("QUEUE_IDLE"), me=me)
        except ImportError:
            raise CloseSpider("a queue needs a client for Redis: install the extra 'redis'") from None
        except ValueError as error:
            raise CloseSpider(f"REDIS_URL is none: {error}") from None
        tries = settings.getint("QUEUE_TRIES")
        self.source = StreamSource(stream, Admission(spider.scrapers), tries, self.stored_in, spider.args.wait)
        spider.source = self.source
        cast("Accounting", self.crawler.get_spider_middleware(Accounting)).unfinished_stays = True
        self._count()

    def target_settled(self, outcome: Outcome) -> None:
        """A line is about to be written."""
        self._look(failures=outcome.error is not None)

    def stored_in(self, outcome: Outcome) -> set[str] | None:
        """The files that must be closed before the outcome's line is safe. None: it was not written, so it is not."""
        if self._broken:
            return None
        files = set()
        try:
            for slot in self._slots[outcome.error is not None]:
                if not by_line(slot):
                    files.add(place(slot))
                elif slot.file:
                    slot.file.flush()
        except OSError:
            logger.exception("feed_not_written", id=outcome.target.id)
            return None
        return files

    def slot_closed(self, slot: FeedSlot) -> None:
        """A file is complete, and stored unless Scrapy counted a failure: then none is taken for stored any more."""
        if self.source and not self._broken:
            self.source.closed(place(slot))

    def spider_closed(self) -> None:
        """The closing count."""
        if self.source:
            self._count()

    async def engine_stopped(self) -> None:
        """The worker goes: all files are closed by now."""
        if self.source:
            await self.source.close()

    def _count(self) -> None:
        assert self.crawler.stats is not None
        assert self.source is not None
        self.crawler.stats.set_value("queue/taken", self.source.taken)

    def _look(self, *, failures: bool) -> None:
        if self.source is None:
            return
        found = [each for each, of_failures in exporters(self.crawler) if of_failures == failures]
        self._slots[failures] = [slot for exporter in found for slot in exporter.slots]

    @property
    def _broken(self) -> bool:
        """Whether a feed could not be written. The run ends; what it has not settled is another's."""
        assert self.crawler.stats is not None
        return any(key.startswith(FAILED.format("")) for key in self.crawler.stats.get_stats())
