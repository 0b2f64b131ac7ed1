"""A crawl with Scrapy, scrapy-poet and a page object of this project, without its targets, tracker and validation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

from benchmarks.opponents.listing import requests
from crawler.platforms.retail.pages import ListingPage


class PoetSpider(Spider):
    """Requests the pages of a targets file. The page object reads them."""

    name = "poet"
    targets: str
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each line."""
        for request in requests(self.targets, self.origin):
            yield request.replace(callback=self.parse_page, dont_filter=True)

    async def parse_page(self, response: Response, page: ListingPage) -> AsyncIterator[dict[str, Any]]:
        """Yield the item of the page object."""
        yield await page.to_item()
