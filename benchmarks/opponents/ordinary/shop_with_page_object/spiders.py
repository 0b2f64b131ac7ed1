"""An ordinary spider that reads the page as the endpoint does: the same page object and validation."""

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Spider
from scrapy.http import Response

from benchmarks.opponents.scrape import read


class SearchSpider(Spider):
    """Yields the record of a page of search results."""

    name = "search"

    async def parse(self, response: Response) -> AsyncIterator[dict[str, Any]]:
        """Yield the validated record."""
        yield await read(response.url, response.status, response.body, {})
