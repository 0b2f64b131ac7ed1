"""Helpers that build lanes of invented egresses and send requests through them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawler.downloads.lane import egress_failed
from crawler.downloads.lanes import Lanes
from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import UpstreamBlocked, UpstreamError
from crawler.middlewares import ThrottleMiddleware
from crawler.registry import find_scraper
from crawler.targets.parser import check_params
from crawler.targets.target import Target

NAMES = ("a", "b", "c")
BLOCK = UpstreamBlocked("wall", reason="challenge")
LOST = UpstreamError("lost", reason="connection")
FAILED = egress_failed("a", "it was unplugged")
RETAIL = find_scraper("retail-search-v4")


def target(name: str, query: str = "", deadline: float | None = None) -> Target:
    return Target(name, RETAIL, check_params(RETAIL, {"query": query or name}), deadline=deadline)


def made(*names: str, delay: float = 0, **settings: Any) -> Lanes:
    """The lanes of the named egresses, by default of three, each with one download slot."""
    values = {
        "EGRESSES": [{"name": name, "proxy": "http://127.0.0.1:9"} for name in names or NAMES],
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 1, "delay": delay}},
        "PROCESSES": 1,
        "BREAKER_THRESHOLD": 2,
        "BREAKER_COOLDOWN": 60,
        "RETRY_AFTER_MAX": 3_600,
    }
    return platform_lanes(SharedState(), "retail", Settings(values | settings))


def released_again(each: Target) -> Target:
    """Restart a target, as the tracker does if the target's egress has failed."""
    each.release.end()
    again = each.release.successor = replace(each)
    again.release.failed = each.release.lane
    return again


def names(lanes: Any) -> list[str]:
    return [lane.egress.name for lane in lanes]


class Sending:
    """A crawler's throttle middleware with the given lanes, and methods that send requests through it."""

    def __init__(self, lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("crawler.middlewares.platform_lanes", lambda *_: lanes)
        crawler = Crawler(Spider, Settings())
        crawler.spider = Spider.from_crawler(crawler, "retail")
        crawler.spider.shared = SharedState()  # type: ignore[attr-defined]  # as PlatformSpider has it
        crawler.spider.platform = "retail"  # type: ignore[attr-defined]  # likewise
        crawler.spider.on_lane = lambda _: None  # type: ignore[attr-defined]  # likewise
        self.crawler = crawler
        self.lanes = lanes
        self.middleware = ThrottleMiddleware.from_crawler(crawler)

    @asynccontextmanager
    async def download(self, each: Target, **meta: Any) -> AsyncIterator[str]:
        """Send a request of a target; yield the name of its egress while the download runs."""
        request = Request("https://shop.example/", meta={"target": each, "source": "listing", **meta})
        await self.middleware.process_request(request)
        yield request.meta["egress"]
        self.middleware.release(request)

    async def egress(self, each: Target, **meta: Any) -> str:
        async with self.download(each, **meta) as name:
            return name
