"""Routes: the choice of a target's egress, its binding, rests, and the memory of refused targets."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawler.downloads.breaker import BreakerKey, LocalBreaker
from crawler.downloads.capacity import platform_capacity
from crawler.downloads.redis_breaker import shared_breakers
from crawler.downloads.refusals import target_key
from crawler.downloads.routes import Routes, egress_failed
from crawler.downloads.shared import SharedState, platform_routes
from crawler.errors import (
    CircuitOpen,
    EgressFailed,
    ExtractionFailed,
    Overloaded,
    ScrapeError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.middlewares import ThrottleMiddleware
from crawler.registry import find_scraper, spiders
from crawler.targets.exceptions import StartAnew
from crawler.targets.target import Outcome, Target, check_params

NAMES = ("a", "b", "c")
BLOCK = UpstreamBlocked("wall", reason="challenge")
LOST = UpstreamError("lost", reason="connection")
FAILED = egress_failed("a", "it was unplugged")
RETAIL = find_scraper("retail-search-v4")


def target(name: str, query: str = "", deadline: float | None = None) -> Target:
    return Target(name, RETAIL, check_params(RETAIL, {"query": query or name}), deadline=deadline)


def made(*names: str, delay: float = 0, **settings: Any) -> Routes:
    """The routes of three egresses, each with one slot."""
    values = {
        "EGRESSES": [{"name": name, "proxy": "http://127.0.0.1:9"} for name in names or NAMES],
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 1, "delay": delay}},
        "PROCESSES": 1,
        "BREAKER_THRESHOLD": 2,
        "BREAKER_COOLDOWN": 60,
        "RETRY_AFTER_MAX": 3_600,
    }
    return platform_routes(SharedState(), "retail", Settings(values | settings))


def names(routes: Any) -> list[str]:
    return [route.egress.name for route in routes]


class Sending:
    """The middleware of a crawler that sends requests through routes."""

    def __init__(self, routes: Routes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("crawler.middlewares.platform_routes", lambda *_: routes)
        crawler = Crawler(Spider, Settings())
        crawler.spider = Spider.from_crawler(crawler, "retail")
        crawler.spider.shared = SharedState()  # type: ignore[attr-defined]  # as PlatformSpider has it
        self.routes = routes
        self.middleware = ThrottleMiddleware.from_crawler(crawler)

    @asynccontextmanager
    async def download(self, each: Target, **meta: Any) -> AsyncIterator[str]:
        """Send a request of a target; yield the name of its egress while the download runs."""
        request = Request("https://shop.example/", meta={"target": each, "source": "listing", **meta})
        await self.middleware.process_request(request)
        yield request.meta["egress"]
        self.middleware.release(request)

    async def egress(self, each: Target, **meta: Any) -> str:
        async with self.download(each, **meta) as name:
            return name


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


# Refused targets


async def test_a_refused_target_is_not_sent_through_another_egress(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1", "wall")
    name = await sending.egress(each)
    for _ in range(2):
        await sending.routes.count(each, "listing", BLOCK)
    sending.routes.completed(Outcome(each, None, BLOCK, 0))
    await asyncio.sleep(0)
    with pytest.raises(CircuitOpen) as refused:
        await sending.egress(target("2", "wall"))
    assert refused.value.reason == "refused_before"
    assert refused.value.retry_after == 60
    assert name not in {await sending.egress(target(str(number))) for number in range(3, 9)}, "others go on"


async def test_a_refused_target_returns_to_its_egress_if_that_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1", "wall")
    name = await sending.egress(each)
    sending.routes.completed(Outcome(each, None, BLOCK, 0))
    await asyncio.sleep(0)
    assert {await sending.egress(target(str(number), "wall")) for number in range(2, 6)} == {name}


@pytest.mark.parametrize("error", [None, LOST, FAILED, TargetNotFound("no such page"), CircuitOpen("open")])
async def test_only_refusals_are_remembered(error: ScrapeError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1")
    await sending.egress(each)
    sending.routes.completed(Outcome(each, None, error, 0))
    await asyncio.sleep(0)
    assert await sending.routes.refusals.egress_of(target_key(each)) is None


async def test_a_crawl_ends_after_its_refused_targets_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    each = target("1")
    name = await sending.egress(each)
    remember = sending.routes.refusals.remember

    async def remember_slowly(key: str, egress: str) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        await remember(key, egress)

    monkeypatch.setattr(sending.routes.refusals, "remember", remember_slowly)
    sending.routes.completed(Outcome(each, None, BLOCK, 0))
    await sending.routes.stored()
    assert sending.routes.refusals.known(target_key(each)) == name


async def test_if_most_egresses_meet_the_same_wall_the_platform_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(made(), monkeypatch)
    met = [target("1"), target("2")]
    async with sending.download(met[0]), sending.download(met[1]):
        pass
    assert len({sending.routes.of(each) for each in met}) == 2
    for _ in range(2):
        await sending.routes.count(met[0], "listing", BLOCK)
    assert len(sending.routes.in_use) == 2
    for _ in range(2):
        await sending.routes.count(met[1], "listing", UpstreamBlocked("another wall", reason="login_wall"))
    assert [route.rest("listing") > 0 for route in sending.routes].count(True) == 2
    assert len(sending.routes.in_use) == 1
    await sending.routes.count(met[1], "listing", UpstreamBlocked("wall", reason="challenge"))
    assert all(route.rest(source) > 0 for route in sending.routes for source in ("listing", "another source"))
    assert sending.routes.concurrency == 0
    with pytest.raises(CircuitOpen) as refused:
        sending.routes.earliest()
    assert refused.value.retry_after == 60
    with pytest.raises(CircuitOpen, match="through most egresses"):
        await sending.egress(target("3", deadline=asyncio.get_running_loop().time() + 60), source="another source")


async def test_the_only_egress_of_a_platform_rests_for_the_source_alone() -> None:
    routes = made("a")
    each = target("1")
    for _ in range(5):
        await routes.count(each, "listing", BLOCK)
    (route,) = routes
    assert route.rest("listing") > 0
    assert route.rest("another source") == 0


def test_the_key_of_a_target_depends_on_its_params_only() -> None:
    assert target_key(target("1", "tea")) == target_key(target("2", "tea")) != target_key(target("1", "coffee"))


# Redis


async def test_processes_share_rests_budgets_and_refusals(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1, delay=100) for _ in range(2))
    first = Sending(one, monkeypatch)
    async with first.download(target("1")) as used:
        pass
    route = next(route for route in other if route.egress.name == used)
    with pytest.raises(ScrapeError):
        await route.budget.acquire(asyncio.get_running_loop().time() + 1)
    await first.routes.of(target("1")).count("listing", FAILED)
    assert [bool(await route.enter("listing")) for route in other] == [each.egress.name == used for each in other]
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
    routes = made(REDIS_URL=redis_url, DOWNLOAD_TIMEOUT=1)
    first, second, _ = routes
    for _ in range(2):
        await first.count("listing", BLOCK)
    await first.enter("search")
    await second.count("listing", FAILED)
    found = {str(key): each for key, each in (await shared_breakers(routes.refusals.redis)).items()}  # type: ignore[attr-defined]
    reasons = {key: each.reason for key, each in found.items() if each.cooldown_left}
    assert reasons == {"retail:listing@a": "challenge", "retail:(connection)@b": "egress_failed"}
    assert "retail:search@a" in found, "another source of the egress does not rest"
    assert {BreakerKey.parse(key) for key in found} > {
        BreakerKey("retail", "listing", "@a"),
        BreakerKey("retail", "search", "@a"),
    }
    await close(routes)


async def test_while_redis_is_away_each_process_remembers_for_itself() -> None:
    routes = made(REDIS_URL="redis://127.0.0.1:1")
    await routes.refusals.remember("key", "a")
    assert await routes.refusals.egress_of("key") == "a"
    assert await routes.refusals.meet("wall", "a") == 1
    await routes.refusals.forget("wall")
    await close(routes)


async def close(*all_routes: Routes) -> None:
    for routes in all_routes:
        for route in routes:
            await route.budget.close()  # type: ignore[attr-defined]  # of RedisThrottle
            await route.connection._step.registered_client.aclose()  # type: ignore[attr-defined]
        await routes.refusals.redis.aclose()  # type: ignore[attr-defined]  # of RedisRefusals


@pytest.mark.parametrize(
    ("platform", "budget", "expected"),
    [
        ("retail", {"concurrency": 2, "delay": 2}, 1_800),
        ("retail", {"concurrency": 2, "delay": 0}, 7_200),
        ("photoapp", {"concurrency": 1, "delay": 30}, 60),
        ("shortvideo", {"concurrency": 2, "delay": 0}, 480),
        ("microblog", {"concurrency": 1, "delay": 3, "sources": {"timeline": {"concurrency": 1, "delay": 21}}}, 171),
        ("microblog", {"concurrency": 1, "delay": 3}, 240),
        ("videosite", {"concurrency": 2, "delay": 1.5}, 141),
    ],
)
def test_targets_per_hour(platform: str, budget: dict[str, Any], expected: int) -> None:
    assert int(platform_capacity(platform, {"sources": {}} | budget)) == expected
