"""Broken item pipelines, which the services under test find through ``PYTHONPATH``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Raises:
    """Raises an exception for each item."""

    def process_item(self, item: Any) -> Any:
        raise ZeroDivisionError("an internal detail")


class Drops:
    """Drops each item."""

    def process_item(self, item: Any) -> Any:
        raise DropItem("too few rows")


class Stops:
    """Stops its crawler at the first item, in the way a memory limit does."""

    stopped = False

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stops:
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        if not Stops.stopped:
            Stops.stopped = True
            assert self.crawler.engine
            self.stopping = asyncio.ensure_future(self.crawler.engine.stop_async())
            await asyncio.sleep(0.1)
        return item


class CannotOpen:
    """Raises an exception when the crawler is created."""

    def __init__(self) -> None:
        raise ZeroDivisionError("an internal detail")
