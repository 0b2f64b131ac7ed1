"""Short-video: the photo tab of the search, in a browser: the page signs its own calls, and we read what it receives."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.pages.shortvideo import AppResultsPage, ResultsPage, SearchPage
from crawler.schemas.shortvideo import PhotoSearch, PhotoSearchParams
from crawler.spiders.base import CrawlArguments, PlatformSpider
from crawler.targets import Scraper, Target
from crawler.upstream.shortvideo import search_request


class ShortvideoArguments(CrawlArguments):
    """The params, as text."""

    keywords: str | None = None
    """What to search for."""
    cursor: str | None = None
    """Where to go on: the ``cursor`` of the answer before."""
    count: str | None = None
    """How many rows at most."""


class ShortvideoSpider(Args[ShortvideoArguments], PlatformSpider):
    """Photo posts that a search finds."""

    name = "shortvideo"
    metadata = {"title": "Short video", "description": "Photo posts by keyword search."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="shortvideo-photo-search-v4",
            platform="shortvideo",
            summary="Photo (slide show) posts that a keyword search finds.",
            params=PhotoSearchParams,
            data=PhotoSearch,
            example={"keywords": "whales"},
            pages=(AppResultsPage, ResultsPage, SearchPage),
        ),
    )
    args: ShortvideoArguments

    def request(self, target: Target) -> Request:
        return search_request(self.origin(), **target.params.model_dump())
