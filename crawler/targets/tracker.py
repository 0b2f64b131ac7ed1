"""The target tracker, which ensures that each target has exactly one outcome.

The first of these events determines the outcome of a target: an item, a typed error, a dropped item, an exception, a
callback without an item, a request that the scheduler drops, the deadline, the end of the crawl. Later events of the
same target are ignored. No other component sets an outcome. Exceptions of Scrapy, Twisted and item pipelines are
converted to typed errors.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count
from typing import Any, Self

import structlog
from itemadapter import ItemAdapter
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    DropItem,
    IgnoreRequest,
    NotConfigured,
    ResponseDataLossError,
)
from scrapy.http import Response
from structlog.contextvars import bind_contextvars
from twisted.internet.defer import AlreadyCalledError
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

from crawler.errors import (
    DEADLINE,
    BlockedByPolicy,
    InvalidRequest,
    ItemDropped,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamError,
    UpstreamTimeout,
)
from crawler.targets.reporter import OutcomeReporter
from crawler.targets.shutdown import crawler_closing
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, Record, Target
from crawler.targets.warning import OutcomeWarning, add_warning

logger = structlog.get_logger(__name__)

target_failing = object()
"""Signal: a target is about to get an error as its outcome. Arguments: ``target``, ``error``, ``has_note``, ``spider``.

Receivers may push follow-ups and add a note, which become part of the outcome. If a receiver returns True, the target
ends without an error and without data, because the failure is part of another target's outcome.
"""


_current: ContextVar[Target] = ContextVar("in_progress")
"""The target whose callback or pipelines run in the current task. Scrapy runs them in a separate task per target."""


def record_in_progress(item: Any) -> Record:
    """Convert an item of any class to a record of the target whose callback or pipelines are running.

    Raises:
        ServiceError: the object is not an item.
    """
    return item if isinstance(item, Record) else _as_record(item, _current.get(), is_line=False)


def _as_record(item: Any, target: Target, *, is_line: bool) -> Record:
    if not ItemAdapter.is_item(item):
        kind = type(item).__name__
        raise ServiceError(f"An item pipeline returned {kind}, which is not an item.", reason="not_an_item")
    data, release = ItemAdapter(item).asdict(), target.release
    fetched_at = release.fetched_at or datetime.now(UTC)
    return target.scraper.item(data, target, fetched_at, tuple(release.warnings), is_line=is_line)


class TargetTracker:
    """Tracks the targets in flight and sets their outcomes.

    The tracker is a spider middleware, because only a middleware is called when a callback ends. All other events of
    Scrapy reach the tracker as signals. The tracker limits the targets in flight to ``TARGETS_IN_FLIGHT``, or to the
    source's own limit, because Scrapy would take targets from ``start()`` without waiting for earlier targets.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._limit = crawler.settings.getint("TARGETS_IN_FLIGHT")
        if self._limit < 1:
            raise NotConfigured(f"TARGETS_IN_FLIGHT must be at least 1, not {self._limit}")
        self.timeout = crawler.settings.getfloat("TARGET_TIMEOUT")
        self._in_flight: dict[str, Target] = {}
        self._followups: deque[Target] = deque()
        self._postponed_until = 0.0
        """The latest time at which a postponed target may be requested again, by the event loop's clock."""
        self.pushed = 0
        """Number of follow-up targets that spiders have pushed."""
        self._changed = asyncio.Event()
        self._source = TargetSource()
        self._reporter = OutcomeReporter(crawler, self._changed.set)
        self.leave_unfinished = False
        """Whether targets in flight get no outcome when the crawl ends, because a later run or worker finishes them."""
        self._interrupted = 0
        """Number of targets without an outcome because the crawl ended. A later run or worker finishes them."""
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
        """Yield the source's targets and their follow-ups.

        The source decides by ``has_room`` how many are in flight at the same time. A higher limit takes effect when the
        next target is completed. The iteration ends when all targets are completed, or when the crawler starts to
        close.

        Raises:
            TargetsUnavailableError: the source failed. This is raised after its earlier targets are completed.
        """
        self._source = self._reporter.source = source
        await source.open()
        incoming = aiter(source)
        exhausted = False
        failure: TargetsUnavailableError | None = None
        while not self._closing:
            busy = self._in_flight or self._reporter.is_pending
            is_full = not source.has_room(self._busy, self._limit)
            if is_full or (exhausted and busy and not self._followups):
                self._changed.clear()
                await self._changed.wait()
                continue
            if self._followups:
                candidate: Target | InvalidTarget | None = self._followups.popleft()
            elif exhausted:
                break
            else:
                try:
                    candidate = await anext(incoming, None)
                except TargetsUnavailableError as error:
                    candidate, failure = None, error
            if candidate is None:
                exhausted = True
                continue
            for target in self._accept(candidate):
                yield target
        if failure:
            raise failure

    @property
    def _busy(self) -> int:
        """The number of targets in flight that do not wait for the end of a rate limit."""
        now = asyncio.get_running_loop().time()
        if now >= self._postponed_until:
            return len(self._in_flight)
        return sum(target.release.not_before <= now for target in self._in_flight.values())

    def push(self, target: Target) -> None:
        """Add a follow-up target, which is released when its parent has an outcome, before the source's next target.

        In a job, the source stores the follow-up and its parent's outcome in one transaction, and yields the follow-up
        later.
        """
        self.pushed += 1
        parent = self._in_flight.get(target.parent or "")
        if parent:
            parent.release.followups.append(target)
        else:
            self._release((target,))
            self._changed.set()

    def _release(self, followups: Iterable[Target]) -> None:
        if not self._source.keeps_followups:
            self._followups.extend(followups)

    def _accept(self, candidate: Target | InvalidTarget) -> list[Target]:
        if isinstance(candidate, InvalidTarget):
            self._reporter.report(Outcome(candidate, None, candidate.error, 0))
            return []
        if candidate.id in self._in_flight:
            error = InvalidRequest(f"Duplicate target id {candidate.id!r}: a target with this id is still in progress.")
            self._reporter.report(Outcome(candidate, None, error, 0))
            return []
        loop, release = asyncio.get_running_loop(), candidate.release
        deadline = candidate.deadline
        if deadline is None and self.timeout:
            deadline = loop.time() + self.timeout
        release.since = time.monotonic()
        release.timer = loop.call_at(deadline, self._expire, candidate) if deadline else None
        self._in_flight[candidate.id] = candidate
        return [candidate]

    # Outcomes

    def complete(
        self,
        target: Target,
        record: Record | None = None,
        error: ScrapeError | None = None,
    ) -> None:
        """Set the outcome of a target: its record or its error. Ignored unless the target is in flight."""
        if self._in_flight.get(target.id) is not target:
            return
        release = target.release
        if isinstance(error, ShuttingDown) and release.limit and not (release.is_sent or self.leave_unfinished):
            error = release.limit  # the crawl has ended before the target was requested again
        if error is not None:
            arguments = {"target": target, "error": error, "has_note": release.note is not None}
            answers = self.crawler.signals.send_catch_log(target_failing, spider=self.crawler.spider, **arguments)
            # The frames of its traceback refer to the page and to the error: only garbage collection would free them.
            error.with_traceback(None)
            error = None if any(answer is True for _, answer in answers) else error
        self._end(target)
        if self.leave_unfinished and isinstance(error, ShuttingDown):
            self._interrupted += 1
            return
        duration = round((time.monotonic() - release.since) * 1000)
        followups, warnings = tuple(release.followups), tuple(release.warnings)
        self._reporter.report(
            Outcome(target, record, error, duration, followups, warnings, release.note, release.new_entries)
        )
        if followups:
            self._release(followups)

    def abandon(self, target_id: str) -> None:
        """Drop a target in flight without an outcome, because another worker may have taken it."""
        if target := self._in_flight.get(target_id):
            self._end(target)

    def _end(self, target: Target) -> None:
        del self._in_flight[target.id]
        target.release.end()
        if target.release.timer:
            target.release.timer.cancel()
        self._changed.set()

    def hand_back(self, target: Target) -> bool:
        """Release a target again, because its egress has failed: ``target.release.successor`` starts on another lane.

        Return False if the target is not released again, because it has an outcome or data, because the platform has
        refused a request of it, or because it was released again before.
        """
        release = target.release
        if release.is_refused or release.limit is not None or release.failed is not None:
            return False
        return self._release_again(target, failed=release.lane, is_sent=release.is_sent)

    def postpone(self, target: Target, limit: ScrapeError, seconds: float) -> bool:
        """Release a target again in ``seconds``, because it met a rate limit: ``target.release.successor`` starts then.

        Return False if the target is not released again, because it is a call, because its timeout would pass, because
        it has an outcome, or because it met a rate limit before.
        """
        release, at = target.release, asyncio.get_running_loop().time() + seconds
        if target.deadline is not None or release.limit is not None or (release.timer and release.timer.when() <= at):
            return False
        self._postponed_until = max(self._postponed_until, at)
        return self._release_again(target, failed=release.failed, limit=limit, not_before=at)

    def wait(self, target: Target) -> bool:
        """Release a target again at once, because circuit breakers held all of its requests back.

        Its first request waits, because by now the breakers of all its sources are open. Return False if the target is
        not released again, because it is a call, because a request was sent for it, or because it has an outcome.
        """
        release = target.release
        if target.deadline is not None or release.is_sent:
            return False
        return self._release_again(target, failed=release.failed, limit=release.limit)

    def _release_again(self, target: Target, **state: Any) -> bool:
        """Release a target again, unless it has an outcome or data. ``state``: attributes of the new release.

        The warnings, follow-ups and note of the target are dropped, and so are its requests that are still in flight.
        """
        release = target.release
        if self._in_flight.get(target.id) is not target or release.fetched_at is not None:
            return False
        release.end()
        self.pushed -= len(release.followups)
        release.successor = self._in_flight[target.id] = again = replace(target)
        for name, value in {**state, "since": release.since, "timer": release.timer}.items():
            setattr(again.release, name, value)
        self._changed.set()
        return True

    def enter(self, target: Target) -> None:
        """Bind the target, and its id for log lines, to the task of its callback or errback and of its pipelines."""
        bind_contextvars(request_id=target.id)
        _current.set(target)

    def warn(self, target: Target, warning: OutcomeWarning) -> None:
        """Add a warning to the target's outcome, once for each cause.

        Ignored after ``hand_over``: from then on, pipelines may write the record with the warnings that it has.
        """
        if target.release.fetched_at is None:
            add_warning(target.release.warnings, warning)

    def note(self, target: Target, note: dict[str, Any]) -> None:
        """Add a note to the target's outcome.

        The next worker that takes a target of the same ``root`` from the job restores the spider's state from the note.
        """
        target.release.note = note

    def hand_over(self, record: Record, new_entries: frozenset[str] | None = None) -> bool:
        """Stop the timer of a target whose record is about to be passed to the pipelines.

        ``new_entries``: the ids of the entries that ``-a since=`` selects.
        Return False if the target already has an outcome, such as a timeout. The record must then be discarded.
        """
        release = record.target.release
        if self._in_flight.get(record.target.id) is not record.target:
            return False
        if release.timer:
            release.timer.cancel()
        release.fetched_at, release.new_entries = record.fetched_at, new_entries
        record.warnings = tuple(release.warnings)
        return True

    def _expire(self, target: Target) -> None:
        current = self._in_flight.get(target.id)
        if current is not None:  # another object if the target was released again
            reason = DEADLINE if current.release.is_sent else ""
            error = UpstreamTimeout("The deadline passed before the platform responded.", reason=reason)
            self.complete(current, error=error)

    # Spider middleware

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Complete the target with an error if another spider middleware has dropped its item."""
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
        """Complete a target with the item that the last pipeline returned. The item may have any class."""
        target = target_of(response)
        if target is None:
            return
        try:
            record = item if isinstance(item, Record) else _as_record(item, target, is_line=target.batch)
        except ServiceError as error:
            self.complete(target, error=error)
        else:
            self.complete(target, record=record)

    def item_dropped(self, item: object, exception: Exception, response: Response) -> None:
        """Complete a target with an error, because a pipeline has dropped its item."""
        self._complete_with_response(response, error=as_scrape_error(exception))

    def item_error(self, item: object, failure: Failure, response: Response) -> None:
        """Complete a target with an error, because a pipeline has raised an exception."""
        self._complete_with_response(response, error=as_scrape_error(failure.value))

    def spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        """Complete a target with an error, because its callback has raised an exception that is not a typed error."""
        if response is not None:
            self._complete_with_response(response, error=as_scrape_error(failure.value))

    def request_dropped(self, request: Request) -> None:
        """Complete a target with an error, because the scheduler has dropped its request."""
        target = request.meta.get("target")
        if target is not None:
            self.complete(target, error=ServiceError("The request could not be scheduled."))

    def crawler_closing(self) -> None:
        """Make ``release()`` end, because the crawler starts to close."""
        self._closing = True
        self._changed.set()

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """End all targets that are in flight or waiting with an error, unless ``leave_unfinished``."""
        self._reporter.close()
        self._end_in_flight(reason)
        self._reporter.flush()

    def _end_in_flight(self, reason: str) -> None:
        if self.leave_unfinished:
            in_flight = len(self._in_flight) + self._interrupted
            if in_flight or self._followups:
                logger.info("targets_unfinished", in_flight=in_flight, waiting=len(self._followups))
            return
        for target in list(self._in_flight.values()):
            self.complete(target, error=ShuttingDown(f"The crawl ended ({reason}) before the target was done."))
        while self._followups:
            error = ShuttingDown(f"The crawl ended ({reason}) before the target was started.")
            self._reporter.report(Outcome(self._followups.popleft(), None, error, 0))

    def _complete_with_response(self, response: Response | Failure, error: ScrapeError) -> None:
        target = target_of(response)
        if target is not None:
            self.complete(target, error=error)


def target_of(response: Response | Failure | None) -> Target | None:
    """Return the target of a response or of a failed download, or None if its request belongs to no target."""
    request: Request | None = getattr(response, "request", None)  # Scrapy sets it on failures, too
    return request.meta.get("target") if request else None


class TargetScheduler(BaseScheduler):
    """Keeps the requests of targets in memory, sorted by priority and then by the order in which they were added.

    Scrapy's scheduler has queues on disk, a queue for each download slot and a filter for duplicates. Targets need none
    of these: the tracker releases few at a time, the throttle chooses what is downloaded, and the same page may be
    requested for several targets. The stats are those of Scrapy's scheduler, set when the crawler closes.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._waiting: list[tuple[int, int, Request]] = []
        self._numbers = count()
        self._enqueued = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def has_pending_requests(self) -> bool:
        """Whether a request is waiting."""
        return bool(self._waiting)

    def enqueue_request(self, request: Request) -> bool:
        """Add a request. Always return True: no request is dropped as a duplicate."""
        heappush(self._waiting, (-request.priority, next(self._numbers), request))
        self._enqueued += 1
        return True

    def next_request(self) -> Request | None:
        """Remove and return the next request, or return None."""
        return heappop(self._waiting)[2] if self._waiting else None

    def close(self, reason: str) -> None:
        """Set the stats of the enqueued and dequeued requests."""
        assert self._crawler.stats is not None
        for name, number in (("enqueued", self._enqueued), ("dequeued", self._enqueued - len(self._waiting))):
            self._crawler.stats.set_value(f"scheduler/{name}", number)
            self._crawler.stats.set_value(f"scheduler/{name}/memory", number)


CAUSES: dict[type[Exception], str] = {
    CannotResolveHostError: "The platform's host name cannot be resolved: check the network and its DNS servers",
    DownloadConnectionRefusedError: "The platform's server refused the connection",
    ConnectError: "No connection to the platform's server: check the network and its firewall",
    ConnectionDone: "The connection was closed before the response was complete",
    ConnectionLost: "The connection was lost before the response was complete",
    ResponseDataLossError: "The connection was lost before the response was complete",
    DownloadCancelledError: "The download was cancelled, for example because it is larger than DOWNLOAD_MAXSIZE",
    DownloadFailedError: "The download failed before the response was complete",
    OSError: "The download failed: the system reported a network error",
}
"""Exception of a download -> the message for it. Subclasses precede their bases."""
DOWNLOAD_FAILURES: tuple[type[Exception], ...] = (
    ScrapeError,
    IgnoreRequest,
    DownloadTimeoutError,
    AlreadyCalledError,
    *CAUSES,
)
"""The exceptions of downloads that become the error of a target.

Scrapy's engine raises ``AlreadyCalledError`` if it was closed between a response and its redirect or retry.
"""


class LimitReached(BlockedByPolicy):
    """Raised when a crawl has reached a limit that its user has set.

    In a job, such a target is paused until the limit is raised.
    """


def as_scrape_error(error: BaseException | None) -> ScrapeError:
    """Convert an exception to a typed error.

    A failed download becomes an upstream error (or the error of a policy or of the end of the crawl), a dropped item
    ``ItemDropped``, and any unknown exception ``ServiceError``.
    """
    if isinstance(error, ScrapeError):
        return error
    if isinstance(error, DropItem):
        return ItemDropped(f"The item was dropped: {error}", reason="dropped")
    if isinstance(error, DOWNLOAD_FAILURES):
        return _download_error(error)
    return ServiceError("Internal error. The log has its details under this request's id.")


def _download_error(error: Exception) -> ScrapeError:
    if isinstance(error, AlreadyCalledError):
        return ShuttingDown("The crawl ended before the target was done.")
    if isinstance(error, DownloadTimeoutError):
        return UpstreamTimeout("The platform did not respond in time.", reason="timeout")
    if not isinstance(error, IgnoreRequest):
        happened = next(text for kind, text in CAUSES.items() if isinstance(error, kind))
        reason = "cancelled" if isinstance(error, DownloadCancelledError) else "connection"
        return UpstreamError(f"{happened}.", reason=reason)
    if "robots.txt" in str(error):  # Scrapy provides no other detail of the failure
        return BlockedByPolicy("The request is forbidden by this service's policy (robots.txt).")
    return UpstreamError(f"The download was given up: {error}.", reason="given_up")  # decompression bomb
