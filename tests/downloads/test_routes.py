"""Routes: the choice of a target's egress, its binding, and rests."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from typing import Any

import pytest
from scrapy import Request

from crawler.downloads.breaker import LocalBreaker
from crawler.downloads.capacity import platform_capacity
from crawler.downloads.refusals import target_key
from crawler.errors import (
    CircuitOpen,
    EgressFailed,
    ExtractionFailed,
    Overloaded,
    ScrapeError,
    TargetNotFound,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.registry import spiders
from crawler.targets.exceptions import StartAnew
from crawler.targets.target import Outcome
from tests.downloads.routes import BLOCK, FAILED, LOST, NAMES, Sending, made, names, target


async def test_targets_get_the_egress_whose_next_slot_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    used: Counter[str] = Counter()
    async with sending.download(target("1")) as one, sending.download(target("2")) as two:
        assert {one, two} < {*NAMES}
        async with sending.download(target("3")) as three:
            assert {one, two, three} == {*NAMES}
    for number in range(4, 31):
        used[await sending.egress(target(str(number)))] += 1
    assert used == dict.fromkeys(NAMES, 9)


async def test_free_slots_come_equally_soon_on_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = made()
    busy, *free = routes
    routes.bind(target("1"), busy)
    seconds = itertools.count()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: float(next(seconds)))
    assert list(routes.candidates(target("2"))) == [*free, busy]


async def test_slots_of_different_budgets_are_used_in_their_order() -> None:
    slow = {"budgets": {"retail": {"delay": 20}}}
    egresses = [{"name": "slow", **slow}, {"name": "fast", "budgets": {"retail": {"delay": 5}}}]
    routes = made(EGRESSES=egresses)
    for route in routes:
        (await route.budget.acquire())()
    assert names(routes.candidates(target("1"))) == ["fast", "slow"]


async def test_a_target_keeps_its_egress(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1")
    first = await sending.egress(each)
    others = [target(str(number)) for number in range(2, 8)]
    for other in others:
        await sending.egress(other)
    assert {await sending.egress(each, source="page") for _ in range(5)} == {first}
    for done in [each, *others]:
        sending.routes.completed(Outcome(done, None, None, 0))
    assert {route.targets for route in sending.routes} == {0}


@pytest.mark.parametrize(
    ("error", "rests"),
    [
        (FAILED, 1),
        (BLOCK, 0),
        (LOST, 0),
        (UpstreamTimeout("slow", reason="timeout"), 0),
        (ExtractionFailed("unknown page"), 0),
        (TargetNotFound("no such page"), 0),
        (None, 0),
    ],
)
async def test_only_a_failure_of_its_own_lets_an_egress_rest_at_once(error: ScrapeError | None, rests: int) -> None:
    routes = made()
    route = next(iter(routes))
    await route.count("listing", error)
    assert (route.connection.cooldown_left > 0) == rests
    assert (route.egress.name not in names(routes.in_use)) == rests


async def test_an_egress_rests_after_two_targets_in_a_row_have_lost_their_connections() -> None:
    """One target alone may be the cause itself."""
    route = next(iter(made()))
    for _ in range(3):
        await route.count_lost(target("1"))
    assert not route.connection.cooldown_left
    await route.count("listing", None)
    await route.count_lost(target("2"))
    assert not route.connection.cooldown_left, "an answer came in between"
    await route.count("listing", LOST)
    await route.count_lost(target("3"))
    assert route.connection.cooldown_left


async def test_the_rest_is_doubled_and_an_answer_of_any_kind_ends_it() -> None:
    route = next(iter(made(BREAKER_COOLDOWN=0)))
    policy = route.connection.policy  # type: ignore[attr-defined]  # of LocalBreaker
    assert [policy.pause(failures) for failures in (1, 2, 3)] == [0, 0, 0]
    assert LocalBreaker(policy).policy.threshold == 1
    await route.count("listing", FAILED)
    assert route.connection.open_seconds is not None
    assert await route.enter("listing") == 0, "the trial"
    assert await route.enter("listing") > 0, "only one"
    await route.count("listing", TargetNotFound("the platform answered"))
    assert route.connection.open_seconds is None


async def test_requests_that_fail_because_an_egress_rests_are_not_further_failures() -> None:
    route = next(iter(made()))
    for _ in range(3):
        await route.count("listing", FAILED)
    assert [route.take_failures(), route.take_failures()] == [1, 0]


async def test_targets_avoid_an_egress_that_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    first, *_ = sending.routes
    await first.count("listing", FAILED)
    used = {await sending.egress(target(str(number))) for number in range(9)}
    assert used == {"b", "c"}


async def test_a_target_whose_egress_failed_leaves_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1")
    failed = await sending.egress(each)
    route = sending.routes.of(each)
    await route.count("listing", FAILED)
    with pytest.raises(EgressFailed):
        await sending.egress(each)
    sending.routes.leave(each)
    assert await sending.egress(each, restarted=True) != failed
    with pytest.raises(StartAnew):
        await sending.egress(each)


async def test_a_late_failure_of_the_first_start_does_not_count_for_the_second_egress() -> None:
    """Tasks of the first start may still send requests, or have them in flight, when the target starts anew."""
    spider = spiders()["retail"](query="tea")
    spider.routes = made("a", "b")
    each = target("1")
    first, second = spider.routes
    spider.routes.use(each, first)
    in_flight = spider._of_target(Request("https://shop.example/", meta={"source": "listing"}), each)
    assert in_flight.meta["bound"]
    spider.routes.leave(each)
    sent_later = spider._of_target(Request("https://shop.example/", meta={"source": "listing"}), each)
    spider.routes.use(each, second)
    for request in (in_flight, sent_later):
        with pytest.raises(StartAnew):
            await spider._count_failed(request, FAILED)
    assert not second.connection.cooldown_left
    again = Request("https://shop.example/", meta={"source": "listing", "restarted": True})
    assert not spider.routes.is_outdated(spider._of_target(again, each).meta)


async def test_a_request_that_waits_for_a_slot_is_not_sent_after_its_target_has_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For example a remaining request of an enrichment, which could be sent through another egress."""
    sending = Sending(made("a", "b"), monkeypatch)
    each = target("1")
    async with sending.download(each):
        waiting = asyncio.ensure_future(sending.egress(each, bound=True))
        await asyncio.sleep(0)
        sending.routes.completed(Outcome(each, None, None, 0))
    with pytest.raises(StartAnew):
        await waiting
    assert [route.targets for route in sending.routes] == [0, 0]


async def test_a_request_that_waits_for_a_slot_is_not_sent_if_its_target_starts_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request was made for the first start of the target. The second start makes its own requests."""
    sending = Sending(made("a", "b"), monkeypatch)
    each = target("1")
    async with sending.download(each):
        waiting = asyncio.ensure_future(sending.egress(each))
        await asyncio.sleep(0)
        sending.routes.leave(each)
    with pytest.raises(StartAnew):
        await waiting
    assert await sending.egress(target("2"))
    assert await sending.egress(target("3"))


async def test_if_all_egresses_rest_a_call_fails_with_the_earliest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    loop = asyncio.get_running_loop()
    for number, route in enumerate(sending.routes):
        await route.count("listing", UpstreamRateLimited("later", retry_after=100 * (3 - number)))
    with pytest.raises(CircuitOpen) as refused:
        await sending.egress(target("1", deadline=loop.time() + 60))
    assert refused.value.retry_after == 100


async def test_if_another_breaker_stops_a_trial_another_request_becomes_the_trial() -> None:
    route = next(iter(made(BREAKER_COOLDOWN=0)))
    await route.count("listing", UpstreamRateLimited("later", retry_after=100))
    await route.count("listing", FAILED)
    assert await route.enter("listing") > 1
    assert await route.enter("search") == 0, "the trial of the egress"
    assert await route.enter("search") > 0, "only one"


@pytest.mark.parametrize(
    "error", [CircuitOpen("open"), Overloaded("full"), UpstreamTimeout("no slot", reason="no_turn")]
)
async def test_a_request_that_was_not_sent_does_not_end_the_rest_of_an_egress(error: ScrapeError) -> None:
    routes = made(BREAKER_COOLDOWN=0)
    each = target("1")
    route = routes.assign(each, "listing")
    await routes.count(each, "listing", FAILED)
    await routes.count(each, "listing", error)
    assert route.connection.open_seconds is not None


async def test_a_crawl_gives_up_only_if_all_egresses_have_rested_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """One egress has failed for hours. The others have begun to rest just now."""
    sending = Sending(made(), monkeypatch)
    sending.middleware.give_up_after = 3_600
    first, *others = sending.routes
    now = time.monotonic()
    first.connection._opened, first.connection._open_until = now - 7_200, now + 0.01  # type: ignore[attr-defined]
    for other in others:
        await other.count("listing", UpstreamRateLimited("later", retry_after=60))
    assert await sending.egress(target("1")) == "a", "the trial"


async def test_a_guest_token_belongs_to_an_egress_that_does_not_rest_for_its_source() -> None:
    routes = made()
    first, second, _ = routes
    await first.count("timeline", UpstreamRateLimited("later", retry_after=60))
    await second.count("timeline", FAILED)
    assert names(routes.assign(target(str(number)), "timeline") for number in range(3)) == ["c"] * 3
    used = names(routes.assign(target(str(number)), "user") for number in range(3, 7))
    assert set(used) == {"a", "c"}


async def test_a_refused_target_keeps_the_guest_token_of_its_egress() -> None:
    routes = made()
    await routes.refusals.remember(target_key(target("1", "wall")), "b")
    assert names(routes.assign(target(str(number), "wall"), "timeline") for number in range(2, 6)) == ["b"] * 4


async def test_a_resting_platform_has_its_own_breaker_which_lets_one_trial_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = Sending(made(BREAKER_COOLDOWN=0), monkeypatch)
    platform = next(iter(sending.routes)).platform
    assert platform is not None
    await platform.record(BLOCK)
    deadline = asyncio.get_running_loop().time() + 60
    trial = target("1", deadline=deadline)
    await sending.egress(trial)
    with pytest.raises(CircuitOpen):
        await sending.egress(target("2", deadline=deadline))
    await sending.routes.count(trial, "listing", None)
    assert platform.open_seconds is None
    assert len({await sending.egress(target(str(number))) for number in range(3, 9)}) == 3


async def test_admission_sums_the_egresses_that_do_not_rest() -> None:
    routes = made(delay=10)
    now = asyncio.get_running_loop().time()
    assert routes.earliest(ahead=2) - now < 1, "three slots at once"
    three = routes.earliest(ahead=32) - now
    first, second, third = routes
    await first.count("listing", FAILED)
    await second.count("listing", FAILED)
    one = routes.earliest(ahead=32) - now
    assert names(routes.in_use) == ["c"]
    assert 3 < one / three < 3.3
    await third.count("listing", FAILED)
    with pytest.raises(CircuitOpen) as refused:
        routes.earliest()
    assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    ("platform", "budget", "expected"),
    [
        ("retail", {"concurrency": 2, "delay": 2}, 1_800),
        ("retail", {"concurrency": 2, "delay": 0}, 7_200),
        ("photoapp", {"concurrency": 1, "delay": 30}, 60),
        ("shortvideo", {"concurrency": 2, "delay": 0}, 480),
        ("microblog", {"concurrency": 1, "delay": 3, "sources": {"timeline": {"concurrency": 1, "delay": 21}}}, 171),
        ("microblog", {"concurrency": 1, "delay": 3}, 240),
        ("videosite", {"concurrency": 2, "delay": 1.5}, 75),
    ],
)
def test_targets_per_hour(platform: str, budget: dict[str, Any], expected: int) -> None:
    assert int(platform_capacity(platform, {"sources": {}} | budget)) == expected
