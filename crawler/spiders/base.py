"""Base of all spiders: targets in, one scheduled request per target, awaited follow-up requests, records out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import structlog
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider, DownloadTimeoutError, IgnoreRequest
from scrapy.http import Response
from twisted.internet.defer import AlreadyCalledError

from crawler import platforms
from crawler.browser.sessions import carry_browser, in_browser
from crawler.downloads.shared import SharedState, platform_state
from crawler.errors import (
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamBlocked,
    UpstreamRateLimited,
)
from crawler.outputs.columns import RecordPath, column_type_of_models, rows_named
from crawler.outputs.failures import failures_feed
from crawler.platforms.page import PlatformPage
from crawler.spiders.arguments import CrawlArguments
from crawler.storage.data_files import data_file
from crawler.targets.closing import Closing
from crawler.targets.exceptions import DOWNLOAD_FAILURES, as_scrape_error
from crawler.targets.files import FileSource, Shard
from crawler.targets.incremental import Seen, SeenFile
from crawler.targets.sources import ArgumentSource, QueueSource, TargetSource, TargetsUnavailableError
from crawler.targets.target import Outcome, Record, Scraper, Target, TargetParser
from crawler.targets.tracker import TargetTracker, target_completed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

logger = structlog.get_logger(__name__)

Data = dict[str, Any]
P = TypeVar("P", bound=PlatformPage)

__all__ = ["CrawlArguments", "Data", "First", "PlatformSpider"]

RUNNER_ARGUMENTS = frozenset({"_job", "source", "shared"})
"""Arguments that are set by the runner of a spider, not by its user: Scrapyd's job id, the endpoint's queue."""

ABOVE_COMMAND_LINE = 50
"""Priority of a setting that a command's ``-s`` does not change: Scrapy applies those a second time."""


class First:
    """The result of a target's scheduled request: its page object, or the error of its download."""

    def __init__(
        self,
        spider: PlatformSpider,
        request: Request,
        *,
        page: PlatformPage | None = None,
        error: ScrapeError | None = None,
    ) -> None:
        self.request = request
        """The request of the response, after redirects and retries."""
        self._spider = spider
        self._page = page
        self._error = error

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Return the page object, with its item read; ``retry`` as for ``PlatformSpider.get``.

        Raises:
            ScrapeError: the error of the download or of the page object.
        """
        if self._error is not None:
            raise self._error
        assert isinstance(self._page, kind)
        return await self._spider.read(self._page, self.request, retry=retry)


class PlatformSpider(Spider):
    """Base class of the platforms' spiders, which define ``scrapers``, ``request()`` and ``scrape()``."""

    scrapers: ClassVar[tuple[Scraper, ...]]
    args: CrawlArguments
    closing: Closing
    needs_browser: ClassVar[bool] = False
    """Whether its targets are always loaded in the browser."""

    def __init__(
        self, *args: Any, source: TargetSource | None = None, shared: SharedState | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.shared = shared or SharedState()
        """State that the crawlers of this process share."""
        unknown = kwargs.keys() - type(self.args).model_fields.keys() - RUNNER_ARGUMENTS
        if unknown:
            logger.warning("unknown_arguments", names=sorted(unknown), known=sorted(type(self.args).model_fields))
        self.source = self._own_source(kwargs) if source is None else source
        self.origins: dict[str, str] = {}
        self.exploded: RecordPath | None = None
        """The list whose rows are the lines of the feeds (argument ``explode``)."""
        self.seen: Seen | None = None
        self._callbacks: dict[type[PlatformPage], Callable[..., Any]] = {}

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        super().update_settings(settings)
        # Scrapy Cloud always sets JOBDIR, Scrapyd may. It stores requests, so a second start would send them in
        # addition to those of the targets that they belong to. A run is continued with -a resume= instead.
        settings.set("JOBDIR", None, priority=ABOVE_COMMAND_LINE)
        if uri := settings["FAILURES_FEED"]:
            feeds = settings.getdict("FEEDS") | failures_feed(str(uri))
            settings.set("FEEDS", feeds, priority=ABOVE_COMMAND_LINE)  # -o, -O and -s FEEDS= set the others
        if cls.needs_browser or cls.name in settings.getlist("BROWSER_FALLBACK"):
            carry_browser(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> PlatformSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.use_origins(platforms.origins(cls.name, crawler.settings))
        spider.closing = Closing(crawler)
        crawler.signals.connect(spider.target_completed, target_completed)
        if spider.args.since:
            file = crawler.settings["SEEN_FILE"] or data_file("seen.sqlite")
            spider.seen = Seen(SeenFile(Path(file)))
        return spider

    def _own_source(self, arguments: dict[str, Any]) -> TargetSource:
        parser = TargetParser(self.scrapers, self.args.scraper, sliced=self.sliced)
        if self.args.targets:
            return FileSource(parser, self.args.targets, Shard.parse(self.args.shard or "1/1"))
        names = {name for scraper in self.scrapers for name in scraper.params.model_fields}
        return ArgumentSource(parser, {name: arguments[name] for name in names & arguments.keys()})

    def use_origins(self, origins: str | dict[str, str]) -> None:
        """Set the platform's origins: one for everything, or one per role."""
        self.origins = {"page": origins} if isinstance(origins, str) else origins

    @property
    def allowed_origins(self) -> set[str]:
        """The only origins that requests may go to."""
        return set(self.origins.values())

    def origin(self, role: str = "page") -> str:
        """The platform's origin for a role; the page's origin where the role has no other."""
        return self.origins.get(role) or self.origins["page"]

    @property
    def tracker(self) -> TargetTracker:
        """The component that tracks the targets in progress."""
        return cast("TargetTracker", self.crawler.get_spider_middleware(TargetTracker))

    @property
    def on_demand(self) -> bool:
        """Whether a caller waits for each outcome, with a deadline."""
        return isinstance(self.source, QueueSource)

    @property
    def sliced(self) -> bool:
        """Whether a requested target is split into slices, so that many lines belong to it."""
        return False

    def restore(self, notes: list[tuple[str, dict[str, Any]]], pending: list[Target]) -> None:
        """Restore a resumed run's state from the codes and notes of its stored targets, before the first target."""

    @property
    def status_lines(self) -> list[str]:
        """Lines below the progress bar, about work that spans several targets."""
        return []

    async def start(self) -> AsyncIterator[Request]:
        """Yield one request for each target that the source releases."""
        if self.args.explode:
            try:
                self.exploded = rows_named(column_type_of_models([s.data for s in self.scrapers]), self.args.explode)
            except ValueError as error:
                raise CloseSpider(str(error)) from None
        breaker = platform_state(self.shared, self.name, self.settings).breaker
        if self.args.since and not any(scraper.entries for scraper in self.scrapers):
            raise CloseSpider(f"since=last needs a listing with the newest first; {self.name} has no such listing")
        try:
            async for target in self.tracker.release(self.source):
                try:
                    if target.deadline is None:
                        async with self.closing.limit():
                            await breaker.wait()
                    else:
                        breaker.check()
                    yield _of_target(self.request(target), target).replace(errback=self._errback)
                except ScrapeError as error:
                    self.tracker.complete(target, error=error)
        except TargetsUnavailableError as error:
            raise CloseSpider(str(error)) from error

    def request(self, target: Target) -> Request:
        """Return the scheduled request of a target, made with ``for_page``. It depends on the target only."""
        raise NotImplementedError

    async def scrape(self, target: Target, first: First) -> Data | None:
        """Return the target's data, starting from the result of its scheduled request. None: it has nothing new.

        Raises:
            ScrapeError: the target has no data; the type of the error is the reason.
        """
        raise NotImplementedError

    def for_page(self, kind: type[PlatformPage], request: Request) -> Request:
        """Return the request with a callback whose response scrapy-poet injects as a page object of this class."""
        return request.replace(callback=self._callback(kind))

    async def get(self, kind: type[P], request: Request, target: Target, *, retry: bool = True) -> P:
        """Return the page object of a follow-up request of a target, with its item read.

        With ``retry``, a page whose extraction failed is downloaded once more, and a blocked page is loaded in the
        browser where ``BROWSER_FALLBACK`` contains the platform.

        Raises:
            ScrapeError: the error of the download or of the page object.
        """
        final = (await self.fetch(self.for_page(kind, request), target)).request
        assert final is not None
        page = final.cb_kwargs["page"]
        assert isinstance(page, kind)
        return await self.read(page, final, retry=retry)

    async def get_optional(self, kind: type[P], request: Request, target: Target) -> P | None:
        """As ``get``, without a retry, for a source that the record does not require.

        Where the source fails, return None and add a warning to the target's outcome.
        """
        try:
            return await self.get(kind, request, target, retry=False)
        except ScrapeError as error:
            self.warn(target, kind.source, error)
            return None

    def warn(self, target: Target, source: str, error: ScrapeError) -> None:
        """Add a failed optional source to the warnings of the target's outcome."""
        logger.info("optional_source_failed", id=target.id, source=source, code=error.code, reason=error.reason)
        self.tracker.warn(target, source, error)

    async def read(self, page: P, request: Request, *, retry: bool = True) -> P:
        """Read a page object's item. With ``retry``: from a second download if the first one is not usable.

        Raises:
            ScrapeError: the error of the page object, or of the second download.
        """
        try:
            await self.read_item(page, request)
        except ExtractionFailed as error:
            if not retry:
                raise
            logger.info("retried", url=request.url, reason=error.reason)
            again = request.replace(cb_kwargs={})
        except (UpstreamBlocked, UpstreamRateLimited) as error:
            # A rate limit is respected; a block that is a page without its data may be lifted in a browser.
            if not (retry and self._may_use_browser(request)) or error.reason == "rate_limited":
                raise
            logger.info("browser_fallback", url=request.url, reason=error.reason)
            again = in_browser(request)
        else:
            return page
        return await self.get(type(page), again, request.meta["target"], retry=False)

    async def read_item(self, page: PlatformPage, request: Request) -> None:
        """Read a page object's item. A platform whose data is not in the response itself overrides this."""
        await page.to_item()

    async def fetch(self, request: Request, target: Target) -> Response:
        """Download a follow-up request of a target, through the downloader middlewares.

        When the crawler is closing, the target is completed at once, so that it cannot end with the data or the error
        of its other sources.

        Raises:
            ScrapeError: also where the download itself fails, so that callers need to catch one type only.
        """
        assert self.crawler.engine is not None
        try:
            self.closing.check()
            return await self.crawler.engine.download_async(_of_target(request, target))
        except (IgnoreRequest, DownloadTimeoutError, *DOWNLOAD_FAILURES) as error:
            raise as_scrape_error(error) from error
        except ShuttingDown as error:
            self.tracker.complete(target, error=error)
            raise
        except AlreadyCalledError as error:
            # Raised by an engine that closed between a response and its redirect or retry.
            shutdown = ShuttingDown("The crawl ended before the target was done.")
            self.tracker.complete(target, error=shutdown)
            raise shutdown from error

    def _callback(self, kind: type[PlatformPage]) -> Callable[..., Any]:
        """The callback for a page class: one per class, because plans are cached by callback."""
        if kind not in self._callbacks:

            def callback(response: Response, page: PlatformPage) -> AsyncIterator[Record]:
                assert response.request is not None
                return self._scrape(First(self, response.request, page=page))

            callback.__annotations__ = {"response": Response, "page": kind}
            self._callbacks[kind] = callback
        return self._callbacks[kind]

    def _errback(self, failure: Failure) -> AsyncIterator[Record] | None:
        """Continue without a response to the scheduled request: the platform may have other sources."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy's scraper
        error = as_scrape_error(failure.value)
        if isinstance(error, ShuttingDown):
            self.tracker.complete(request.meta["target"], error=error)
            return None
        if type(error) is ServiceError:
            # Scrapy logs the traceback of a callback or a pipeline, but not of a downloader middleware or handler.
            logger.error("download_failed", url=request.url, exc_info=failure.value)
            self.tracker.complete(request.meta["target"], error=error)
            return None
        return self._scrape(First(self, request, error=error))

    def _scrape(self, first: First) -> AsyncIterator[Record]:
        target: Target = first.request.meta["target"]
        self.tracker.enter(target)
        return self._records(target, first)

    async def _records(self, target: Target, first: First) -> AsyncIterator[Record]:
        try:
            data = await self.scrape(target, first)
        except ScrapeError as error:
            self.tracker.complete(target, error=error)
            return
        if data is None:
            self.tracker.complete(target)
            return
        record = target.scraper.item_class(data, target, datetime.now(UTC))
        if self.tracker.hand_over(record):
            yield record

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        """Return the page params for saved responses, where only some of the scraper's params may be known.

        Raises:
            InvalidRequest: an argument is not a param of the scraper.
        """
        unknown = arguments.keys() - scraper.params.model_fields.keys()
        if unknown:
            known = ", ".join(scraper.params.model_fields)
            raise InvalidRequest(f"{scraper.name} has no param {', '.join(sorted(unknown))}; its params are {known}.")
        return dict(arguments)

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        """Return a target's data from its saved pages. A platform with several page types overrides this."""
        return await pages[0].to_item()

    def _may_use_browser(self, request: Request) -> bool:
        """Whether a blocked request is repeated in the browser: once, and only for pages, not for API calls."""
        configured = self.name in self.settings.getlist("BROWSER_FALLBACK")
        return configured and request.method == "GET" and "page_session_factory" not in request.meta

    def follow(self, target: Target, data: dict[str, Any], **changes: Any) -> None:
        """Push the next page as a follow-up target, unless ``max_pages`` or ``since=last`` ends the listing here.

        ``data`` is the data of this page, ``changes`` the params of the next page that differ from this one's.
        """
        if target.depth + 1 < self.args.max_pages and (self.seen is None or self.seen.unseen_below(target, data)):
            self.tracker.push(target.followup(**changes))

    def target_completed(self, outcome: Outcome) -> None:
        """Record an outcome for the platform's circuit breaker and for ``since=last``."""
        if self.seen:
            self.seen.completed(outcome)
        if outcome.error and isinstance(self.source, ArgumentSource):
            logger.error("target_failed", code=outcome.code, message=outcome.error.message)  # else only in the feed
        platform_state(self.shared, self.name, self.settings).breaker.record(outcome.error)

    def closed(self, reason: str) -> None:
        """Log the number of targets by code."""
        assert self.crawler.stats is not None
        stats = self.crawler.stats.get_stats()
        counts = {k.removeprefix("targets/"): v for k, v in sorted(stats.items()) if k.startswith("targets/")}
        logger.info("targets_done", spider=self.name, reason=reason, total=sum(counts.values()), **counts)


def _of_target(request: Request, target: Target) -> Request:
    """Return the request as one of a target, exempt from duplicate filtering."""
    request.meta["target"] = target
    return request.replace(dont_filter=True)
