"""The tracker: each target has exactly one outcome, for any sequence of events."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    DropItem,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from twisted.python.failure import Failure

from crawler.errors import ShuttingDown, TargetNotFound, UpstreamRateLimited, UpstreamTimeout
from crawler.reading.contract import Unread
from crawler.registry import scrapers
from crawler.targets.reporter import REPEATS_PER_TURN, outcomes_by_code
from crawler.targets.sources import QueueSource, TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, Record, ReleaseEnded, Target
from crawler.targets.tracker import CAUSES, TargetTracker, as_scrape_error
from crawler.targets.warning import OutcomeWarning

SCRAPER = scrapers()["retail-search-v4"]


def make_target(name: str, deadline: float | None = None) -> Target:
    return Target(name, SCRAPER, SCRAPER.params.model_validate({"query": "mustard"}), deadline=deadline)


@dataclass
class Source(TargetSource):
    """A source that yields given targets and records their outcomes."""

    targets: list[Target | InvalidTarget]
    outcomes: list[Outcome] = field(default_factory=list)

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        for each in self.targets:
            yield each

    def completed(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


def make_tracker(limit: int = 100) -> TargetTracker:
    crawler = Crawler(Spider, {"TARGETS_IN_FLIGHT": limit, "TARGET_TIMEOUT": 0})
    crawler.signals = SignalManager(crawler)
    crawler.stats = MemoryStatsCollector(crawler)
    return TargetTracker.from_crawler(crawler)


def request_of(target: Target) -> Request:
    return Request("http://127.0.0.1/", meta={"target": target})


def response_of(target: Target) -> Response:
    return Response("http://127.0.0.1/", request=request_of(target))


def record(target: Target) -> Record:
    return Record({"name": target.id}, target, datetime.now(UTC))


async def callback(*items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def nothing(tracker: TargetTracker, target: Target) -> None:
    async for _ in tracker.process_spider_output(response_of(target), callback()):
        pass


async def happen(tracker: TargetTracker, target: Target, event: str) -> None:
    """Report an event of a target to the tracker."""
    response = response_of(target)
    match event:
        case "item":
            tracker.item_scraped(record(target), response)
        case "dropped":
            tracker.item_dropped(record(target), DropItem("no"), response)
        case "item error":
            tracker.item_error(record(target), Failure(KeyError("x")), response)
        case "typed error":
            tracker.complete(target, error=TargetNotFound("gone"))
        case "bug":
            tracker.spider_error(Failure(KeyError("x")), response)
        case "download failed":
            tracker.complete(target, error=as_scrape_error(DownloadConnectionRefusedError()))
        case "nothing":
            await nothing(tracker, target)
        case "deadline":
            tracker._expire(target)  # normally called by the timer
        case "scheduler":
            tracker.request_dropped(request_of(target))


EVENTS = ["item", "dropped", "item error", "typed error", "bug", "download failed", "nothing", "deadline", "scheduler"]
CODES = {
    "item": "OK",
    "dropped": "ITEM_DROPPED",
    "item error": "INTERNAL_ERROR",
    "typed error": "TARGET_NOT_FOUND",
    "bug": "INTERNAL_ERROR",
    "download failed": "UPSTREAM_ERROR",
    "nothing": "INTERNAL_ERROR",
    "deadline": "UPSTREAM_TIMEOUT",
    "scheduler": "INTERNAL_ERROR",
}


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(EVENTS)), max_size=60), st.integers(1, 12))
def test_each_target_has_one_outcome_from_its_first_event(events: list[tuple[int, str]], limit: int) -> None:
    targets = [make_target(str(number)) for number in range(10)]
    source = Source(list(targets))

    async def scenario() -> tuple[dict[str, str], int]:
        tracker = make_tracker(limit)
        released: set[str] = set()
        max_in_flight = 0

        async def consume() -> None:
            nonlocal max_in_flight
            async for each in tracker.release(source):
                released.add(each.id)
                max_in_flight = max(max_in_flight, len(released - {outcome.target.id for outcome in source.outcomes}))

        task = asyncio.ensure_future(consume())
        await asyncio.sleep(0)
        expected: dict[str, str] = {}
        for number, event in events:
            target = targets[number]
            if target.id in released:
                expected.setdefault(target.id, CODES[event])
            await happen(tracker, target, event)
            await asyncio.sleep(0)
        task.cancel()
        tracker.spider_closed(Spider("x"), "shutdown")
        for each in released:
            expected.setdefault(each, "SHUTTING_DOWN")
        return expected, max_in_flight

    expected, max_in_flight = asyncio.run(scenario())
    assert {outcome.target.id: outcome.code for outcome in source.outcomes} == expected
    assert max(Counter(outcome.target.id for outcome in source.outcomes).values(), default=1) == 1
    assert max_in_flight <= limit


async def test_a_target_that_waits_for_the_end_of_a_rate_limit_leaves_its_place_to_the_next() -> None:
    tracker, source = make_tracker(limit=1), Source([make_target(name) for name in "abc"])
    released: list[Target] = []

    async def consume() -> None:
        async for each in tracker.release(source):
            released.append(each)  # noqa: PERF401  # they are compared while it runs

    async def names() -> str:
        for _ in range(9):
            await asyncio.sleep(0)
        return "".join(each.id for each in released)

    task = asyncio.ensure_future(consume())
    assert await names() == "a"
    assert tracker.postpone(released[0], UpstreamRateLimited("later"), 600)
    assert await names() == "ab", "only the second counts"
    task.cancel()


async def test_the_limit_of_the_source_may_change_during_the_run() -> None:
    @dataclass
    class Limited(Source):
        limit: int = 4

        def has_room(self, in_flight: int, usual: int) -> bool:
            return in_flight < self.limit

    tracker, source = make_tracker(limit=100), Limited([make_target(str(number)) for number in range(12)])
    released: set[str] = set()

    async def consume() -> None:
        async for each in tracker.release(source):
            released.add(each.id)

    task = asyncio.ensure_future(consume())
    numbers: list[int] = []
    for source.limit in (4, 1, 6):
        tracker.complete(source.targets[len(numbers)], error=TargetNotFound("gone"))  # type: ignore[arg-type]
        for _ in range(20):
            await asyncio.sleep(0)
        numbers.append(len(released) - len(source.outcomes))
    task.cancel()
    assert numbers == [4, 3, 6]


async def test_the_limit_of_a_queue_holds_although_the_queue_is_empty() -> None:
    tracker, source = make_tracker(limit=100), QueueSource(lambda _: None, lambda in_flight: in_flight < 1)
    released: dict[str, Target] = {}
    found: list[list[str]] = []

    async def consume() -> None:
        async for each in tracker.release(source):
            released[each.id] = each

    task = asyncio.ensure_future(consume())
    for name in ("1", "2", "3"):
        source.put(make_target(name))
        for _ in range(20):
            await asyncio.sleep(0)
        found.append(list(released))
    tracker.complete(released["1"], error=TargetNotFound("gone"))
    for _ in range(20):
        await asyncio.sleep(0)
    found.append(list(released))
    task.cancel()
    assert found == [["1"], ["1"], ["1"], ["1", "2"]]


async def test_a_target_that_is_released_again_drops_what_it_had() -> None:
    tracker, source = make_tracker(), Source([make_target("1")])
    restarted: list[bool] = []
    async for target in tracker.release(source):
        tracker.warn(target, OutcomeWarning.of_error("embed", UpstreamTimeout("slow")))
        tracker.note(target, {"seen": 1})
        tracker.push(target.followup(query="more"))
        restarted.append(tracker.hand_back(target))
        with pytest.raises(ReleaseEnded):  # its requests that still wait are not sent
            target.release.check()
        tracker.warn(target, OutcomeWarning.of_error("embed", UpstreamTimeout("of the first release")))
        tracker.complete(target, error=TargetNotFound("of the first release"))
        again = target.release.successor
        assert again is not None
        again.release.failed = object()  # type: ignore[assignment]  # a lane
        restarted.append(tracker.hand_back(again))
        tracker.complete(again, record=record(again))
    (outcome,) = source.outcomes
    assert (outcome.code, outcome.warnings, outcome.note, outcome.followups) == ("OK", (), None, ())
    assert restarted == [True, False], "once"
    assert tracker.pushed == 0


@pytest.mark.parametrize("change", ["outcome", "data", "refused", "second"])
async def test_a_target_is_not_released_again_after(change: str) -> None:
    tracker = make_tracker()
    async for target in tracker.release(Source([make_target("1")])):
        match change:
            case "outcome":
                tracker.complete(target, error=TargetNotFound("gone"))
            case "data":
                assert tracker.hand_over(record(target))
            case "refused":
                target.release.is_refused = True
            case "second":
                target.release.failed = object()  # type: ignore[assignment]  # a lane
        handed_back = tracker.hand_back(target)
        tracker.complete(target, error=TargetNotFound("gone"))
    assert not handed_back


async def test_a_target_that_was_released_again_keeps_its_deadline() -> None:
    loop = asyncio.get_running_loop()
    tracker, source = make_tracker(), Source([make_target("late", deadline=loop.time() + 0.01)])
    async for target in tracker.release(source):
        assert tracker.hand_back(target)
    (outcome,) = source.outcomes
    assert isinstance(outcome.error, UpstreamTimeout)


async def test_an_outcome_states_the_milliseconds_since_the_first_release(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("crawler.targets.tracker.time", SimpleNamespace(monotonic=lambda: now[0]))
    tracker, source = make_tracker(), Source([make_target("1")])
    async for target in tracker.release(source):
        now[0] += 1.25
        assert tracker.hand_back(target)
        now[0] += 0.25
        assert target.release.successor
        tracker.complete(target.release.successor, error=TargetNotFound("gone"))
    assert [outcome.duration_ms for outcome in source.outcomes] == [1_500]


async def test_a_target_times_out_at_its_deadline() -> None:
    loop = asyncio.get_running_loop()
    source = Source([make_target("late", deadline=loop.time() + 0.01)])
    async for _ in make_tracker().release(source):
        pass
    (outcome,) = source.outcomes
    assert isinstance(outcome.error, UpstreamTimeout)


@pytest.mark.parametrize(("is_sent", "upstream"), [(True, {"status": None, "reason": "deadline"}), (False, None)])
async def test_a_timeout_states_whether_a_request_was_sent(is_sent: bool, upstream: object) -> None:  # noqa: FBT001  # a table
    tracker = make_tracker()
    source = Source([make_target("late")])
    async for target in tracker.release(source):
        target.release.is_sent = is_sent
        tracker._expire(target)
    (outcome,) = source.outcomes
    assert outcome.error
    assert outcome.error.as_dict()["upstream"] == upstream


async def test_a_late_record_does_not_reach_the_feeds() -> None:
    tracker = make_tracker()
    async for each in tracker.release(Source([make_target("1")])):
        passed = [item for item in [record(each)] if tracker.hand_over(item)]
        tracker._expire(each)
        late = [item for item in [record(each)] if tracker.hand_over(item)]
    assert (len(passed), len(late)) == (1, 0)


def test_a_source_error_is_raised_after_its_targets_complete() -> None:
    class Broken(Source):
        async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
            for each in self.targets:
                yield each
            raise TargetsUnavailableError("torn")

    source = Broken([make_target("1"), make_target("2")])

    async def scenario() -> None:
        tracker = make_tracker()
        async for each in tracker.release(source):
            asyncio.get_running_loop().call_later(0.01, tracker.complete, each, record(each))

    with pytest.raises(TargetsUnavailableError, match="torn"):
        asyncio.run(scenario())
    assert [outcome.code for outcome in source.outcomes] == ["OK", "OK"]


async def test_followups_are_released_before_the_next_target() -> None:
    tracker = make_tracker()
    seen: list[str] = []
    async for each in tracker.release(Source([make_target("1"), make_target("2")])):
        seen.append(each.id)
        if len(each.id) < 3:
            tracker.push(make_target(each.id + "+"))
        tracker.complete(each, record(each))
    assert seen == ["1", "1+", "1++", "2", "2+", "2++"]


@dataclass
class Repeated(Source):
    """A source in which many rows repeat each target."""

    rows: int = 5 * REPEATS_PER_TURN

    def repeats_of(self, outcome: Outcome) -> Iterator[Outcome]:
        return (replace(outcome) for _ in range(self.rows))


async def test_many_repeats_of_one_target_are_reported_in_several_turns() -> None:
    source = Repeated([make_target("1"), make_target("2")])
    per_turn: list[int] = []

    async def watch() -> None:
        while True:
            before = len(source.outcomes)
            await asyncio.sleep(0)
            per_turn.append(len(source.outcomes) - before)

    watching = asyncio.create_task(watch())
    tracker = make_tracker()
    async for each in tracker.release(source):
        tracker.complete(each, record(each))
    watching.cancel()
    assert len(source.outcomes) == 2 * (1 + source.rows)
    assert max(per_turn) <= 2 * (1 + REPEATS_PER_TURN)


async def test_repeats_are_reported_when_the_crawl_ends() -> None:
    source = Repeated([make_target("1"), make_target("2")])

    tracker = make_tracker()
    async for each in tracker.release(source):
        if each.id == "2":
            break
        tracker.complete(each, record(each))
    assert len(source.outcomes) < source.rows
    tracker.spider_closed(Spider("x"), "shutdown")
    assert Counter(outcome.code for outcome in source.outcomes) == {
        "OK": 1 + source.rows,
        "SHUTTING_DOWN": 1 + source.rows,
    }


async def test_unreleased_targets_get_an_outcome_when_the_crawl_ends() -> None:
    tracker = make_tracker()
    source = Source([make_target("1")])

    async for each in tracker.release(source):
        tracker.push(make_target("2"))
        tracker.spider_closed(Spider("x"), "shutdown")
        assert each.id == "1"
        break
    assert [(outcome.target.id, type(outcome.error)) for outcome in source.outcomes] == [
        ("1", ShuttingDown),
        ("2", ShuttingDown),
    ]


async def test_a_duplicate_target_id_is_refused() -> None:
    tracker = make_tracker()
    source = Source([make_target("1"), make_target("1")])
    async for each in tracker.release(source):
        asyncio.get_running_loop().call_soon(tracker.complete, each, record(each))
    assert sorted(outcome.code for outcome in source.outcomes) == ["INVALID_REQUEST", "OK"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TargetNotFound("gone"), "TARGET_NOT_FOUND"),
        (IgnoreRequest("Forbidden by robots.txt"), "BLOCKED_BY_POLICY"),
        (DownloadTimeoutError(), "UPSTREAM_TIMEOUT"),
        (DownloadConnectionRefusedError(), "UPSTREAM_ERROR"),
        (ConnectionResetError(), "UPSTREAM_ERROR"),
        (KeyError("bug"), "INTERNAL_ERROR"),
        (AssertionError("bug"), "INTERNAL_ERROR"),
    ],
)
def test_every_exception_has_a_code(error: Exception, code: str) -> None:
    assert as_scrape_error(error).code == code


def test_a_name_that_cannot_be_resolved_is_an_error_of_the_platform() -> None:
    error = as_scrape_error(CannotResolveHostError("shop.test"))
    assert (error.code, error.retryable) == ("UPSTREAM_ERROR", True)
    assert error.message.startswith("The platform's host name cannot be resolved: ")


@pytest.mark.parametrize("kind", CAUSES)
def test_a_failed_download_is_described_in_words(kind: type[Exception]) -> None:
    """The message used to be "The download failed: CannotResolveHostError."."""
    message = as_scrape_error(kind("www.example.invalid")).message
    assert message == f"{CAUSES[kind]}."
    assert not re.search(r"[a-z][A-Z]|Error", message)


async def released(tracker: TargetTracker, source: Source) -> Target:
    return await anext(tracker.release(source))


async def test_warnings_are_counted_and_end_with_the_record() -> None:
    source = Source([make_target("t")])
    tracker = make_tracker()

    target = await released(tracker, source)
    for error in (UpstreamTimeout("late"), UpstreamTimeout("late"), TargetNotFound("gone", reason="no_feed")):
        tracker.warn(target, OutcomeWarning.of_error("feed", error))
    made = record(target)
    assert tracker.hand_over(made)
    tracker.warn(target, OutcomeWarning.of_error("video", UpstreamTimeout("after the record was read")))
    tracker.item_scraped(made, response_of(target))
    (outcome,) = source.outcomes
    expected = (
        OutcomeWarning("feed", "UPSTREAM_TIMEOUT", "upstream_timeout"),
        OutcomeWarning("feed", "TARGET_NOT_FOUND", "no_feed"),
    )
    assert (outcome.warnings, made.warnings, outcome.is_partial) == (expected, expected, True)
    assert tracker.crawler.stats is not None
    stats = tracker.crawler.stats.get_stats()
    failed = {"sources/failed/feed/upstream_timeout": 1, "sources/failed/feed/no_feed": 1}
    assert stats == {"targets/OK": 1, "targets/partial": 1, **failed}
    assert outcomes_by_code(stats) == {"OK": 1}


def test_pages_of_one_target_that_miss_the_same_path_are_one_warning() -> None:
    source = Source([make_target("1"), make_target("2")])
    tracker = make_tracker()
    missing, other = Unread("rows[].rating", "missing", 40, 40), Unread("rows[].rating", "type", 1, 30)
    unknown = [
        Unread("rows[].…unknown", "unknown", n, 30, loses_rows=n == 2, names=tuple(f"{n}{m}" for m in range(n)))
        for n in (1, 2, 4)
    ]

    async def scenario() -> None:
        async for target in tracker.release(source):
            for page in (missing, missing, other, *unknown, missing._replace(rows=1, of=9)):
                tracker.warn(target, OutcomeWarning.of_unread("listing", page))
            tracker.warn(target, OutcomeWarning.of_unread("details", missing))
            made = record(target)
            assert tracker.hand_over(made)
            tracker.warn(target, OutcomeWarning.of_unread("late", missing))
            tracker.item_scraped(made, response_of(target))

    with structlog.testing.capture_logs() as logged:
        asyncio.run(scenario())
    for outcome in source.outcomes:
        assert [(each.source, each.code, each.reason, each.unread) for each in outcome.warnings] == [
            ("listing", "EXTRACTION_FAILED", "unread", missing._replace(rows=81, of=89)),
            ("listing", "EXTRACTION_FAILED", "unread", other),
            (
                *("listing", "EXTRACTION_FAILED", "unread"),
                Unread("rows[].…unknown", "unknown", 7, 90, loses_rows=True, names=("10", "20", "21", "40", "41")),
            ),
            ("details", "EXTRACTION_FAILED", "unread", missing),
        ]
        assert outcome.is_partial
    assert tracker.crawler.stats is not None
    assert tracker.crawler.stats.get_stats() == {
        "targets/OK": 2,
        "targets/partial": 2,
        "unread/listing/rows[].rating": 2,
        "unread/listing/rows[].…unknown": 2,
        "unread/details/rows[].rating": 2,
        "unread_rows/listing/rows[].…unknown": 14,
    }
    events = [each for each in logged if each["event"] == "unread"]
    places = [(each["source"], each["path"]) for each in events]
    assert places == [("listing", "rows[].rating"), ("listing", "rows[].…unknown"), ("details", "rows[].rating")]
    assert events[2] == {
        "event": "unread",
        "log_level": "warning",
        "platform": "retail",
        "source": "details",
        "path": "rows[].rating",
        "cause": "missing",
        "rows": 40,
        "of": 40,
        "loses_rows": False,
        "names": "",
    }


def test_names_of_the_platform_are_bounded_and_printable() -> None:
    names = ("a" * 300, "line\nbreak", *"cdefghij")
    unread = OutcomeWarning.of_unread("page", Unread("rows[].…unknown", "unknown", names=names)).unread
    assert unread is not None
    assert unread.names == ("a" * 60, r"line\nbreak", "c", "d", "e")


@given(st.builds(OutcomeWarning, *[st.text()] * 3, st.none() | st.from_type(Unread)))
def test_a_warning_is_the_same_after_it_was_stored(warning: OutcomeWarning) -> None:
    assert OutcomeWarning.from_dict(json.loads(json.dumps(warning.as_dict()))) == warning


async def test_a_failed_target_is_not_partial() -> None:
    source = Source([make_target("t")])
    tracker = make_tracker()

    target = await released(tracker, source)
    tracker.warn(target, OutcomeWarning.of_error("page", UpstreamTimeout("late", reason="timeout")))
    tracker.complete(target, error=TargetNotFound("gone"))
    assert tracker.crawler.stats is not None
    assert tracker.crawler.stats.get_stats() == {"targets/TARGET_NOT_FOUND": 1, "sources/failed/page/timeout": 1}
    assert not source.outcomes[0].is_partial
