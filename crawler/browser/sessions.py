"""Stays on a page in the browser: what the page asks for, what it receives, and when it may be left.

A request carries what makes its visit in ``meta["page_session_factory"]``; the download handler (``browser.handler``) opens
the page, and leaves the visit in ``meta["page_session"]``. Nothing here needs a browser to be imported.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from scrapy import Request

from crawler.platforms.page import REFUSALS

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.async_api import Request as PageRequest
    from playwright.async_api import Response as PageResponse
    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

HANDLER = "crawler.browser.handler.BrowserHandler"

# Scrolls all that can be scrolled, and tells which of the signs can be seen.
SCROLL = """(signs) => {
    for (const element of [document.scrollingElement, ...document.querySelectorAll("main")]) {
        element?.scrollTo(0, element.scrollHeight);
    }
    const seen = ([, selector]) => [...document.querySelectorAll(selector)].some((each) => each.checkVisibility());
    return Object.entries(signs).find(seen)?.[0] ?? null;
}"""

READ = "document.readyState !== 'loading'"
STEP = 0.25
"""Seconds between two looks at a page that has nothing new."""
RENDERED = 0.05
"""Seconds in which a page shows what it has just received: only then there is more to scroll to."""
FIRST = 3
"""How many times as long the first answer may take: the page itself is loaded meanwhile."""
SHARE = 0.8
"""Share of a download's time after which a page is left with what there is."""


def carry_browser(settings: BaseSettings) -> None:
    """Gives a spider's crawler the download handler that can open pages in the browser."""
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), "http": HANDLER, "https": HANDLER}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="spider")


def in_browser(request: Request, visit: Callable[[], PageSession] | None = None) -> Request:
    """The same request for the browser: as it was before redirects and retries."""
    url = request.meta.get("redirect_urls", [request.url])[0]
    kept: dict[str, Any] = {name: request.meta[name] for name in ("target", "page_params") if name in request.meta}
    return Request(
        url, callback=request.callback, dont_filter=True, meta={**kept, "page_session_factory": visit or PageSession}
    )


class PageSession:
    """A stay on one page. This one waits until the page lets us in: some send a script first that opens the door."""

    def __init__(self, *, quiet: float = 9.0) -> None:
        self.quiet = quiet
        """Seconds without anything new after which the page is left."""
        self.made: Counter[str] = Counter()
        """Requests that the page has made, by their kind."""
        self.blocked: Counter[str] = Counter()
        """Requests that it was not let make, by their kind."""
        self.asked: PageRequest | None = None
        """The last request for a document: where the page was told to go."""
        self.document: PageResponse | None = None
        """The last answer that a page was made from."""
        self.broken = ""
        """Why the last document did not come, or not whole."""

    def attach(self, page: Page, unwanted: Callable[[PageRequest], bool]) -> None:
        """Listens to a page before it goes anywhere."""

        def requested(request: PageRequest) -> None:
            (self.blocked if unwanted(request) else self.made)[request.resource_type] += 1
            if _is_document(page, request):
                self.asked, self.broken = request, ""

        def failed(request: PageRequest) -> None:
            if request is self.asked:
                self.broken = request.failure or "failed"

        def answered(response: PageResponse) -> None:
            if _is_document(page, response.request):
                self.document = response
            self.received(response)

        page.on("request", requested)
        page.on("requestfailed", failed)
        page.on("response", answered)

    def received(self, response: PageResponse) -> None:
        """Told of every answer that the page receives."""

    async def ask(self, page: Page, script: str, argument: Any = None) -> Any:
        """What a script says in the page; None where it is just going elsewhere."""
        from playwright.async_api import Error  # noqa: PLC0415  # only where there is a page

        try:
            return await page.evaluate(script, argument)
        except Error:
            if page.is_closed():
                raise
            return None

    @property
    def refused(self) -> bool:
        """Whether the document is a refusal, which a script in it may lift."""
        return self.document is not None and self.document.status in REFUSALS

    @property
    def failed(self) -> bool:
        """Whether there is nothing to wait for: the document broke off, or says so by its status."""
        if self.document is None or self.broken:
            return bool(self.broken)
        return self.document.status >= 400 and not self.refused

    async def run(self, page: Page, seconds: float) -> None:
        """Returns when the page has what it was opened for, or will not have it."""
        end = _now() + min(self.quiet, seconds * SHARE)
        while (self.refused and _now() < end) or not (self.failed or await self.ask(page, READ)):  # noqa: ASYNC110  # the page's doing
            await asyncio.sleep(STEP)


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """An answer that a page received to a call of its own."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseListener(PageSession):
    """Scrolls a page, and hears the answers to one of its own calls until they are enough."""

    def __init__(self, path: str, signs: Mapping[str, str], *, quiet: float = 9.0, pause: float = 1.0) -> None:
        super().__init__(quiet=quiet)
        self.path = path
        """Path of the call."""
        self.signs = signs
        """Selectors of what says that no further answer will come, by what it is."""
        self.pause = pause
        """Seconds from an answer to the next scrolling."""
        self.sign: str | None = None
        """The sign that was seen."""
        self._answers: asyncio.Queue[tuple[PageResponse, asyncio.Task[bytes]]] = asyncio.Queue()

    async def take(self, answer: CapturedResponse) -> bool:
        """Reads an answer; whether it was the last that is wanted."""
        raise NotImplementedError

    def received(self, response: PageResponse) -> None:
        """Keeps the call's answers. A body is asked for at once: the browser does not keep it for long."""
        if urlsplit(response.url).path == self.path:
            body = asyncio.ensure_future(response.body())
            body.add_done_callback(_forget)
            self._answers.put_nowait((response, body))

    async def run(self, page: Page, seconds: float) -> None:
        """Returns when the answers are enough, or when no further ones will come."""
        end = _now() + seconds * SHARE
        news, patience = _now(), self.quiet * FIRST
        while _now() < end and _now() - news < patience and not self.failed:
            try:
                async with asyncio.timeout(STEP):
                    response, body = await self._answers.get()
            except TimeoutError:
                if self.sign:
                    return
                self.sign = await self.ask(page, SCROLL, dict(self.signs))
                continue
            heard = await self._hear(page, response, body)
            if heard and await self.take(heard):
                return
            news, patience = _now(), self.quiet
            await asyncio.sleep(max(self.pause, RENDERED))
            self.sign = await self.ask(page, SCROLL, dict(self.signs))

    async def _hear(self, page: Page, response: PageResponse, body: asyncio.Task[bytes]) -> CapturedResponse | None:
        from playwright.async_api import Error  # noqa: PLC0415  # only where there is a page

        try:
            return CapturedResponse(response.url, response.status, await response.all_headers(), await body)
        except Error as error:
            if page.is_closed():
                raise
            logger.info("response_lost", url=response.url, error=error.message)
            return None


def _is_document(page: Page, request: PageRequest) -> bool:
    return request.is_navigation_request() and request.frame == page.main_frame


def _forget(body: asyncio.Task[Any]) -> None:
    """Nobody asks for the body of a page that is gone; its error is no news."""
    if not body.cancelled():
        body.exception()


def _now() -> float:
    return asyncio.get_running_loop().time()
