"""``GET /v1/status``: the combined state of all processes, and the outcomes of the last hour."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from openapi_schema_validator import OAS31Validator
from prometheus_client import REGISTRY
from scrapy.settings import Settings

from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import (
    ScrapeError,
    StoreUnavailable,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.jobs.clock import StoreTime
from crawler.jobs.store import Session, Store
from crawler.reading.unread import Cause, Unread
from crawler.registry import find_scraper
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.service import outcome_counts, process_state, status
from crawler.service.calls import stored
from crawler.service.calls.envelope import new_request_id
from crawler.service.calls.stored import Room, StoredCall
from crawler.service.clients.keys import Holder
from crawler.service.process_state import State, total
from crawler.service.status import FORGET_SECONDS, Status
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Target
from crawler.targets.warning import OutcomeWarning
from tests.openapi import DOCUMENT
from tests.service.client import CATEGORY, HEADERS, SEARCH, call
from tests.service.conftest import Service, running

RETAIL = find_scraper("retail-search-v4")
NOON = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC).timestamp()
PASSWORD = "s3cret-of-the-proxy"
EGRESSES = [
    {"name": "b", "proxy": f"http://user:{PASSWORD}@127.0.0.1:9"},
    {"name": "a", "proxy": "http://127.0.0.1:9", "budgets": {"retail": {"concurrency": 3, "delay": 20}}},
]
BLOCK = UpstreamBlocked("wall", reason="challenge")
TIMELINE = OutcomeWarning("timeline", "EXTRACTION_FAILED", "stale_query_id")


@dataclass(frozen=True)
class Near:
    """Equals any time less than ten seconds away. Circuit breakers use the monotonic clock, so times are not exact."""

    moment: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and abs(datetime.fromisoformat(other).timestamp() - self.moment) < 10

    __hash__ = None  # type: ignore[assignment]


def target(number: int) -> Target:
    return Target(str(number), RETAIL, check_params(RETAIL, {"query": "mustard", "page": number}))


class Process:
    """The status of one process of a service with the platform ``retail``."""

    def __init__(self, location: str, **settings: Any) -> None:
        values = {
            "PROCESSES": 2,
            "BREAKER_THRESHOLD": 1,
            "BREAKER_COOLDOWN": 60,
            "RETRY_AFTER_MAX": 3_600,
            "PLATFORM_BUDGETS": {"retail": {"concurrency": 2, "delay": 0}},
        }
        all_settings = Settings(values | settings)
        shared = SharedState()
        self.lanes = platform_lanes(shared, "retail", all_settings)
        self.crawler = SimpleNamespace(lanes=self.lanes, source=["a waiting call"], in_flight=3)
        self.store = Store(location)
        self.status = Status(cast("Any", SimpleNamespace(of={"retail": self.crawler})), self.store)

    def complete(
        self, number: int, error: ScrapeError | None = None, *, egress: int | None = 0, **outcome: Any
    ) -> None:
        """Record the outcome of a target that was sent through an egress, or through none."""
        each = target(number)
        if egress is not None:
            each.release.lane = self.lanes.lanes[egress]
        self.lanes.completed(Outcome(each, None, error, 0, **outcome))

    async def report(self) -> dict[str, Any]:
        report = await self.status.report()
        VALIDATOR.validate(report)
        return report

    async def platform(self) -> dict[str, Any]:
        (platform,) = (await self.report())["platforms"]
        return cast("dict[str, Any]", platform)


VALIDATOR = OAS31Validator({"$ref": "#/components/schemas/ServiceStatus", "components": DOCUMENT["components"]})


@asynccontextmanager
async def processes(location: str, number: int = 1, **settings: Any) -> AsyncIterator[list[Process]]:
    all_processes = [Process(location, **settings) for _ in range(number)]
    yield all_processes
    for process in all_processes:
        await process.store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replaces the clock: a list whose only number is the Unix time, which the test can change."""
    now = [NOON]
    for module in (outcome_counts, process_state, status):
        monkeypatch.setattr(module, "store_time", lambda: now[0])
    monkeypatch.setattr(status, "STORE_TIME", SimpleNamespace(is_steady=True))
    return now


def _accept(session: Session) -> None:
    target = Target(new_request_id(), RETAIL, check_params(RETAIL, {"query": "tea"}))
    call = StoredCall.new(target, Holder("acme", "key"), 3_600, cache_control=None, key=None)
    stored.accept(session, call, None, Room(max_ahead=10))


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "service.sqlite3")
    url: str = request.getfixturevalue("postgresql")
    store = Store(url)
    for table in ("outcomes", "successes", "processes", "targets", "jobs"):
        store.transact_sync(lambda session, table=table: session.run(f"DELETE FROM {table}"))  # type: ignore[misc]  # noqa: S608
    asyncio.run(store.close())
    return url


def minutes(*numbers: int) -> list[int]:
    """Return 60 numbers: zeros, followed by the given numbers."""
    return [0] * (60 - len(numbers)) + [*numbers]


# Outcomes


async def test_outcomes_are_counted_by_minute_and_summed_over_processes(location: str, clock: list[float]) -> None:
    async with processes(location, 2) as (one, other):
        one.complete(1)
        other.complete(2)
        other.complete(3, TargetNotFound("gone"))
        await other.status.flush(5)
        clock[0] += 60
        one.complete(4)
        await other.status.flush(5)
        platform = await one.platform()
        expected = {"OK": minutes(2, 1), "TARGET_NOT_FOUND": minutes(1, 0)}
        assert platform["outcomes"] == platform["egresses"][0]["outcomes"] == expected
        assert platform["last_success"] == "2026-11-22T12:01:30.000Z"
        assert (await other.report())["first_minute"] == "2026-11-22T11:02:00.000Z"


async def test_ho3_11_metrics_and_status_count_the_same_warnings(tmp_path: Path) -> None:
    def left_out(path: str) -> OutcomeWarning:
        return OutcomeWarning.of_limit("video", path, 3, 30, UpstreamTimeout)

    def in_metrics() -> float:
        labels = {"platform": "retail", "source": "video", "reason": "limit"}
        return REGISTRY.get_sample_value("crawler_source_failures_total", labels) or 0.0

    before = in_metrics()
    async with processes(str(tmp_path / "service.sqlite3")) as (process,):
        process.complete(1, warnings=(left_out("posts[]"), left_out("shorts[]")))
        platform = await process.platform()
    assert [each["count"] for each in platform["warnings"]] == [1]
    assert in_metrics() - before == 1


async def test_outcomes_of_the_last_60_minutes_are_kept(location: str, clock: list[float]) -> None:
    async with processes(location) as (process,):
        process.complete(1)
        await process.status.flush(5)
        clock[0] += 59 * 60
        assert (await process.platform())["outcomes"] == {"OK": [1] + [0] * 59}
        clock[0] += 60
        platform = await process.platform()
        assert platform["outcomes"] == {}
        assert platform["last_success"] == "2026-11-22T12:00:30.000Z"
        assert process.store.transact_sync(lambda session: session.rows("SELECT * FROM outcomes")) == []
        clock[0] += outcome_counts.KEEP_SUCCESS_SECONDS
        assert (await process.platform())["last_success"] is None


async def test_re3_7_unread_paths_are_counted_by_egress_and_minute(location: str, clock: list[float]) -> None:
    def unread(path: str, cause: Cause = "missing") -> OutcomeWarning:
        return OutcomeWarning.of_unread("listing", Unread(path, cause, 40, 40))

    async with processes(location, 2, EGRESSES=EGRESSES) as (one, other):
        one.complete(1, egress=0, warnings=(unread("rows[].rating"), unread("rows[].rating", "type"), unread("a")))
        other.complete(2, egress=1, warnings=(unread("rows[].rating"),))
        await one.status.flush(5)
        await other.status.flush(5)
        clock[0] += 60
        one.complete(3, egress=1, warnings=(unread("rows[].rating"), TIMELINE))
        platform = await one.platform()
        rating, other_path = ({"source": "listing", "path": path} for path in ("rows[].rating", "a"))
        assert platform["unread"] == [rating | {"count": 3}, other_path | {"count": 1}]
        first, second = (each["unread"] for each in platform["egresses"])
        assert (first, second) == ([other_path | {"count": 1}, rating | {"count": 1}], [rating | {"count": 2}])
        warning = {"source": "listing", "code": "EXTRACTION_FAILED", "reason": "unread"}
        assert platform["warnings"][0] == warning | {"count": 3}, "once for a target"
        assert sum(platform["outcomes"]["OK"]) == 3
        clock[0] += 60 * 60
        await one.status.flush(5)
        assert (await one.platform())["unread"] == []
        assert one.store.transact_sync(lambda session: session.rows("SELECT * FROM unread")) == []


@pytest.mark.parametrize("hours", [26, -26])
async def test_at_10_a_jump_of_the_clock_deletes_no_outcome_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    passed, jumped = 0.0, 0.0
    clock = StoreTime(monotonic=lambda: passed)
    monkeypatch.setattr(time, "time", lambda: NOON + passed + jumped)
    monkeypatch.setattr("crawler.jobs.clock.STORE_TIME", clock)
    monkeypatch.setattr("crawler.jobs.store.STORE_TIME", clock)
    monkeypatch.setattr(status, "STORE_TIME", clock)
    async with processes(str(tmp_path / "service.sqlite3"), 2) as (one, other):
        one.complete(1)
        other.complete(2)
        await other.status.flush(5)
        for second in range(90):
            passed, jumped = float(second), hours * 3_600.0 if 20 <= second < 24 else 0.0
            await other.status.flush(5)
            report = await one.report()
            assert report["workers"] == 2
            assert report["at"] == f"2026-11-22T12:{(30 + second) // 60:02}:{(30 + second) % 60:02}.000Z"
            assert sum(report["platforms"][0]["outcomes"]["OK"]) == 2
        assert clock.is_steady


async def test_outcomes_are_counted_by_egress(location: str) -> None:
    async with processes(location, EGRESSES=EGRESSES) as (process,):
        process.complete(1, egress=0, warnings=(TIMELINE,))
        process.complete(2, BLOCK, egress=1, warnings=(TIMELINE, OutcomeWarning("page", "UPSTREAM_ERROR", "")))
        process.complete(3, TargetNotFound("gone"), egress=None)
        await asyncio.sleep(0)  # let the refusal be recorded
        platform = await process.platform()
    found = {
        each["egress"]: {code: sum(counts) for code, counts in each["outcomes"].items()}
        for each in platform["egresses"]
    }
    assert found == {"b": {"OK": 1}, "a": {"UPSTREAM_BLOCKED": 1}}
    assert [*platform["outcomes"]] == ["OK", "TARGET_NOT_FOUND", "UPSTREAM_BLOCKED"]
    timeline = {"source": "timeline", "code": "EXTRACTION_FAILED", "reason": "stale_query_id"}
    page = {"source": "page", "code": "UPSTREAM_ERROR", "reason": "", "count": 1}
    assert platform["warnings"] == [timeline | {"count": 2}, page]
    assert platform["egresses"][0]["warnings"] == [timeline | {"count": 1}]
    assert platform["egresses"][1]["last_success"] is None


async def test_outcomes_stay_pending_while_the_store_is_unavailable(tmp_path: Path, clock: list[float]) -> None:
    folder = tmp_path / "folder"
    folder.write_text("a file, where a folder should be")
    async with processes(str(folder / "service.sqlite3")) as (process,):
        process.complete(1)
        with pytest.raises(StoreUnavailable):
            await process.report()
        clock[0] += 60
        process.complete(2)
        folder.unlink()
        assert (await process.platform())["outcomes"] == {"OK": minutes(1, 1)}


# State


async def test_the_state_is_the_sum_of_all_running_processes(location: str, clock: list[float]) -> None:
    async with processes(location, 3) as (one, other, third):
        for process in (one, other, third):
            process.lanes.lanes[0].targets = 2
            await process.status.flush(5)
        await third.status.close(5)
        report = await one.report()
        assert report["workers"] == 2
        assert (report["platforms"][0]["waiting"], report["platforms"][0]["in_flight"]) == (2, 6)
        assert report["platforms"][0]["egresses"][0]["targets"] == 4
        one.store.transact_sync(_accept)
        assert (await one.platform())["waiting"] == 3, "with the asynchronous call"
        one.store.transact_sync(lambda session: session.run("DELETE FROM targets"))
        other.crawler.source, other.crawler.in_flight = [], 0
        await other.status.flush(5)
        assert ((await one.platform())["waiting"]) == 1
        clock[0] += FORGET_SECONDS + 1
        assert (await one.report())["workers"] == 1, "the other one was killed"


async def test_an_unchanged_state_is_seldom_written(tmp_path: Path, clock: list[float]) -> None:
    async with processes(str(tmp_path / "service.sqlite3")) as (process,):
        written = []
        for seconds in (0, 5, 4, 2, 5):
            clock[0] += seconds
            await process.status.flush(5)
            ((at,),) = process.store.transact_sync(lambda session: session.rows("SELECT at FROM processes"))
            written.append(at - NOON)
    assert written == [0, 0, 0, 11, 11]


async def test_the_budget_and_the_next_slot_of_each_egress_are_shown(tmp_path: Path) -> None:
    """Each of two processes has a share of the budget, but the status shows the whole budget."""
    async with processes(str(tmp_path / "service.sqlite3"), EGRESSES=EGRESSES) as (process,):
        _, route = process.lanes
        (await route.budget.acquire())()
        report = await process.report()
        (platform,) = report["platforms"]
    b, a = platform["egresses"]
    assert (b["egress"], b["throttle"]["concurrency"], b["throttle"]["delay"]) == ("b", 2, 0)
    assert b["throttle"]["next_slot"] == report["at"], "a slot is free now"
    assert (a["egress"], a["throttle"]["concurrency"], a["throttle"]["delay"]) == ("a", 3, 20)
    assert a["throttle"]["next_slot"] > report["at"]


async def test_sources_with_a_budget_of_their_own_are_shown(tmp_path: Path) -> None:
    budget = {"concurrency": 2, "delay": 0, "sources": {"listing": {"concurrency": 1, "delay": 18.5}}}
    async with processes(str(tmp_path / "service.sqlite3"), PLATFORM_BUDGETS={"retail": budget}) as (process,):
        (source,) = (await process.platform())["egresses"][0]["sources"]
    assert (source["source"], source["concurrency"], source["delay"]) == ("listing", 1, 18.5)


@pytest.mark.usefixtures("clock")
async def test_circuit_breakers_are_shown_with_their_reason(tmp_path: Path) -> None:
    async with processes(str(tmp_path / "service.sqlite3"), EGRESSES=EGRESSES) as (process,):
        one, _ = process.lanes
        await one.count("listing", BLOCK)
        await one.count("page", None)
        platform = await process.platform()
        egress = platform["egresses"][0]
        closed = {"state": "closed", "since": None, "until": None, "reason": None}
        listing = {"source": "listing", "state": "open", "since": Near(NOON), "until": Near(NOON + 60)}
        assert egress["breakers"] == [
            {"source": "(connection)"} | closed,
            {"source": "(platform)"} | closed,
            listing | {"reason": "challenge"},
            {"source": "page"} | closed,
        ]
        assert egress["rests_until"] is None
        assert platform["egresses"][1]["breakers"] == [
            {"source": "(connection)"} | closed,
            {"source": "(platform)"} | closed,
        ]
        await one.count("page", UpstreamRateLimited("later", retry_after=90))
        egress = (await process.platform())["egresses"][0]
        assert egress["breakers"][3]["reason"] == "UPSTREAM_RATE_LIMITED"
        assert egress["rests_until"] == Near(NOON + 60), "then the first source is tried again"


async def test_credentials_of_proxies_are_not_shown(tmp_path: Path) -> None:
    async with processes(str(tmp_path / "service.sqlite3"), EGRESSES=EGRESSES) as (process,):
        shown = json.dumps(await process.report())
        stored = process.store.transact_sync(lambda session: session.rows("SELECT state FROM processes"))
    for text in (shown, repr(stored)):
        assert PASSWORD not in text
        assert "127.0.0.1" not in text


def route(**values: Any) -> State:
    empty: State = {"targets": 0, "next_slot": None, "sources": {}, "breakers": {}, "rests_until": None}
    return {"retail": {"waiting": 0, "in_flight": 0, "egresses": {"a": empty | values}}}


def breaker(state: str, until: float | None = None) -> State:
    return {"listing": {"state": state, "since": 1.0, "until": until, "reason": state}}


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        pytest.param("targets", [2, 3], 5, id="targets"),
        pytest.param("next_slot", [7.0, 5.0], 5.0, id="earliest slot"),
        pytest.param("next_slot", [7.0, None], None, id="a slot is free now"),
        pytest.param("sources", [{"listing": 7.0}, {}], {"listing": 7.0}, id="a source of one process"),
        pytest.param("breakers", [breaker("closed"), breaker("open", 5.0)], breaker("open", 5.0), id="open in one"),
        pytest.param("breakers", [breaker("open", 9.0), breaker("open", 5.0)], breaker("open", 9.0), id="open in both"),
        pytest.param("breakers", [breaker("closed"), breaker("trial")], breaker("trial"), id="trial"),
        pytest.param("breakers", [breaker("trial"), {}], breaker("trial"), id="unknown to one"),
        pytest.param("rests_until", [None, 8.0], 8.0, id="rests in one"),
    ],
)
def test_states_of_processes_are_combined(key: str, values: list[Any], expected: object) -> None:
    states = [route(**{key: value}) for value in values]
    assert total(states, "retail", ["a"])["egresses"]["a"][key] == expected


# The service


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    budget = {"concurrency": 16, "delay": 0, "sources": {"timeline": {"concurrency": 1, "delay": 0.1}}}
    settings = ("BREAKER_THRESHOLD=1", f"PLATFORM_BUDGETS={json.dumps({'microblog': budget})}")
    with running(tmp_path_factory.mktemp("status") / "log", *settings, workers=2) as service:
        yield service


def status_when(service: Service, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until a condition holds. Return platform -> status."""
    for _ in range(600):  # much longer than needed, in case the machine is busy
        reply = call(service.url, "/v1/status", method="GET")
        assert reply.status == 200
        VALIDATOR.validate(reply.body)
        platforms = {each["platform"]: each for each in reply.body["platforms"]}
        if reply.body["workers"] == 2 and condition(platforms):
            return platforms
        time.sleep(0.05)
    raise AssertionError(f"the condition did not come true: {reply.body}")


def test_the_service_shows_the_status_of_all_workers(two_workers: Service) -> None:
    url = two_workers.url
    calls = [(CATEGORY, {"cat_id": "976759"})] * 4 + [(CATEGORY, {"cat_id": "424242"})]
    calls.append(("/v1/scrapers/photoapp-post-v4", {"url": PhotoApp().url_of_fault("embed-forbidden")}))
    codes = [call(url, path, params).code for path, params in calls]
    assert codes == ["OK"] * 4 + ["TARGET_NOT_FOUND", "OK"]

    def sums(platform: dict[str, Any]) -> dict[str, int]:
        return {code: sum(numbers) for code, numbers in platform["outcomes"].items()}

    shown = status_when(two_workers, lambda found: sums(found["retail"]) == {"OK": 4, "TARGET_NOT_FOUND": 1})
    assert sums(shown["retail"]["egresses"][0]) == {"OK": 4, "TARGET_NOT_FOUND": 1}
    assert shown["retail"]["egresses"][0]["egress"] == "direct"
    assert shown["retail"]["last_success"] is not None
    shown = status_when(two_workers, lambda found: sums(found["photoapp"]) == {"OK": 1})
    assert [warning["count"] for warning in shown["photoapp"]["warnings"]] == [1]
    (timeline,) = shown["microblog"]["egresses"][0]["sources"]
    assert (timeline["source"], timeline["concurrency"], timeline["delay"]) == ("timeline", 1, 0.1)
    assert shown["videosite"]["last_success"] is None

    headers = HEADERS | {"Prefer": "wait=4"}
    hanging = threading.Thread(target=call, args=(url, SEARCH, {"query": "hang"}), kwargs={"headers": headers})
    hanging.start()
    status_when(two_workers, lambda found: found["retail"]["in_flight"] == 1)
    hanging.join()
    status_when(two_workers, lambda found: found["retail"]["in_flight"] == 0)

    assert call(url, SEARCH, {"query": "challenge"}).code == "UPSTREAM_BLOCKED"
    shown = status_when(two_workers, lambda found: "UPSTREAM_BLOCKED" in found["retail"]["outcomes"])
    opened = [each for each in shown["retail"]["egresses"][0]["breakers"] if each["state"] == "open"]
    assert [each["reason"] for each in opened] == ["challenge"]
    assert opened[0]["since"] < opened[0]["until"]


def test_the_status_needs_an_api_key_and_get(two_workers: Service) -> None:
    assert call(two_workers.url, "/v1/status", method="GET", headers={}).code == "MISSING_API_KEY"
    assert call(two_workers.url, "/v1/status", method="GET", headers={"X-API-Key": "wrong"}).code == "INVALID_API_KEY"
    refused = call(two_workers.url, "/v1/status", {}, method="POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
