"""Short-video: the photo tab of the search, in a browser. The page signs its own calls; we read what it receives."""

from __future__ import annotations

from typing import Any, cast

import structlog
from scrapy import Request
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__
from web_poet import HttpResponse, PageParams

from crawler.browser.sessions import CapturedResponse, ResponseListener, in_browser
from crawler.errors import ScrapeError, UpstreamRateLimited
from crawler.platforms.page import PlatformPage
from crawler.platforms.shortvideo.pages import AppResultsPage, ResultsPage, SearchPage
from crawler.platforms.shortvideo.requests import RESULTS_PATH, SIGNS, search_request
from crawler.platforms.shortvideo.schema import PhotoSearch, PhotoSearchParams
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.target import Scraper, Target

logger = structlog.get_logger(__name__)

SAME_AGAIN = 2
"""Answers in a row without a new row after which the platform is taken to repeat itself."""


class ShortvideoArguments(CrawlArguments):
    """The params, as text."""

    keywords: str | None = None
    """What to search for."""
    cursor: str | None = None
    """Where to go on: the ``cursor`` of the answer before."""
    count: str | None = None
    """How many rows at most."""


class SearchSession(ResponseListener):
    """A stay on the search page: the rows of its results, each once, until those that were asked for are there.

    The platform's own cursor means nothing to another visitor, so ours counts rows: a visit reads from the start,
    and what was delivered before is left out.
    """

    def __init__(self, params: PhotoSearchParams, *, quiet: float, pause: float) -> None:
        super().__init__(RESULTS_PATH, SIGNS, quiet=quiet, pause=pause)
        self.keywords = params.keywords
        self.start = int(params.cursor)
        self.end = self.start + params.count
        self.rows: dict[str, dict[str, Any]] = {}
        self.more = True
        """Whether the platform has further rows, as it last said."""
        self.error: ScrapeError | None = None
        """What ended the reading before its time."""
        self._same = 0

    async def take(self, answer: CapturedResponse) -> bool:
        """Adds an answer's rows. One that is a wall, or not understood, is the last."""
        response = HttpResponse(answer.url, answer.body, status=answer.status, headers=dict(answer.headers))
        kind = AppResultsPage if AppResultsPage.recognise(response.text) else ResultsPage
        page = kind(response=response, page_params=PageParams(keywords=self.keywords))
        before = len(self.rows)
        try:
            found = await page.to_item()
        except ScrapeError as error:
            self.error = error
            return True
        for row in found["search_item_list"]:
            self.rows.setdefault(row["aweme_id"], row)
        self.more = found["has_more"]
        self._same = self._same + 1 if len(self.rows) == before else 0
        if self._same == SAME_AGAIN and self.more:
            self.error = UpstreamRateLimited("The platform repeats its results.", reason="repeated_results")
        return len(self.rows) >= self.end or not self.more or self.error is not None

    def data(self) -> dict[str, Any] | None:
        """The rows that were asked for, as many as there are; None where nothing says that there are none.

        Raises:
            ScrapeError: what ended the reading before the first of them.
        """
        rows = list(self.rows.values())[self.start : self.end]
        if not rows and self.error:
            raise self.error
        if not rows and self.more:
            return None
        if self.error:
            logger.info("search_truncated", keywords=self.keywords, rows=len(self.rows), reason=self.error.reason)
        return {
            "cursor": str(self.start + len(rows)),
            "has_more": len(self.rows) > self.end or self.more,
            "keywords": self.keywords,
            "search_item_list": rows,
        }


class ShortvideoSpider(Args[ShortvideoArguments], PlatformSpider):
    """Photo posts that a search finds."""

    name = "shortvideo"
    metadata = {"title": "Short video", "description": "Photo posts by keyword search."}  # noqa: RUF012
    needs_browser = True
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
        params = cast("PhotoSearchParams", target.params)
        pause = 0 if self.settings.getbool("SANDBOX") else self.settings.getfloat("BROWSER_SCROLL_PAUSE")
        quiet = self.settings.getfloat("BROWSER_QUIET")
        request = self.for_page(SearchPage, search_request(self.origin(), **params.model_dump()))
        return in_browser(request, lambda: SearchSession(params, quiet=quiet, pause=pause))

    async def scrape(self, target: Target, first: First) -> Data:
        """The rows that the search page received, as many as were asked for."""
        page = await first.page(SearchPage)
        assert page.received is not None
        return page.received

    async def read_item(self, page: PlatformPage, request: Request) -> None:
        """Read what the page received in the browser; where it received no results, the page says why."""
        visit: SearchSession = request.meta["page_session"]
        search = cast("SearchPage", page)
        search.received = visit.data()
        if search.received is None:
            await search.to_item()
