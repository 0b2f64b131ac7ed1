"""Client quotas: accepted calls reserve a part, the reservation ends when usage is stored, no quota is exceeded."""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from crawler.commands.keys import Command, monthly
from crawler.errors import QuotaExceeded, StoreUnavailable
from crawler.jobs.store import Session, Store
from crawler.service.clients import quotas, usage
from crawler.service.clients.key_store import KeyStore
from crawler.service.clients.keys import Holder, configured_keys, export, monthly_quota
from crawler.service.clients.quotas import Quotas, Reservation
from crawler.service.clients.usage import Usage
from tests.crawls import sandbox
from tests.service.client import CATEGORY, HEADERS, SEARCH, Reply, call, many
from tests.service.conftest import Service, running

NOVEMBER = datetime(2026, 11, 30, 23, 59, 50, tzinfo=UTC).timestamp()


# The quota in the store


@dataclass
class Process:
    """The quotas and usage counts as one process of the service sees them."""

    quotas: Quotas
    usage: Usage

    async def reserve(self, *ids: str, quota: int, client: str = "acme", seconds: float = 60) -> list[str]:
        """Reserve quota for several calls concurrently. Return the ids of the calls that got a reservation."""
        reserving = (self.quotas.reserve(client, quota, each, seconds) for each in ids)
        results = await asyncio.gather(*reserving, return_exceptions=True)
        assert all(result is None or isinstance(result, QuotaExceeded) for result in results), results
        return [each for each, result in zip(ids, results, strict=True) if result is None]

    async def complete(self, *ids: str, billable: bool, client: str = "acme") -> None:
        """Count calls that have a reservation, and write the usage to the store."""
        for each in ids:
            code = "OK" if billable else "UPSTREAM_ERROR"
            self.usage.count(client, "a", code, billable=billable, reservation=each)
        await self.usage.flush()

    async def state(self, quota: int = 100, client: str = "acme") -> tuple[int, int]:
        """Return how many calls are used and how many are reserved."""
        read = partial(quotas.report, client=client, quota=quota)
        report = await self.usage.store.transact(read, write=False)
        return report["used"], report["reserved"]


@asynccontextmanager
async def processes(location: str, number: int = 1) -> AsyncIterator[list[Process]]:
    stores = [Store(location) for _ in range(number)]
    yield [Process(Quotas(store), Usage(store)) for store in stores]
    for store in stores:
        await store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replaces the clock: a list whose only number is the Unix time, which the test can change."""
    now = [NOVEMBER]
    for module in (quotas, usage):
        monkeypatch.setattr(module, "store_time", lambda: now[0])
    return now


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of a store that has no usage yet."""
    if request.param == "sqlite":
        return str(tmp_path / "service.sqlite3")
    url: str = request.getfixturevalue("postgresql")
    store = Store(url)
    for table in ("usage", "quotas", "reservations"):
        store.transact_sync(lambda session, table=table: session.run(f"DELETE FROM {table}"))  # type: ignore[misc]  # noqa: S608
    asyncio.run(store.close())
    return url


async def test_processes_never_reserve_more_than_the_quota(location: str) -> None:
    async with processes(location, 3) as all_processes:
        ids = [[f"{n}-{number}" for number in range(100)] for n in range(3)]
        granted = await asyncio.gather(
            *(process.reserve(*each, quota=125) for process, each in zip(all_processes, ids, strict=True))
        )
        assert sum(map(len, granted)) == 125
        one, *_ = all_processes
        assert await one.reserve("other", quota=1, client="other") == ["other"], "clients do not share a quota"
        assert await one.state() == (0, 125)


async def test_outcomes_settle_their_reservations_with_the_usage(location: str) -> None:
    async with processes(location) as (process,):
        assert await process.reserve("a", "b", "c", quota=2) == ["a", "b"]
        assert await process.state() == (0, 2)
        await process.complete("a", billable=True)
        assert await process.state() == (1, 1)
        assert await process.reserve("c", quota=2) == [], "a used answer stays used"
        await process.complete("b", billable=False)
        assert await process.state() == (1, 0)
        assert await process.reserve("c", "d", quota=2) == ["c"], "a failure gives its reservation back"
        await process.complete("c", "d", billable=False)
        assert await process.state() == (1, 0)


async def test_usage_of_the_month_counts_even_if_it_is_older_than_the_quota(location: str) -> None:
    async with processes(location) as (process,):
        for _ in range(3):
            await process.complete("", billable=True)
        assert await process.reserve("a", quota=3) == []
        assert await process.reserve("a", quota=4) == ["a"], "a raised quota applies at once"
        assert await process.reserve("b", quota=1) == [], "and so does a lowered one"


async def test_a_reservation_of_a_killed_process_expires_with_its_call(location: str, clock: list[float]) -> None:
    async with processes(location, 2) as (killed, other):
        assert await killed.reserve("short", quota=2, seconds=20) == ["short"]
        assert await killed.reserve("long", quota=2, seconds=120) == ["long"]
        clock[0] += 20
        assert await other.reserve("a", quota=2) == [], "its process may still store the usage of the call"
        clock[0] += quotas.LEASE_SECONDS
        assert await other.state() == (0, 1)
        assert await other.reserve("a", "b", quota=2) == ["a"]


async def test_the_quota_begins_anew_with_the_month_except_for_calls_in_progress(
    location: str, clock: list[float]
) -> None:
    async with processes(location) as (process,):
        assert await process.reserve("a", "b", "c", "d", quota=3) == ["a", "b", "c"]
        await process.complete("a", billable=True)
        with pytest.raises(QuotaExceeded) as error:
            await process.quotas.reserve("acme", 3, "d", 60)
        assert error.value.retry_after == 10
        assert error.value.message.endswith("The next month begins at 2026-12-01T00:00:00Z.")
        clock[0] += 10
        assert await process.state() == (0, 2)
        assert await process.reserve("d", "e", quota=3) == ["d"]
        await process.complete("b", "c", "d", billable=True)
        assert await process.state() == (3, 0), "they are billed in the month in which they are completed"


@pytest.mark.parametrize(
    ("now", "reset"),
    [
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z"),
        ("2028-02-29T12:00:00Z", "2028-03-01T00:00:00Z"),
        ("2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"),
    ],
)
async def test_the_quota_is_reset_at_the_end_of_the_month(
    tmp_path: Path, clock: list[float], now: str, reset: str
) -> None:
    clock[0] = datetime.fromisoformat(now).timestamp()
    async with processes(str(tmp_path / "service.sqlite3")) as (process,):
        report = await process.usage.report(Holder("acme", "k", quota=7))
    assert report["quota"] == {"limit": 7, "used": 0, "reserved": 0, "resets_at": reset}


async def test_processes_reserve_one_after_the_other(location: str) -> None:
    """The second process starts to count before the first transaction is committed."""
    async with processes(location, 2) as (one, other):
        assert await one.state() == await other.state() == (0, 0), "both are connected"
        reserved, commit = threading.Event(), threading.Event()

        def reserve_slowly(session: Session) -> None:
            quotas.reserve(session, [Reservation("acme", 1, "a", 2**40)])
            reserved.set()
            commit.wait()

        first = asyncio.ensure_future(one.quotas.store.transact(reserve_slowly))
        await asyncio.to_thread(reserved.wait)
        second = asyncio.ensure_future(other.reserve("b", quota=1))
        await asyncio.sleep(0.1)
        commit.set()
        await first
        assert await second == []


async def test_a_call_that_is_cancelled_while_it_reserves_keeps_nothing(tmp_path: Path) -> None:
    async with processes(str(tmp_path / "service.sqlite3")) as (process,):
        first = asyncio.ensure_future(process.reserve("a", quota=5))
        for _ in range(3):
            await asyncio.sleep(0)  # let the transaction begin
        second = asyncio.ensure_future(process.quotas.reserve("acme", 5, "b", 60))
        await asyncio.sleep(0)
        second.cancel()
        await process.complete("b", billable=False)
        assert await first == ["a"]
        assert await process.reserve("c", quota=5) == ["c"]
        assert await process.state() == (0, 2)


async def test_without_the_store_a_quota_cannot_be_reserved(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.write_text("a file, where a folder should be")
    async with processes(str(folder / "service.sqlite3")) as (process,):
        with pytest.raises(StoreUnavailable):
            await process.quotas.reserve("acme", 5, "a", 60)
        process.usage.count("acme", "a", "OK", billable=True, reservation="b")
        await process.usage.flush()
        folder.unlink()
        assert await process.reserve("a", "b", quota=2) == ["a", "b"]
        await process.usage.flush()
        assert await process.state() == (1, 1), "the settlement of b was repeated after the outage"


# One quota for all keys of a client


def test_all_keys_of_a_client_have_its_quota(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme", quota=500)
    store.create("acme", rate="60/minute")
    store.create("other")

    def quotas_of(client: str) -> list[int | None]:
        return [key.holder.quota for key in store.all() if key.holder.client == client]

    assert quotas_of("acme") == [500, 500], "a further key does not bypass the quota"
    assert quotas_of("other") == [None]
    assert store.set_quota("acme", 700)
    assert quotas_of("acme") == [700, 700]
    store.create("acme", quota=800)
    assert quotas_of("acme") == [800, 800, 800]
    assert store.set_quota("acme", None)
    assert quotas_of("acme") == [None] * 3
    assert not store.set_quota("nobody", 5)


def test_a_file_of_keys_of_an_earlier_version_gets_quotas(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme")
    with closing(sqlite3.connect(store.path)) as old:
        old.execute("DROP TABLE quotas")
    assert [key.holder.quota for key in store.all()] == [None]
    assert store.set_quota("acme", 5)
    assert [key.holder.quota for key in store.all()] == [5]


async def test_exported_keys_have_the_quota_of_their_client(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    key, free = store.create("acme", quota=500), store.create("other")
    exported = json.loads(export(store.all()))
    assert exported[key.split("_")[1]]["quota"] == "500/month"
    keys = configured_keys(exported)
    assert (await keys.holder(key)).quota == 500
    assert (await keys.holder(free)).quota is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"quota": "500/day"}, "b.quota: expected a quota such as 100000/month, not '500/day'"),
        ({"quota": "600/month"}, "b.quota: all keys of the client 'acme' must have the same quota"),
        ({}, "b.quota: all keys of the client 'acme' must have the same quota"),
    ],
)
def test_configured_keys_of_a_client_must_have_the_same_quota(other: dict[str, str], message: str) -> None:
    key = {"client": "acme", "hash": "0" * 64}
    with pytest.raises(ValueError, match=r"^[ab]\.quota") as error:
        configured_keys({"b": key | other, "a": key | {"quota": "500/month"}})
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["0/month", "-5/month", "5", "5/day", "5/months", "1e3/month", " 5/month", "٥/month"])
def test_a_wrong_quota_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a quota such as 100000/month, not"):
        monthly_quota(text)
    with pytest.raises(argparse.ArgumentTypeError, match="expected a quota such as 100000/month, not"):
        monthly(text)


def test_the_command_sets_and_prints_quotas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings({"KEYS_FILE": str(tmp_path / "keys.sqlite"), "STORE": str(tmp_path / "service.sqlite3")})

    def run(*arguments: str, quota: int | None = None) -> tuple[int, str, str]:
        command = Command()
        command.settings = settings
        command.run([*arguments], argparse.Namespace(rate=None, concurrency=None, quota=quota))
        printed = capsys.readouterr()
        return command.exitcode, printed.out, printed.err

    run("create", "acme", quota=500)
    assert "  quota 500/month" in run("list")[1]
    assert run("quota", "acme") == (
        0,
        f"500/month  used 0  reserved 0  resets at {quotas._next_month():%Y-%m-%dT%H:%M:%SZ}\n",
        "",
    )
    assert run("quota", "acme", "700/month") == (0, "", "")
    assert run("quota", "acme")[1].startswith("700/month  used 0")
    assert run("quota", "acme", "none") == (0, "", "")
    assert run("quota", "acme") == (0, "none\n", "")
    assert "quota" not in run("list")[1]
    missing = "No valid key belongs to the client 'nobody'. 'scrapy keys list' prints all clients.\n"
    assert run("quota", "nobody", "5/month") == (1, "", missing)
    assert run("quota", "nobody") == (1, "", missing)
    with pytest.raises(
        UsageError,
        match=r"expected a quota such as 100000/month, not '5'\. To remove the quota, use none instead of a number\.",
    ):
        run("quota", "acme", "5")


# The service


@dataclass
class Client:
    """A client of the service under test."""

    service: Service
    key: str

    def call(self, path: str, params: dict[str, Any], idempotency_key: str | None = None) -> Reply:
        headers = HEADERS | {"X-API-Key": self.key}
        if idempotency_key:
            headers |= {"Idempotency-Key": idempotency_key}
        return call(self.service.url, path, params, headers=headers)

    def calls(self, number: int) -> Counter[str]:
        """Make calls concurrently. Return how many responses had each code."""
        headers = HEADERS | {"X-API-Key": self.key, "Prefer": "wait=120"}
        replies = asyncio.run(
            many(self.service.url, [(SEARCH, {"query": "mustard"})] * number, at_once=number, headers=headers)
        )
        assert all(reply.body["meta"]["billable"] == (reply.code == "OK") for reply in replies)
        return Counter(reply.code for reply in replies)

    def quota(self) -> dict[str, Any] | None:
        """Wait until no call has a reservation, and return the state of the quota."""
        while True:
            quota: dict[str, Any] | None = self.report()["quota"]
            if quota is None or not quota["reserved"]:
                return quota
            time.sleep(0.05)

    def report(self) -> dict[str, Any]:
        reply = call(self.service.url, "/v1/usage", method="GET", headers={"X-API-Key": self.key})
        assert reply.status == 200
        body: dict[str, Any] = reply.body
        return body


@dataclass(frozen=True)
class Served:
    """A service with two workers, and its API key file."""

    service: Service
    keys: KeyStore

    def client(self, name: str, quota: int | None = None) -> Client:
        return Client(self.service, self.keys.create(name, quota=quota))


@contextmanager
def served(folder: Path, settings: dict[str, Any], *, workers: int = 2) -> Iterator[Served]:
    keys = KeyStore(folder / "keys.sqlite")
    keys.create("operator")
    own = settings | {"KEYS_FILE": keys.path, "RESPONSE_CACHE": json.dumps({"retail-category-v4": 300})}
    given = [f"{name}={value}" for name, value in own.items()]
    with running(folder / "log", *given, sandbox=False, workers=workers) as service:
        yield Served(service, keys)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with sandbox() as settings, served(tmp_path_factory.mktemp("quotas"), settings) as running_service:
        running_service.client("first").calls(8)  # the first calls of a worker wait until its modules are loaded
        yield running_service


@pytest.mark.parametrize(
    ("number", "quota"),
    [pytest.param(120, 60, id="120 calls"), pytest.param(1_000, 500, id="1,000 calls", marks=pytest.mark.soak)],
)
def test_concurrent_calls_never_exceed_the_quota_with_two_workers(two_workers: Served, number: int, quota: int) -> None:
    client = two_workers.client(f"concurrent {number}", quota)
    assert client.calls(number) == {"OK": quota, "QUOTA_EXCEEDED": number - quota}
    state = client.quota()
    assert state is not None
    assert (state["limit"], state["used"]) == (quota, quota)
    assert client.report()["billable"] == quota


def test_calls_that_are_not_billable_release_their_reservation(two_workers: Served) -> None:
    client = two_workers.client("careful", 5)
    found: list[Reply] = []

    def made(path: str, params: dict[str, Any], idempotency_key: str | None = None) -> str:
        found.append(client.call(path, params, idempotency_key))
        state = client.quota()
        assert state is not None
        assert state["used"] == sum(reply.body["meta"]["billable"] for reply in found)
        return found[-1].code

    assert made(CATEGORY, {"cat_id": "424242"}) == "TARGET_NOT_FOUND"
    assert made(SEARCH, {"query": ""}) == "INVALID_REQUEST"
    repeated = SEARCH, {"query": "mustard"}, "once"
    assert made(*repeated) == "OK"
    assert made(*repeated) == "OK"
    assert found[-1].headers["idempotent-replayed"] == "true"
    while found[-1].headers.get("x-cache") != "HIT":  # each worker has its own cache
        assert made(CATEGORY, {"cat_id": "976759"}) == "OK"
    while found[-1].code == "OK":
        made(SEARCH, {"query": "mustard"})
    assert found[-1].code == "QUOTA_EXCEEDED"
    assert client.report()["quota"]["used"] == 5
    assert made(*repeated) == "OK", "its record is paid"


def test_a_call_over_the_quota_is_refused_until_the_quota_is_raised(two_workers: Served) -> None:
    client = two_workers.client("small", 1)
    second_key = two_workers.client("small")
    assert client.call(SEARCH, {"query": "mustard"}).code == "OK"
    refused = second_key.call(SEARCH, {"query": "mustard"}, "refused")
    state = client.quota()
    assert state is not None
    assert (refused.status, refused.reason, refused.code) == (429, "Too Many Requests", "QUOTA_EXCEEDED")
    error = refused.body["error"]
    assert refused.headers["retry-after"] == str(error["retry_after"])
    until_reset = datetime.fromisoformat(state["resets_at"]) - datetime.now(UTC)
    assert abs(until_reset.total_seconds() - error["retry_after"]) < 60
    assert state["resets_at"] in error["message"]
    assert error["type"] == "request"
    assert refused.body["status"]["retryable"]
    assert not refused.body["meta"]["billable"]
    assert two_workers.keys.set_quota("small", 2)
    raised = second_key.call(SEARCH, {"query": "mustard"}, "refused")
    assert raised.code == "OK", "a refused call does not use its Idempotency-Key up"
    assert client.call(SEARCH, {"query": "mustard"}).code == "QUOTA_EXCEEDED"
    assert two_workers.keys.set_quota("small", None)
    assert client.call(SEARCH, {"query": "mustard"}).code == "OK"
    assert client.report()["quota"] is None


@pytest.mark.soak
def test_a_killed_service_bills_no_more_than_the_quota(tmp_path: Path) -> None:
    """The service is killed while calls run. The test then lets the reservations of these calls expire."""
    with sandbox() as settings:
        with served(tmp_path, settings, workers=1) as before:
            client = before.client("killed", 40)
            assert client.calls(10) == {"OK": 10}
            with ThreadPoolExecutor(20) as threads:
                for _ in range(20):
                    threads.submit(client.call, SEARCH, {"query": "slow-3s"})
                while client.report()["quota"]["reserved"] < 20:
                    time.sleep(0.01)
                before.service.process.kill()
        with served(tmp_path, settings) as after:
            client = Client(after.service, client.key)
            assert client.calls(30) == {"OK": 10, "QUOTA_EXCEEDED": 20}, "the reservations outlive the process"
            while client.report()["quota"]["used"] < 20:
                time.sleep(0.05)
            with closing(sqlite3.connect(tmp_path / "service.sqlite3", isolation_level=None)) as store:
                store.execute("UPDATE reservations SET expires = 1 WHERE client = 'killed'")
            assert client.calls(30) == {"OK": 20, "QUOTA_EXCEEDED": 10}
            report = client.report()
            assert report["billable"] == 40
