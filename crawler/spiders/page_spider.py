"""The part of a spider that requests a target's pages and reads them as page objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import structlog
from scrapy import Request, Spider
from scrapy.http import Headers, Response
from web_poet import HttpResponseHeaders

from crawler.browser.sessions import in_browser
from crawler.downloads.platform_lanes import Lanes
from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import (
    OTHER_FORM_REASONS,
    READABLE_REASONS,
    EgressFailed,
    ExtractionFailed,
    ScrapeError,
    ShuttingDown,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.platforms import platforms
from crawler.platforms.model import AUTO_SECONDS, Details, max_details
from crawler.platforms.page import P, PlatformPage
from crawler.reading.contract import Unread
from crawler.storage.kept import Head, Keeper, KeptResponse
from crawler.targets.exceptions import DOWNLOAD_FAILURES, ReleaseEnded, as_scrape_error
from crawler.targets.shutdown import Closing
from crawler.targets.target import Target
from crawler.targets.tracker import TargetTracker
from crawler.targets.warning import OutcomeWarning

logger = structlog.get_logger(__name__)


class PageSpider(Spider):
    """Requests the pages of targets, and reads them as page objects. The base class of ``PlatformSpider``."""

    platform: ClassVar[str]
    """The name of the platform that the spider's scrapers belong to."""
    can_use_browser: ClassVar[bool] = True
    """Whether ``BROWSER_FALLBACK`` may name the platform: blocked pages can be loaded in the browser instead."""
    allowed_origins: frozenset[str] = frozenset()
    """The public origins to which the spider may send requests."""
    shared: SharedState
    """State that all crawlers in this process share, such as throttles."""
    closing: Closing

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if known := platforms().get(self.platform):  # None: a platform of the user's own project
            self.allowed_origins = known.origins

    def page_callback(self, kind: type[PlatformPage]) -> Callable[..., Any]:
        """Return the callback that continues a target with a page object of the class ``kind``."""
        raise NotImplementedError

    @cached_property
    def tracker(self) -> TargetTracker:
        """The component that tracks the targets in flight."""
        return cast("TargetTracker", self.crawler.get_spider_middleware(TargetTracker))

    @cached_property
    def lanes(self) -> Lanes:
        """The platform's throttles and circuit breakers, for each egress."""
        return platform_lanes(self.shared, self.platform, self.settings)

    def on_lane(self, request: Request) -> None:
        """Complete a request just before it is sent, when the lane of its target is known (``target.release.lane``).

        Platforms override this method to add a value of the lane to a scheduled request, such as the egress's guest
        token.
        """

    def for_page(self, kind: type[P], request: Request, fallbacks: Sequence[Sequence[str]] = ()) -> Request:
        """Give a new request a callback that gets the response as a page object of ``kind``. Return the same request.

        The request's source is ``kind.source``, unless ``request.meta`` has another. Each entry of ``fallbacks`` is a
        group of sources that together can replace the request's source. If the circuit breaker of the request's source
        is open, and all circuit breakers of one of these groups are closed, the request fails immediately.
        """
        request.callback = self.page_callback(kind)
        request.dont_filter = True  # several targets may need the same page
        request.meta.setdefault("source", kind.source)
        request.meta.setdefault("fallbacks", fallbacks)
        return request

    async def get(
        self, kind: type[P], request: Request, target: Target, *, retry: bool = True, optional: bool = False
    ) -> P:
        """Send a further request of a target, and return the response's page object after its item has been read.

        With ``retry``, a page whose extraction failed is downloaded once more, unless it is another form of answer
        (``OTHER_FORM_REASONS``), and a blocked page is loaded in the browser if ``BROWSER_FALLBACK`` contains the
        platform. With ``optional``, the request fails immediately if its
        source's circuit breaker is open, and waits for a slot for at most half of the time until the deadline.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
            ReleaseEnded: as for ``fetch``.
        """
        request = self.for_page(kind, request)
        if optional:
            request.meta["optional"] = True
        final = (await self.fetch(request, target)).request
        assert final is not None
        page = final.cb_kwargs["page"]
        assert isinstance(page, kind)
        return await self.read(page, final, retry=retry)

    async def get_optional(self, kind: type[P], request: Request, target: Target) -> P | None:
        """Request an optional source with ``get``, without its argument ``retry``.

        If the source fails, return None and add a warning to the target's outcome.

        Raises:
            ReleaseEnded: as for ``fetch``.
        """
        try:
            return await self.get(kind, request, target, retry=False, optional=True)
        except ScrapeError as error:
            self.warn(target, kind.source, error)
            return None

    def warn(self, target: Target, source: str, error: ScrapeError) -> None:
        """Add a warning to the target's outcome: an optional source failed, or could not be read completely."""
        logger.info("optional_source_failed", id=target.id, source=source, code=error.code, reason=error.reason)
        self.tracker.warn(target, OutcomeWarning.of_error(source, error))

    def warn_unread(self, target: Target, source: str, unread: Iterable[Unread]) -> None:
        """Add warnings to the target's outcome: parts of a source's payload were unread."""
        for each in unread:
            self.tracker.warn(target, OutcomeWarning.of_unread(source, each))

    def starts_within(self, target: Target, source: str, details: Details, seconds: float = AUTO_SECONDS) -> float:
        """Return the number of optional requests for a source that may be sent now, by the param ``details``.

        With ``none``, it is 0; with ``auto``, the number that the budget lets start in this time. Else, requests may
        wait for a slot.
        """
        if max_details(details) < 1:
            return 0
        lane = target.release.lane
        return lane.starts_within(source, seconds) if lane is not None and details == "auto" else math.inf

    def left_out(self, target: Target, source: str, path: str, rows: tuple[int, int], error: type[ScrapeError]) -> None:
        """Add a warning to the target's outcome: because of a limit, a source was not requested for some rows.

        ``rows``: the number of these rows, and the number of all rows at the ``path`` in the record.
        """
        self.tracker.warn(target, OutcomeWarning.of_limit(source, path, *rows, error))

    async def read(self, page: P, request: Request, *, retry: bool = True) -> P:
        """Read the item of a page object, and return the page object that was read.

        With ``retry``, a page whose extraction failed, or that is a block, may be requested again (see ``get``).
        The result is then the second page object.

        Raises:
            ScrapeError: the page object raised an error, or the download of the repeated request failed.
            ReleaseEnded: as for ``fetch``.
        """
        target, source = request.meta["target"], request.meta["source"]
        try:
            await self.read_item(page, request)
        except ScrapeError as error:
            again = self._repetition(request, error) if retry else None
            if again is None:
                is_neutral = error.reason in page.token_reasons
                await self.lanes.count(target, source, UpstreamError("") if is_neutral else error, page.response.status)
                if isinstance(error, ExtractionFailed) and error.reason not in READABLE_REASONS:
                    self.keep(page, request, error)
                raise
        else:
            await self.lanes.count(target, source, page.interruption)
            for skipped in page.skipped:
                self.warn(target, source, skipped)
            if page.unread:
                self.warn_unread(target, source, page.unread)
            self.keep(page, request)
            return page
        return await self.get(type(page), again, target, retry=False)

    @cached_property
    def keeper(self) -> Keeper:
        """The process's keeper, shared by its crawlers. It writes responses with unread parts or errors to files."""
        return self.shared.get(Keeper, "", lambda: Keeper.of(self.settings))

    def keep(self, page: PlatformPage, request: Request, error: ScrapeError | None = None) -> None:
        """Pass the response of a page to the keeper, which writes a file if the page was not read completely.

        ``error``: why the page has no data. None: it has data.
        """
        unread = page.problems(error)
        if not self.keeper.keep or not unread:
            return
        response = page.response
        head = Head(
            platform=self.platform,
            scraper=request.meta["target"].scraper.name,
            source=page.source,
            url=str(response.url),
            status=response.status or 200,
            content_type=response.headers.get("Content-Type", ""),
            params=dict(page.page_params),
            unread=unread,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self.keeper.unread(KeptResponse(head, response.body, partial(_headers, request.headers, response.headers)))

    def _repetition(self, request: Request, error: ScrapeError) -> Request | None:
        """Return a request that may succeed after this request's page failed with ``error``, or None."""
        if isinstance(error, ExtractionFailed) and error.reason not in OTHER_FORM_REASONS:
            logger.info("retried", url=request.url, reason=error.reason)
            return request.replace(cb_kwargs={})
        # An explicit rate limit is respected. After other blocks, such as a page without data, a browser is tried once.
        blocked = isinstance(error, (UpstreamBlocked, UpstreamRateLimited)) and error.reason != "rate_limited"
        plain_page = self.can_use_browser and request.method == "GET" and "page_session_factory" not in request.meta
        if not (blocked and plain_page and self.platform in self.settings.getlist("BROWSER_FALLBACK")):
            return None
        logger.info("browser_fallback", url=request.url, reason=error.reason)
        return in_browser(request)

    async def read_item(self, page: PlatformPage, request: Request) -> None:
        """Read the item of a page object. Platforms whose data is not in the page's response override this method."""
        await page.to_item()

    async def fetch(self, request: Request, target: Target) -> Response:
        """Download a further request of a target. If the crawler is closing, complete the target with ``ShuttingDown``.

        Raises:
            ScrapeError: the download failed, or the crawler is closing.
            ReleaseEnded: the target already has its outcome, or its egress has failed and the target was started again
                on another lane.
        """
        assert self.crawler.engine is not None
        request.meta["target"] = target
        try:
            self.closing.check()
            response = await self.crawler.engine.download_async(request)
        except ScrapeError as error:
            await self._failed(request, error)
            raise
        except DOWNLOAD_FAILURES as error:  # no variable has the new error: a cycle would keep the response in memory
            raise await self._failed(request, as_scrape_error(error)) from error
        if target.release.successor is not None:
            raise ReleaseEnded
        return response

    async def _failed(self, request: Request, error: ScrapeError) -> ScrapeError:
        """Return the error of a failed download, after it was counted. If the crawler is closing, complete the target.

        Raises:
            ReleaseEnded: as for ``_count_failed``.
        """
        if isinstance(error, ShuttingDown):
            self.tracker.complete(request.meta["target"], error=error)
        else:
            await self._count_failed(request, error)
        return error

    async def _count_failed(self, request: Request, error: ScrapeError) -> None:
        """Count a failed download. If the egress may be the cause, start the target once more on another lane.

        Raises:
            ReleaseEnded: the target was started again.
        """
        target: Target = request.meta["target"]
        if not isinstance(error, EgressFailed):  # the download handler has counted it
            await self.lanes.count(target, request.meta["source"], error)
        if not target.release.ended and await self.lanes.has_failed(target, error):
            self.tracker.hand_back(target)
        if target.release.successor is not None:
            raise ReleaseEnded from error


def _headers(request: Headers, response: HttpResponseHeaders) -> Iterator[tuple[str, str]]:
    yield from ((str(name), value) for name, value in request.to_unicode_dict().items())
    yield from response.items()


@dataclass(slots=True)
class First:
    """The result of a target's scheduled request: a page object whose item is not read yet, or the download's error."""

    spider: PageSpider
    request: Request
    """The request that led to the result. After redirects and retries, this is the last request."""
    _: KW_ONLY
    result: PlatformPage | None = None
    """The page object, whose item is not read yet. None: the download has failed."""
    error: ScrapeError | None = None
    """The error of the download, None if there is a response."""

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Read the item of the page object, whose class is ``kind``, and return the page object.

        ``retry``: see ``PageSpider.get``.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
        """
        if self.error is not None:
            raise self.error
        assert isinstance(self.result, kind)
        return await self.spider.read(self.result, self.request, retry=retry)
