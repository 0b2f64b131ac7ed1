"""The accounting: one target in, exactly one outcome out.

The first of {item, typed error, dropped item, exception, callback ended with nothing, deadline passed, crawler gone}
is the target's outcome; whatever comes later for it is ignored. No other component decides how a target ended.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog
from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotConfigured,
    ResponseDataLossError,
)
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost

from crawler.errors import (
    BlockedByPolicy,
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamError,
    UpstreamTimeout,
)
from crawler.items import Record
from crawler.targets import Rejected, Target, TargetSource, TargetsUnavailableError

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

logger = structlog.get_logger(__name__)

target_settled = object()
"""Signal: an outcome is known. Arguments: ``outcome``, ``spider``."""

DOWNLOAD_FAILURES = (
    CannotResolveHostError,
    ConnectError,
    ConnectionDone,
    ConnectionLost,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    OSError,
    ResponseDataLossError,
)
"""What a download raises where the platform, or the way to it, is at fault."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a target ended: its data, or its error."""

    target: Target | Rejected
    data: dict[str, Any] | None
    error: ScrapeError | None
    duration_ms: int
    fetched_at: datetime | None = None
    further: tuple[Target, ...] = ()
    """The targets that it led to: the next page, the slices of a listing."""

    @property
    def code(self) -> str:
        """``OK`` or the error's code."""
        return self.error.code if self.error else "OK"


@dataclass(slots=True)
class _Open:
    """A target that is out: when it was released, and the timer of its deadline."""

    target: Target
    since: float
    timer: asyncio.TimerHandle | None
    further: list[Target] = field(default_factory=list)


class Accounting:
    """The one component that knows which targets are out and how each one ended.

    A spider middleware, because a callback's end is seen only there; the rest it hears by signals.
    ``TARGETS_IN_FLIGHT`` bounds how many targets are out at once: ``start()`` alone has no back-pressure.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.limit = crawler.settings.getint("TARGETS_IN_FLIGHT")
        if self.limit < 1:
            raise NotConfigured("TARGETS_IN_FLIGHT must be at least 1")
        self.timeout = crawler.settings.getfloat("TARGET_TIMEOUT")
        self._out: dict[str, _Open] = {}
        self._further: deque[Target] = deque()
        self.pushed = 0
        """How many targets other targets led to."""
        self._changed = asyncio.Event()
        self._source: TargetSource | None = None
        self._broken: TargetsUnavailableError | None = None
        self.unfinished_stays = False
        """Whether what is out when the crawl ends has no outcome: the run is resumed later, and it has one then."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Accounting:
        accounting = cls(crawler)
        connect = crawler.signals.connect
        connect(accounting.item_scraped, signals.item_scraped)
        connect(accounting.item_dropped, signals.item_dropped)
        connect(accounting.item_error, signals.item_error)
        connect(accounting.spider_error, signals.spider_error)
        connect(accounting.request_dropped, signals.request_dropped)
        connect(accounting.spider_closed, signals.spider_closed)
        return accounting

    # The window: targets go out

    async def release(self, source: TargetSource) -> AsyncIterator[Target]:
        """Yields the source's targets, never more than the window holds, until all that it led to is settled.

        Raises:
            TargetsUnavailableError: the source broke off; said when all that it gave is settled.
        """
        self._source = source
        await source.open()
        incoming = self._incoming(source)
        exhausted = False
        while True:
            if len(self._out) >= self.limit or (exhausted and self._out and not self._further):
                await self._change()
                continue
            if self._further:
                candidate: Target | Rejected | None = self._further.popleft()
            elif exhausted:
                break
            else:
                candidate = await anext(incoming, None)
            if candidate is None:
                exhausted = True
                continue
            for target in self._admit(candidate):
                yield target
        if self._broken:
            raise self._broken

    async def _incoming(self, source: TargetSource) -> AsyncIterator[Target | Rejected]:
        try:
            async for candidate in source:
                yield candidate
        except TargetsUnavailableError as error:
            self._broken = error

    def push(self, target: Target) -> None:
        """Hands a further target (the next page, a slice) back; it goes out before the source's next one."""
        self.pushed += 1
        parent = self._out.get(target.parent or "")
        if parent:
            parent.further.append(target)
        if self._source is not None and self._source.keeps_further:
            return
        self._further.append(target)
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _admit(self, candidate: Target | Rejected) -> list[Target]:
        now = time.monotonic()
        if isinstance(candidate, Rejected):
            self._report(Outcome(candidate, None, candidate.error, 0))
            return []
        if candidate.id in self._out:
            error = InvalidRequest(f"Another target with the id {candidate.id!r} is still out: ids must differ.")
            self._report(Outcome(candidate, None, error, 0))
            return []
        loop = asyncio.get_running_loop()
        deadline = candidate.deadline
        if deadline is None and self.timeout:
            deadline = loop.time() + self.timeout
        timer = loop.call_at(deadline, self._expire, candidate) if deadline else None
        self._out[candidate.id] = _Open(candidate, now, timer)
        return [candidate]

    # The outcomes: exactly one for each

    def settle(
        self,
        target: Target,
        data: dict[str, Any] | None = None,
        error: ScrapeError | None = None,
        fetched_at: datetime | None = None,
    ) -> None:
        """Records how a target ended, if it is not known yet."""
        entry = self._out.get(target.id)
        if entry is None or entry.target is not target:
            return
        del self._out[target.id]
        if entry.timer:
            entry.timer.cancel()
        duration = round((time.monotonic() - entry.since) * 1000)
        self._report(Outcome(target, data, error, duration, fetched_at, tuple(entry.further)))
        self._changed.set()

    def _report(self, outcome: Outcome) -> None:
        assert self._source is not None
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(f"targets/{outcome.code}")
        self.crawler.signals.send_catch_log(target_settled, outcome=outcome, spider=self.crawler.spider)
        self._source.settled(outcome)
        logger.debug("target_settled", id=outcome.target.id, code=outcome.code, duration_ms=outcome.duration_ms)

    def _expire(self, target: Target) -> None:
        self.settle(target, error=UpstreamTimeout("The deadline passed before the platform had answered."))

    def failed(self, failure: Failure) -> None:
        """The errback of every target's request."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy's scraper
        error = as_scrape_error(failure.value)
        if type(error) is ServiceError:
            # Where a callback or a pipeline breaks Scrapy logs the traceback; nobody else does for the way up to them.
            logger.error("download_broke", url=request.url, exc_info=failure.value)
        self.settle(request.meta["target"], error=error)

    # Spider middleware

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Passes on what is not too late, and settles a target whose callback ended with nothing."""
        items = 0
        async for item in result:
            items += 1
            if isinstance(item, Record) and item.target.id not in self._out:
                continue  # it has its outcome already, the deadline's: no feed may show it as well
            yield item
        if not items:
            self._settle_response(
                response, error=ExtractionFailed("Nothing was found in the answer.", reason="no_item")
            )

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Any] | None:
        """Takes typed errors as outcomes; a bug goes on to Scrapy's log with its traceback and comes back as signal."""
        if not isinstance(exception, ScrapeError):
            return None
        self._settle_response(response, error=exception)
        return []

    # Signals

    def item_scraped(self, item: object, response: Response) -> None:
        """The pipelines let the item through."""
        if isinstance(item, Record):
            self.settle(item.target, data=item.data, fetched_at=item.fetched_at)

    def item_dropped(self, item: object, exception: Exception, response: Response) -> None:
        """A pipeline dropped the item."""
        if isinstance(item, Record):
            self.settle(item.target, error=as_scrape_error(exception))

    def item_error(self, item: object, failure: Failure, response: Response) -> None:
        """A pipeline broke on the item."""
        if isinstance(item, Record):
            self.settle(item.target, error=as_scrape_error(failure.value))

    def spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        """A callback raised what is no typed error."""
        if response is not None:
            self._settle_response(response, error=as_scrape_error(failure.value))

    def request_dropped(self, request: Request) -> None:
        """The scheduler refused the request."""
        target = request.meta.get("target")
        if target is not None:
            self.settle(target, error=ServiceError("The request could not be scheduled."))

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """The crawler ends: whatever is still out has no other chance of an outcome."""
        if self.unfinished_stays:
            if self._out or self._further:
                logger.info("targets_left", out=len(self._out), waiting=len(self._further))
            return
        for entry in list(self._out.values()):
            self.settle(entry.target, error=ShuttingDown(f"The crawl ended ({reason}) before the target was done."))
        while self._further:
            left = self._further.popleft()
            self._report(Outcome(left, None, ShuttingDown(f"The crawl ended ({reason}) before its turn came."), 0))

    def _settle_response(self, response: Response | Failure, error: ScrapeError) -> None:
        request: Request | None = response.request  # type: ignore[union-attr]  # Scrapy sets it on failures too
        target = request.meta.get("target") if request else None
        if target is not None:
            self.settle(target, error=error)


def as_scrape_error(error: BaseException | None) -> ScrapeError:
    """Any exception as a typed one: downloads that failed are the platform's, the rest is a bug of ours."""
    if isinstance(error, ScrapeError):
        return error
    if isinstance(error, IgnoreRequest):
        if "robots.txt" in str(error):  # all that Scrapy tells of it
            return BlockedByPolicy("The request is forbidden by this service's policy (robots.txt).")
        return UpstreamError(f"The download was given up: {error}.", reason="given_up")  # redirects in a circle, a bomb
    if isinstance(error, DownloadTimeoutError):
        return UpstreamTimeout("The platform did not answer in time.", reason="timeout")
    if isinstance(error, DOWNLOAD_FAILURES):
        return UpstreamError(f"The download failed: {type(error).__name__}.", reason="connection")
    return ServiceError("Something broke on our side; the log has it under this request's id.")
