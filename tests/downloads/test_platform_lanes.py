"""Lanes: the choice of a target's egress, releases, and suspensions."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import selectors
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request

from crawler.downloads.egress_setting import platform_capacity
from crawler.downloads.lane import egress_failed
from crawler.downloads.lanes import target_key
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
from crawler.targets.target import Release, ReleaseEnded, Target
from tests.downloads.sending import BLOCK, FAILED, LOST, NAMES, Sending, made, names, released_again, target


async def test_targets_get_the_egress_whose_next_slot_comes_first(sending: Sending) -> None:
    used: Counter[str] = Counter()
    async with sending.download(target("1")) as one, sending.download(target("2")) as two:
        assert {one, two} < {*NAMES}
        async with sending.download(target("3")) as three:
            assert {one, two, three} == {*NAMES}
    for number in range(4, 31):
        used[await sending.egress(target(str(number)))] += 1
    assert used == dict.fromkeys(NAMES, 9)


async def test_free_slots_come_equally_soon_on_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = made()
    busy, *free = lanes
    busy.targets = 1
    seconds = itertools.count()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: float(next(seconds)))
    assert list(lanes.candidates(Release())) == [*free, busy]


async def test_slots_of_different_budgets_are_used_in_their_order() -> None:
    delays = {"slow": 20, "fast": 5}
    egresses = [
        {"name": name, "proxy": "http://127.0.0.1:9", "budgets": {"retail": {"delay": delay}}}
        for name, delay in delays.items()
    ]
    lanes = made(EGRESSES=egresses)
    for lane in lanes:
        (await lane.budget.acquire())()
    assert names(lanes.candidates(Release())) == ["fast", "slow"]


@pytest.mark.parametrize(("own", "starts"), [({"delay": 1, "burst": 9}, 4), ({"delay": 20, "burst": 2}, 2)])
def test_downloads_start_as_fast_as_the_slower_of_two_budgets(own: dict[str, Any], starts: int) -> None:
    budget = {"concurrency": 9, "delay": 10, "burst": 3, "sources": {"search": own | {"concurrency": 9}}}
    [lane] = made("a", PLATFORM_BUDGETS={"retail": budget})
    assert (lane.starts_within("search", 10), lane.starts_within("page", 10)) == (starts, 4)


async def test_a_target_keeps_its_egress(sending: Sending) -> None:
    each = target("1")
    first = await sending.egress(each)
    others = [target(str(number)) for number in range(2, 8)]
    for other in others:
        await sending.egress(other)
    assert {await sending.egress(each, source="page") for _ in range(5)} == {first}
    for done in [each, *others]:
        done.release.end()
    assert {lane.targets for lane in sending.lanes} == {0}


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
async def test_only_a_failure_of_its_own_suspends_an_egress_at_once(error: ScrapeError | None, rests: int) -> None:
    lanes = made()
    lane = next(iter(lanes))
    await lane.count("listing", error)
    assert (lane.connection.cooldown_left > 0) == rests
    assert (lane.egress.name not in names(lanes.in_use)) == rests


async def test_an_egress_is_suspended_after_two_targets_in_a_row_have_lost_their_connections() -> None:
    """One target that loses its connections several times suspends nothing: the target itself may be the cause."""
    lane = next(iter(made()))
    for _ in range(3):
        await lane.count_lost("1")
    assert not lane.connection.cooldown_left
    await lane.count("listing", None)
    await lane.count_lost("2")
    assert not lane.connection.cooldown_left, "an answer came in between"
    await lane.count("listing", LOST)
    await lane.count_lost("3")
    assert lane.connection.cooldown_left


async def test_the_rest_is_doubled_and_an_answer_of_any_kind_ends_it() -> None:
    lane = next(iter(made(BREAKER_COOLDOWN=0)))
    policy = lane.connection.policy
    assert [policy.pause(failures) for failures in (1, 2, 3)] == [0, 0, 0]
    assert policy.threshold == 1
    await lane.count("listing", FAILED)
    assert lane.connection.open_seconds is not None
    assert await lane.enter("listing") == 0, "the trial"
    assert await lane.enter("listing") > 0, "only one"
    await lane.count("listing", TargetNotFound("the platform answered"))
    assert lane.connection.open_seconds is None


async def test_requests_that_fail_because_of_a_suspended_egress_are_not_further_failures() -> None:
    lane = next(iter(made()))
    for _ in range(3):
        await lane.count("listing", FAILED)
    assert [lane.take_failures(), lane.take_failures()] == [1, 0]


async def test_targets_avoid_a_suspended_egress(sending: Sending) -> None:
    first, *_ = sending.lanes
    await first.count("listing", FAILED)
    used = {await sending.egress(target(str(number))) for number in range(9)}
    assert used == {"b", "c"}


async def test_a_target_whose_egress_failed_leaves_it_once(sending: Sending) -> None:
    each = target("1")
    failed = await sending.egress(each)
    await sending.lanes.count(each, "listing", FAILED)
    with pytest.raises(EgressFailed):
        await sending.egress(each)
    again = released_again(each)
    assert await sending.egress(again) != failed
    with pytest.raises(ReleaseEnded):
        await sending.egress(each)


async def test_parallel_requests_of_an_abandoned_release_count_nowhere(sending: Sending) -> None:
    """Tasks of a target's first start may still have requests in flight when the target has been restarted."""
    each = target("1")
    first = await sending.egress(each)
    again = released_again(each)
    assert await sending.egress(again) != first
    for error in (FAILED, BLOCK, LOST, None):
        for _ in range(3):
            await sending.lanes.count(each, "listing", error)
    assert [lane.usable_in for lane in sending.lanes] == [0, 0, 0]
    assert [lane.take_failures() for lane in sending.lanes] == [0, 0, 0]
    assert not each.release.is_refused
    await sending.lanes.count(again, "listing", FAILED)
    assert [lane.egress.name for lane in sending.lanes if lane.usable_in] == [again.release.lane.egress.name]  # type: ignore[union-attr]


async def test_a_failure_counts_for_the_egress_of_its_request_after_the_outcome_of_its_target(
    sending: Sending,
) -> None:
    """A call's deadline can pass while its stalled proxy is being checked. The failure still counts for the proxy."""
    for number in range(6):
        each = target(str(number))
        name = await sending.egress(each)
        each.release.end()
        if name == "a":
            await sending.lanes.count(each, "listing", egress_failed(name, "no connection within 5 s"))
    suspended = {lane.egress.name: lane.connection.cooldown_left > 0 for lane in sending.lanes}
    assert suspended == {"a": True, "b": False, "c": False}


async def test_a_target_that_was_sent_nowhere_still_has_its_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane fails while the target waits for a slot, so the target was not sent there. It may still restart once."""
    sending = Sending(made(delay=0.05), monkeypatch)
    a, b, c = sending.lanes
    for lane in sending.lanes:
        (await lane.budget.acquire())()
    each = target("1")
    waiting = asyncio.ensure_future(sending.egress(each))
    await asyncio.sleep(0)
    await a.count("listing", FAILED)
    await c.count("listing", UpstreamRateLimited("later", retry_after=100))
    assert await waiting == "b"
    await b.count("listing", FAILED)
    again = released_again(each)
    assert again.release.lane is None
    c.breakers["listing"]._blocks.open_until = 0.0  # its suspension is over
    assert await sending.egress(again) == "c"


class SimulatedTime(selectors.DefaultSelector):
    """A selector that does not wait: the time of its loop advances instead."""

    now = 1_000.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        self.now += 0 if found or timeout is None else max(timeout, 1e-6)
        return found


def test_no_unsent_target_waits_for_a_suspended_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three egresses have the photo app's delay of 30 s.

    At 119 s, the platform's rate limit suspends one egress until the end of the test.
    """
    clock = SimulatedTime()
    loop = asyncio.SelectorEventLoop(clock)
    monkeypatch.setattr(loop, "time", lambda: clock.now)
    monkeypatch.setattr("crawler.downloads.facts.time.monotonic", lambda: clock.now)
    monkeypatch.setattr("crawler.downloads.throttle.jittered", lambda _: 1.0)
    sending = Sending(made(delay=30), monkeypatch)
    first, *_ = sending.lanes
    sent: list[tuple[float, str]] = []

    async def scrape(each: Target) -> None:
        async with sending.download(each) as name:
            sent.append((loop.time() - 1_000, name))
            await asyncio.sleep(2)
        each.release.end()

    async def run() -> None:
        targets = [asyncio.ensure_future(scrape(target(str(number)))) for number in range(48)]
        await asyncio.sleep(119)
        await first.count("listing", UpstreamRateLimited("later", retry_after=3_000))
        assert first.targets == 0
        await asyncio.gather(*targets)

    with contextlib.closing(loop):
        loop.run_until_complete(run())
    assert Counter(name for _, name in sent) == {"a": 4, "b": 22, "c": 22}
    assert sent[-1][0] == pytest.approx(21 * 30, abs=1)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda each: each.release.end(), id="has its outcome"),
        pytest.param(released_again, id="is released again"),
    ],
)
async def test_a_request_that_waits_for_a_slot_is_not_sent_if_its_target(
    sending: Sending, end: Callable[[Target], Any]
) -> None:
    """After its outcome, a remaining enrichment request could be sent through another egress.

    A request of the first start is not needed after a restart, because the target then makes its own requests.
    """
    each = target("1")
    async with sending.download(each):
        waiting = asyncio.ensure_future(sending.egress(each))
        await asyncio.sleep(0)
        end(each)
    with pytest.raises(ReleaseEnded):
        await waiting
    assert [lane.targets for lane in sending.lanes] == [0, 0, 0]
    assert {await sending.egress(target(str(number))) for number in range(2, 5)} == {*NAMES}


async def test_a_call_whose_deadline_passes_while_all_slots_are_taken_times_out(sending: Sending) -> None:
    """How long the downloads in flight take is not known before."""
    async with sending.download(target("1")), sending.download(target("2")), sending.download(target("3")):
        with pytest.raises(UpstreamTimeout):
            await sending.egress(target("4", deadline=asyncio.get_running_loop().time() + 0.05))


async def test_if_all_egresses_rest_a_call_fails_with_the_earliest_end(sending: Sending) -> None:
    loop = asyncio.get_running_loop()
    for number, lane in enumerate(sending.lanes):
        await lane.count("listing", UpstreamRateLimited("later", retry_after=1_000 * (3 - number)))
    with pytest.raises(CircuitOpen) as refused:
        await sending.egress(target("1", deadline=loop.time() + 60))
    assert 0 < (refused.value.retry_after or 0) <= 1_000


async def test_if_another_breaker_stops_a_trial_another_request_becomes_the_trial() -> None:
    lane = next(iter(made(BREAKER_COOLDOWN=0)))
    await lane.count("listing", UpstreamRateLimited("later", retry_after=100))
    await lane.count("listing", FAILED)
    assert await lane.enter("listing") > 1
    assert await lane.enter("search") == 0, "the trial of the egress"
    assert await lane.enter("search") > 0, "only one"


async def test_a_request_that_waits_behind_a_refusal_gives_back_the_trial_of_its_egress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = Sending(made("a", BREAKER_COOLDOWN=0), monkeypatch)
    [lane] = sending.lanes
    await lane.count("page", FAILED)
    free = await lane.acquire("listing", None, background=False)
    waiting = asyncio.ensure_future(sending.egress(target("1")))
    for _ in range(20):
        await asyncio.sleep(0)  # the request goes on as far as it can
    lane.breakers["listing"].sent(Release())
    lane.breakers["listing"].limited()
    free()
    for _ in range(20):
        await asyncio.sleep(0)
    assert await lane.enter("search") == 0, "it can be the trial"
    waiting.cancel()


@pytest.mark.parametrize("ends", [True, False], ids=["the target has ended", "a rate limit was met"])
async def test_a_request_that_cannot_be_sent_when_it_has_a_slot_gives_back_the_trial(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    sending = Sending(made("a", BREAKER_COOLDOWN=0), monkeypatch)
    [lane] = sending.lanes
    await lane.count("page", FAILED)
    free, each = await lane.acquire("listing", None, background=False), target("1", deadline=math.inf)
    waiting = asyncio.ensure_future(sending.egress(each))
    for _ in range(20):
        await asyncio.sleep(0)  # the request goes on as far as it can
    if ends:
        each.release.end()
    else:
        await lane.breakers["listing"].record(UpstreamRateLimited("later", retry_after=100))
    free()
    with pytest.raises(ReleaseEnded if ends else CircuitOpen):
        await waiting
    assert await lane.enter("search") == 0, "it can be the trial"
    await lane.count("listing", BLOCK)
    assert not lane.breakers["listing"].must_wait, "no request was sent"


@pytest.mark.parametrize("ends", [True, False], ids=["has ended", "was sent again"])
async def test_a_target_that_met_a_rate_limit_holds_back_no_other_when_it(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    sending, limited = Sending(made("a"), monkeypatch), target("1")
    sending.lanes.postpone(limited, next(iter(sending.lanes)), "listing")
    other = asyncio.ensure_future(sending.egress(target("2")))
    await asyncio.sleep(0)
    assert sending.lanes.has_due
    if ends:
        limited.release.end()
    with pytest.raises(ReleaseEnded) if ends else contextlib.nullcontext():
        await sending.egress(limited)
    assert not sending.lanes.has_due
    assert await other == "a"


async def test_a_retry_is_not_held_back_by_a_breaker(sending: Sending) -> None:
    request = Request("https://shop.example/", meta={"target": target("1", deadline=math.inf), "source": "listing"})
    await sending.middleware.process_request(request)
    sending.middleware.release(request)
    for lane in sending.lanes:
        await lane.count("listing", UpstreamRateLimited("later", retry_after=100))
    await sending.middleware.process_request(request)


async def test_a_request_that_was_not_sent_ends_no_wait_behind_those_in_flight() -> None:
    [lane] = made("a")
    breaker, refused = lane.breakers["listing"], Release()
    breaker.sent(refused)
    breaker.sent(refused)
    await lane.count("listing", BLOCK, release=refused)
    lane.withdraw("listing")
    assert breaker.must_wait, "one that was sent may be refused, too"


async def test_the_end_of_a_target_ends_the_wait_for_its_request_and_gives_back_its_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The result may never be counted: the crawl has ended, the target has started again, or its egress has failed."""
    sending = Sending(made("a", BREAKER_COOLDOWN=0), monkeypatch)
    [lane] = sending.lanes
    refused, slow, trial = targets = [target(name) for name in "123"]
    for each in targets[:2]:
        await sending.egress(each)
    await sending.lanes.count(refused, "listing", BLOCK)
    assert lane.breakers["listing"].must_wait
    slow.release.end()
    assert not lane.breakers["listing"].must_wait
    await lane.count("listing", FAILED)
    await sending.egress(trial)
    assert await lane.enter("search") > 0, "only one"
    trial.release.end()
    assert await lane.enter("search") == 0


async def test_a_request_leaves_its_source_for_another_only_when_a_breaker_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = Sending(made("a"), monkeypatch)
    [lane] = sending.lanes
    release = Release()
    lane.breakers["listing"].sent(release)
    lane.breakers["listing"].sent(release)
    await lane.count("listing", BLOCK, release=release)
    waiting = asyncio.ensure_future(sending.egress(target("1"), fallbacks=[["page"]]))
    await asyncio.sleep(0)
    await lane.count("listing", None, release=release)
    assert await waiting == "a"


async def test_a_request_for_an_optional_source_waits_for_half_of_the_time_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = Sending(made("a", delay=1_000), monkeypatch)
    [lane] = sending.lanes
    (await lane.budget.acquire())()
    deadline = asyncio.get_running_loop().time() + 1.5 * lane.budget.start_in()
    sent = [
        (target("1", deadline=deadline), {"optional": True}),
        (target("2", deadline=deadline), {}),
        (target("3"), {"optional": True}),
    ]
    tasks = [asyncio.ensure_future(sending.egress(each, **meta)) for each, meta in sent]
    for _ in range(20):
        await asyncio.sleep(0)  # each request goes on as far as it can
    assert [each.done() for each in tasks] == [True, False, False]
    for task in tasks:
        task.cancel()
    refused, *_ = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(refused, Overloaded)


async def test_a_retry_needs_a_slot_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = {"concurrency": 9, "sources": {"search": {"concurrency": 1}}}
    sending = Sending(made("a", PLATFORM_BUDGETS={"retail": budget}), monkeypatch)
    retry = target("1", deadline=asyncio.get_running_loop().time() + 0.05)
    async with sending.download(target("2"), source="search"):
        with pytest.raises(UpstreamTimeout):
            await sending.egress(retry, source="search", admitted=True)


@pytest.mark.parametrize(
    "error", [CircuitOpen("open"), Overloaded("full"), UpstreamTimeout("no slot", reason="no_turn")]
)
async def test_a_request_that_was_not_sent_does_not_end_the_rest_of_an_egress(error: ScrapeError) -> None:
    lanes = made(BREAKER_COOLDOWN=0)
    each = target("1")
    lane = lanes.of(each, "listing")
    await lanes.count(each, "listing", FAILED)
    await lanes.count(each, "listing", error)
    assert lane.connection.open_seconds is not None


async def test_a_crawl_gives_up_only_if_all_egresses_have_rested_for_long(sending: Sending) -> None:
    """One egress has failed for hours. The others have only just been suspended."""
    sending.middleware.give_up_after = 3_600
    first, *others = sending.lanes
    now = time.monotonic()
    first.connection._blocks.opened, first.connection._blocks.open_until = now - 7_200, now + 0.01
    for other in others:
        await other.count("listing", UpstreamRateLimited("later", retry_after=60))
    assert await sending.egress(target("1")) == "a", "the trial"


async def test_a_guest_token_belongs_to_an_egress_that_does_not_rest_for_its_source() -> None:
    lanes = made()
    first, second, _ = lanes
    await first.count("timeline", UpstreamRateLimited("later", retry_after=60))
    await second.count("timeline", FAILED)
    assert names(lanes.of(target(str(number)), "timeline") for number in range(3)) == ["c"] * 3
    used = names(lanes.of(target(str(number)), "user") for number in range(3, 7))
    assert set(used) == {"a", "c"}


async def test_a_refused_target_keeps_the_guest_token_of_its_egress() -> None:
    lanes = made()
    await lanes.refusals.remember(target_key(target("1", "wall")), "b")
    assert names(lanes.of(target(str(number), "wall"), "timeline") for number in range(2, 6)) == ["b"] * 4


async def test_a_suspended_platform_has_its_own_breaker_which_lets_one_trial_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = Sending(made(BREAKER_COOLDOWN=0), monkeypatch)
    platform = next(iter(sending.lanes)).platform
    assert platform is not None
    await platform.record(BLOCK)
    deadline = asyncio.get_running_loop().time() + 60
    trial = target("1", deadline=deadline)
    await sending.egress(trial)
    with pytest.raises(CircuitOpen):
        await sending.egress(target("2", deadline=deadline))
    await sending.lanes.count(trial, "listing", EgressFailed("down", reason="egress_failed"))
    trial = target("3", deadline=deadline)  # a failed egress shows nothing about the platform
    await sending.egress(trial)
    await sending.lanes.count(trial, "listing", None)
    assert platform.open_seconds is None
    assert len({await sending.egress(target(str(number))) for number in range(4, 10)}) == 3


@pytest.mark.usefixtures("clock")
async def test_admission_sums_the_egresses_that_do_not_rest() -> None:
    lanes = made(delay=10)
    assert lanes.spacing == pytest.approx(5 / 3), "three delays of 5 s, the shortest ones with jitter"
    assert lanes.start_in(ahead=2) < 1, "three slots at once"
    three = lanes.start_in(ahead=32)
    first, second, third = lanes
    await first.count("listing", FAILED)
    await second.count("listing", FAILED)
    one = lanes.start_in(ahead=32)
    assert names(lanes.in_use) == ["c"]
    assert 3 < one / three < 3.3
    await third.count("listing", FAILED)
    with pytest.raises(CircuitOpen) as refused:
        lanes.start_in()
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
        ("videosite", {"concurrency": 2, "delay": 1.5}, 480),
    ],
)
def test_targets_per_hour(platform: str, budget: dict[str, Any], expected: int) -> None:
    assert int(platform_capacity(platform, {"sources": {}} | budget)) == expected
