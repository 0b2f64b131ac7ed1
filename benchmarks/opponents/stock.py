"""A crawl with Scrapy alone and a page object of this project, with validation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

from benchmarks.opponents.work import read, requests


class StockSpider(Spider):
    """Requests the pages of a targets file. The page object reads them."""

    name = "stock"
    targets: str
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each line."""
        for request in requests(self.targets, self.origin):
            yield request.replace(callback=self.parse_page, dont_filter=True)

    async def parse_page(self, response: Response) -> AsyncIterator[dict[str, Any]]:
        """Yield the validated record of a page."""
        yield await read(response.url, response.status, response.body, response.meta["page_params"])
