"""The limits of an API key: in memory, divided among processes, and shared through a store."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.downloads.shared_state import SharedState, platform_facts
from crawler.errors import ConcurrencyLimited, RateLimited
from crawler.service.keys import Holder
from crawler.service.limits import KeyLimits, Rate
from tests.downloads.processes import UNREACHABLE
from tests.service.client import SEARCH, call
from tests.service.conftest import running

HOLDER = Holder("acme", "k1")
OTHER = Holder("acme", "k2")
pytestmark = pytest.mark.usefixtures("patient")


def shared(store: str) -> dict[str, object]:
    return {"SHARED_LIMITS": 1, "STORE": store}


@asynccontextmanager
async def limits(**settings: object) -> AsyncIterator[KeyLimits]:
    found = Settings({"PROCESSES": 1, "KEY_CONCURRENCY": 0, **settings})
    state = SharedState()
    try:
        yield KeyLimits(found, platform_facts(state, found))
    finally:
        await state.close()


async def count_allowed(limit: KeyLimits, holder: Holder, calls: int) -> int:
    """Count ``calls`` calls against the rate limit. Return how many of them were allowed."""
    statuses = [await limit.count(holder) for _ in range(calls)]
    return sum(status is None or status.allowed for status in statuses)


async def begin(limit: KeyLimits, holder: Holder, calls: int) -> list[AsyncExitStack]:
    """Begin up to ``calls`` calls, until the limit of concurrent calls is reached. Return them, to be closed."""
    begun = []
    for _ in range(calls):
        try:
            stack = AsyncExitStack()
            await stack.enter_async_context(limit.in_flight(holder))
            begun.append(stack)
        except ConcurrencyLimited:
            break
    return begun


async def calls_in_period(limit: KeyLimits, holder: Holder) -> int:
    allowed = await count_allowed(limit, holder, 10)
    assert await count_allowed(limit, OTHER, 1) == 1, "another key has its own window"
    return allowed


async def calls_in_flight(limit: KeyLimits, holder: Holder) -> int:
    calls = await begin(limit, holder, 10)
    assert len(await begin(limit, OTHER, 1)) == 1, "another key has its own slots"
    for each in calls:
        await each.aclose()
    assert len(await begin(limit, holder, 10)) == len(calls), "released slots are free"
    return len(calls)


@pytest.mark.parametrize(
    ("limited", "default"),
    [
        pytest.param(calls_in_period, {"KEY_RATE": "4/minute"}, id="rate"),
        pytest.param(calls_in_flight, {"KEY_CONCURRENCY": 4}, id="concurrency"),
    ],
)
@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        pytest.param({"KEY_RATE": "", "KEY_CONCURRENCY": 0}, {}, 10, id="no limit"),
        pytest.param({}, {}, 4, id="default"),
        pytest.param({}, {"rate": "7/hour", "concurrency": 7}, 7, id="own limit"),
        pytest.param({"PROCESSES": 2}, {}, 2, id="share of a process"),
        pytest.param({"PROCESSES": 9}, {}, 1, id="at least one"),
        pytest.param({"PROCESSES": 2, **shared(UNREACHABLE)}, {}, 2, id="store unavailable"),
    ],
)
async def test_the_calls_of_a_key_are_limited(
    limited: Callable[[KeyLimits, Holder], Awaitable[int]],
    default: dict[str, object],
    settings: dict[str, object],
    own: dict[str, Any],
    expected: int,
) -> None:
    async with limits(**default | settings) as limit:
        assert await limited(limit, Holder("acme", "k1", **own)) == expected


async def test_processes_share_a_rate_by_the_store(location: str) -> None:
    given = {"KEY_RATE": "10/minute", "PROCESSES": 2, **shared(location)}
    async with limits(**given) as one, limits(**given) as two:
        assert await count_allowed(one, HOLDER, 3) + await count_allowed(two, HOLDER, 20) == 10


async def test_processes_share_the_concurrency_by_the_store(location: str) -> None:
    given = {"KEY_CONCURRENCY": 4, "PROCESSES": 2, **shared(location)}
    async with limits(**given) as two:
        async with limits(**given) as one:
            first = await begin(one, HOLDER, 3)
            second = await begin(two, HOLDER, 3)
            for each in first:
                await each.aclose()
        third = await begin(two, HOLDER, 10)
    assert [len(each) for each in (first, second, third)] == [3, 1, 3], "the first process has released its slots"


async def test_a_refused_call_takes_no_slot_from_another_process(location: str) -> None:
    given = {"KEY_CONCURRENCY": 4, "PROCESSES": 2, **shared(location)}
    async with limits(**given) as one, limits(**given) as two:
        calls = await begin(one, HOLDER, 4)
        assert await begin(two, HOLDER, 1) == []
        for each in calls:
            await each.aclose()
        assert len(await begin(one, HOLDER, 4)) == 4


def test_a_rate_is_sustained_after_a_burst() -> None:
    rate = Rate()
    allowed = [at for at in range(300) if rate.count(float(at), 1, calls=4, period=60).allowed]
    assert allowed == [0, 1, 2, 3, *range(15, 300, 15)]


def test_the_state_of_a_rate_counts_down_and_recovers() -> None:
    rate = Rate()
    found = [rate.count(at, 1, calls=3, period=60) for at in (0.0, 0.0, 0.0, 0.0, 20.0, 1_000.0)]
    shown = [(each.remaining, each.reset, each.allowed) for each in found]
    assert shown == [(2, 20, True), (1, 40, True), (0, 60, True), (0, 20, False), (0, 60, True), (2, 20, True)]


def test_a_clock_that_was_set_back_blocks_no_key() -> None:
    rate = Rate()
    rate.count(10_000.0, 1, calls=3, period=60)
    assert [rate.count(at, 1, calls=3, period=60).allowed for at in (100.0, 120.0)] == [False, True]


def test_log_lines_of_calls_have_method_path_target_and_client(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        call(service.url, SEARCH, {"query": "mustard =\n\x9b2J", "page": 2})
        call(service.url, SEARCH, {"query": 7})
        call(service.url, f"{SEARCH}?api_key=secret", {"query": "x"}, headers={"X-API-Key": "not-a-key-at-all"})
        for path in ("/v1/usage?from=2026-01-01", "/readyz"):
            call(service.url, path, method="GET")
        service.process.terminate()
        service.process.wait(300)
        logged = [line for line in service.logged().splitlines() if "event=call" in line]
    fields = [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)) for line in logged]
    shown = [(each["method"], each["path"], each["client"], each["target"], each["code"]) for each in fields]
    assert shown == [
        ("POST", SEARCH, "sandbox", r'"page=2 query=mustard =\\n\\x9b2J"', "OK"),
        ("POST", SEARCH, "sandbox", "", "INVALID_REQUEST"),
        ("POST", SEARCH, "", "", "INVALID_API_KEY"),
        ("GET", "/v1/usage", "sandbox", "", "OK"),
        ("GET", "/readyz", "", "", "OK"),
    ]
    assert "secret" not in "".join(logged)
    assert "not-a-key" not in "".join(logged)


async def test_clients_are_told_the_limit_that_the_operator_set() -> None:
    async with limits(KEY_RATE="3/minute", KEY_CONCURRENCY=3, PROCESSES=2) as limit:
        status = await limit.count(HOLDER)
        assert status is not None
        assert status.headers["RateLimit-Policy"] == '"key";q=3;w=60'
        assert status.headers["X-RateLimit-Limit"] == "3"
        refused = await limit.count(HOLDER)
        assert refused is not None
        share = ", of which each of 2 processes allows an equal share."
        with pytest.raises(RateLimited) as error:
            refused.check()
        assert error.value.message == f"Rate limit exceeded: this key may make 3 calls in 60 s{share}"
        async with limit.in_flight(HOLDER):
            with pytest.raises(ConcurrencyLimited) as full:
                async with limit.in_flight(HOLDER):
                    pytest.fail("the key has two slots")
        assert full.value.message == f"Concurrency limit reached: this key may have 3 calls in flight{share}"


async def test_an_earlier_rate_of_zero_allows_no_call() -> None:
    async with limits(KEY_RATE="0/minute", PROCESSES=2) as limit:
        assert await count_allowed(limit, HOLDER, 2) == 0
