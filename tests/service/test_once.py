"""One fetch for many calls: idempotent replays, the response cache, shared flights. Each is billed once."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawler.errors import IdempotencyInProgress, IdempotencyMismatch, TargetNotFound, UpstreamTimeout
from crawler.registry import scrapers
from crawler.service import idempotency
from crawler.service.cache import Cache
from crawler.service.envelope import Served
from crawler.service.idempotency import Idempotency
from crawler.service.store import Store
from crawler.targets.target import Target, check_params
from tests.service.client import CATEGORY, HEADERS, SEARCH, Reply, call, many
from tests.service.conftest import Service, running
from tests.service.metrics_of import value

RETAIL = "retail-category-v4"


def keyed(key: str, **followups: str) -> dict[str, str]:
    return {**HEADERS, "Idempotency-Key": key, **followups}


def fetched(service: Service, scraper: str, code: str = "OK") -> float:
    """How many targets of a scraper the crawlers have settled."""
    return value(service.url, "crawler_outcomes_total", scraper=scraper, code=code)


def billed(service: Service) -> int:
    reply = call(service.url, "/v1/usage", method="GET")
    return int(reply.body["billable"])


@pytest.fixture(scope="module")
def caching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    setting = 'RESPONSE_CACHE={"retail-search-v4": 60}'
    with running(tmp_path_factory.mktemp("once") / "log", setting) as started:
        yield started


# Over HTTP


def test_a_replay_is_the_first_answer_again(caching: Service) -> None:
    before, cost = fetched(caching, RETAIL), billed(caching)
    first = call(caching.url, CATEGORY, {"cat_id": "976759"}, headers=keyed("replay"))
    again = call(caching.url, CATEGORY, {"cat_id": "976759", "page": 1}, headers=keyed("replay"))
    assert (first.code, again.code) == ("OK", "OK")
    assert again.body["data"] == first.body["data"]
    assert again.body["request_id"] != first.body["request_id"]
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (first.body["meta"]["billable"], again.body["meta"]["billable"]) == (True, False)
    assert fetched(caching, RETAIL) - before == 1
    assert billed(caching) - cost == 1
    other = call(caching.url, CATEGORY, {"cat_id": "3944"}, headers=keyed("replay"))
    assert (other.status, other.code) == (422, "IDEMPOTENCY_MISMATCH")
    elsewhere = call(caching.url, SEARCH, {"query": "x"}, headers=keyed("replay"))
    assert elsewhere.code == "IDEMPOTENCY_MISMATCH"


def test_a_call_that_runs_is_not_made_again(caching: Service) -> None:
    replies: list[Reply] = []

    def first() -> None:
        replies.append(call(caching.url, SEARCH, {"query": "slow", "page": 7}, headers=keyed("running")))

    running_call = threading.Thread(target=first)
    running_call.start()
    while not value(caching.url, "crawler_calls_in_flight", platform="retail") and running_call.is_alive():
        time.sleep(0.02)
    second = call(caching.url, SEARCH, {"query": "slow", "page": 7}, headers=keyed("running"))
    running_call.join()
    assert replies[0].code == "OK"
    # The platform is slow for half a second; where this machine was slower still, the first call was over.
    assert second.code == "IDEMPOTENCY_IN_PROGRESS" or second.headers["idempotent-replayed"] == "true"
    if second.status == 409:
        assert int(second.headers["retry-after"]) >= 1


def test_a_failure_frees_its_key(caching: Service) -> None:
    before = fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED")
    for _ in range(2):
        reply = call(caching.url, SEARCH, {"query": "forbidden"}, headers=keyed("failing"))
        assert reply.code == "UPSTREAM_BLOCKED"
    assert fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED") - before == 2
    assert call(caching.url, SEARCH, {"query": "mustard"}, headers=keyed("failing")).code == "OK"


def test_a_replay_survives_the_process(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        first = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=keyed("kept"))
        service.process.send_signal(signal.SIGKILL)
    with running(tmp_path / "log") as service:
        again = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=keyed("kept"))
        assert again.headers["idempotent-replayed"] == "true"
        assert again.body["data"] == first.body["data"]


def test_a_kept_answer_is_served_again(caching: Service) -> None:
    before, cost = fetched(caching, "retail-search-v4"), billed(caching)
    params = {"query": "honey"}
    miss, hit = (call(caching.url, SEARCH, params) for _ in range(2))
    assert (miss.headers["x-cache"], hit.headers["x-cache"]) == ("MISS", "HIT")
    assert "age" not in miss.headers
    assert int(hit.headers["age"]) >= 0
    assert hit.body["data"] == miss.body["data"]
    assert (miss.body["meta"]["billable"], hit.body["meta"]["billable"]) == (True, False)
    assert fetched(caching, "retail-search-v4") - before == 1
    fresh = call(caching.url, SEARCH, params, headers={**HEADERS, "Cache-Control": "max-age=0, No-Cache"})
    assert (fresh.headers["x-cache"], fresh.body["meta"]["billable"]) == ("MISS", True)
    assert fetched(caching, "retail-search-v4") - before == 2
    assert billed(caching) - cost == 2


def test_failures_are_not_kept(caching: Service) -> None:
    before = fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED")
    for _ in range(2):
        assert call(caching.url, SEARCH, {"query": "challenge"}).code == "UPSTREAM_BLOCKED"
    assert fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED") - before == 2


def test_a_scraper_that_is_not_cached_says_nothing_of_it(caching: Service) -> None:
    for _ in range(2):
        reply = call(caching.url, CATEGORY, {"cat_id": "976759"})
        assert "x-cache" not in reply.headers
        assert reply.body["meta"]["billable"] is True


def test_fifty_equal_calls_are_one_fetch(caching: Service) -> None:
    before, cost = fetched(caching, "retail-search-v4"), billed(caching)
    replies = asyncio.run(many(caching.url, [(SEARCH, {"query": "slow", "page": 3})] * 50))
    assert {reply.code for reply in replies} == {"OK"}
    assert len({orjson.dumps(reply.body["data"]) for reply in replies}) == 1
    assert sum(reply.body["meta"]["billable"] for reply in replies) == 1
    assert sorted(reply.headers["X-Cache"] for reply in replies) == ["HIT"] * 49 + ["MISS"]
    assert fetched(caching, "retail-search-v4") - before == 1
    assert billed(caching) - cost == 1


# The cache by itself


class Platform:
    """Answers after a while, or never; counts."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked = 0
        self.given_up = 0
        self.fails = fails
        self.answer = asyncio.Event()

    async def fetch(self, target: Target) -> dict[str, Any]:
        self.asked += 1
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.fails:
            raise TargetNotFound("gone")
        return {"cat_id": target.params.model_dump()["cat_id"], "text": "x" * 100}


def target(cat_id: str = "1", *, wait: float = 5.0, key: str = "t") -> Target:
    scraper = scrapers()[RETAIL]
    deadline = asyncio.get_running_loop().time() + wait
    return Target(key, scraper, check_params(scraper, {"cat_id": cat_id}), deadline=deadline)


def cache_of(platform: Platform, *, ttl: float = 60, max_bytes: int = 100_000) -> Cache:
    return Cache(platform.fetch, {RETAIL: ttl}, max_bytes, max_wait=120)


async def settle() -> None:
    """Lets every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_flight_lives_while_anyone_waits() -> None:
    platform = Platform()
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await settle()
    calls[0].cancel()
    await settle()
    platform.answer.set()
    served = await asyncio.gather(*calls[1:])
    assert platform.asked == 1
    assert sorted(each.billable for each in served) == [False, True]


async def test_a_flight_that_nobody_waits_for_is_given_up() -> None:
    platform = Platform()
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await settle()
    for each in calls:
        each.cancel()
    await settle()
    assert (platform.asked, platform.given_up) == (1, 1)
    platform.answer.set()
    assert (await cache.served(target(), None)).billable
    assert platform.asked == 2


async def test_who_joins_keeps_their_own_deadline() -> None:
    platform = Platform()
    cache = cache_of(platform)
    patient = asyncio.ensure_future(cache.served(target(wait=5), None))
    with pytest.raises(UpstreamTimeout):
        await cache.served(target(wait=0.01), None)
    platform.answer.set()
    assert (await patient).billable


async def test_a_failure_is_everybodys_and_the_next_call_asks_again() -> None:
    platform = Platform(fails=True)
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await settle()
    platform.answer.set()
    assert [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)] == [TargetNotFound] * 3
    with pytest.raises(TargetNotFound):
        await cache.served(target(), None)
    assert platform.asked == 2


async def test_kept_answers_grow_old_and_few() -> None:
    platform = Platform()
    platform.answer.set()
    cache = cache_of(platform, ttl=0.02, max_bytes=3_000)
    await cache.served(target(), None)
    await asyncio.sleep(0.03)
    assert (await cache.served(target(), None)).headers == {"X-Cache": "MISS"}
    cache = cache_of(platform, max_bytes=3_000)
    for number in range(20):
        await cache.served(target(str(number)), None)
    asked = platform.asked
    assert (await cache.served(target("19"), None)).headers["X-Cache"] == "HIT"
    assert (await cache.served(target("0"), None)).headers["X-Cache"] == "MISS"
    assert platform.asked == asked + 1


# Keys by themselves


@pytest.fixture(params=["sqlite", "postgresql"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    where = str(tmp_path / "store.sqlite3") if request.param == "sqlite" else request.getfixturevalue("postgresql")
    opened = Store(where, idempotency.SCHEMA)
    opened.transact_sync(lambda session: session.run("DELETE FROM idempotency"))
    yield opened
    asyncio.run(opened.close())


async def test_keys_are_each_clients_own(store: Store) -> None:
    once = Idempotency(store, ttl=60)
    made = []

    async def serve() -> Served:
        made.append(1)
        return Served({"n": len(made)})

    for client in ("one", "other", "one"):
        await once.once("k", client, target(), serve)
    assert len(made) == 2


async def test_a_call_without_a_key_is_always_made(store: Store) -> None:
    made = []

    async def serve() -> Served:
        made.append(1)
        return Served({})

    for _ in range(2):
        await Idempotency(store, ttl=60).once(None, "one", target(), serve)
    assert len(made) == 2


async def test_of_calls_at_the_same_time_one_is_made(store: Store) -> None:
    once = Idempotency(store, ttl=60)
    made = []

    async def serve() -> Served:
        made.append(1)
        await asyncio.sleep(0.05)
        return Served({})

    calls = [once.once("k", "one", target(key=f"t{n}"), serve) for n in range(20)]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert len(made) == 1
    assert sum(isinstance(each, Served) for each in ended) == 1
    assert sum(isinstance(each, IdempotencyInProgress) for each in ended) == 19


async def test_a_caller_who_leaves_frees_the_key(store: Store) -> None:
    once = Idempotency(store, ttl=60)
    started = asyncio.Event()

    async def never() -> Served:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def serve() -> Served:
        return Served({})

    leaving = asyncio.ensure_future(once.once("k", "one", target(), never))
    await started.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (await once.once("k", "one", target(), serve)).billable


async def test_a_key_is_forgotten_in_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve() -> Served:
        return Served({})

    once = Idempotency(store, ttl=60)
    await once.once("k", "one", target(), serve)
    with pytest.raises(IdempotencyMismatch):
        await once.once("k", "one", target("2"), serve)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert (await once.once("k", "one", target("2"), serve)).billable
    monkeypatch.setattr(time, "time", lambda: now + 200)
    await once.purge()
    assert await store.transact(lambda session: session.rows("SELECT * FROM idempotency")) == []
