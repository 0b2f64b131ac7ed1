"""Lanes of several processes, which share suspensions, budgets and refusals through a store."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.breaker import Blocks
from crawler.errors import (
    Overloaded,
    ScrapeError,
)
from tests.downloads.processes import UNREACHABLE
from tests.downloads.sending import BLOCK, FAILED, Sending, made, target
from tests.stored_facts import stored_facts


async def test_processes_share_rests_budgets_and_refusals(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (made(STORE=location, SHARED_LIMITS=1, DOWNLOAD_TIMEOUT=1, delay=100) for _ in range(2))
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


async def test_a_call_gets_another_egress_if_other_processes_have_taken_the_slots_of_the_first(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (made(STORE=location, SHARED_LIMITS=1, DOWNLOAD_TIMEOUT=1, delay=100) for _ in range(2))
    deadline = asyncio.get_running_loop().time() + 20
    used = [await Sending(one, monkeypatch).egress(target("1", deadline=deadline))]
    sending = Sending(other, monkeypatch)
    used += [await sending.egress(target(str(number), deadline=deadline)) for number in (2, 3)]
    assert sorted(used) == ["a", "b", "c"]
    with pytest.raises(Overloaded):
        await sending.egress(target("4", deadline=deadline))
    third = made(STORE=location, SHARED_LIMITS=1, DOWNLOAD_TIMEOUT=1, delay=100)
    await next(iter(one)).count("listing", FAILED)
    with pytest.raises(Overloaded):  # not CircuitOpen: only one egress rests
        await Sending(third, monkeypatch).egress(target("5", deadline=deadline))


async def test_the_store_keeps_the_reasons_of_rests_and_the_sources_without_one(location: str) -> None:
    lanes = made(STORE=location, SHARED_LIMITS=1, DOWNLOAD_TIMEOUT=1)
    first, second, _ = lanes
    for _ in range(2):
        await first.count("listing", BLOCK)
    await first.enter("search")
    await second.count("listing", FAILED)
    await lanes.refusals.facts.change(Blocks, "retail:listing@a", lambda *_: None)  # stores the request, too
    found, now = await asyncio.to_thread(stored_facts, location, Blocks, ["retail"])
    reasons = {name: each.reason for name, each in found.items() if each.open_until > now}
    assert reasons == {"retail:listing@a": "challenge", "retail:(connection)@b": "egress_failed"}
    assert "retail:search@a" in found, "another source of the egress does not rest"


async def test_while_the_store_is_away_each_process_remembers_for_itself() -> None:
    lanes = made(STORE=UNREACHABLE, SHARED_LIMITS=1)
    await lanes.refusals.remember("key", "a")
    assert await lanes.refusals.egress_of("key") == "a"
    assert await lanes.refusals.meet("wall", "a") == 1
    await lanes.refusals.forget("wall")
