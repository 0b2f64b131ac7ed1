"""A crawl with Scrapy, scrapy-poet and a page object of this project, without its targets, tracker and validation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

from crawler.platforms.retail.pages import ListingPage
from crawler.platforms.retail.requests import listing_request


class PoetSpider(Spider):
    """Requests the pages of a targets file. The page object reads them."""

    name = "poet"
    targets: str
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each line."""
        with Path(self.targets).open() as lines:  # noqa: ASYNC230  # as plain spiders do
            for line in lines:
                target = json.loads(line)
                request = listing_request(self.origin, cat_id=target["cat_id"], page=target["page"])
                yield request.replace(callback=self.parse_page, dont_filter=True)

    async def parse_page(self, response: Response, page: ListingPage) -> AsyncIterator[dict[str, Any]]:
        """Yield the item of the page object."""
        yield await page.to_item()
