"""What all spiders share: targets in, one scheduled request for each, awaited follow-ups, records out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

import structlog
from pydantic import BaseModel, ConfigDict, Field, model_validator
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

# Given by those who run spiders, not by those who ask for targets: Scrapyd's job id, the endpoint's queue.
RUNNER_ARGUMENTS = frozenset({"_job", "source", "shared"})


ABOVE_THE_COMMAND_LINE = 50
"""Priority of a setting that a command's ``-s`` does not change: Scrapy applies those a second time."""


class CrawlArguments(BaseModel):
    """The ``-a`` arguments that every spider takes; each spider adds the params of its scrapers, as text."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    scraper: str | None = None
    """Which scraper; may be left out where the params fit only one."""
    targets: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """Files of targets instead of params: a path, a glob or a URL of JSON Lines, CSV or Parquet, gzipped or not."""
    explode: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """A list in the data (products, posts), of which each row becomes a line of the feeds, instead of each target."""
    shard: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """Only a part of the targets: 3/16 is the third of sixteen."""
    resume: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """A folder that remembers what is finished: a run that was ended goes on from there."""
    queue: str | None = Field(default=None, pattern=r"^[\w.-]{1,64}$", json_schema_extra={"group": "crawl"})
    """A queue in Redis instead of params, filled by ``scrapy targets push``: any number of workers take from it."""
    wait: bool = Field(default=False, json_schema_extra={"group": "crawl"})
    """Whether a worker stays when its queue is finished, for what comes later."""
    max_pages: int = Field(default=1, ge=1, json_schema_extra={"group": "crawl"})
    """How many pages to follow from the one asked for."""
    since: Literal["last"] | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """``last``: follow pages only down to what the last run has seen."""

    @model_validator(mode="after")
    def _shard_of_files(self) -> Self:
        if self.shard is not None:
            Shard.parse(self.shard)
            if self.targets is None:
                raise ValueError("a shard is a part of targets files: name them with targets=")
        return self

    @model_validator(mode="after")
    def _a_queue_stands_alone(self) -> Self:
        if self.queue is None:
            if self.wait:
                raise ValueError("only a queue can be waited for: name it with queue=")
        elif self.targets or self.resume or self.since:
            raise ValueError("a queue knows by itself what is finished: leave out targets, resume and since")
        return self


class First:
    """The answer to a target's scheduled request: its page object, or the error of its download."""

    def __init__(
        self,
        spider: PlatformSpider,
        request: Request,
        *,
        page: PlatformPage | None = None,
        error: ScrapeError | None = None,
    ) -> None:
        self.request = request
        """The request that was answered: after redirects and retries."""
        self._spider = spider
        self._page = page
        self._error = error

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Return the page object, with its item read; ``retried`` as for ``PlatformSpider.get``.

        Raises:
            ScrapeError: the error of the download or of the page object.
        """
        if self._error is not None:
            raise self._error
        assert isinstance(self._page, kind)
        return await self._spider.read(self._page, self.request, retry=retry)


class PlatformSpider(Spider):
    """The base of all platforms' spiders: a platform has ``scrapers``, ``request()`` and ``scrape()``."""

    scrapers: ClassVar[tuple[Scraper, ...]]
    args: CrawlArguments
    closing: Closing
    needs_browser: ClassVar[bool] = False
    """Whether its targets are always read in the browser."""

    def __init__(
        self, *args: Any, source: TargetSource | None = None, shared: SharedState | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.shared = shared or SharedState()
        """What the crawlers of this process share."""
        unknown = kwargs.keys() - type(self.args).model_fields.keys() - RUNNER_ARGUMENTS
        if unknown:
            logger.warning("unknown_arguments", names=sorted(unknown), known=sorted(type(self.args).model_fields))
        self.source = self._own_source(kwargs) if source is None else source
        self.origins: dict[str, str] = {}
        self.exploded: RecordPath | None = None
        """The list of which the feeds have one line a row."""
        self.seen: Seen | None = None
        self._callbacks: dict[type[PlatformPage], Callable[..., Any]] = {}

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        super().update_settings(settings)
        # Scrapy Cloud always gives one, Scrapyd may. It keeps requests, so a second start would ask for them beside
        # the targets that they belong to: -a resume= is what goes on from where a run was.
        settings.set("JOBDIR", None, priority=ABOVE_THE_COMMAND_LINE)
        if uri := settings["FAILURES_FEED"]:
            feeds = settings.getdict("FEEDS") | failures_feed(str(uri))
            settings.set("FEEDS", feeds, priority=ABOVE_THE_COMMAND_LINE)  # -o, -O and -s FEEDS= set the others
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
        parser = TargetParser(self.scrapers, self.args.scraper)
        if self.args.targets:
            return FileSource(parser, self.args.targets, Shard.parse(self.args.shard or "1/1"))
        names = {name for scraper in self.scrapers for name in scraper.params.model_fields}
        return ArgumentSource(parser, {name: arguments[name] for name in names & arguments.keys()})

    def use_origins(self, origins: str | dict[str, str]) -> None:
        """Where the platform is: one origin for everything, or one for each role."""
        self.origins = {"page": origins} if isinstance(origins, str) else origins

    @property
    def allowed_origins(self) -> set[str]:
        """The only origins that are ever asked for anything."""
        return set(self.origins.values())

    def origin(self, role: str = "page") -> str:
        """The platform's origin for a role; where roles are not told apart, the only one."""
        return self.origins.get(role) or self.origins["page"]

    @property
    def tracker(self) -> TargetTracker:
        """The component that holds the targets that are out."""
        return cast("TargetTracker", self.crawler.get_spider_middleware(TargetTracker))

    @property
    def on_demand(self) -> bool:
        """Whether somebody waits for each outcome, with a deadline."""
        return isinstance(self.source, QueueSource)

    @property
    def status_lines(self) -> list[str]:
        """What the progress bar says below itself: lines about work that is more than one target."""
        return []

    async def start(self) -> AsyncIterator[Request]:
        """One request for each target that the source releases."""
        if self.args.explode:
            try:
                self.exploded = rows_named(column_type_of_models([s.data for s in self.scrapers]), self.args.explode)
            except ValueError as error:
                raise CloseSpider(str(error)) from None
        breaker = platform_state(self.shared, self.name, self.settings).breaker
        if self.args.since and not any(scraper.entries for scraper in self.scrapers):
            raise CloseSpider(f"since=last needs a listing with the newest first: {self.name} has none")
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
        """The scheduled request of a target, made with ``for_page``. Pure: what it depends on is in the target."""
        raise NotImplementedError

    async def scrape(self, target: Target, first: First) -> Data:
        """The target's data, beginning with the answer to its scheduled request.

        Raises:
            ScrapeError: the target has no data; the kind of error says why.
        """
        raise NotImplementedError

    def for_page(self, kind: type[PlatformPage], request: Request) -> Request:
        """Return a request whose answer scrapy-poet reads as a page object of this class."""
        return request.replace(callback=self._callback(kind))

    async def get(self, kind: type[P], request: Request, target: Target, *, retry: bool = True) -> P:
        """Return the page object of a further request of a target, with its item read.

        Where ``retried`` is true, a page that is not understood is fetched once more, and a page that is refused is
        loaded in the browser where ``BROWSER_FALLBACK`` names the platform.

        Raises:
            ScrapeError: the error of the download or of the page object.
        """
        answered = (await self.fetch(self.for_page(kind, request), target)).request
        assert answered is not None
        page = answered.cb_kwargs["page"]
        assert isinstance(page, kind)
        return await self.read(page, answered, retry=retry)

    async def get_optional(self, kind: type[P], request: Request, target: Target) -> P | None:
        """As ``get``, without a second try, for a source that the record can do without.

        A source that fails is None, and a warning of the target's outcome.
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
        """Read a page object's item. With ``retried``: from a second download where the first is not usable.

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
            # A platform that asks for fewer requests gets fewer; a page without its data may be sent to a browser.
            if not (retry and self._may_use_browser(request)) or error.reason == "rate_limited":
                raise
            logger.info("browser_fallback", url=request.url, reason=error.reason)
            again = in_browser(request)
        else:
            return page
        return await self.get(type(page), again, request.meta["target"], retry=False)

    async def read_item(self, page: PlatformPage, request: Request) -> None:
        """Read a page object's item. For a platform whose data is not in the answer itself, which overrides this."""
        await page.to_item()

    async def fetch(self, request: Request, target: Target) -> Response:
        """Download a further request of a target, through the downloader middlewares.

        Where the crawler closes, the target is completed at once, so that it cannot end with the data or the error of
        its other sources.

        Raises:
            ScrapeError: also where the download itself fails, so that callers catch one kind of error.
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
            # Of an engine that closed in the middle of a redirect or retry: it had no other download to wait for.
            left = ShuttingDown("The crawl ended before the target was done.")
            self.tracker.complete(target, error=left)
            raise left from error

    def _callback(self, kind: type[PlatformPage]) -> Callable[..., Any]:
        """The callback for a page class. One for each class: scrapy-poet keeps what it plans by the callback."""
        if kind not in self._callbacks:

            def callback(response: Response, page: PlatformPage) -> AsyncIterator[Record]:
                assert response.request is not None
                return self._scrape(First(self, response.request, page=page))

            callback.__annotations__ = {"response": Response, "page": kind}
            self._callbacks[kind] = callback
        return self._callbacks[kind]

    def _errback(self, failure: Failure) -> AsyncIterator[Record] | None:
        """Goes on without the scheduled request's answer: a platform may have other sources."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy's scraper
        error = as_scrape_error(failure.value)
        if isinstance(error, ShuttingDown):
            self.tracker.complete(request.meta["target"], error=error)
            return None
        if type(error) is ServiceError:
            # Where a callback or a pipeline breaks Scrapy logs the traceback; nobody else does for the way up to them.
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
        record = target.scraper.item_class(data, target, datetime.now(UTC))
        if self.tracker.hand_over(record):
            yield record

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        """What the page objects are told of the params, where only some of them are known (saved responses).

        Raises:
            InvalidRequest: an argument that the scraper does not take.
        """
        unknown = arguments.keys() - scraper.params.model_fields.keys()
        if unknown:
            known = ", ".join(scraper.params.model_fields)
            raise InvalidRequest(f"{scraper.name} takes no {', '.join(sorted(unknown))}; it takes {known}.")
        return dict(arguments)

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        """The data of a target from the pages that there are. A platform of one page has it all in the first."""
        return await pages[0].to_item()

    def _may_use_browser(self, request: Request) -> bool:
        """Whether a request that was refused is repeated in the browser: once, and only for pages, not for calls."""
        configured = self.name in self.settings.getlist("BROWSER_FALLBACK")
        return configured and request.method == "GET" and "page_session_factory" not in request.meta

    def follow(self, target: Target, data: dict[str, Any], **changes: Any) -> None:
        """Goes on with the next page as a target of its own, unless ``max_pages`` or ``since=last`` says it is enough.

        ``data`` is this page's, ``changes`` what the next page's params have other than this one's.
        """
        if target.depth + 1 < self.args.max_pages and (self.seen is None or self.seen.unseen_below(target, data)):
            self.tracker.push(target.followup(**changes))

    def target_completed(self, outcome: Outcome) -> None:
        """Tells the platform's circuit breaker how it went, and ``since=last`` what was seen."""
        if self.seen:
            self.seen.completed(outcome)
        if outcome.error and isinstance(self.source, ArgumentSource):
            logger.error("target_failed", code=outcome.code, message=outcome.error.message)  # else only in the feed
        platform_state(self.shared, self.name, self.settings).breaker.record(outcome.error)

    def closed(self, reason: str) -> None:
        """The closing line: the counts by code."""
        assert self.crawler.stats is not None
        stats = self.crawler.stats.get_stats()
        counts = {k.removeprefix("targets/"): v for k, v in sorted(stats.items()) if k.startswith("targets/")}
        logger.info("targets_done", spider=self.name, reason=reason, total=sum(counts.values()), **counts)


def _of_target(request: Request, target: Target) -> Request:
    """A request that belongs to a target, and that no filter of duplicates drops."""
    request.meta["target"] = target
    return request.replace(dont_filter=True)
