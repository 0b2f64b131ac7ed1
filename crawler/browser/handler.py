"""The download handler that opens pages in the browser.

Only the crawlers of spiders that need it carry the handler (``sessions.carry_browser``). The browser is started by the
first page, is replaced when it crashes or hangs, and ends with the last crawler that carries the handler.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import structlog
from playwright.async_api import Error, Page
from playwright.async_api import Request as PageRequest
from playwright.async_api import TimeoutError as PageTimeoutError
from scrapy.exceptions import DownloadFailedError
from scrapy.http import HtmlResponse, Request, Response
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from crawler.browser.chromium import Chromium
from crawler.browser.sessions import PageSession
from crawler.downloads.handlers import BoundedTransfers
from crawler.downloads.throttle import LocalThrottle
from crawler.errors import UpstreamBlocked, UpstreamError, UpstreamTimeout

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

NOTHING = "<html><head></head><body></body></html>"
"""What the browser makes of an empty body."""


class SharedBrowser:
    """What the handler knows as its browser's provider: it starts nothing, and ends what nobody uses any more."""

    def __init__(self, chromium: Chromium, pages: LocalThrottle, options: dict[str, Any], _config: object) -> None:
        self.chromium = chromium
        self.pages = pages
        self.options = options

    async def start(self) -> None:
        """The crawler begins. One that never opens a page starts no browser."""
        self.chromium.join(self.pages, self.options)

    async def close(self) -> None:
        """The crawler ends."""
        await self.chromium.leave()


class BrowserHandler(BoundedTransfers, ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]  # its base is untyped
    """Downloads requests that carry a ``visit`` in the browser, and all others as Scrapy does."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self.config.target_closed_max_retries = 0  # a page that is gone has taken its target's visit with it
        self.process_request_headers = None  # the browser's own
        self.abort_request = self.unwanted
        self.kinds = frozenset(settings.getlist("BROWSER_BLOCKED_TYPES"))
        self.trackers = tuple(settings.getlist("BROWSER_TRACKERS"))
        self.context = {"locale": "en-US", "user_agent": settings["USER_AGENT"], "service_workers": "block"}
        pages = LocalThrottle(settings.getint("BROWSER_PAGES")).share(settings.getint("PROCESSES"))
        self.spider = cast("PlatformSpider", crawler.spider)
        self.chromium = self.spider.shared.get(Chromium, "", Chromium)
        self.browser_provider_cls = partial(
            SharedBrowser, self.chromium, pages, settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")
        )

    def unwanted(self, request: PageRequest) -> bool:
        """Whether the page does without it: for its type, or because it goes to a known tracker; for no other host."""
        if request.resource_type in self.kinds:
            return True
        host = urlsplit(request.url).hostname or ""
        return any(host == tracker or host.endswith(f".{tracker}") for tracker in self.trackers)

    async def download_request(self, request: Request) -> Response:
        """The page after its visit, as the browser shows it then.

        Raises:
            UpstreamTimeout: the download's time is over.
            UpstreamBlocked: the page went to another host.
            UpstreamError: the browser died, or the page did.
            DownloadFailedError: no connection, or one that broke.
            ShuttingDown: the crawler closes, and the grace is over.
        """
        if "page_session_factory" not in request.meta:
            return await super().download_request(request)
        async with self.closing.limit():
            return await self._download_in_browser(request)

    async def _download_in_browser(self, request: Request) -> Response:
        visit: PageSession = request.meta["page_session_factory"]()
        request.meta["page_session"] = visit
        target = request.meta.get("target")
        began = asyncio.get_running_loop().time()
        try:
            async with (
                asyncio.timeout_at(target.deadline if target else None),
                self.chromium.page(target.deadline if target else None, **self.context) as page,
                asyncio.timeout(float(request.meta["download_timeout"])) as limit,
            ):
                visit.attach(page, self.unwanted)
                return await self._visit(request, visit, page, cast("float", limit.when()))
        except TimeoutError:
            raise UpstreamTimeout("The page was not done in time.", reason="timeout") from None
        except PageTimeoutError as error:
            raise UpstreamTimeout("The page did not come in time.", reason="timeout") from error
        except Error as error:
            raise self._typed(visit, error) from error
        finally:
            self._tell(request, visit, asyncio.get_running_loop().time() - began)

    async def _visit(self, request: Request, visit: PageSession, page: Page, end: float) -> Response:
        request.meta.update(
            playwright=True,
            playwright_page=page,
            playwright_include_page=True,  # it is closed with its context
            # The visit says when the page is there, and the download's time is the limit.
            playwright_page_goto_kwargs={"wait_until": "commit", "timeout": 0},
        )
        self.stats.inc_value("browser/pages/open")
        try:
            await super().download_request(request)
            await visit.run(page, end - asyncio.get_running_loop().time())
            self._refuse_strangers(visit)
            if visit.broken:
                raise DownloadFailedError(visit.broken)
            return await self._response(request, visit, page)
        finally:
            self.stats.inc_value("browser/pages/open", -1)
            del request.meta["playwright_page"]

    async def _response(self, request: Request, visit: PageSession, page: Page) -> Response:
        html = await page.content()
        assert visit.document is not None
        headers = {**await visit.document.all_headers(), "content-type": "text/html; charset=utf-8"}
        headers.pop("content-encoding", None)
        return HtmlResponse(
            page.url,
            status=visit.document.status,
            headers=headers,
            body=b"" if html == NOTHING else html.encode(errors="replace"),
            encoding="utf-8",
            request=request,
            flags=["browser"],
        )

    def _refuse_strangers(self, visit: PageSession) -> None:
        url = urlsplit(visit.asked.url if visit.asked else "")
        if f"{url.scheme}://{url.netloc}" not in self.spider.allowed_origins:
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")

    def _typed(self, visit: PageSession, error: Error) -> Exception:
        if visit.asked:
            try:
                self._refuse_strangers(visit)
            except UpstreamBlocked as refused:
                return refused
        if "net::ERR_" in error.message:
            return DownloadFailedError(error.message.partition("\n")[0])
        logger.warning("browser_page_lost", error=error.message.partition("\n")[0])
        return UpstreamError("The browser lost the page while it was read.", reason="browser_gone")

    def _tell(self, request: Request, visit: PageSession, seconds: float) -> None:
        """One line and the figures: what the page asked for, and what it was not given."""
        for kind, number in visit.made.items():
            self.stats.inc_value(f"browser/made/{kind}", number)
        for kind, number in visit.blocked.items():
            self.stats.inc_value(f"browser/blocked/{kind}", number)
        self.stats.inc_value("browser/pages")
        logger.info(
            "browser_page",
            url=request.url,
            status=visit.document.status if visit.document else None,
            made=dict(visit.made),
            blocked=dict(visit.blocked),
            seconds=round(seconds, 2),
            open_contexts=self.chromium.open_contexts,
        )
