"""The base class of all spiders.

A spider schedules one request per target. The callback of this request awaits the responses to the target's other
requests, and yields the target's record.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import Any, ClassVar, Self, cast

import structlog
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Headers, Response
from scrapy.settings import BaseSettings
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # the package has no __all__
from twisted.python.failure import Failure
from web_poet import HttpResponseHeaders

from crawler.browser.sessions import carry_browser, in_browser
from crawler.components import ABOVE_COMMAND_LINE, require
from crawler.downloads.lanes import Lanes
from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import (
    OTHER_FORM_REASONS,
    READABLE_REASONS,
    EgressFailed,
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.jobs import prepare, store_location
from crawler.logs import skip_unhandled_records
from crawler.outputs.columns import RecordPath, column_type_of_models, find_row_path
from crawler.outputs.feed_files import failures_feed, without_passwords
from crawler.outputs.selection import Selection
from crawler.platforms import platforms
from crawler.platforms.coverage import Coverage, Tally
from crawler.platforms.links import read_link
from crawler.platforms.model import AUTO_SECONDS, Details, max_details
from crawler.platforms.page import P, PlatformPage
from crawler.reading.contract import Unread
from crawler.runtime import end_start
from crawler.storage.kept import Head, Keeper, KeptResponse
from crawler.targets.arguments import CrawlArguments, Since, SinceDate, parse_shard, with_params
from crawler.targets.parser import TargetParser
from crawler.targets.reporter import PARTIAL, outcomes_by_code, target_completed
from crawler.targets.shutdown import Closing
from crawler.targets.sources import ArgumentSource, FetchedOnce, QueueSource, TargetSource, TargetsUnavailableError
from crawler.targets.target import Outcome, Record, ReleaseEnded, Scraper, Target
from crawler.targets.tracker import DOWNLOAD_FAILURES, TargetTracker, as_scrape_error
from crawler.targets.warning import OutcomeWarning

logger = structlog.get_logger(__name__)

Data = dict[str, Any]

__all__ = ["CrawlArguments", "Data", "First", "PlatformSpider"]


class PlatformSpider(Spider, Args[CrawlArguments]):
    """The base class of the platforms' spiders. A spider defines ``scrapers``, ``request()`` and ``scrape()``.

    Scrapy Cloud shows the arguments of subclasses of ``Args``. Scrapy's ``Spider`` does not call ``Args.__init__``.
    """

    platform: ClassVar[str]
    """The name of the platform that the spider's scrapers belong to."""
    can_use_browser: ClassVar[bool] = True
    """Whether ``BROWSER_FALLBACK`` may name the platform: blocked pages can be loaded in the browser instead."""
    allowed_origins: frozenset[str] = frozenset()
    """The public origins to which the spider may send requests."""
    shared: SharedState
    """State that all crawlers in this process share, such as throttles."""
    closing: Closing
    scrapers: ClassVar[tuple[Scraper, ...]]
    """The spider's scrapers. If a target names no scraper, the first one whose params fit scrapes the target."""
    metadata: ClassVar[dict[str, str]]
    """``title`` and ``description`` of the platform."""
    arguments: ClassVar[type[CrawlArguments]] = CrawlArguments
    """The model of the ``-a`` arguments. The params of the scrapers are added to it, as arguments of type text."""
    args: CrawlArguments
    needs_browser: ClassVar[bool] = False
    """Whether the spider always loads its targets in the browser."""
    required_sources: ClassVar[tuple[str, ...]] = ()
    """The sources with a budget of their own that each target requests. A call is refused while they have no slot."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set ``platform`` (the ``name`` of a subclass may differ) and ``arguments``, if the class has ``scrapers``."""
        super().__init_subclass__(**kwargs)
        if "scrapers" in vars(cls):
            cls.platform = cls.scrapers[0].platform
            cls.arguments = with_params(cls.arguments, cls.scrapers)

    def __init__(
        self, *args: Any, source: TargetSource | None = None, shared: SharedState | None = None, **kwargs: Any
    ) -> None:
        """``kwargs``: the ``-a`` arguments. Raises ``ValueError`` if one is unknown, invalid or fits no scraper."""
        self.args = self.arguments(**kwargs)
        super().__init__(*args, **kwargs)
        if known := platforms().get(self.platform):  # None: a platform of the user's own project
            self.allowed_origins = known.origins
        self.shared = shared or SharedState()
        if self.args.since and not any(scraper.entries for scraper in self.scrapers):
            raise ValueError(
                f"since={self.args.since} requires a listing that is sorted by newest first; "
                f"no scraper of {self.name} has such a listing"
            )
        self.source = self._own_source(kwargs) if source is None else source
        self.row_path: RecordPath | None = None
        """The list in the data whose rows become the lines of the feeds (argument ``explode``). None: no list."""
        if self.args.explode:
            self.row_path = find_row_path(column_type_of_models([s.data for s in self.scrapers]), self.args.explode)
        self.selection: Selection | None = None
        """The fields to write to the feeds (argument ``fields``). None: all fields."""
        if self.args.fields:
            self.selection = Selection.parse(self.args.fields, self.scrapers, self.row_path, sliced=self.sliced)
        self.since: Since | None = None
        self._tallies: dict[str, Tally] = {}
        """Id of the target of a listing's page -> the count of the listing's rows up to this page."""
        self.stale_ids: dict[str, str] = {}
        """Ids in the platform's data file (``ids.json``) that were found to be out of date, each with the reason."""
        self._callbacks: dict[type[PlatformPage], Callable[..., Any]] = {}

    @classmethod
    def get_param_schema(cls, normalize: bool = False) -> dict[str, Any]:  # noqa: ARG003, FBT001, FBT002  # as in Args
        """Return the JSON schema of the arguments, from which scrapy-spider-metadata makes Scrapy Cloud's form."""
        return cls.arguments.model_json_schema()

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Set the common settings of this project's spiders, and check that no essential component is disabled.

        Raises:
            UsageError: ``ADDONS`` lacks this project's add-on, or an essential component is disabled.
        """
        super().update_settings(settings)
        require(settings)  # not in from_crawler(), whose errors Scrapy prints as tracebacks, with exit code 1
        settings.set("SCHEDULER", "crawler.targets.tracker.TargetScheduler", priority="spider")
        # Scrapy Cloud always sets JOBDIR, and Scrapyd may set it. With JOBDIR, a scheduler of Scrapy (-s SCHEDULER=)
        # would store requests, and a second start would send them in addition to the requests of all targets.
        # Interrupted crawls are continued with ``-a job=`` instead.
        settings.set("JOBDIR", None, priority=ABOVE_COMMAND_LINE)
        feeds = without_passwords(settings.getdict("FEEDS"))
        if uri := settings["FAILURES_FEED"]:
            feeds |= failures_feed(str(uri))
        if feeds:
            settings.set("FEEDS", feeds, priority=ABOVE_COMMAND_LINE)  # FEEDS may also contain feeds of -o, -O and -s
        if cls.needs_browser or cls.platform in settings.getlist("BROWSER_FALLBACK"):
            carry_browser(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        if spider.args.job is not None:
            crawler.settings.set("SHARED_LIMITS", value=True, priority="spider")
        if kwargs.get("shared") is None:
            crawler.signals.connect(spider.shared.close, signals.engine_stopped)
        spider.closing = Closing(crawler)
        crawler.signals.connect(spider.target_completed, target_completed)
        crawler.signals.connect(spider.lanes.stored, signals.spider_closed)
        if spider.args.since == "last":
            from crawler.jobs.seen import SeenByCrawls  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

            spider.since = SeenByCrawls.of(crawler.settings)
            crawler.signals.connect(spider.since.close, signals.spider_closed)
        elif spider.args.since:
            spider.since = SinceDate(date.fromisoformat(spider.args.since))
        return spider

    def parse(self, response: Response, **_arguments: Any) -> None:
        """Scrapy's default callback, which only ``scrapy parse`` calls."""
        command = f"scrapy crawl {self.name} -a url={response.url}"
        logger.error("parse_refused", reason=f"scrapy parse cannot run a target; use {command}")

    def check(self, settings: BaseSettings) -> None:
        """Check the targets, and the store if the arguments or ``SHARED_LIMITS`` need it. The platform gets no request.

        Raises:
            WrongTargetsError: the targets are wrong, such as an invalid param or a targets file that does not exist.
            UsageError: the location of the store cannot be used. With ``since=last``, also if it cannot be opened.
        """
        if self.args.job or self.args.since == "last" or settings.getbool("SHARED_LIMITS"):
            location = store_location(settings)
            if self.args.since == "last":
                prepare(location, must_open=True)
        if not self.args.job:
            self.source.check()

    def _own_source(self, arguments: dict[str, Any]) -> TargetSource:
        parser = TargetParser(self.scrapers, self.args.scraper, sliced=self.sliced)
        if self.args.targets:
            from crawler.targets.files.source import FileSource  # noqa: PLC0415  # imports the readers of all formats

            return FileSource(parser, self.args.targets, parse_shard(self.args.shard or "1/1"), self.args.encoding)
        names = {name for scraper in self.scrapers for name in scraper.params.model_fields}
        return ArgumentSource(parser, {name: arguments[name] for name in names & arguments.keys()})

    @property
    def on_demand(self) -> bool:
        """Whether the spider belongs to an open crawler of the endpoint, whose targets come from a queue of calls."""
        return isinstance(self.source, QueueSource)

    @property
    def batch(self) -> bool:
        """Whether the crawl is a batch, so that the lines of its feeds contain the id and params of their targets."""
        return self.sliced or not isinstance(self.source, ArgumentSource)

    @property
    def sliced(self) -> bool:
        """Whether a requested target is split into slices, so that the feed has many lines for one requested target."""
        return False

    def restore(self, root: str | None, notes: list[tuple[str, dict[str, Any]]], pending: list[Target]) -> list[Target]:
        """Restore the state of a root (a requested target with its follow-ups) that another worker has begun.

        ``root``: the id of the requested target, None if the targets do not have it. ``notes``: the code and the note
        (``TargetTracker.note``) of each finished target of the root that has a note. ``pending``: the root's targets
        without an outcome. Return the targets to scrape.
        """
        return pending

    @property
    def status_lines(self) -> list[str]:
        """Lines to show below the progress bar, such as the state of each exhaustive crawl."""
        return []

    def report_stale_id(self, name: str, reason: str) -> None:
        """Log once that an id of the platform's data file (``ids.json``) is stale. ``scrapy probe`` prints the id."""
        if name not in self.stale_ids:
            self.stale_ids[name] = reason
            logger.info("stale_id", spider=self.name, id=name, reason=reason, hint="PLATFORM_IDS replaces the file")

    async def start(self) -> AsyncIterator[Request]:
        """Yield the first request of each target as soon as the tracker releases the target."""
        skip_unhandled_records()
        end_start()
        try:
            source = FetchedOnce(self.source) if self.args.targets else self.source
            async for target in self.tracker.release(source):
                try:
                    yield self._first_request(target)
                except ScrapeError as error:
                    self.tracker.complete(target, error=error)
        except TargetsUnavailableError as error:
            raise CloseSpider(str(error)) from error

    def request(self, target: Target) -> Request:
        """Return a target's first request, made with ``for_page``. A ``ScrapeError`` ends the target instead."""
        raise NotImplementedError

    async def scrape(self, target: Target, first: First) -> Data | None:
        """Return the target's data, or None without new data. ``first``: the result of the target's scheduled request.

        Raises:
            ScrapeError: the target has no data. The class of the error shows the reason.
        """
        raise NotImplementedError

    def _first_request(self, target: Target) -> Request:
        request = self.request(target)
        request.meta["target"] = target
        request.errback = self._errback
        return request

    def page_callback(self, kind: type[PlatformPage]) -> Callable[..., Any]:
        """Return the callback for a page class. Each class has one callback: the injection caches plans by callback."""
        if kind not in self._callbacks:

            def callback(response: Response, page: PlatformPage) -> AsyncIterator[Record | Request]:
                assert response.request is not None
                self.tracker.enter(response.request.meta["target"])  # in the callback's task, which runs the pipelines
                return self._records(First(self, response.request, result=page))

            callback.__annotations__ = {"response": Response, "page": kind}
            self._callbacks[kind] = callback
        return self._callbacks[kind]

    def _errback(self, failure: Failure) -> AsyncIterator[Record | Request] | None:
        """Continue with a target although its scheduled request failed, because the platform may have other sources.

        If the cause is a bug or the end of the crawl, the target ends with the error instead.
        """
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy's scraper
        error = as_scrape_error(failure.value)
        if isinstance(failure.value, ReleaseEnded):
            return None
        if is_bug := type(error) is ServiceError:
            # Scrapy logs tracebacks of callbacks and pipelines, but not of downloader middlewares and handlers.
            logger.error("download_failed", url=request.url, exc_info=failure.value)
        if is_bug or isinstance(error, ShuttingDown):
            self.tracker.complete(request.meta["target"], error=error)
            return None
        self.tracker.enter(request.meta["target"])
        return self._records(First(self, request, error=error))

    async def _records(self, first: First) -> AsyncIterator[Record | Request]:
        """Yield the target's record. If the target was released again, yield its first request for the other lane."""
        target: Target = first.request.meta["target"]
        record = None
        try:
            record = await self._record(target, first)
        except ScrapeError as error:
            if not self._is_postponed(target, error):
                self.tracker.complete(target, error=error)
        except Exception as error:  # if the target was released again, its first attempt may end with any exception
            if not isinstance(error, ReleaseEnded) and target.release.successor is None:
                raise
        if (again := target.release.successor) is not None:
            yield self._again(target, again)
        elif record is not None:
            yield record

    def _is_postponed(self, target: Target, error: ScrapeError) -> bool:
        """Whether a target is released again: after the cooldown, because it met a rate limit for the first time, or
        at once, because nothing could be sent for it.

        There is no cooldown if circuit breakers are disabled.
        """
        if error.reason == "circuit_open":
            return self.tracker.wait(target)
        lane = target.release.lane
        if lane is None or not lane.breakers.policy.threshold or not isinstance(error, UpstreamRateLimited):
            return False
        seconds = lane.breakers.policy.cooldown if error.retry_after is None else error.retry_after
        return self.tracker.postpone(target, error, seconds)

    def _again(self, target: Target, again: Target) -> Request:
        """Return the first request of a target that was released again."""
        request, lane = self._first_request(again), target.release.lane
        if again.release.limit is not None and lane is not None:
            logger.info("target_postponed", id=target.id, reason=again.release.limit.reason)
            self.lanes.postpone(again, lane, request.meta["source"])
        elif again.release.failed is None:
            logger.info("target_waits", id=target.id)
        else:
            logger.warning("target_restarted", id=target.id, egress=lane.egress.name if lane else None)
        return request

    async def _record(self, target: Target, first: First) -> Record | None:
        """Return the target's record. None if the target has no new data, or already has an outcome.

        Raises:
            ScrapeError: the target failed.
            ReleaseEnded: the target already has its outcome, was released again, or was taken by another worker.
        """
        target.release.check()
        if self.since:
            await self.since.load(target)
        if first.error is not None:
            await self._count_failed(first.request, first.error)
        data = await self.scrape(target, first)
        if data is None:
            self.tracker.complete(target)
            return None
        record = target.scraper.item(data, target, datetime.now(UTC))
        new = self.since.new_entries(target, data) if self.since else None
        return record if self.tracker.hand_over(record, new) else None

    # Pages

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

    # Records and listings

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        """Return the ``page_params`` with which page objects read saved responses (``scrapy extract``).

        ``arguments``: any of the scraper's params, with valid values. ``url`` becomes the params of the linked page.

        Raises:
            InvalidRequest: an argument is not a param of the scraper.
        """
        unknown = arguments.keys() - scraper.params.model_fields.keys()
        if unknown:
            known = ", ".join(scraper.params.model_fields)
            raise InvalidRequest(f"{scraper.name} has no param {', '.join(sorted(unknown))}; its params are {known}.")
        url = arguments.get("url")
        meant = {} if url is None else read_link(url).params
        given = {name: value for name, value in arguments.items() if name != "url"}
        return {name: value for name, value in meant.items() if name in scraper.params.model_fields} | given

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        """Return a target's data from its saved pages. Platforms with several pages per target override this method."""
        return await pages[0].to_item()

    def follow(self, target: Target, data: dict[str, Any], **changes: Any) -> bool:
        """Push the next page of a listing as a follow-up target, unless ``max_pages`` or ``since`` prevents it, or the
        last pages had no new row (``Tally.is_stuck``).

        ``data``: the data of this page. ``changes``: the params of the next page that differ from this page's params.
        Return whether the follow-up was pushed.
        """
        if target.depth + 1 >= self.args.max_pages or not (
            self.since is None or self.since.has_new_below(target, data)
        ):
            return False
        tally = self._tallies.get(target.id)
        if tally is not None and tally.is_stuck:
            return False
        followup = target.followup(**changes)
        if tally is not None:
            self._tallies[followup.id] = self._tallies.pop(target.id)
        self.tracker.push(followup)
        return True

    def count_rows(
        self, target: Target, ids: Sequence[str], stated: int | None, *, is_first: bool, **page: Any
    ) -> None:
        """Count the rows of a listing's page by their ids.

        ``stated``: the number of rows in the whole listing, as the page states it. ``page``: further arguments of
        ``Tally.add``. A listing is not counted if the crawl did not begin at its first page, or if an earlier start of
        the run read the pages before this one.
        """
        tally = Tally() if is_first and target.parent is None else self._tallies.get(target.id)
        if tally is not None:
            tally.add(target.id, ids, stated, **page)
            self._tallies[target.id] = tally

    def close_listing(
        self,
        target: Target,
        source: str,
        *,
        ended: bool | None,
        ceiling: int | None = None,
        otherwise: Coverage | None = None,
    ) -> None:
        """Check after the last page of a listing whether its counted pages were complete.

        If rows are missing, or a page contained only rows of earlier pages, add a warning about ``source`` to the
        target's outcome. ``ended`` and ``ceiling``: see ``Tally.coverage``. ``otherwise``: the coverage of a listing
        whose pages were not counted.
        """
        tally = self._tallies.pop(target.id, None)
        coverage = tally.coverage(ended=ended, ceiling=ceiling) if tally else otherwise
        if coverage is not None and coverage.reasons:
            self.tracker.warn(target, OutcomeWarning.of_coverage(source, coverage))

    def target_completed(self, outcome: Outcome) -> None:
        """Count the outcome for the target's lane, and pass it to ``since``."""
        self.lanes.completed(outcome)
        self._tallies.pop(outcome.target.id, None)
        if self.since:
            self.since.completed(outcome)

    def closed(self, reason: str) -> None:
        """Log the number of all targets, the number for each outcome code, and the number of partial records."""
        assert self.crawler.stats is not None
        stats = self.crawler.stats.get_stats()
        counts = outcomes_by_code(stats)
        partial = stats.get(PARTIAL, 0)
        logger.info(
            "targets_done", spider=self.name, reason=reason, total=sum(counts.values()), partial=partial, **counts
        )


def _headers(request: Headers, response: HttpResponseHeaders) -> Iterator[tuple[str, str]]:
    yield from ((str(name), value) for name, value in request.to_unicode_dict().items())
    yield from response.items()


@dataclass(slots=True)
class First:
    """The result of a target's scheduled request: a page object whose item is not read yet, or the download's error."""

    spider: PlatformSpider
    request: Request
    """The request that led to the result. After redirects and retries, this is the last request."""
    _: KW_ONLY
    result: PlatformPage | None = None
    """The page object, whose item is not read yet. None: the download has failed."""
    error: ScrapeError | None = None
    """The error of the download, None if there is a response."""

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Read the item of the page object, whose class is ``kind``, and return the page object.

        ``retry``: see ``PlatformSpider.get``.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
        """
        if self.error is not None:
            raise self.error
        assert isinstance(self.result, kind)
        return await self.spider.read(self.result, self.request, retry=retry)
