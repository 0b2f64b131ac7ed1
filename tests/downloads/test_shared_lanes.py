"""Lanes of several processes, which share rests, budgets and refusals through Redis."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.breaker import BreakerKey
from crawler.downloads.lanes import Lanes
from crawler.downloads.redis_breaker import shared_breakers
from crawler.errors import (
    Overloaded,
    ScrapeError,
)
from tests.downloads.lanes import BLOCK, FAILED, Sending, made, target


async def test_processes_share_rests_budgets_and_refusals(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1, delay=100) for _ in range(2))
    first = Sending(one, monkeypatch)
    each = target("1")
    async with first.download(each) as used:
        pass
    lane = next(lane for lane in other if lane.egress.name == used)
    with pytest.raises(ScrapeError):
        await lane.budget.acquire(asyncio.get_running_loop().time() + 1)
    await first.lanes.count(each, "listing", FAILED)
    assert [bool(await lane.enter("listing")) for lane in other] == [each.egress.name == used for each in other]
    for _ in range(2):
        await one.refusals.remember("key", "b")
    assert await other.refusals.egress_of("key") == "b"
    assert await one.refusals.meet("wall", "a") == 1
    assert await other.refusals.meet("wall", "b") == 2
    await close(one, other)


async def test_a_call_gets_another_egress_if_other_processes_have_taken_the_slots_of_the_first(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1, delay=100) for _ in range(2))
    deadline = asyncio.get_running_loop().time() + 20
    used = [await Sending(one, monkeypatch).egress(target("1", deadline=deadline))]
    sending = Sending(other, monkeypatch)
    used += [await sending.egress(target(str(number), deadline=deadline)) for number in (2, 3)]
    assert sorted(used) == ["a", "b", "c"]
    with pytest.raises(Overloaded):
        await sending.egress(target("4", deadline=deadline))
    third = made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1, delay=100)
    await next(iter(one)).count("listing", FAILED)
    with pytest.raises(Overloaded):  # not CircuitOpen: only one egress rests
        await Sending(third, monkeypatch).egress(target("5", deadline=deadline))
    await close(one, other, third)


async def test_redis_keeps_the_reasons_of_rests_and_the_sources_without_one(redis_url: str) -> None:
    lanes = made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1)
    first, second, _ = lanes
    for _ in range(2):
        await first.count("listing", BLOCK)
    await first.enter("search")
    await second.count("listing", FAILED)
    found = {str(key): each for key, each in (await shared_breakers(lanes.refusals.redis)).items()}  # type: ignore[attr-defined]
    reasons = {key: each.reason for key, each in found.items() if each.cooldown_left}
    assert reasons == {"retail:listing@a": "challenge", "retail:(connection)@b": "egress_failed"}
    assert "retail:search@a" in found, "another source of the egress does not rest"
    assert {BreakerKey.parse(key) for key in found} > {
        BreakerKey("retail", "listing", "@a"),
        BreakerKey("retail", "search", "@a"),
    }
    await close(lanes)


async def test_while_redis_is_away_each_process_remembers_for_itself() -> None:
    lanes = made(REDIS_URL="redis://127.0.0.1:1")
    await lanes.refusals.remember("key", "a")
    assert await lanes.refusals.egress_of("key") == "a"
    assert await lanes.refusals.meet("wall", "a") == 1
    await lanes.refusals.forget("wall")
    await close(lanes)


async def close(*all_lanes: Lanes) -> None:
    for lanes in all_lanes:
        for lane in lanes:
            await lane.budget.close()  # type: ignore[attr-defined]  # of RedisThrottle
            await lane.connection._step.registered_client.aclose()  # type: ignore[attr-defined]
        await lanes.refusals.redis.aclose()  # type: ignore[attr-defined]  # of RedisRefusals
