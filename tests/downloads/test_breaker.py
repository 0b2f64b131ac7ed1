"""Circuit breakers behave the same in one process and if they are shared through SQLite or PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from scrapy.settings import Settings

from crawler import platforms
from crawler.downloads.breaker import (
    CONNECTION,
    PLATFORM,
    TRIAL_SECONDS,
    Blocks,
    BreakerKey,
    BreakerPolicy,
    Breakers,
    CircuitBreaker,
    suspension_seconds,
)
from crawler.downloads.facts import Facts
from crawler.downloads.lanes import Refusals
from crawler.downloads.shared_state import SharedState, platform_lanes
from crawler.errors import (
    CircuitOpen,
    ExtractionFailed,
    Overloaded,
    ScrapeError,
    StoreUnavailable,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.jobs.shared_facts import OWN_SHARE_SECONDS
from crawler.targets.target import Release
from tests.downloads.processes import UNREACHABLE, processes

BLOCK = UpstreamBlocked("blocked")
LIMIT = UpstreamRateLimited("limited")
KEY = BreakerKey("shop", "listing")


@asynccontextmanager
async def breakers(store: str | None, policy: BreakerPolicy) -> AsyncIterator[tuple[CircuitBreaker, CircuitBreaker]]:
    """Yield a source's breakers in two processes that share a store. Without a store, yield one breaker twice."""
    if store is None:
        local = CircuitBreaker(policy, KEY, Facts())
        yield local, local
        return
    async with processes(store) as (one, other):
        yield CircuitBreaker(policy, KEY, one), CircuitBreaker(policy, KEY, other)


@pytest.fixture(params=["local", "sqlite_store", "postgresql_store"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    if request.param == "local":
        return None
    monkeypatch.setattr("crawler.jobs.shared_facts.VIEW_SECONDS", 0.0)
    found: str = request.getfixturevalue(request.param)
    return found


async def recorded(breaker: CircuitBreaker, *errors: ScrapeError | None) -> bool:
    """Record results. Return whether the breaker is open."""
    for error in errors:
        await breaker.record(error)
    return await breaker.enter() > 0


@pytest.mark.parametrize("ahead", [pytest.param(0.0, id="it opened"), pytest.param(86_400.0, id="it stayed open")])
async def test_a_breaker_keeps_at_most_the_longest_cooldown_if_the_clock_was_set_back(
    ahead: float, clock: list[float]
) -> None:
    breaker = local(BreakerPolicy(threshold=1, cooldown=60, max_retry_after=3_600))
    await breaker.record(BLOCK)
    clock[0] += ahead
    await breaker.record(UpstreamBlocked("later", retry_after=300))
    assert breaker.cooldown_left == 300
    clock[0] -= 86_400
    assert breaker.cooldown_left == 0, "a process that waits must not wait for a day"
    cooldown = {0.0: 300, 86_400.0: 3_600}[ahead]
    assert await breaker.enter() == breaker.cooldown_left == cooldown
    assert breaker.open_seconds == 0
    clock[0] += cooldown
    assert await breaker.enter() == 0


async def test_a_clock_that_is_a_little_behind_changes_no_cooldown(clock: list[float]) -> None:
    breaker = local(BreakerPolicy(threshold=3, cooldown=60, max_retry_after=3_600))
    await breaker.record(UpstreamBlocked("later", retry_after=3_600))
    clock[0] -= 0.01
    assert await breaker.enter() == 3_600


@pytest.mark.parametrize(
    ("threshold", "results", "opens"),
    [
        (3, [BLOCK, BLOCK], False),
        (3, [BLOCK, BLOCK, BLOCK], True),
        (3, [LIMIT, LIMIT, LIMIT], True),
        (3, [BLOCK, LIMIT, BLOCK], True),
        (3, [BLOCK, BLOCK, None, BLOCK], False),
        (3, [BLOCK, BLOCK, TargetNotFound("not found"), BLOCK], False),
        (3, [BLOCK, BLOCK, ExtractionFailed("unknown page"), BLOCK], True),
        (3, [BLOCK, BLOCK, UpstreamError("server error"), BLOCK], True),
        (3, [BLOCK, BLOCK, Overloaded("no request was sent"), BLOCK], True),
        pytest.param(0, [BLOCK] * 20 + [UpstreamBlocked("later", retry_after=3_600)], False, id="disabled"),
    ],
)
async def test_consecutive_blocks_and_rate_limits_open_the_breaker(
    store: str | None,
    threshold: int,
    results: list[ScrapeError | None],
    opens: bool,  # noqa: FBT001  # a table
) -> None:
    async with breakers(store, BreakerPolicy(threshold=threshold, cooldown=60)) as (breaker, _):
        assert await recorded(breaker, *results) is opens


@pytest.mark.parametrize(
    ("error", "cooldown"),
    [
        pytest.param(UpstreamBlocked("later", retry_after=900), 900, id="block"),
        pytest.param(UpstreamRateLimited("later", retry_after=900), 900, id="rate limit"),
        pytest.param(UpstreamRateLimited("later", retry_after=2**31), 3_600, id="up to the maximum"),
        pytest.param(UpstreamError("maintenance", retry_after=900), 900, id="server error"),
    ],
)
async def test_a_retry_after_opens_the_breaker_at_once_for_that_time(
    store: str | None, error: ScrapeError, cooldown: int
) -> None:
    async with breakers(store, BreakerPolicy(threshold=3, cooldown=60, max_retry_after=3_600)) as (breaker, other):
        assert await recorded(breaker, error)
        assert cooldown - 300 < await other.enter() <= cooldown
        assert cooldown - 300 < other.cooldown_left <= cooldown


@pytest.mark.parametrize("location", ["sqlite_store", "postgresql_store"])
async def test_a_process_that_has_only_read_the_facts_knows_their_clock(
    location: str, request: pytest.FixtureRequest
) -> None:
    store: str = request.getfixturevalue(location)
    async with breakers(store, BreakerPolicy(threshold=1, cooldown=60)) as (breaker, other):
        await breaker.record(BLOCK)
        refusals, known = Refusals(60, "shop", breaker.facts), Refusals(60, "shop", other.facts)
        await refusals.remember("wall", "one")
        assert await known.egress_of("wall") == "one"
        assert await other.facts.refresh(Blocks, other.name)
        assert 0 < other.cooldown_left <= 60
        assert other.open_seconds is not None
        assert other.open_seconds < 60


async def test_the_log_names_a_breaker_once_when_it_opens(store: str | None) -> None:
    async with breakers(store, BreakerPolicy(threshold=2, cooldown=60)) as (breaker, other):
        with structlog.testing.capture_logs() as lines:
            await recorded(breaker, BLOCK)
            assert lines == []
            await recorded(other, LIMIT)
            await recorded(breaker, UpstreamBlocked("later", retry_after=900))
    (line,) = lines
    assert line["event"] == "breaker_opened"
    assert line["breaker"] == str(KEY)
    assert line["code"] == "UPSTREAM_RATE_LIMITED"
    assert 50 < line["seconds"] <= 60


async def test_one_request_is_tried_after_the_cooldown(store: str | None) -> None:
    async with breakers(store, BreakerPolicy(threshold=1, cooldown=0)) as (one, other):
        await one.record(BLOCK)
        assert await one.enter() == 0, "the trial"
        assert await other.enter() > 0, "the others wait for its result"
        assert other.open_seconds is not None
        await one.record(None)
        assert await other.enter() == 0
        assert other.open_seconds is None


async def test_a_breaker_names_the_reason_of_the_last_refusal(store: str | None) -> None:
    async with breakers(store, BreakerPolicy(threshold=1, cooldown=0)) as (one, other):
        assert one.reason is None
        await one.record(UpstreamBlocked("wall", reason="login_wall"))
        assert await other.enter() == 0
        assert other.reason == "login_wall"
        await other.record(LIMIT)
        assert other.reason == "UPSTREAM_RATE_LIMITED"
        await other.record(None)
        assert other.reason is None


async def test_a_trial_without_a_response_lets_the_next_one_through(store: str | None) -> None:
    async with breakers(store, BreakerPolicy(threshold=1, cooldown=0)) as (one, other):
        await one.record(BLOCK)
        assert await one.enter() == 0
        await one.record(UpstreamError("no connection"))
        assert await other.enter() == 0
        assert await one.enter() > 0


def local(policy: BreakerPolicy) -> CircuitBreaker:
    return CircuitBreaker(policy, KEY, Facts())


async def test_each_failed_trial_doubles_the_cooldown(clock: list[float]) -> None:
    breaker = local(BreakerPolicy(threshold=1, cooldown=300))
    cooldowns = []
    for _ in range(4):
        await breaker.record(BLOCK)
        cooldowns.append(round(breaker.cooldown_left))
        clock[0] += breaker.cooldown_left
        assert await breaker.enter() == 0
    assert cooldowns == [300, 600, 900, 900]
    assert breaker.open_seconds == sum(cooldowns)


@pytest.mark.parametrize(
    ("cooldowns", "seconds"),
    [
        ({}, 0),
        ({"a": 5, "b": 0}, 0),
        ({"a": 5, "b": 3}, 3),
        ({"a": 5, "b": 3, CONNECTION: 9}, 9),
        ({"a": 0, PLATFORM: 4}, 4),
        ({"a": 7, CONNECTION: 2, PLATFORM: 0}, 7),
    ],
)
def test_an_egress_is_suspended_until_one_of_the_sources_may_be_requested(
    cooldowns: dict[str, float], seconds: float
) -> None:
    assert suspension_seconds(cooldowns) == seconds


async def test_requests_in_flight_neither_lengthen_the_cooldown_nor_end_it(clock: list[float]) -> None:
    """The results of these requests arrive after the breaker has opened. Only a longer Retry-After has an effect."""
    breaker = local(BreakerPolicy(threshold=2, cooldown=60))
    assert await recorded(breaker, BLOCK, UpstreamRateLimited("later", retry_after=5), BLOCK, BLOCK, None)
    assert breaker.cooldown_left == 60, "a Retry-After never shortens it"
    for seconds in (70, 5):
        await breaker.record(UpstreamRateLimited("later", retry_after=seconds))
    assert breaker.cooldown_left == 70
    clock[0] += 70
    assert await breaker.enter() == 0


async def test_only_an_answer_to_a_request_that_was_sent_after_the_last_block_ends_the_count(
    clock: list[float],
) -> None:
    """A source may answer a request slowly, and refuse later ones in the meantime."""
    breaker, slow, quick = local(BreakerPolicy(threshold=2, cooldown=60)), Release(), Release()
    breaker.sent(slow)
    breaker.sent(quick)
    clock[0] += 1
    await breaker.record(BLOCK, release=quick)
    breaker.sent(quick)
    await breaker.record(None, release=slow)
    assert breaker.is_refusing
    await breaker.record(None, release=quick)
    assert not breaker.is_refusing
    for _ in range(2):
        clock[0] += 1
        breaker.sent(quick)
        await breaker.record(BLOCK, release=quick)
    assert breaker.cooldown_left == 60


async def test_a_request_that_is_cancelled_at_the_breaker_is_no_trial(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.shared_facts.VIEW_SECONDS", 0.0)
    async with breakers(location, BreakerPolicy(threshold=1, cooldown=0)) as (one, other):
        await one.record(BLOCK)
        entering = asyncio.ensure_future(one.enter())
        await asyncio.sleep(0)  # it enters
        entering.cancel()
        await asyncio.wait([entering])
        await one.facts.close()  # after its decisions
        assert await other.enter() == 0


async def test_a_killed_trial_is_replaced(clock: list[float]) -> None:
    breaker = local(BreakerPolicy(threshold=1, cooldown=60))
    await breaker.record(BLOCK)
    clock[0] += 60
    assert await breaker.enter() == 0
    assert await breaker.enter() > 0
    clock[0] += TRIAL_SECONDS
    assert await breaker.enter() == 0


async def test_shared_breakers_count_the_blocks_of_all_processes(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.shared_facts.VIEW_SECONDS", 0.0)
    async with breakers(location, BreakerPolicy(threshold=4, cooldown=60)) as (one, other):
        for breaker in (one, other, one):
            await breaker.record(BLOCK)
        assert not await recorded(other)
        await other.record(None)
        for breaker in (one, other, one, other):
            await breaker.record(BLOCK)
        assert await recorded(one)
        assert await recorded(other)


async def test_without_the_store_each_process_has_its_own_breaker() -> None:
    async with breakers(UNREACHABLE, BreakerPolicy(threshold=2, cooldown=60)) as (one, other):
        assert await recorded(one, BLOCK, BLOCK)
        assert one.cooldown_left > 0
        assert one.open_seconds is not None
        assert not await recorded(other)
        assert other.cooldown_left == 0


async def test_a_process_asks_a_store_that_failed_again_only_after_a_pause(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, each request would wait for the store."""
    monkeypatch.setattr("crawler.jobs.shared_facts.VIEW_SECONDS", 0.0)
    asked: list[str] = []

    async def fail(*_: Any, **__: Any) -> Any:
        asked.append("again")
        raise StoreUnavailable("gone")

    async with processes(sqlite_store) as (facts, _):
        monkeypatch.setattr(facts.store, "transact", fail)
        breaker = CircuitBreaker(BreakerPolicy(threshold=2, cooldown=60), KEY, facts)
        for _ in range(3):
            assert await breaker.enter() == 0
        assert asked == ["again"]
        facts._retry_at -= OWN_SHARE_SECONDS
        assert await breaker.enter() == 0
        assert asked == ["again"] * 2


async def test_a_process_keeps_its_breaker_when_the_store_fails(location: str) -> None:
    async with processes(location) as (facts, _):
        one = CircuitBreaker(BreakerPolicy(threshold=2, cooldown=60), KEY, facts)
        assert await recorded(one, BLOCK, BLOCK)
        facts._failed(StoreUnavailable("gone"))
        assert await one.enter() > 0


def of_platform(policy: BreakerPolicy) -> Breakers:
    return Breakers("shop", policy, Facts())


async def test_an_answer_of_one_source_does_not_reset_another() -> None:
    found = of_platform(BreakerPolicy(threshold=2, cooldown=60))
    for _ in range(2):
        await found["timeline"].record(LIMIT)
        await found["page"].record(None)
    assert not found.closed(["timeline", "page"])
    assert found.closed(["page"])
    assert found.any_open


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        *((each, True) for each in (401, 403, 407, 412, 418, 429, 451, 999)),
        *((each, False) for each in (200, 404, 500)),
    ],
)
async def test_a_throttling_status_counts_even_if_the_page_is_not_recognised(
    status: int,
    counts: bool,  # noqa: FBT001  # a table
) -> None:
    found = of_platform(BreakerPolicy(threshold=1, cooldown=60))
    await found["page"].record(ExtractionFailed("unknown page"), status)
    assert found.any_open is counts


async def test_a_request_that_was_not_sent_does_not_count() -> None:
    """The error of a request that was not sent must not end the trial of another request, either."""
    found = of_platform(BreakerPolicy(threshold=1, cooldown=0))
    await found["page"].record(BLOCK)
    assert await found["page"].enter() == 0
    await found["page"].record(CircuitOpen("open", retry_after=60))
    assert await found["page"].enter() > 0


async def test_the_outcome_names_the_retry_after_that_is_obeyed() -> None:
    found = of_platform(BreakerPolicy(threshold=1, cooldown=60, max_retry_after=100))
    error = UpstreamRateLimited("later", retry_after=2**31)
    await found["page"].record(error)
    assert error.retry_after == 100


# Budgets


def state(platform: str, **settings: Any) -> Any:
    (route,) = platform_lanes(SharedState(), platform, Settings({"PROCESSES": 1, "RETRY_AFTER_MAX": 3_600, **settings}))
    return route


@pytest.mark.parametrize(("source", "throttled"), [("timeline", {"own", "all"}), ("page", {"all"}), (None, {"all"})])
async def test_the_timeline_has_a_budget_of_its_own(source: str | None, throttled: set[str]) -> None:
    """The platform allows 50 calls for timelines in 15 minutes. Burst and delay of the budget keep below this limit."""
    found = state("microblog")
    own = found.sources["timeline"]
    assert own.limit.burst + 15 * 60 / own.limit.delay < 50
    await found.acquire(source, None, background=False)
    used = {name for name, each in {"own": own, "all": found.budget}.items() if each.burst_left < each.limit.burst}
    assert used == throttled


@pytest.mark.parametrize(
    ("budget", "delays"),
    [
        ({"delay": 1}, {"timeline": 21.0, "embed": 20.0}),
        ({"delay": 1, "sources": {}}, {}),
        ({"sources": {"timeline": {"concurrency": 2, "delay": 5}}}, {"timeline": 5}),
        ({"sources": {"user": {"concurrency": 1, "delay": 9}}}, {"user": 9}),
    ],
)
def test_settings_override_the_budgets_of_sources(budget: dict[str, Any], delays: dict[str, float]) -> None:
    found = state("microblog", PLATFORM_BUDGETS={"microblog": budget})
    assert {source: throttle.limit.delay for source, throttle in found.sources.items()} == delays
    assert found.budget.limit.delay == budget.get("delay", platforms.platforms()["microblog"].delay)


def test_the_sandbox_needs_no_delays() -> None:
    assert state("microblog", SANDBOX=True).sources == {}


async def test_a_source_s_budget_is_shared_by_processes(location: str) -> None:
    budgets = {"microblog": {"sources": {"timeline": {"concurrency": 1, "delay": 1_000}}}}
    settings = Settings({"SHARED_LIMITS": 1, "STORE": location, "PROCESSES": 1, "PLATFORM_BUDGETS": budgets})
    states = SharedState(), SharedState()
    one, other = (next(iter(platform_lanes(each, "microblog", settings))).sources["timeline"] for each in states)
    (await one.acquire())()
    with pytest.raises(Overloaded):
        await other.acquire(asyncio.get_running_loop().time() + 60)
    for each in states:
        await each.close()
