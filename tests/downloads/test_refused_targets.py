"""Lanes remember through which egress the platform has refused a target."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.lanes import Refusals, target_key
from crawler.errors import CircuitOpen, ScrapeError, TargetNotFound, UpstreamBlocked
from crawler.targets.target import Outcome
from tests.downloads.sending import BLOCK, FAILED, LOST, Sending, made, target


async def test_a_refused_target_is_not_sent_through_another_egress(sending: Sending) -> None:
    each = target("1", "wall")
    name = await sending.egress(each)
    for _ in range(2):
        await sending.lanes.count(each, "listing", BLOCK)
    sending.lanes.completed(Outcome(each, None, BLOCK, 0))
    await asyncio.sleep(0)
    with pytest.raises(CircuitOpen) as refused:
        await sending.egress(target("2", "wall"))
    assert refused.value.reason == "refused_before"
    assert 0 < (refused.value.retry_after or 0) <= 60
    assert name not in {await sending.egress(target(str(number))) for number in range(3, 9)}, "others go on"


async def test_a_refused_target_returns_to_its_egress_if_that_does_not_rest(sending: Sending) -> None:
    each = target("1", "wall")
    name = await sending.egress(each)
    sending.lanes.completed(Outcome(each, None, BLOCK, 0))
    await asyncio.sleep(0)
    assert {await sending.egress(target(str(number), "wall")) for number in range(2, 6)} == {name}


@pytest.mark.parametrize(
    ("passed", "known"), [(0, "one"), (59, "one"), (60, None), pytest.param(-86_400, None, id="the clock was set back")]
)
async def test_a_refusal_is_remembered_for_some_time(clock: list[float], passed: float, known: str | None) -> None:
    refusals = Refusals(60)
    await refusals.remember("wall", "one")
    clock[0] += passed
    assert refusals.known("wall") == await refusals.egress_of("wall") == known


@pytest.mark.parametrize("error", [None, LOST, FAILED, TargetNotFound("no such page"), CircuitOpen("open")])
async def test_only_refusals_are_remembered(error: ScrapeError | None, sending: Sending) -> None:
    each = target("1")
    await sending.egress(each)
    sending.lanes.completed(Outcome(each, None, error, 0))
    await asyncio.sleep(0)
    assert await sending.lanes.refusals.egress_of(target_key(each)) is None


async def test_a_crawl_ends_after_its_refused_targets_are_remembered(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = target("1")
    name = await sending.egress(each)
    remember = sending.lanes.refusals.remember

    async def remember_slowly(key: str, egress: str) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        await remember(key, egress)

    monkeypatch.setattr(sending.lanes.refusals, "remember", remember_slowly)
    sending.lanes.completed(Outcome(each, None, BLOCK, 0))
    await sending.lanes.stored()
    assert sending.lanes.refusals.known(target_key(each)) == name


async def test_if_most_egresses_meet_the_same_wall_the_platform_is_suspended(sending: Sending) -> None:
    met = [target("1"), target("2")]
    async with sending.download(met[0]), sending.download(met[1]):
        pass
    assert len({each.release.lane for each in met}) == 2
    for _ in range(2):
        await sending.lanes.count(met[0], "listing", BLOCK)
    assert len(sending.lanes.in_use) == 2
    for _ in range(2):
        await sending.lanes.count(met[1], "listing", UpstreamBlocked("another wall", reason="login_wall"))
    assert [lane.suspension("listing") > 0 for lane in sending.lanes].count(True) == 2
    assert len(sending.lanes.in_use) == 1
    await sending.lanes.count(met[1], "listing", UpstreamBlocked("wall", reason="challenge"))
    assert all(lane.suspension(source) > 0 for lane in sending.lanes for source in ("listing", "another source"))
    assert sending.lanes.concurrency == 0
    with pytest.raises(CircuitOpen) as refused:
        sending.lanes.start_in()
    assert 0 < (refused.value.retry_after or 0) <= 60
    with pytest.raises(CircuitOpen, match="through most egresses"):
        await sending.egress(target("3", deadline=asyncio.get_running_loop().time() + 60), source="another source")


async def test_the_only_egress_of_a_platform_is_suspended_for_the_source_alone() -> None:
    lanes = made("a")
    each = target("1")
    lanes.of(each, "listing")
    for _ in range(5):
        await lanes.count(each, "listing", BLOCK)
    (lane,) = lanes
    assert lane.suspension("listing") > 0
    assert lane.suspension("another source") == 0


def test_the_key_of_a_target_depends_on_its_params_only() -> None:
    assert target_key(target("1", "tea")) == target_key(target("2", "tea")) != target_key(target("1", "coffee"))
