"""The life cycle of Chromium: one per process, one context per target."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import structlog
from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright, async_playwright

from crawler.downloads.throttle import LocalThrottle
from crawler.errors import ServiceError

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
        self._pages = LocalThrottle(1)
        self._options: dict[str, Any] = {}
        self._playwright: Playwright | None = None
        self._start: asyncio.Task[Browser] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def join(self, pages: LocalThrottle, options: dict[str, Any]) -> None:
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
            logger.info("browser_restarted")  # it died or hung before it did anything for this target
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
            logger.warning("browser_unresponsive")
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
            logger.exception("browser_start_failed", path=path)
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
