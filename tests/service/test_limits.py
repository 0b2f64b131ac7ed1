"""What a key may ask for: in memory, divided among processes, and shared through Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawler.errors import ConcurrencyLimited
from crawler.service.keys import Holder
from crawler.service.limits import KeyLimits, Release
from tests.service.client import SEARCH, call, many
from tests.service.conftest import running

HOLDER = Holder("acme", "k1")
OTHER = Holder("acme", "k2")
NOWHERE = "redis://127.0.0.1:1"


@asynccontextmanager
async def limits(**settings: object) -> AsyncIterator[KeyLimits]:
    limit = KeyLimits(Settings({"PROCESSES": 1, "KEY_CONCURRENCY": 0, **settings}))
    try:
        yield limit
    finally:
        await limit.close()


async def passed(limit: KeyLimits, holder: Holder, calls: int) -> int:
    """How many of so many calls are within the rate."""
    standings = [await limit.count(holder) for _ in range(calls)]
    return sum(standing is None or standing.allowed for standing in standings)


async def entered(limit: KeyLimits, holder: Holder, calls: int) -> list[Release]:
    """What gives back the places of those calls that got one."""
    leaves = []
    for _ in range(calls):
        try:
            leaves.append(await limit.acquire(holder))
        except ConcurrencyLimited:
            break
    return leaves


@pytest.mark.parametrize(
    ("settings", "holder", "expected"),
    [
        pytest.param({}, HOLDER, 10, id="no limit"),
        pytest.param({"KEY_RATE": "4/minute"}, HOLDER, 4, id="the default"),
        pytest.param({"KEY_RATE": "4/minute"}, Holder("a", "k", rate="7/hour"), 7, id="the key's own"),
        pytest.param({"KEY_RATE": "4/minute", "PROCESSES": 2}, HOLDER, 2, id="a process' part"),
        pytest.param({"KEY_RATE": "4/minute", "PROCESSES": 9}, HOLDER, 1, id="at least one"),
        pytest.param({"KEY_RATE": "4/minute", "PROCESSES": 2, "REDIS_URL": NOWHERE}, HOLDER, 2, id="Redis away"),
    ],
)
def test_calls_in_a_time(settings: dict[str, object], holder: Holder, expected: int) -> None:
    async def scenario() -> int:
        async with limits(**settings) as limit:
            found = await passed(limit, holder, 10)
            assert await passed(limit, OTHER, 1) == 1, "another key has a window of its own"
        return found

    assert asyncio.run(scenario()) == expected


@pytest.mark.parametrize(
    ("settings", "holder", "expected"),
    [
        pytest.param({}, HOLDER, 10, id="no limit"),
        pytest.param({"KEY_CONCURRENCY": 4}, HOLDER, 4, id="the default"),
        pytest.param({"KEY_CONCURRENCY": 4}, Holder("a", "k", concurrency=7), 7, id="the key's own"),
        pytest.param({"KEY_CONCURRENCY": 4, "PROCESSES": 2}, HOLDER, 2, id="a process' part"),
        pytest.param({"KEY_CONCURRENCY": 4, "PROCESSES": 2, "REDIS_URL": NOWHERE}, HOLDER, 2, id="Redis away"),
    ],
)
def test_calls_at_once(settings: dict[str, object], holder: Holder, expected: int) -> None:
    async def scenario() -> int:
        async with limits(**settings) as limit:
            leaves = await entered(limit, holder, 10)
            assert len(await entered(limit, OTHER, 1)) == 1, "another key has places of its own"
            for leave in leaves:
                leave()
            assert len(await entered(limit, holder, 10)) == len(leaves), "a place that is given back is free"
        return len(leaves)

    assert asyncio.run(scenario()) == expected


def test_processes_share_a_rate_through_redis(redis_url: str) -> None:
    async def scenario() -> int:
        shared = {"KEY_RATE": "10/minute", "PROCESSES": 2, "REDIS_URL": redis_url}
        async with limits(**shared) as one, limits(**shared) as two:
            return await passed(one, HOLDER, 3) + await passed(two, HOLDER, 20)

    assert asyncio.run(scenario()) == 10


def test_processes_share_places_through_redis(redis_url: str) -> None:
    async def scenario() -> tuple[int, int, int]:
        shared = {"KEY_CONCURRENCY": 4, "PROCESSES": 2, "REDIS_URL": redis_url}
        async with limits(**shared) as one, limits(**shared) as two:
            first = await entered(one, HOLDER, 3)
            second = await entered(two, HOLDER, 3)
            for leave in first:
                leave()
            await asyncio.sleep(0.05)
            return len(first), len(second), len(await entered(two, HOLDER, 10))

    assert asyncio.run(scenario()) == (3, 1, 3)


def test_the_answers_say_where_the_key_stands(tmp_path: Path) -> None:
    with running(tmp_path / "log", "KEY_RATE=2/minute") as service:
        replies = [call(service.url, SEARCH, {"query": "mustard"}) for _ in range(3)]
    assert [reply.code for reply in replies] == ["OK", "OK", "RATE_LIMITED"]
    assert [reply.headers["x-ratelimit-remaining"] for reply in replies] == ["1", "0", "0"]
    assert replies[0].headers["ratelimit-policy"] == '"key";q=2;w=60'
    refused = replies[2]
    assert refused.status == 429
    assert refused.reason == "Too Many Requests"
    assert refused.headers["retry-after"] == str(refused.body["error"]["retry_after"])
    assert 0 < refused.body["error"]["retry_after"] <= 60


def test_a_key_with_too_many_calls_in_flight(tmp_path: Path) -> None:
    with running(tmp_path / "log", "KEY_CONCURRENCY=2") as service:
        replies = asyncio.run(many(service.url, [(SEARCH, {"query": "slow"})] * 6))
        codes = sorted(reply.code for reply in replies)
        assert codes == ["CONCURRENCY_LIMITED"] * 4 + ["OK"] * 2
        assert call(service.url, SEARCH, {"query": "mustard"}).code == "OK", "the places are free again"
