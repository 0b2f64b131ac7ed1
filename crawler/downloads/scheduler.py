"""A scheduler for spiders that limit their targets in flight themselves, so that few requests wait in it."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Self

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler


class TargetScheduler(BaseScheduler):
    """Keeps the requests of targets in memory, sorted by priority and then by the order in which they were added.

    Scrapy's scheduler has queues on disk, a queue for each download slot and a filter for duplicates. Targets need none
    of these: the tracker releases few at a time, the throttle chooses what is downloaded, and the same page may be
    requested for several targets. The stats are those of Scrapy's scheduler, set when the crawler closes.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._waiting: list[tuple[int, int, Request]] = []
        self._numbers = count()
        self._enqueued = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def has_pending_requests(self) -> bool:
        """Whether a request is waiting."""
        return bool(self._waiting)

    def enqueue_request(self, request: Request) -> bool:
        """Add a request. Always return True: no request is dropped as a duplicate."""
        heappush(self._waiting, (-request.priority, next(self._numbers), request))
        self._enqueued += 1
        return True

    def next_request(self) -> Request | None:
        """Remove and return the next request, or return None."""
        return heappop(self._waiting)[2] if self._waiting else None

    def close(self, reason: str) -> None:
        """Set the stats of the enqueued and dequeued requests."""
        assert self._crawler.stats is not None
        for name, number in (("enqueued", self._enqueued), ("dequeued", self._enqueued - len(self._waiting))):
            self._crawler.stats.set_value(f"scheduler/{name}", number)
            self._crawler.stats.set_value(f"scheduler/{name}/memory", number)
