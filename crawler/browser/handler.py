"""The browser: one Chromium per process, one context per target, and the download handler that opens pages in it.

Only the crawlers of spiders that need it carry the handler (``visits.carry_browser``). The browser is started by the
first page, is replaced when it dies or hangs, and ends with the last crawler that carries the handler.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import structlog
from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright, async_playwright
from playwright.async_api import Request as PageRequest
from playwright.async_api import TimeoutError as PageTimeoutError
from scrapy.exceptions import DownloadFailedError
from scrapy.http import HtmlResponse, Request, Response
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from crawler.browser.sessions import Visit
from crawler.downloads.handlers import BoundedTransfers
from crawler.downloads.throttle import Budget
from crawler.errors import ServiceError, UpstreamBlocked, UpstreamError, UpstreamTimeout

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = structlog.get_logger(__name__)

T = TypeVar("T")

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""What a Chromium is called on the PATH."""
HOW_TO_GET_ONE = (
    "There is no Chromium. Get one with 'apt-get install chromium' or 'playwright install chromium', or name yours: "
    "PLAYWRIGHT_LAUNCH_OPTIONS = {'executable_path': '/path/to/chromium'}."
)
HUNG_AFTER = 15.0
"""Seconds after which a browser that does not open or close a page is given up."""
NOTHING = "<html><head></head><body></body></html>"
"""What the browser makes of an empty body."""


def executable(options: dict[str, Any], own: str) -> str:
    """The Chromium to start: the one that is named, one on the PATH, or playwright's own.

    Raises:
        ServiceError: there is none; the message says how to get one.
    """
    named = options.get("executable_path")
    found = named or next(filter(None, map(shutil.which, NAMES)), None) or own
    if not Path(found).exists():
        raise ServiceError(HOW_TO_GET_ONE, reason="no_browser")
    return str(found)


class Chromium:
    """The process's browser, and those who use it."""

    def __init__(self) -> None:
        self._users = 0
        self._pages = Budget(1)
        self._options: dict[str, Any] = {}
        self._playwright: Playwright | None = None
        self._start: asyncio.Task[Browser] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def join(self, pages: Budget, options: dict[str, Any]) -> None:
        """One more crawler uses it. The first one says how many pages may be open at once, and how it is started."""
        if not self._users:
            self._pages = pages
            self._options = options
        self._users += 1

    async def leave(self) -> None:
        """One less uses it; with the last one it ends."""
        self._users -= 1
        if self._users == 0:
            self._give_up()
            await asyncio.gather(*self._ending)

    @property
    def open_contexts(self) -> int:
        """How many targets have a context."""
        browser = self._browser
        return len(browser.contexts) if browser else 0

    @property
    def _browser(self) -> Browser | None:
        if self._start is None or not self._start.done() or self._start.cancelled() or self._start.exception():
            return None
        return self._start.result() if self._start.result().is_connected() else None

    @asynccontextmanager
    async def page(self, deadline: float | None, **options: Any) -> AsyncIterator[Page]:
        """A page in a context of its own, which is closed whatever happens. Waits for a place until the deadline."""
        end_turn = await self._pages.acquire(deadline)
        try:
            browser, context = await self._context(options)
            try:
                yield await context.new_page()
            finally:
                # Also where the target's time is over: its own task must not be stopped here by the same.
                await asyncio.shield(self._later(self._close(browser, context)))
        finally:
            end_turn()

    async def _context(self, options: dict[str, Any]) -> tuple[Browser, BrowserContext]:
        try:
            return await self._open(options)
        except Error:
            logger.info("browser_opens_nothing")  # it died or hung before it did anything for this target
            return await self._open(options)

    async def _open(self, options: dict[str, Any]) -> tuple[Browser, BrowserContext]:
        browser = await self._running()
        opening = asyncio.ensure_future(self._limited(browser, browser.new_context(**options)))
        try:
            return browser, await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda opened: self._close_unused(browser, opened))
            raise

    async def _limited(self, browser: Browser, work: Coroutine[Any, Any, T]) -> T:
        """A step of the browser's; one that takes too long is taken for a sign that the browser hangs."""
        try:
            async with asyncio.timeout(HUNG_AFTER):
                return await work
        except TimeoutError:
            logger.warning("browser_hangs")
            if self._browser is browser:
                self._give_up()
            raise Error("The browser does not answer.") from None

    async def _running(self) -> Browser:
        """The browser; a new one where there is none, or where it is dead. All who wait share its start."""
        if self._browser is None and (self._start is None or self._start.done()):
            self._give_up()
            self._start = asyncio.ensure_future(self._launch())
        assert self._start is not None
        return await asyncio.shield(self._start)

    async def _launch(self) -> Browser:
        self._playwright = await async_playwright().start()
        kind = self._playwright.chromium
        path = executable(self._options, kind.executable_path)
        try:
            browser = await kind.launch(**{**self._options, "executable_path": path})
        except Error as error:
            logger.exception("browser_not_started", path=path)
            raise ServiceError("The browser does not start; the log says why.", reason="no_browser") from error
        logger.info("browser_started", path=path, version=browser.version)
        return browser

    def _close_unused(self, browser: Browser, opened: asyncio.Task[BrowserContext]) -> None:
        """Closes a context that was made after its target had gone."""
        if not opened.cancelled() and opened.exception() is None:
            self._later(self._close(browser, opened.result()))

    async def _close(self, browser: Browser, context: BrowserContext) -> None:
        with suppress(Error):  # it is gone with its browser
            await self._limited(browser, context.close())

    def _give_up(self) -> None:
        """Forgets the browser and ends it: the driver kills what does not end by itself."""
        if self._playwright is not None:
            self._later(self._end(self._browser, self._playwright))
        self._playwright = self._start = None

    async def _end(self, browser: Browser | None, playwright: Playwright) -> None:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(HUNG_AFTER):
                if browser is not None:
                    await browser.close()
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(HUNG_AFTER):
                await playwright.stop()

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


chromium = Chromium()
"""The one of this process."""


class SharedBrowser:
    """What the handler knows as its browser's provider: it starts nothing, and ends what nobody uses any more."""

    def __init__(self, pages: Budget, options: dict[str, Any], _config: object) -> None:
        self.pages = pages
        self.options = options

    async def start(self) -> None:
        """The crawler begins. One that never opens a page starts no browser."""
        chromium.join(self.pages, self.options)

    async def close(self) -> None:
        """The crawler ends."""
        await chromium.leave()


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
        pages = Budget(settings.getint("BROWSER_PAGES")).share(settings.getint("PROCESSES"))
        self.browser_provider_cls = partial(SharedBrowser, pages, settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS"))

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
        if "visit" not in request.meta:
            return await super().download_request(request)
        async with self.closing.limit():
            return await self._download_in_browser(request)

    async def _download_in_browser(self, request: Request) -> Response:
        visit: Visit = request.meta["visit"]()
        request.meta["visited"] = visit
        target = request.meta.get("target")
        began = asyncio.get_running_loop().time()
        try:
            async with (
                asyncio.timeout_at(target.deadline if target else None),
                chromium.page(target.deadline if target else None, **self.context) as page,
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

    async def _visit(self, request: Request, visit: Visit, page: Page, end: float) -> Response:
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
            await visit.stay(page, end - asyncio.get_running_loop().time())
            self._refuse_strangers(visit)
            if visit.broken:
                raise DownloadFailedError(visit.broken)
            return await self._response(request, visit, page)
        finally:
            self.stats.inc_value("browser/pages/open", -1)
            del request.meta["playwright_page"]

    async def _response(self, request: Request, visit: Visit, page: Page) -> Response:
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

    def _refuse_strangers(self, visit: Visit) -> None:
        url = urlsplit(visit.asked.url if visit.asked else "")
        if f"{url.scheme}://{url.netloc}" not in self._crawler.spider.allowed_origins:
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")

    def _typed(self, visit: Visit, error: Error) -> Exception:
        if visit.asked:
            try:
                self._refuse_strangers(visit)
            except UpstreamBlocked as refused:
                return refused
        if "net::ERR_" in error.message:
            return DownloadFailedError(error.message.partition("\n")[0])
        logger.warning("page_lost", error=error.message.partition("\n")[0])
        return UpstreamError("The browser lost the page while it was read.", reason="browser_gone")

    def _tell(self, request: Request, visit: Visit, seconds: float) -> None:
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
            open_contexts=chromium.open_contexts,
        )
