"""The download handler that loads pages in the browser.

Only crawlers whose spiders may use the browser have this handler (``sessions.carry_browser``). The browser is started
for the first page, replaced after a crash or a hang, and closed with the last crawler that has this handler.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import structlog
from playwright.async_api import Error, Page, Route
from playwright.async_api import Request as PageRequest
from playwright.async_api import TimeoutError as PageTimeoutError
from scrapy.exceptions import DownloadFailedError
from scrapy.http import HtmlResponse, Request, Response
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from crawler.browser.chromium import Chromium
from crawler.browser.proxy import FilteringProxy
from crawler.browser.sessions import PageSession
from crawler.downloads.connections import through
from crawler.downloads.egress_setting import DIRECT
from crawler.downloads.facts import Facts
from crawler.downloads.handlers import HttpHandler, origin_of, restored
from crawler.downloads.lane import egress_failed
from crawler.downloads.throttle import Throttle
from crawler.errors import BrowserFailed, Detail, UpstreamBlocked, UpstreamTimeout

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

EMPTY_DOCUMENT = "<html><head></head><body></body></html>"
"""The HTML of the page that Chromium shows for a response with an empty body."""
GONE = re.compile(r"crashed|has been closed|[Cc]onnection closed|did not respond within", re.ASCII)
"""Matches the texts of errors which prove that the browser or its page has crashed, or that the browser hung: those of
Playwright, and those of ``Chromium``."""
URL = re.compile(r"[a-z][a-z0-9+.-]{0,30}://\S+|data:\S+", re.IGNORECASE)
MAX_MESSAGE = 200
LOGGED_HOSTS = 10
"""Maximum number of hosts in a log line about refused connections."""


class SharedBrowser:
    """The browser provider for scrapy-playwright: all crawlers share one browser, started for the first page."""

    def __init__(self, chromium: Chromium, pages: Throttle, options: dict[str, Any], _config: object) -> None:
        self.chromium = chromium
        self.pages = pages
        self.options = options

    async def start(self) -> None:
        """Register the crawler as a user of the browser. This does not start the browser."""
        self.chromium.join(self.pages, self.options)

    async def close(self) -> None:
        """Unregister the crawler as a user of the browser."""
        await self.chromium.leave()


class BrowserHandler(HttpHandler, ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]  # the base class is untyped
    """Loads requests with ``meta["page_session_factory"]`` in the browser. ``HttpHandler`` downloads other requests."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self.config.target_closed_max_retries = 0  # a session cannot continue after its page was closed
        self.process_request_headers = None  # keep the browser's own headers
        self.abort_request = self.is_unwanted
        self.blocked_types = frozenset(settings.getlist("BROWSER_BLOCKED_TYPES"))
        self.trackers = tuple(settings.getlist("BROWSER_TRACKERS"))
        self.context = {"locale": "en-US", "user_agent": settings["USER_AGENT"], "service_workers": "block"}
        options = settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")
        pages = Throttle(settings.getint("BROWSER_PAGES"), facts=Facts(settings.getint("PROCESSES")))
        self.spider = cast("PlatformSpider", crawler.spider)
        self.chromium = self.spider.shared.get(Chromium, "", Chromium)
        self.browser_provider_cls = partial(SharedBrowser, self.chromium, pages, options)

    @staticmethod
    def is_closed(request: Request, sent: Request) -> bool:
        """Whether a page may connect to local servers only: if it is from one, as each page of the sandbox.

        ``sent``: what ``LocalOrigins.request`` made of the request.
        """
        return sent is not request

    def is_unwanted(self, request: PageRequest) -> bool:
        """Whether to abort a page's request, because of its resource type or because its host is a known tracker."""
        if request.resource_type in self.blocked_types:
            return True
        host = urlsplit(request.url).hostname or ""
        return any(host == tracker or host.endswith(f".{tracker}") for tracker in self.trackers)

    async def download_request(self, request: Request) -> Response:
        """Download a request. A response from the browser contains the page's HTML at the end of the browser session.

        For the errors of a request that is not loaded in the browser, see ``HttpHandler``.

        Raises:
            UpstreamTimeout: the page was not loaded before the download timeout or the target's deadline.
            Overloaded: it is certain that ``BROWSER_PAGES`` delays the page beyond the target's deadline.
            BlockedByPolicy: as for ``LocalOrigins.request``.
            UpstreamBlocked: the page navigated to an origin that does not belong to the platform.
            BrowserFailed: the browser or the page crashed, or reported an error of an unknown kind.
            EgressFailed: the egress failed before the platform responded.
            DownloadFailedError: the connection failed.
            ServiceError: Chromium was not found or could not be started.
            ShuttingDown: the crawler is closing, and ``CLOSE_GRACE`` seconds have passed.
        """
        if "page_session_factory" not in request.meta:
            return await super().download_request(request)
        async with self.closing.limit():
            return await self._download_in_browser(request)

    async def _download_in_browser(self, request: Request) -> Response:
        session: PageSession = request.meta["page_session_factory"]()
        request.meta["page_session"] = session
        sent = self.local_origins.request(request)
        session.public_url = partial(restored, sent=sent, request=request)
        egress = self.egresses[sent.meta["egress"]] if "egress" in sent.meta else None
        proxy = FilteringProxy(
            self._local(),
            through(egress or DIRECT),
            self.connect_seconds,
            is_closed=self.is_closed(request, sent),
        )
        target = request.meta.get("target")
        started = asyncio.get_running_loop().time()
        try:
            async with (
                asyncio.timeout_at(target.deadline if target else None),
                proxy,
                self.chromium.page(
                    target.deadline if target else None, proxy={"server": proxy.url}, **self.context
                ) as page,
                asyncio.timeout(float(request.meta["download_timeout"])) as limit,
            ):
                session.attach(page, self.is_unwanted)
                # Not as a header of the first request: a page that reloads itself must send them again.
                await page.context.add_cookies(
                    [{"name": n, "value": v, "url": sent.url} for n, v in sent.meta["page_cookies"].items()]
                )
                return await self._run_session(sent, session, page, cast("float", limit.when()))
        except (TimeoutError, PageTimeoutError) as error:
            raise UpstreamTimeout("The page was not loaded before the timeout.", reason="timeout") from error
        except (Error, DownloadFailedError) as error:
            typed = self._typed_error(session, error) if isinstance(error, Error) else error
            if egress and egress.proxy and proxy.failure and isinstance(typed, DownloadFailedError):
                failure = egress_failed(egress.name, proxy.failure)
                await self.count(request, failure)
                raise failure from None
            raise typed from (error if typed is not error else None)
        finally:
            self._log(request, session, proxy, asyncio.get_running_loop().time() - started)

    def _local(self) -> frozenset[str]:
        """Return the local origins of the platform. The page may connect to them although they are not public."""
        return self.local_origins.of(self.spider.allowed_origins)

    async def _run_session(self, request: Request, session: PageSession, page: Page, end: float) -> Response:
        request.meta.update(
            playwright=True,
            playwright_page=page,
            playwright_include_page=True,  # this handler closes the page with its context
            # The session decides when the page is loaded, and the download timeout is the limit.
            playwright_page_goto_kwargs={"wait_until": "commit", "timeout": 0},
        )
        self.stats.inc_value("browser/pages/open")
        try:
            await self._open(request, session, page)
            await session.run(page, end - asyncio.get_running_loop().time())
            self._raise_for_other_host(session)
            if session.failure and session.has_failed:
                raise DownloadFailedError(session.failure)
            return await self._response(request, session, page, end)
        finally:
            self.stats.inc_value("browser/pages/open", -1)
            del request.meta["playwright_page"]

    async def _open(self, request: Request, session: PageSession, page: Page) -> None:
        """Open the page. A page that navigates again at once, such as one that reloads itself, counts as opened.

        Raises:
            Error: the connection failed, or the page or its browser has crashed.
        """
        try:
            await super().download_request(request)
        except Error as error:
            if session.has_crashed or page.is_closed() or "net::ERR_" in error.message:
                raise

    async def _response(self, request: Request, session: PageSession, page: Page, end: float) -> Response:
        """Return the response with the HTML of the page's last document: from now on, the page may not navigate again.

        ``end``: the time of the event loop at which the download timeout ends.
        """

        async def hold(route: Route, sent: PageRequest) -> None:
            await (route.abort("aborted") if sent.is_navigation_request() else route.fallback())

        await page.route("**", hold)
        html, headers = await session.last_document(page, end - asyncio.get_running_loop().time())
        assert session.document is not None
        headers = {**headers, "content-type": "text/html; charset=utf-8"}
        headers.pop("content-encoding", None)
        return HtmlResponse(
            session.public_url(page.url),
            status=session.document.status,
            headers=headers,
            body=b"" if html == EMPTY_DOCUMENT else html.encode(errors="replace"),
            encoding="utf-8",
            flags=["browser"],
        )

    def _raise_for_other_host(self, session: PageSession) -> None:
        url = session.navigation.url if session.navigation else ""
        if origin_of(url) not in self.spider.allowed_origins | self._local():
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")

    def _typed_error(self, session: PageSession, error: Error) -> Exception:
        if session.navigation:
            try:
                self._raise_for_other_host(session)
            except UpstreamBlocked as blocked:
                return blocked
        if "net::ERR_" in error.message:
            return DownloadFailedError(error.message.partition("\n")[0])
        logger.warning("browser_page_lost", error=error.message.partition("\n")[0])
        return browser_failed(error.message, has_crashed=session.has_crashed)

    def _log(self, request: Request, session: PageSession, proxy: FilteringProxy, seconds: float) -> None:
        """Log one line for the page, and add its numbers of requests and refused connections to the crawl's stats."""
        for kind, number in session.sent.items():
            self.stats.inc_value(f"browser/made/{kind}", number)
        for kind, number in session.aborted.items():
            self.stats.inc_value(f"browser/blocked/{kind}", number)
        if proxy.refused:
            self.stats.inc_value("browser/refused", proxy.refused.total())
            logger.warning("browser_connections_refused", hosts=dict(proxy.refused.most_common(LOGGED_HOSTS)))
        self.stats.inc_value("browser/pages")
        logger.info(
            "browser_page",
            url=request.url,
            status=session.document.status if session.document else None,
            made=dict(session.sent),
            blocked=dict(session.aborted),
            seconds=round(seconds, 2),
            open_contexts=self.chromium.open_contexts,
        )


def browser_failed(message: str, *, has_crashed: bool) -> BrowserFailed:
    """Create the error for an ``Error`` of Playwright that is not about the connection.

    Only the crash of the page's process (``has_crashed``) and the texts of ``GONE`` prove that the browser or its page
    is gone. Any other text is quoted: its first line, without URLs, which contain the target's words.
    """
    if has_crashed or GONE.search(message):
        return BrowserFailed("The browser or its page crashed.", reason="browser_gone")
    seen = URL.sub("…", message.strip().partition("\n")[0])[:MAX_MESSAGE]
    detail: Detail = {"loc": ["browser"], "msg": seen, "type": "browser_error"}
    return BrowserFailed(f"The browser reported an error: {seen}", details=[detail], reason="browser_error")
