"""The target tracker: exactly one outcome for each target.

The first of {item, typed error, dropped item, exception, callback without result, deadline, crawler closed} is the
target's outcome. Later events of the target are ignored. No other component decides how a target ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawler.errors import (
    InvalidRequest,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamTimeout,
)
from crawler.targets.closing import crawler_closing
from crawler.targets.exceptions import as_scrape_error
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import FailedSource, InvalidTarget, Outcome, Record, Target

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

logger = structlog.get_logger(__name__)

target_completed = object()
"""Signal: an outcome is known. Arguments: ``outcome``, ``spider``."""


@dataclass(slots=True)
class _InFlight:
    """A target in flight: when it was released, the timer of its deadline, and when it was read."""

    target: Target
    since: float
    timer: asyncio.TimerHandle | None
    fetched_at: datetime | None = None
    followups: list[Target] = field(default_factory=list)
    warnings: list[FailedSource] = field(default_factory=list)
    note: dict[str, Any] | None = None


_current: ContextVar[_InFlight] = ContextVar("in_progress")
"""The target whose callback or pipelines are running. Scrapy runs them in a separate task for each target."""


def record_in_progress(item: Any) -> Record:
    """Return an item of any class as the record of the target in progress.

    Raises:
        ServiceError: the object is not an item.
    """
    return item if isinstance(item, Record) else _as_record(item, _current.get(), is_line=False)


def _as_record(item: Any, entry: _InFlight, *, is_line: bool) -> Record:
    if not ItemAdapter.is_item(item):
        kind = type(item).__name__
        raise ServiceError(f"An item pipeline returned {kind}, which is not an item.", reason="not_an_item")
    fetched_at = entry.fetched_at or datetime.now(UTC)
    return entry.target.scraper.item_class(ItemAdapter(item).asdict(), entry.target, fetched_at, is_line=is_line)


class TargetTracker:
    """Tracks the targets in flight and decides how each one ends.

    A spider middleware, because only middlewares observe the end of a callback. All other events are signals.
    ``TARGETS_IN_FLIGHT`` limits the targets in flight: ``start()`` alone has no back-pressure.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.limit = crawler.settings.getint("TARGETS_IN_FLIGHT")
        if self.limit < 1:
            raise NotConfigured(f"TARGETS_IN_FLIGHT must be at least 1, not {self.limit}")
        self.timeout = crawler.settings.getfloat("TARGET_TIMEOUT")
        self._in_flight: dict[str, _InFlight] = {}
        self._followups: deque[Target] = deque()
        self._unconfirmed: set[asyncio.Task[None]] = set()
        """Outcomes that wait for the source to confirm that this run still owns the target."""
        self.pushed = 0
        """Number of follow-up targets."""
        self._changed = asyncio.Event()
        self._source: TargetSource | None = None
        self._source_error: TargetsUnavailableError | None = None
        self.leave_unfinished = False
        """Whether targets in flight get no outcome when the crawl ends, because another run will finish them."""
        self._interrupted = 0
        """Number of targets interrupted by closing that another run will finish."""
        self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TargetTracker:
        tracker = cls(crawler)
        connect = crawler.signals.connect
        connect(tracker.item_scraped, signals.item_scraped)
        connect(tracker.item_dropped, signals.item_dropped)
        connect(tracker.item_error, signals.item_error)
        connect(tracker.spider_error, signals.spider_error)
        connect(tracker.request_dropped, signals.request_dropped)
        connect(tracker.crawler_closing, crawler_closing)
        connect(tracker.spider_closed, signals.spider_closed)
        return tracker

    # Releasing targets

    async def release(self, source: TargetSource) -> AsyncIterator[Target]:
        """Yield the source's targets and their follow-ups, with at most ``TARGETS_IN_FLIGHT`` at a time.

        Ends when all of them are completed, or when the crawler starts to close.

        Raises:
            TargetsUnavailableError: the source failed. Raised after its earlier targets are completed.
        """
        self._source = source
        await source.open()
        incoming = self._incoming(source)
        exhausted = False
        while not self._closing:
            busy = self._in_flight or self._unconfirmed
            if len(self._in_flight) >= self.limit or (exhausted and busy and not self._followups):
                await self._change()
                continue
            if self._followups:
                candidate: Target | InvalidTarget | None = self._followups.popleft()
            elif exhausted:
                break
            else:
                candidate = await anext(incoming, None)
            if candidate is None:
                exhausted = True
                continue
            for target in self._accept(candidate):
                yield target
        if self._source_error:
            raise self._source_error

    async def _incoming(self, source: TargetSource) -> AsyncIterator[Target | InvalidTarget]:
        try:
            async for candidate in source:
                yield candidate
        except TargetsUnavailableError as error:
            self._source_error = error

    def push(self, target: Target) -> None:
        """Add a follow-up target (the next page, a slice). It is released before the source's next target.

        It waits for its parent's outcome: if a journal contained a follow-up without its parent, a resumed run would
        scrape the parent again and add the follow-up twice.
        """
        self.pushed += 1
        parent = self._in_flight.get(target.parent or "")
        if parent:
            parent.followups.append(target)
        else:
            self._release([target])

    def _release(self, followups: list[Target]) -> None:
        if self._source is None or not self._source.keeps_followups:
            self._followups.extend(followups)
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _accept(self, candidate: Target | InvalidTarget) -> list[Target]:
        now = time.monotonic()
        if isinstance(candidate, InvalidTarget):
            self._report(Outcome(candidate, None, candidate.error, 0))
            return []
        if candidate.id in self._in_flight:
            error = InvalidRequest(f"Duplicate target id {candidate.id!r}: a target with this id is still in progress.")
            self._report(Outcome(candidate, None, error, 0))
            return []
        loop = asyncio.get_running_loop()
        deadline = candidate.deadline
        if deadline is None and self.timeout:
            deadline = loop.time() + self.timeout
        timer = loop.call_at(deadline, self._expire, candidate) if deadline else None
        self._in_flight[candidate.id] = _InFlight(candidate, now, timer)
        return [candidate]

    # Outcomes

    def complete(
        self,
        target: Target,
        record: Record | None = None,
        error: ScrapeError | None = None,
    ) -> None:
        """Record how a target ended. Ignored if the target already has an outcome."""
        entry = self._in_flight.get(target.id)
        if entry is None or entry.target is not target:
            return
        del self._in_flight[target.id]
        if entry.timer:
            entry.timer.cancel()
        if self.leave_unfinished and isinstance(error, ShuttingDown):
            self._interrupted += 1
            return
        duration = round((time.monotonic() - entry.since) * 1000)
        followups, warnings = tuple(entry.followups), tuple(entry.warnings)
        self._report(Outcome(target, record, error, duration, followups, warnings, entry.note))
        self._release(entry.followups)

    def enter(self, target: Target) -> None:
        """Bind the target to the task that runs its callback or errback and, after it, its pipelines."""
        entry = self._in_flight.get(target.id)
        if entry is not None:
            _current.set(entry)

    def warn(self, target: Target, source: str, error: ScrapeError) -> None:
        """Add a failed optional source to the target's outcome."""
        entry = self._in_flight.get(target.id)
        if entry is not None:
            entry.warnings.append(FailedSource(source, error.code, error.reason))

    def note(self, target: Target, note: dict[str, Any]) -> None:
        """Add a note to the target's outcome, which the spider gets back if the run is resumed."""
        entry = self._in_flight.get(target.id)
        if entry is not None:
            entry.note = note

    def hand_over(self, record: Record) -> bool:
        """Note that a record is passed to the pipelines. Its target no longer times out.

        Return False if the target already has an outcome (its deadline has passed): no feed may contain the record.
        """
        entry = self._in_flight.get(record.target.id)
        if entry is None:
            return False
        if entry.timer:
            entry.timer.cancel()
        entry.fetched_at = record.fetched_at
        return True

    def _report(self, outcome: Outcome) -> None:
        assert self._source is not None
        if self._source.owns(outcome.target):
            self._announce(outcome)
            return
        task = asyncio.create_task(self._report_if_leased(outcome))
        self._unconfirmed.add(task)
        task.add_done_callback(self._confirmed)

    async def _report_if_leased(self, outcome: Outcome) -> None:
        assert self._source is not None
        if await self._source.confirm(outcome.target):
            self._announce(outcome)
        else:
            logger.info("target_lease_lost", id=outcome.target.id, code=outcome.code)

    def _confirmed(self, task: asyncio.Task[None]) -> None:
        self._unconfirmed.discard(task)
        self._changed.set()

    def _announce(self, outcome: Outcome) -> None:
        assert self._source is not None
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(f"targets/{outcome.code}")
        self.crawler.signals.send_catch_log(target_completed, outcome=outcome, spider=self.crawler.spider)
        self._source.completed(outcome)
        logger.debug("target_completed", id=outcome.target.id, code=outcome.code, duration_ms=outcome.duration_ms)

    def _expire(self, target: Target) -> None:
        self.complete(target, error=UpstreamTimeout("The deadline passed before the platform had answered."))

    # Spider middleware

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Complete a target whose item was dropped by another spider middleware."""
        items = 0
        async for item in result:
            items += 1
            yield item
        if not items:
            self._complete_with_response(
                response, error=ServiceError("A spider middleware dropped the item.", reason="no_item")
            )

    # Signals

    def item_scraped(self, item: object, response: Response) -> None:
        """The pipelines returned an item of any class: the target's data."""
        entry = self._entry(response)
        if entry is None:
            return
        if isinstance(item, Record):
            self.complete(entry.target, record=item)
            return
        try:
            record = _as_record(item, entry, is_line=entry.target.batch)
        except ServiceError as error:
            self.complete(entry.target, error=error)
        else:
            self.complete(entry.target, record=record)

    def item_dropped(self, item: object, exception: Exception, response: Response) -> None:
        """A pipeline dropped the item."""
        self._complete_with_response(response, error=as_scrape_error(exception))

    def item_error(self, item: object, failure: Failure, response: Response) -> None:
        """A pipeline raised an exception."""
        self._complete_with_response(response, error=as_scrape_error(failure.value))

    def spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        """A callback raised an exception that is not a typed error."""
        if response is not None:
            self._complete_with_response(response, error=as_scrape_error(failure.value))

    def request_dropped(self, request: Request) -> None:
        """The scheduler refused the request."""
        target = request.meta.get("target")
        if target is not None:
            self.complete(target, error=ServiceError("The request could not be scheduled."))

    def crawler_closing(self) -> None:
        """The crawler starts to close: ``release()`` ends."""
        self._closing = True
        self._changed.set()

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """The crawler has closed: complete all targets that are still in flight."""
        for task in self._unconfirmed:
            task.cancel()
        if self.leave_unfinished:
            in_flight = len(self._in_flight) + self._interrupted
            if in_flight or self._followups:
                logger.info("targets_unfinished", in_flight=in_flight, waiting=len(self._followups))
            return
        for entry in list(self._in_flight.values()):
            self.complete(entry.target, error=ShuttingDown(f"The crawl ended ({reason}) before the target was done."))
        while self._followups:
            error = ShuttingDown(f"The crawl ended ({reason}) before the target was started.")
            self._report(Outcome(self._followups.popleft(), None, error, 0))

    def _entry(self, response: Response | Failure | None) -> _InFlight | None:
        target = target_of(response)
        return None if target is None else self._in_flight.get(target.id)

    def _complete_with_response(self, response: Response | Failure, error: ScrapeError) -> None:
        target = target_of(response)
        if target is not None:
            self.complete(target, error=error)


def target_of(response: Response | Failure | None) -> Target | None:
    """Return the target of a response or a failed download, or None for another spider's request."""
    request: Request | None = getattr(response, "request", None)  # Scrapy sets it on failures, too
    return request.meta.get("target") if request else None
