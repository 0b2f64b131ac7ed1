"""The work that all opponents with the page object share: requests, page object, validation, and a line of the feed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from scrapy import Request
from web_poet import HttpResponse, PageParams

from crawler.downloads.handlers import moved
from crawler.pipelines import validated
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.retail.schema import SearchListing
from crawler.platforms.retail.urls import listing_request

DOWNLOADS = 16
"""Downloads at once of each crawl."""


def page_request(origin: str, **params: Any) -> Request:
    """Return the request of a page of search results."""
    request = listing_request(**params)
    return request.replace(url=moved(request.url, origin))


def requests(targets: str, origin: str) -> Iterator[Request]:
    """Yield the request of each line of a targets file."""
    with Path(targets).open() as lines:
        for each in lines:
            yield page_request(origin, **orjson.loads(each))


async def read(url: str, status: int, body: bytes, page_params: dict[str, Any]) -> dict[str, Any]:
    """Return the validated record of a page of search results."""
    page = SearchPage(response=HttpResponse(url, body, status=status), page_params=PageParams(page_params))
    return validated(SearchListing, await page.to_item())


def line(record: dict[str, Any]) -> bytes:
    """Return a record as a line of a feed."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
