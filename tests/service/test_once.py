"""One fetch for several calls: idempotent replays, response cache, shared fetches. A call is never billed twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from crawler.errors import IdempotencyInProgress, IdempotencyMismatch, TargetNotFound, UpstreamTimeout
from crawler.jobs.clock import STORE_TIME
from crawler.jobs.store import Store
from crawler.reading.unread import Unread
from crawler.registry import scrapers
from crawler.service.calls import once
from crawler.service.calls.cache import Cache
from crawler.service.calls.envelope import Call, Served
from crawler.service.calls.once import Once
from crawler.service.clients.quotas import Quotas
from crawler.service.clients.usage import Usage
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from crawler.targets.warning import OutcomeWarning
from tests.service.client import CATEGORY, HEADERS, SEARCH, Reply, call, many
from tests.service.conftest import ROOT, VERY_SLOW, Service, running
from tests.service.metrics_of import value

RETAIL = "retail-category-v4"
WARNINGS = (
    OutcomeWarning("feed", "UPSTREAM_ERROR", "no_feed"),
    OutcomeWarning("web results", "UPSTREAM_BLOCKED", 'a "b"'),
    OutcomeWarning.of_unread("page", Unread("rows[].…unknown", "unknown", 2, 30, loses_rows=True, names=("x", "y"))),
)


def keyed(key: str) -> dict[str, str]:
    return {**HEADERS, "Idempotency-Key": key}


def fetched(service: Service, scraper: str, code: str = "OK") -> float:
    """Return the number of completed targets of a scraper."""
    return value(service.url, "crawler_outcomes_total", scraper=scraper, code=code)


def billed(service: Service) -> int:
    reply = call(service.url, "/v1/usage", method="GET")
    return int(reply.body["billable"])


@pytest.fixture(scope="module")
def caching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    setting = 'RESPONSE_CACHE={"retail-search-v4": 60}'
    with running(tmp_path_factory.mktemp("once") / "log", setting, before=VERY_SLOW) as started:
        yield started


# Over HTTP


def test_a_replay_returns_the_first_response(caching: Service) -> None:
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


def test_a_repeated_call_does_not_run_twice_at_a_time(caching: Service) -> None:
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
    # The platform responds after three seconds. On a slow machine, the first call may have ended by then.
    assert second.code == "IDEMPOTENCY_IN_PROGRESS" or second.headers["idempotent-replayed"] == "true"
    if second.status == 409:
        assert int(second.headers["retry-after"]) >= 1


def test_a_failure_releases_its_key(caching: Service) -> None:
    before = fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED")
    for _ in range(2):
        reply = call(caching.url, SEARCH, {"query": "forbidden"}, headers=keyed("failing"))
        assert reply.code == "UPSTREAM_BLOCKED"
    assert fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED") - before == 2
    assert call(caching.url, SEARCH, {"query": "mustard"}, headers=keyed("failing")).code == "OK"


def test_a_replay_survives_a_killed_process(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        first = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=keyed("kept"))
        service.process.send_signal(signal.SIGKILL)
    with running(tmp_path / "log") as service:
        again = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=keyed("kept"))
        assert again.headers["idempotent-replayed"] == "true"
        assert again.body["data"] == first.body["data"]


def test_a_cached_record_is_served_again(caching: Service) -> None:
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


def test_failures_are_not_cached(caching: Service) -> None:
    before = fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED")
    for _ in range(2):
        assert call(caching.url, SEARCH, {"query": "challenge"}).code == "UPSTREAM_BLOCKED"
    assert fetched(caching, "retail-search-v4", "UPSTREAM_BLOCKED") - before == 2


def test_responses_of_uncached_scrapers_have_no_cache_headers(caching: Service) -> None:
    for _ in range(2):
        reply = call(caching.url, CATEGORY, {"cat_id": "976759"})
        assert "x-cache" not in reply.headers
        assert reply.body["meta"]["billable"] is True


def test_fifty_equal_calls_share_one_fetch(caching: Service) -> None:
    before, cost = fetched(caching, "retail-search-v4"), billed(caching)
    replies = asyncio.run(many(caching.url, [(SEARCH, {"query": "slow", "page": 3})] * 50))
    assert {reply.code for reply in replies} == {"OK"}
    assert len({orjson.dumps(reply.body["data"]) for reply in replies}) == 1
    assert sum(reply.body["meta"]["billable"] for reply in replies) == 1
    assert sorted(reply.headers["X-Cache"] for reply in replies) == ["HIT"] * 49 + ["MISS"]
    assert fetched(caching, "retail-search-v4") - before == 1
    assert billed(caching) - cost == 1


# The cache without a service


class Platform:
    """A fetch function that waits for an event and counts how often it is called."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fetches = 0
        self.cancelled = 0
        self.fails = fails
        self.respond = asyncio.Event()

    async def fetch(self, target: Target) -> Served:
        self.fetches += 1
        try:
            await self.respond.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fails:
            raise TargetNotFound("gone")
        return Served({"cat_id": target.params.model_dump()["cat_id"], "text": "x" * 100})


def target(cat_id: str = "1", *, wait: float = 5.0, key: str = "t") -> Target:
    scraper = scrapers()[RETAIL]
    deadline = asyncio.get_running_loop().time() + wait
    return Target(key, scraper, check_params(scraper, {"cat_id": cat_id}), deadline=deadline)


def cache_of(platform: Platform, *, ttl: float = 60, max_bytes: int = 100_000) -> Cache:
    return Cache(platform.fetch, {RETAIL: ttl}, max_bytes, max_wait=120)


async def run_tasks() -> None:
    """Let every task run until it has to wait."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_shared_fetch_continues_while_a_call_waits() -> None:
    platform = Platform()
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await run_tasks()
    calls[0].cancel()
    await run_tasks()
    platform.respond.set()
    served = await asyncio.gather(*calls[1:])
    assert platform.fetches == 1
    assert sorted(each.billable for each in served) == [False, True]


async def test_a_shared_fetch_without_waiting_calls_is_cancelled() -> None:
    platform = Platform()
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await run_tasks()
    for each in calls:
        each.cancel()
    await run_tasks()
    assert (platform.fetches, platform.cancelled) == (1, 1)
    platform.respond.set()
    assert (await cache.served(target(), None)).billable
    assert platform.fetches == 2


async def test_a_call_that_joins_a_fetch_keeps_its_own_deadline() -> None:
    platform = Platform()
    cache = cache_of(platform)
    with_more_time = asyncio.ensure_future(cache.served(target(wait=5), None))
    with pytest.raises(UpstreamTimeout):
        await cache.served(target(wait=0.01), None)
    platform.respond.set()
    assert (await with_more_time).billable


async def test_a_failed_fetch_fails_all_calls_and_the_next_call_fetches_again() -> None:
    platform = Platform(fails=True)
    cache = cache_of(platform)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await run_tasks()
    platform.respond.set()
    assert [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)] == [TargetNotFound] * 3
    with pytest.raises(TargetNotFound):
        await cache.served(target(), None)
    assert platform.fetches == 2


async def test_cached_records_expire_and_are_limited_in_size() -> None:
    platform = Platform()
    platform.respond.set()
    cache = cache_of(platform, ttl=0.02, max_bytes=3_000)
    await cache.served(target(), None)
    await asyncio.sleep(0.03)
    assert (await cache.served(target(), None)).headers == {"X-Cache": "MISS"}
    cache = cache_of(platform, max_bytes=3_000)
    for number in range(20):
        await cache.served(target(str(number)), None)
    before = platform.fetches
    assert (await cache.served(target("19"), None)).headers["X-Cache"] == "HIT"
    assert (await cache.served(target("0"), None)).headers["X-Cache"] == "MISS"
    assert platform.fetches == before + 1


CACHE_MEMORY = """
import asyncio, re, sys
from pathlib import Path
from crawler.registry import scrapers
from crawler.service.calls import once
from crawler.service.calls.cache import Cache
from crawler.service.calls.envelope import Call, Served
from crawler.targets.parser import check_params
from crawler.targets.target import Target

scraper = scrapers()["retail-category-v4"]

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

async def fill(number, size):
    async def fetch(target):
        return Served({"cat_id": target.params.cat_id, "text": "x" * size})
    cache = Cache(fetch, {scraper.name: 3600}, number * 10**9, max_wait=120)
    before = resident()
    for n in range(number):
        params = check_params(scraper, {"cat_id": str(n)})
        await cache.served(Target("t", scraper, params, deadline=10**9), None)
    print(resident() - before, cache._size / 1024 / 1024)

asyncio.run(fill(int(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize(("entries", "size"), [pytest.param(30_000, 300, marks=pytest.mark.soak), (1_000, 20_000)])
def test_rb_6_the_cache_takes_about_as_much_memory_as_it_counts(entries: int, size: int) -> None:
    """The measurement runs in its own process, because memory freed by other tests would be reused."""
    command = [sys.executable, "-c", CACHE_MEMORY, str(entries), str(size)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    taken, counted = map(float, run.stdout.split())
    assert counted > 10
    assert taken <= 1.5 * counted


async def test_co_6_a_partial_record_is_not_cached() -> None:
    calls = 0

    async def fetch(_: Target) -> Served:
        nonlocal calls
        calls += 1
        return Served({"n": calls}, warnings=() if calls == 3 else WARNINGS)

    cache = Cache(fetch, {RETAIL: 60}, 100_000, max_wait=120)
    served = [await cache.served(target(), control) for control in (None, "no-cache", None, None)]
    assert [each.warnings for each in served] == [WARNINGS, WARNINGS, (), ()]
    assert [each.headers["X-Cache"] for each in served] == ["MISS", "MISS", "MISS", "HIT"]
    assert (calls, [each.billable for each in served]) == (3, [True, True, True, False])


async def test_co_6_calls_that_share_a_fetch_get_its_warnings() -> None:
    respond = asyncio.Event()

    async def fetch(_: Target) -> Served:
        await respond.wait()
        return Served({}, warnings=WARNINGS)

    cache = Cache(fetch, {RETAIL: 60}, 100_000, max_wait=120)
    calls = [asyncio.ensure_future(cache.served(target(), None)) for _ in range(3)]
    await run_tasks()
    respond.set()
    assert [each.warnings for each in await asyncio.gather(*calls)] == [WARNINGS] * 3


# Idempotency keys without a service


@pytest.fixture(params=["sqlite", "postgresql"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    location = str(tmp_path / "store.sqlite3") if request.param == "sqlite" else request.getfixturevalue("postgresql")
    opened = Store(location)
    for table in ("idempotency", "usage", "reservations"):
        opened.transact_sync(lambda session, table=table: session.run(f"DELETE FROM {table}"))  # type: ignore[misc]  # noqa: S608
    yield opened
    asyncio.run(opened.close())


def caller(client: str = "one") -> Call:
    return Call(client_id=client, scraper=RETAIL)


async def test_clients_have_separate_keys(store: Store) -> None:
    keys = Once(store, ttl=60)
    runs = []

    async def serve() -> Served:
        runs.append(1)
        return Served({"n": len(runs)})

    for client in ("one", "other", "one"):
        await keys.run("k", caller(client), target(), serve)
    assert len(runs) == 2


async def test_co_6_a_replay_has_the_warnings(store: Store) -> None:
    async def serve() -> Served:
        return Served({}, warnings=WARNINGS)

    keys = Once(store, ttl=60)
    served = [await keys.run("k", caller(), target(), serve) for _ in range(2)]
    assert [(each.billable, each.warnings) for each in served] == [(True, WARNINGS), (False, WARNINGS)]


async def test_only_one_of_simultaneous_calls_runs(store: Store) -> None:
    keys = Once(store, ttl=60)
    runs = []

    async def serve() -> Served:
        runs.append(1)
        await asyncio.sleep(0.05)
        return Served({})

    calls = [keys.run("k", caller(), target(key=f"t{n}"), serve) for n in range(20)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert len(runs) == 1
    assert sum(isinstance(each, Served) for each in results) == 1
    assert sum(isinstance(each, IdempotencyInProgress) for each in results) == 19


async def test_a_cancelled_call_releases_its_key(store: Store) -> None:
    keys = Once(store, ttl=60)
    started = asyncio.Event()

    async def never() -> Served:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def serve() -> Served:
        return Served({})

    cancelled = asyncio.ensure_future(keys.run("k", caller(), target(), never))
    await started.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (await keys.run("k", caller(), target(), serve)).billable


async def test_at_1_a_record_that_is_stored_is_billed_whenever_its_client_disconnects(store: Store) -> None:
    """Before the fix, 26 of 233 records were stored for their keys but not billed."""
    keys, counts = Once(store, ttl=60), Usage(store)
    reserving = Quotas(store)

    async def run(number: int) -> None:
        call = caller()
        call.has_reservation = True

        async def serve() -> Served:
            await reserving.reserve("one", 1_000, call.request_id, 60)
            return Served({"n": number})

        try:
            await keys.run(f"k{number}", call, target(key=call.request_id), serve)
        finally:  # ``Api`` counts each call in the same way
            if call.billed is None:
                counts.count("one", RETAIL, "CLIENT_GONE", billable=False, reservation=call.request_id)

    for start in range(0, 300, 20):
        calls = [asyncio.ensure_future(run(number)) for number in range(start, start + 20)]
        for each in calls if start < 280 else []:
            await asyncio.sleep(0.002)
            each.cancel()
        await asyncio.wait(calls)
    await counts.flush()
    kept = await store.transact(
        lambda session: session.rows("SELECT COUNT(*) FROM idempotency WHERE record IS NOT NULL")
    )
    rows = await store.transact(lambda session: session.rows("SELECT SUM(calls), SUM(billable) FROM usage"))
    assert [tuple(row) for row in rows] == [(300, kept[0][0])]
    assert kept[0][0] >= 20, "the last clients do not disconnect"
    left = await store.transact(lambda session: session.rows("SELECT COUNT(*) FROM reservations"))
    assert left[0][0] == 0


async def test_a_key_expires(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve() -> Served:
        return Served({})

    keys = Once(store, ttl=60)
    await keys.run("k", caller(), target(), serve)
    with pytest.raises(IdempotencyMismatch):
        await keys.run("k", caller(), target("2"), serve)
    now = time.time()
    monkeypatch.setattr(once, "store_time", lambda: now + 61)
    assert (await keys.run("k", caller(), target("2"), serve)).billable
    monkeypatch.setattr(once, "store_time", lambda: now + 200)
    monkeypatch.setattr(STORE_TIME, "is_steady", False)
    await keys.purge()
    assert len(await store.transact(lambda session: session.rows("SELECT * FROM idempotency"))) == 1
    monkeypatch.setattr(STORE_TIME, "is_steady", True)
    await keys.purge()
    assert await store.transact(lambda session: session.rows("SELECT * FROM idempotency")) == []
