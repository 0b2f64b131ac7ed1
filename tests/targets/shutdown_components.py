"""Scrapy components for the shutdown tests: a slow pipeline, misbehaving targets, a log of events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response

from crawler.errors import ScrapeError
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.retail.urls import listing_request
from crawler.spiders.base import First, PlatformSpider
from crawler.targets.target import Target


class SlowPipeline:
    """Holds each item for a second."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(1)
        return item


class Events:
    """Writes a line for each scheduled request and ``spider_closed`` to the file in the setting ``EVENTS_FILE``."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Events:
        extension = cls(Path(crawler.settings["EVENTS_FILE"]))
        crawler.signals.connect(extension.request_scheduled, signals.request_scheduled)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def request_scheduled(self, request: Request) -> None:
        self._write("scheduled", request.meta["target"].id)

    def spider_closed(self, reason: str) -> None:
        self._write("closed", reason)

    def _write(self, event: str, detail: str) -> None:
        with self.file.open("a") as out:
            out.write(f"{event} {detail}\n")


class BrokenTargets:
    """Replaces the spider's ``scrape()``: some queries close the spider or send more requests."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BrokenTargets:
        extension = cls()
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        return extension

    def spider_opened(self, spider: PlatformSpider) -> None:
        scrape = spider.scrape

        async def broken(target: Target, first: First) -> dict[str, Any] | None:
            query = target.params.model_dump().get("query")
            if query == "close":
                raise CloseSpider("enough")
            data = await scrape(target, first)
            if query == "followups":
                for number in range(3):
                    try:
                        request = listing_request(query=f"hang {number}")
                        await spider.get(SearchPage, request, target)
                    except ScrapeError:
                        pass  # platforms can continue with other sources
            return data

        spider.scrape = broken  # type: ignore[method-assign]


class InterferingMiddleware:
    """A downloader middleware after the throttle. It rejects, answers or replaces the first request of some queries."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def process_request(self, request: Request) -> Request | Response | None:
        query = dict(parse_qsl(urlsplit(request.url).query)).get("q", "")
        if query in self.seen:
            return None
        self.seen.add(query)
        if query == "refused":
            raise IgnoreRequest("refused")
        if query == "answered":
            return HtmlResponse(request.url, status=404, request=request)
        if query == "replaced":
            return request.replace(priority=1)
        return None
