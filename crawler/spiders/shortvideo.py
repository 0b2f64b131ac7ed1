"""Short-video: the spider for the photo tab of a search. The search page is loaded in a browser, because its script
signs the API calls for the results.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import structlog
from scrapy import Request
from web_poet import HttpResponse, PageParams

from crawler.browser.sessions import CapturedResponse, ResponseListener, in_browser
from crawler.errors import Detail, ExtractionFailed, ScrapeError, UpstreamBlocked, UpstreamRateLimited, UpstreamTimeout
from crawler.items import ShortvideoPhotoSearchV4Item
from crawler.platforms.page import PlatformPage
from crawler.platforms.shortvideo.pages import LOGIN_WALL, ResultsPage, SearchPage
from crawler.platforms.shortvideo.schema import PhotoSearch, PhotoSearchParams
from crawler.platforms.shortvideo.urls import (
    CLOSE_SELECTORS,
    RESULTS_PATH,
    SEARCH_CALLS,
    STOP_SELECTORS,
    search_request,
)
from crawler.reading.contract import Unread
from crawler.reading.documents import is_json
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Scraper, Target

logger = structlog.get_logger(__name__)

MAX_REPEATED_RESPONSES = 2
"""Number of consecutive responses without a new row after which a session ends with a rate-limit error, although the
platform states that more rows follow."""


class SearchSession(ResponseListener):
    """A browser session on the search page. The session collects the rows of the results, each row once, until it has
    all rows that the target requests.

    The platform's cursor is valid for one visitor only. Therefore this scraper's cursor is a number of rows: each
    session reads the results from the start, and skips as many rows as its target's ``cursor`` states.
    """

    def __init__(self, params: PhotoSearchParams, *, quiet: float, pause: float) -> None:
        super().__init__(SEARCH_CALLS, STOP_SELECTORS, close_buttons=CLOSE_SELECTORS, quiet=quiet, pause=pause)
        self.keywords = params.words
        self.start = int(params.cursor)
        self.end = self.start + params.count
        self.rows: dict[str, dict[str, Any]] = {}
        self.unread: list[Unread] = []
        """The parts of the responses that were expected and could not be read."""
        self.pages: dict[bool, ResultsPage] = {}
        """True -> the last response that was read completely. False -> the last response with unread parts."""
        self.more = True
        """Whether more rows follow, according to the last response. True if it does not state it."""
        self.states_more = False
        """Whether the last response states whether more rows follow."""
        self.error: ScrapeError | None = None
        """The error that ended the session early."""
        self.elsewhere: tuple[ResultsPage, ScrapeError] | None = None
        """The last response to another search call that explains why no results arrive, and the error that it means."""
        self._repeated = 0

    async def take(self, captured: CapturedResponse) -> bool | None:
        """Add the rows in a response. Return true to end the session: enough rows, no more rows, or an error.

        An error is kept in ``error`` and not raised. Return None for a response to another search call than that for
        results, unless it has photo posts.
        """
        response = HttpResponse(captured.url, captured.body, status=captured.status, headers=dict(captured.headers))
        page = ResultsPage(response=response, page_params=PageParams(keywords=self.keywords))
        path = urlsplit(captured.url).path
        if f"{path.rstrip('/')}/" != RESULTS_PATH and not await self._has_posts(page, path):
            return None
        before = len(self.rows)
        try:
            found = await page.to_item()
        except ScrapeError as error:
            self.error = error
            if isinstance(error, ExtractionFailed):
                self.pages[False] = page
            return True
        self.pages[not page.unread] = page
        self.unread += page.unread
        for row in found["search_item_list"]:
            self.rows.setdefault(row["aweme_id"], row)
        self.more, self.states_more = found["has_more"], page.states_more
        self._repeated = self._repeated + 1 if len(self.rows) == before else 0
        if self._repeated == MAX_REPEATED_RESPONSES and self.more:
            self.error = UpstreamRateLimited("The platform repeated its results.", reason="repeated_results")
        return len(self.rows) >= self.end or not self.more or self.error is not None

    async def _has_posts(self, page: ResultsPage, path: str) -> bool:
        """Whether the response to another search call has photo posts, so that the call may be a new one for results.

        If it has rows of an unknown kind, or is a refusal with a mark in its JSON, it is kept in ``elsewhere``. Other
        failures say nothing about the results: the call may be one for suggestions.
        """
        if not (page.response.status == 200 and is_json(page.response.body)):
            return False
        try:
            if (await page.to_item())["search_item_list"]:
                return True
        except UpstreamBlocked as error:
            self.elsewhere = page, error
        except ScrapeError:
            pass
        with suppress(ExtractionFailed):
            if page.has_rows:
                detail: Detail = {"loc": ["url"], "msg": path, "type": "unknown_path"}
                message = f"The page received rows of an unknown kind at the unknown path {path[:100]}."
                self.elsewhere = page, ExtractionFailed(message, details=[detail], reason="unknown_path")
        return False

    @property
    def wall(self) -> str | None:
        """The kind of element that ended the session, "login" or "captcha" (a key of ``STOP_SELECTORS``), or None.

        The value is "login" also without a login dialog, if the page has rows and stops requesting more, although the
        platform states that more follow.
        """
        return self.end_marker or ("login" if self.rows and self.is_silent and self.states_more else None)

    @property
    def interruption(self) -> ScrapeError | None:
        """The error that ended the visit before it had the requested rows, although more follow; None if it had them.

        A CAPTCHA beside complete rows is also an interruption: the platform refuses the visitor.
        """
        is_block = isinstance(self.error, UpstreamBlocked) and self.error.reason != LOGIN_WALL
        if self.end_marker == "captcha" or is_block:
            return UpstreamBlocked("The platform interrupted the search with a CAPTCHA challenge.", reason="challenge")
        if self.error or not self.more or len(self.rows) >= self.end:
            return self.error
        if self.wall:
            return UpstreamBlocked("The platform asks for a login to show further results.", reason=LOGIN_WALL)
        return UpstreamTimeout("The page received no further results in time.", reason="no_answer")

    def data(self) -> dict[str, Any] | None:
        """Return a record with the requested rows that were found. None if none was found but more rows may follow.

        Raises:
            ScrapeError: an error ended the session before the first requested row was found.
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


class ShortvideoSpider(PlatformSpider):
    """Scrapes the photo posts in the results of a keyword search."""

    name = "shortvideo"
    metadata = {"title": "Short video", "description": "Photo posts by keyword search."}  # noqa: RUF012
    needs_browser = True
    scrapers = (
        Scraper(
            name="shortvideo-photo-search-v4",
            platform="shortvideo",
            summary="Photo (slide show) posts in the results of a keyword search.",
            params=PhotoSearchParams,
            data=PhotoSearch,
            item=ShortvideoPhotoSearchV4Item,
            example={"keywords": "whales"},
            pages=(ResultsPage, SearchPage),
            requests=1,
        ),
    )

    def request(self, target: Target) -> Request:
        params = cast("PhotoSearchParams", target.params)
        pause = 0 if self.settings.getbool("SANDBOX") else self.settings.getfloat("BROWSER_SCROLL_PAUSE")
        quiet = self.settings.getfloat("BROWSER_QUIET")
        search = search_request(keywords=params.words, cursor=params.cursor, count=params.count)
        request = self.for_page(SearchPage, search)
        return in_browser(request, lambda: SearchSession(params, quiet=quiet, pause=pause))

    async def scrape(self, target: Target, first: First) -> Data:
        """Return the record of the requested rows that the search page received in the browser.

        The next rows become a follow-up (see ``follow``), unless the visit ended before it had all requested rows: the
        follow-up would have to get further in a visit of its own.
        """
        params = cast("PhotoSearchParams", target.params)
        data = (await first.page(SearchPage)).received
        assert data is not None
        ids = [row["aweme_id"] for row in data["search_item_list"]]
        self.count_rows(target, ids, None, is_first=params.cursor == "0")
        is_cut = data["has_more"] and len(ids) < params.count and target.depth + 1 < self.args.max_pages
        if is_cut or not data["has_more"]:
            self.close_listing(target, ResultsPage.source, ended=not is_cut)
        elif not self.follow(target, data, cursor=data["cursor"]):
            self.close_listing(target, ResultsPage.source, ended=None)
        return data

    def keep(self, page: PlatformPage, request: Request, error: ScrapeError | None = None) -> None:
        """Keep a response as ``PlatformSpider.keep`` does, except a search page whose session ended with ``error``.

        In this case, ``read_item`` has kept the response of the search API that caused the error.
        """
        session: SearchSession = request.meta["page_session"]
        if error is None or error is not session.error or isinstance(page, ResultsPage):
            super().keep(page, request, error)

    async def read_item(self, page: PlatformPage, request: Request) -> None:
        """Store the results that the browser session has collected in the search page's page object (``received``).

        Raises:
            ScrapeError: the session has no requested row. The error is the session's, or the reason in the page's HTML.
        """
        session: SearchSession = request.meta["page_session"]
        search = cast("SearchPage", page)
        for is_good, received in session.pages.items():
            failed = not is_good and not received.unread
            self.keep(received, request, session.error if failed else None)
        if session.elsewhere and not session.rows and session.error is None:
            self.keep(session.elsewhere[0], request, session.elsewhere[1])
            search.elsewhere = session.elsewhere[1]
        search.received, search.wall = session.data(), session.wall
        if search.received is None:
            await search.to_item()
            return
        if (interruption := session.interruption) is not None:
            if interruption.reason != LOGIN_WALL:  # every visitor meets it after the first rows
                page.interruption = interruption
            self.warn(request.meta["target"], ResultsPage.source, interruption)
        self.warn_unread(request.meta["target"], ResultsPage.source, session.unread)
