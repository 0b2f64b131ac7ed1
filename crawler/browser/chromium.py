"""Starts, replaces and ends Chromium: one per process, with one browser context for each page that is loaded."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import structlog
from playwright.async_api import Browser, BrowserContext, BrowserType, Error, Page, Playwright, async_playwright

from crawler.downloads.throttle import Throttle
from crawler.errors import ServiceError

logger = structlog.get_logger(__name__)

T = TypeVar("T")

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Names of Chromium executables to search for on the PATH. The first is the headless shell, Playwright's default, which
needs about a third of the CPU time that a full Chromium needs for a page."""
INSTALL_HINT = (
    "Chromium was not found. Install it with 'apt-get install chromium' or 'playwright install chromium', or set "
    "PLAYWRIGHT_LAUNCH_OPTIONS = {'executable_path': '/path/to/chromium'}."
)
DRIVER_HINT = (
    "Playwright's driver, which controls Chromium, could not be started. 'playwright --version' prints the cause. "
    "Minimal installations of Debian lack a library that it needs: apt-get install libatomic1."
)
CONTAINED = (
    # Without these, WebRTC would send UDP packets past the proxies of the contexts.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
"""Arguments of Chromium that make WebRTC, too, connect through the proxies only."""
NO_PROXY = {"server": "socks5://127.0.0.1:9", "bypass": "<-loopback>"}
"""The proxy for connections that belong to no context. Nothing listens on its port, so Chromium makes no connections
of its own. For a SOCKS5 proxy, Playwright also starts Chromium with options that disable its name resolution."""
NO_SANDBOX = "No usable sandbox"
"""Part of Chromium's message if the host does not allow Chromium's sandbox."""
KILLED = re.compile(r"exitCode=137\b|signal=SIGKILL\b")
"""Matches Playwright's message if the browser was killed during its start, for example by the kernel because memory was
short. The exit code is that of a shell script, with which Debian starts the headless shell."""
NO_SANDBOX_AS_ROOT = "Chromium has no sandbox as root. Run this process as another user."
STEP_TIMEOUT_SECONDS = 15.0
"""If the browser takes more seconds than this to open or close a context, or to open a page, it is replaced."""


def executable(options: dict[str, Any], own: str) -> str:
    """Return the path of the Chromium executable: that in ``options``, else one on the PATH, else ``own``.

    ``options``: the setting ``PLAYWRIGHT_LAUNCH_OPTIONS``. ``own``: the path at which Playwright installs Chromium.

    Raises:
        ServiceError: Chromium was not found; the message says how to install it.
    """
    configured = options.get("executable_path")
    found = configured or next(filter(None, map(shutil.which, PROGRAMS)), None) or own
    if not Path(found).exists():
        raise ServiceError(INSTALL_HINT, reason="no_browser")
    return str(found)


@asynccontextmanager
async def _while_connected(browser: Browser) -> AsyncIterator[None]:
    """End the ``with`` block with an ``Error`` if the browser crashes, or has crashed before the block.

    Playwright ends most operations of a browser that has crashed, but not all: opening a page, for example, would wait
    forever.
    """
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(None if browser.is_connected() else 0) as connected:

            def end(_browser: Browser) -> None:
                connected.reschedule(now())

            browser.on("disconnected", end)
            try:
                yield
            finally:
                browser.remove_listener("disconnected", end)
    except TimeoutError:
        if not connected.expired():
            raise
        raise Error("The browser crashed.") from None


class Chromium:
    """The browser that all crawlers of a process share. It is started for the first page that a crawler opens."""

    def __init__(self) -> None:
        self._users = 0
        self._pages = Throttle(1)
        self._options: dict[str, Any] = {}
        self._playwright: Playwright | None = None
        self._start: asyncio.Task[Browser] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def join(self, pages: Throttle, options: dict[str, Any]) -> None:
        """Register a crawler. If no other crawler is registered, its arguments apply to all later crawlers, too.

        ``pages``: the throttle that limits the number of open pages. ``options``: Playwright's launch options.
        """
        if not self._users:
            self._pages = pages
            self._options = options
        self._users += 1

    async def leave(self) -> None:
        """Unregister a crawler. If no crawler is left, end the browser, and wait for its end."""
        self._users -= 1
        if self._users == 0:
            self._discard()
            await asyncio.gather(*self._ending)

    @property
    def open_contexts(self) -> int:
        """Number of open browser contexts, one for each open page."""
        browser = self._browser
        return len(browser.contexts) if browser else 0

    @property
    def _browser(self) -> Browser | None:
        if self._start is None or not self._start.done() or self._start.cancelled() or self._start.exception():
            return None
        return self._start.result() if self._start.result().is_connected() else None

    @asynccontextmanager
    async def page(self, deadline: float | None, **options: Any) -> AsyncIterator[Page]:
        """Open a page in a new context for a ``with`` block, and close the context afterwards.

        If the maximum number of pages is open, wait until another page is closed, at most until ``deadline`` (a time of
        the event loop). ``options``: the arguments of Playwright's ``new_context()``.

        Raises:
            Overloaded, UpstreamTimeout: no page could be opened before the deadline.
            ServiceError: Chromium was not found or could not be started.
            Error: the browser crashed or hung, before or within the ``with`` block.
        """
        release = await self._pages.acquire(deadline)
        try:
            browser, context = await self._context(options)
            try:
                async with _while_connected(browser):
                    yield await self._limited(browser, context.new_page())
            finally:
                # Shielded, so that a timeout of the target, which ends the block, does not also cancel the closing.
                await asyncio.shield(self._in_background(self._close(browser, context)))
        finally:
            release()

    async def _context(self, options: dict[str, Any]) -> tuple[Browser, BrowserContext]:
        try:
            return await self._open(options)
        except Error:
            logger.info("browser_restarted")  # it crashed or hung before it opened this context, so try once more
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
        """Run an operation of the browser. If it takes longer than ``STEP_TIMEOUT_SECONDS``, discard the browser.

        Raises:
            Error: the operation failed or took too long.
        """
        try:
            async with asyncio.timeout(STEP_TIMEOUT_SECONDS):
                return await work
        except TimeoutError:
            logger.warning("browser_unresponsive")
            if self._browser is browser:
                self._discard()
            raise Error(f"The browser did not respond within {STEP_TIMEOUT_SECONDS:.0f} s.") from None

    async def _running(self) -> Browser:
        """Return the running browser. If none is running, start one; concurrent callers share one start."""
        if self._browser is None and (self._start is None or self._start.done()):
            self._discard()
            self._start = asyncio.ensure_future(self._launch())
        assert self._start is not None
        return await asyncio.shield(self._start)

    async def _launch(self) -> Browser:
        try:
            self._playwright = await async_playwright().start()
        except Exception as error:  # playwright raises a plain Exception if its driver exits
            raise ServiceError(f"{DRIVER_HINT} Playwright: {error}", reason="no_browser") from error
        kind = self._playwright.chromium
        path = executable(self._options, kind.executable_path)
        options = {**self._options, "executable_path": path, "proxy": NO_PROXY}
        options["args"] = [*CONTAINED, *self._options.get("args", ())]
        try:
            browser = await self._launch_in_sandbox(kind, options)
        except Error as error:
            if KILLED.search(error.message):
                raise
            logger.exception("browser_start_failed", path=path)
            raise ServiceError(f"Chromium ({path}) could not be started; see the log.", reason="no_browser") from error
        logger.info("browser_started", path=path, version=browser.version)
        return browser

    async def _launch_in_sandbox(self, kind: BrowserType, options: dict[str, Any]) -> Browser:
        """Start the browser with Chromium's sandbox, or without this sandbox where the user or host does not allow it.

        If the operator has set the launch option ``chromium_sandbox``, the browser is started with this value only.
        """
        if "chromium_sandbox" in options:
            return await kind.launch(**options)
        reason = NO_SANDBOX_AS_ROOT
        if os.geteuid():
            try:
                return await kind.launch(**options, chromium_sandbox=True)
            except Error as error:
                reason = next((line.strip() for line in error.message.splitlines() if NO_SANDBOX in line), "")
                if not reason:
                    raise
        browser = await kind.launch(**options, chromium_sandbox=False)
        logger.warning("browser_without_sandbox", reason=reason)
        return browser

    def _close_unused(self, browser: Browser, opened: asyncio.Task[BrowserContext]) -> None:
        """Close a context that was opened after the task that wanted it was cancelled."""
        if not opened.cancelled() and opened.exception() is None:
            self._in_background(self._close(browser, opened.result()))

    async def _close(self, browser: Browser, context: BrowserContext) -> None:
        if browser.is_connected():  # otherwise, the context has ended with its browser
            with suppress(Error):
                await self._limited(browser, context.close())

    def _discard(self) -> None:
        """Close the browser in the background. Playwright's driver kills browser processes that do not exit."""
        if self._playwright is not None:
            self._in_background(self._end(self._browser, self._playwright))
        self._playwright = self._start = None

    async def _end(self, browser: Browser | None, playwright: Playwright) -> None:
        for end in (browser.close, playwright.stop) if browser else (playwright.stop,):
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(STEP_TIMEOUT_SECONDS):
                    await end()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task
