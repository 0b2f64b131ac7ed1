"""The smallest spider that requests a page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response


class PageSpider(Spider):
    """Requests one page, and yields its size."""

    name = "page"
    url: str

    async def start(self) -> AsyncIterator[Request]:
        """Yield the request."""
        yield Request(self.url)

    def parse(self, response: Response) -> dict[str, Any]:
        """Return the item."""
        return {"bytes": len(response.body)}
