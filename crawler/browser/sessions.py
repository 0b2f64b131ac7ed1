"""Browser sessions, which define until when the download handler waits on a page, and the responses to capture.

A request that must be loaded in the browser has a function in ``meta["page_session_factory"]`` that creates its
session. The download handler (``browser.handler``) calls this function, stores the session in ``meta["page_session"]``,
opens the page and runs the session. This module can be imported without Playwright.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from scrapy import Request

from crawler.components import ABOVE_COMMAND_LINE, BROWSER_HANDLER
from crawler.platforms.page import BLOCK_STATUSES

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page
    from playwright.async_api import Request as PageRequest
    from playwright.async_api import Response as PageResponse
    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

# Returns the name of an end marker that is visible. If none is visible, returns "", after it has scrolled the page and
# its main parts to their start (``toStart``) or to their end. An element counts as visible if it, or an element in it,
# is drawn with an area.
SCROLL_SCRIPT = """([markers, toStart]) => {
    const isDrawn = (each) => {
        const { width, height } = each.getBoundingClientRect();
        return width * height > 0 && each.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    };
    const isVisible = (each) => [each, ...each.querySelectorAll("*")].some(isDrawn);
    for (const [name, selector] of Object.entries(markers)) {
        if ([...document.querySelectorAll(selector)].some(isVisible)) return name;
    }
    for (const element of [document.scrollingElement, ...document.querySelectorAll("main")]) {
        element?.scrollTo(0, toStart ? 0 : element.scrollHeight);
    }
    return "";
}"""

PARSED_SCRIPT = "document.readyState !== 'loading'"
# Returns a number of the page's document, 0 until the document is parsed.
DOCUMENT_SCRIPT = "document.readyState === 'loading' ? 0 : performance.timeOrigin"
POLL_SECONDS = 0.25
"""Seconds between two checks of a page while a session waits."""
RENDER_SECONDS = 0.05
"""Seconds that a page needs to render a response. The page can be scrolled further only afterwards."""
END_MARKER_SECONDS = 1.0
"""Seconds for which an end marker must be visible before the session closes it or ends."""
SCRIPT_SECONDS = 5.0
"""Maximum number of seconds that a session waits for the result of a script."""
ABORTED = "net::ERR_ABORTED"
"""The failure of a request for a document if the page navigates again before the document has arrived, and of a
document that the browser does not show, such as a file. The page still shows its previous document, if it had one."""
CLICK_MILLISECONDS = 5000
"""Maximum milliseconds that a click waits until its element can be clicked, because another element may cover it."""
FIRST_RESPONSE_FACTOR = 3
"""The first captured response may take this many times ``quiet`` seconds, because the page must be loaded first."""
TIMEOUT_SHARE = 0.8
"""Share of the remaining download timeout after which a session ends, so that its captured responses can be used."""


def carry_browser(settings: BaseSettings) -> None:
    """Change a spider's settings so that its crawler has the download handler that can use the browser."""
    handlers = {"http": BROWSER_HANDLER, "https": BROWSER_HANDLER, **settings.getdict("DOWNLOAD_HANDLERS")}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority=ABOVE_COMMAND_LINE)


KEPT_META = ("target", "page_params", "source", "admitted")
"""Keys of a request's meta that are copied when the request is repeated in the browser."""


def in_browser(request: Request, session: Callable[[], PageSession] | None = None) -> Request:
    """Return a request that loads the page of ``request`` in the browser, with the URL from before any redirects.

    The browser gets the cookies of ``request``, such as the one that declines a platform's consent request.
    ``session``: creates the browser session; by default, a ``PageSession``.
    """
    url = request.meta.get("redirect_urls", [request.url])[0]
    kept: dict[str, Any] = {name: request.meta[name] for name in KEPT_META if name in request.meta}
    sent = (request.headers.get("Cookie") or b"").decode()
    cookies = dict(each.split("=", 1) for each in sent.split("; ") if each)
    meta = {**kept, "page_session_factory": session or PageSession, "page_cookies": cookies}
    return Request(url, callback=request.callback, dont_filter=True, meta=meta)


class PageSession:
    """A browser session on one page. This session ends when the page is loaded, or cannot be loaded.

    If the page's status means a block, the session waits for up to ``quiet`` seconds, because a script in the page may
    lift the block.
    """

    def __init__(self, *, quiet: float = 9.0) -> None:
        self.quiet = quiet
        """Maximum number of seconds that the session waits for a script to lift a block. ``ResponseListener``: seconds
        without a new captured response after which the session ends."""
        self.sent: Counter[str] = Counter()
        """Resource type -> number of requests that the page has sent."""
        self.aborted: Counter[str] = Counter()
        """Resource type -> number of requests of the page that were aborted."""
        self.public_url: Callable[[str], str] = str
        """Returns a URL of the page with its public origin, if a local server serves the page."""
        self.navigation: PageRequest | None = None
        """The page's last request for a document."""
        self.has_navigated = False
        """Whether the page has navigated, such as by reloading itself."""
        self.document: PageResponse | None = None
        """The last response to a request for a document."""
        self.failure = ""
        """Why the last document was not received completely; empty if it was."""
        self.has_crashed = False
        """Whether the page's process has crashed."""
        self._has_shown = False

    def attach(self, page: Page, is_unwanted: Callable[[PageRequest], bool]) -> None:
        """Subscribe to the events of a page. Called before the page's first navigation."""

        def on_request(request: PageRequest) -> None:
            (self.aborted if is_unwanted(request) else self.sent)[request.resource_type] += 1
            if _is_navigation(page, request):
                self.has_navigated |= self.navigation is not None and request.redirected_from is None
                self.navigation, self.failure = request, ""
            self.on_request(request)

        def on_failure(request: PageRequest) -> None:
            if request is self.navigation:
                self.failure = request.failure or "failed"
            self.on_failure(request)

        def on_response(response: PageResponse) -> None:
            if _is_navigation(page, response.request):
                self.document = response
            self.on_response(response)

        def on_crash(_page: Page) -> None:
            self.has_crashed = True

        def on_navigation(frame: Frame) -> None:
            self._has_shown |= frame == page.main_frame

        page.on("crash", on_crash)
        page.on("framenavigated", on_navigation)
        page.on("request", on_request)
        page.on("requestfailed", on_failure)
        page.on("response", on_response)

    def on_request(self, request: PageRequest) -> None:
        """Called for every request that the page makes. Subclasses override it."""

    def on_failure(self, request: PageRequest) -> None:
        """Called for every request of the page that gets no complete response. Subclasses override it."""

    def on_response(self, response: PageResponse) -> None:
        """Called for every response that the page receives. Subclasses override it."""

    async def evaluate(self, page: Page, script: str, argument: Any = None) -> Any:
        """Run a script in the page and return its result. Return None if it fails, as while the page is navigating.

        A page that navigates all the time does not run the script: after ``SCRIPT_SECONDS``, the result is None.

        Raises:
            Error: the page or its browser has crashed.
        """
        with self.ignoring_errors(page), suppress(TimeoutError):
            async with asyncio.timeout(SCRIPT_SECONDS):
                return await page.evaluate(script, argument)
        return None

    async def last_document(self, page: Page, seconds: float) -> tuple[str, dict[str, str]]:
        """Return the HTML of the page's last document and the headers of its response. The page no longer navigates.

        If the page has navigated, wait until its last document is parsed, for at most ``TIMEOUT_SHARE`` of ``seconds``,
        the seconds left until the download timeout. A part of a document may lack the marks that tell a CAPTCHA or a
        waiting room from another page.

        Raises:
            Error: the page or its browser has crashed.
        """
        end = _now() + seconds * TIMEOUT_SHARE
        while True:
            parsed = await self.evaluate(page, DOCUMENT_SCRIPT) if self.has_navigated else None
            is_complete = not self.has_navigated or (await self.look(page) and bool(parsed))
            found = await self._content(page)
            if self.has_navigated and is_complete:  # no other document has arrived in the meantime
                is_complete = parsed == await self.evaluate(page, DOCUMENT_SCRIPT)
            if found is not None and (is_complete or _now() >= end):
                return found
            await asyncio.sleep(POLL_SECONDS)

    async def _content(self, page: Page) -> tuple[str, dict[str, str]] | None:
        """Return the HTML of the page and the headers of its response. None until a requested document has arrived."""
        with self.ignoring_errors(page):
            if self.document is not None:
                return await page.content(), await self.document.all_headers()
        return None

    @contextmanager
    def ignoring_errors(self, page: Page, event: str = "", **facts: Any) -> Iterator[None]:
        """Ignore an ``Error`` of Playwright in a ``with`` block, unless the page or its browser has crashed.

        ``event``: the name of the log line about the error, with ``facts``. Without a name, nothing is logged.
        """
        from playwright.async_api import Error  # noqa: PLC0415  # only where there is a page

        try:
            yield
        except Error as error:
            if self.has_crashed or page.is_closed():
                raise
            if event:
                logger.info(event, **facts, error=error.message)

    async def look(self, page: Page) -> bool:
        """Inspect the last document of a page that has navigated. Return whether it could be inspected.

        Subclasses override it.
        """
        return True

    @property
    def is_blocked(self) -> bool:
        """Whether the HTTP status of the page's document means a block, which a script in the page may lift."""
        return self.document is not None and self.document.status in BLOCK_STATUSES

    @property
    def has_failed(self) -> bool:
        """Whether the page cannot be loaded: its document was not received completely, or its status is an error."""
        if self.failure:
            return self.failure != ABORTED or not self._has_shown
        return self.document is not None and self.document.status >= 400 and not self.is_blocked

    async def run(self, page: Page, seconds: float) -> None:
        """Wait until the page's document is parsed, or the page has failed.

        If the document's status means a block, wait until a script in the page lifts the block, for at most ``quiet``
        seconds or ``TIMEOUT_SHARE`` of ``seconds``, the seconds left until the download timeout.
        """
        end = _now() + min(self.quiet, seconds * TIMEOUT_SHARE)
        while (self.is_blocked and _now() < end) or not (  # noqa: ASYNC110  # polled, because the page sends no event for this
            self.has_failed or await self.evaluate(page, PARSED_SCRIPT)
        ):
            await asyncio.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """A response to a request of a page, as ``ResponseListener`` captures it."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseListener(PageSession):
    """A session that scrolls a page and captures the responses to its requests for some URL paths."""

    def __init__(
        self,
        paths: re.Pattern[str],
        end_markers: Mapping[str, str],
        *,
        close_buttons: Mapping[str, str] | None = None,
        quiet: float = 9.0,
        pause: float = 1.0,
    ) -> None:
        super().__init__(quiet=quiet)
        self.paths = paths
        """Matches the whole URL path of each request whose response is captured."""
        self.end_markers = end_markers
        """Name of an end marker -> CSS selector of the element, which the page shows if no response will follow.

        If several end markers are visible, the first of them in this mapping counts.
        """
        self.close_buttons = close_buttons or {}
        """Name of an end marker -> CSS selector of the button that closes it. The session clicks no other elements."""
        self.pause = pause
        """Seconds to wait after a response before the next scroll."""
        self.end_marker: str | None = None
        """The name of the end marker that is visible; None if no end marker is visible."""
        self.is_silent = False
        """Whether the session ended because the page sent no further requests for ``paths``, not because of an error,
        the timeout or an end marker."""
        self._end_marker_since: float | None = None
        self._has_clicked = False
        self._scrolls_to_start = False
        self._in_flight: set[PageRequest] = set()
        self._has_lost_response = False
        self._responses: asyncio.Queue[tuple[PageResponse, asyncio.Task[bytes]]] = asyncio.Queue()

    async def take(self, answer: CapturedResponse) -> bool | None:
        """Process a captured response. Return True if no further responses are needed.

        Return None if the response is not of the wanted kind: the session then waits as if it had not arrived.
        """
        raise NotImplementedError

    def on_request(self, request: PageRequest) -> None:
        """Record that a request for ``paths`` is in flight."""
        if self.paths.fullmatch(urlsplit(request.url).path):
            self._in_flight.add(request)

    def on_failure(self, request: PageRequest) -> None:
        """Record that a request for ``paths`` got no complete response."""
        if request in self._in_flight:
            self._in_flight.remove(request)
            self._has_lost_response = True

    def on_response(self, response: PageResponse) -> None:
        """Queue a response for ``paths``. Fetch its body at once, because the browser does not keep bodies for long."""
        self._in_flight.discard(response.request)
        if self.paths.fullmatch(urlsplit(response.url).path):
            body = asyncio.ensure_future(response.body())
            body.add_done_callback(_ignore_error)
            self._responses.put_nowait((response, body))

    async def run(self, page: Page, seconds: float) -> None:
        """Scroll the page and pass captured responses to ``take()``, until no more are needed or none will follow.

        ``seconds``: the seconds left until the download timeout.
        """
        end = _now() + seconds * TIMEOUT_SHARE
        last_response, max_quiet = _now(), self.quiet * FIRST_RESPONSE_FACTOR
        while _now() < end and _now() - last_response < max_quiet and not self.has_failed:
            await self._scroll(page)
            if self._is_at_end():
                if not await self._close(page):
                    return
                last_response = _now()
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    response, body = await self._responses.get()
            except TimeoutError:
                continue
            captured = await self._capture(page, response, body)
            is_enough = await self.take(captured) if captured else False
            if is_enough:
                return
            if is_enough is None:
                continue
            last_response, max_quiet = _now(), self.quiet
            self._has_lost_response, self._end_marker_since = captured is None, None
            await asyncio.sleep(max(self.pause, RENDER_SECONDS))
        self.is_silent = not (self._in_flight or self._has_lost_response or self.has_failed or _now() >= end)

    async def look(self, page: Page) -> bool:
        """Search for end markers in the last document: the session may have seen none of a page that reloads itself."""
        return await self._scroll(page)

    async def _scroll(self, page: Page) -> bool:
        """Scroll the page, unless an end marker (such as a login dialog) is visible. Set ``end_marker``.

        Return False while the page is navigating: its last document counts.
        """
        shown = await self.evaluate(page, SCROLL_SCRIPT, [dict(self.end_markers), self._scrolls_to_start])
        if shown is None:
            return False
        self.end_marker = shown or None
        if self.end_marker is None:
            self._end_marker_since, self._scrolls_to_start = None, False
        elif self._end_marker_since is None:
            self._end_marker_since = _now()
        return True

    def _is_at_end(self) -> bool:
        """Whether an end marker (such as a login dialog) was visible for long enough, and no response is in flight."""
        if self._end_marker_since is None or self._in_flight or not self._responses.empty():
            return False
        return _now() - self._end_marker_since >= END_MARKER_SECONDS

    async def _close(self, page: Page) -> bool:
        """Click the close button of the visible end marker, such as a login dialog. Return whether it was clicked.

        Only one click is made per page. As for a visitor, the click fails if another element, such as a CAPTCHA, covers
        the button.
        """
        selector = self.close_buttons.get(self.end_marker or "")
        if selector is None or self._has_clicked:
            return False
        button = page.locator(selector).filter(visible=True).first
        with self.ignoring_errors(page, "prompt_not_closed", url=page.url):
            if await button.count():
                self._has_clicked = True
                await button.click(timeout=CLICK_MILLISECONDS)
                logger.info("prompt_closed", url=page.url, prompt=self.end_marker)
                # The page is scrolled to its end, and requests more results only if it is scrolled there again.
                self._end_marker_since, self._scrolls_to_start = None, True
                return True
        return False

    async def _capture(self, page: Page, response: PageResponse, body: asyncio.Task[bytes]) -> CapturedResponse | None:
        with self.ignoring_errors(page, "response_lost", url=response.url):
            return CapturedResponse(
                self.public_url(response.url), response.status, await response.all_headers(), await body
            )
        return None


def _is_navigation(page: Page, request: PageRequest) -> bool:
    return request.is_navigation_request() and request.frame == page.main_frame


def _ignore_error(body: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that read a body, so that asyncio does not log it as never retrieved."""
    if not body.cancelled():
        body.exception()


def _now() -> float:
    return asyncio.get_running_loop().time()
