"""The API key file and the service's store while they are locked, full, read-only, damaged or deleted."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

import pytest

from crawler.errors import InvalidApiKey, StoreUnavailable
from crawler.jobs.store import Session, Store, StoreTime, _AbandonedError, _Job
from crawler.service import usage
from crawler.service.keys import Holder, Key, KeyRing, KeyStore
from crawler.service.usage import Usage


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock of an SQLite file, like a backup."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for locks, and read the file of keys again at each use, also directly after a failure."""
    monkeypatch.setattr("crawler.jobs.store.BUSY_SECONDS", 0.0)
    monkeypatch.setattr("crawler.service.keys.READ_SECONDS", 0.0)
    monkeypatch.setattr("crawler.service.keys.RETRY_SECONDS", 0)


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens a store as a process does, by default always the same file."""
    opened: list[Store] = []

    def opens(location: str = str(tmp_path / "service.sqlite3")) -> Store:
        opened.append(Store(location))
        return opened[-1]

    yield opens
    for each in opened:
        asyncio.run(each.close())


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    return open_store()


@pytest.fixture
def counts(store: Store) -> Usage:
    return Usage(store)


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))


def replace(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE other (x)")


# Keys


def key_of(path: Path) -> tuple[KeyStore, str, KeyRing]:
    """Make a file with one key. Return it, the key, and a reader of the file."""
    keys = KeyStore(path / "keys.sqlite")
    return keys, keys.create("acme"), KeyRing(keys)


async def settled(ring: KeyRing) -> None:
    """Wait until the key ring is not reading the file."""
    if ring._reading is not None:
        await ring._reading


async def valid(ring: KeyRing, key: str) -> bool:
    """Return whether a key is valid once the key ring has tried to read the file."""
    for _ in range(2):
        try:
            await ring.holder(key)
            found = True
        except InvalidApiKey:
            found = False
        await settled(ring)
    return found


@pytest.mark.parametrize("fault", [damage, truncate, empty, remove])
async def test_the_last_keys_stay_valid_if_the_file_is_damaged(tmp_path: Path, fault: Callable[[Path], None]) -> None:
    keys, key, ring = key_of(tmp_path)
    good = keys.path.read_bytes()
    assert await valid(ring, key)
    fault(keys.path)
    assert await valid(ring, key)
    assert not await valid(ring, "sk_0_unknown")
    assert ring.failures
    assert not keys.path.exists() or keys.path.stat().st_size in {0, 5_000, len(good)}, "the file is not repaired"
    keys.path.write_bytes(good)
    another = keys.create("other")
    assert await valid(ring, another)
    keys.revoke(key.split("_")[1])
    assert not await valid(ring, key)


async def test_a_locked_file_is_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, key, ring = key_of(tmp_path)
    new = keys.create("acme")
    threads: set[threading.Thread] = set()
    read = keys.read

    def read_in_thread() -> list[Key]:
        threads.add(threading.current_thread())
        return read()

    monkeypatch.setattr(keys, "read", read_in_thread)
    assert await valid(ring, key)
    keys.revoke(new.split("_")[1])
    with locked(keys.path):
        assert await valid(ring, key)
        assert await valid(ring, new), "the file cannot be read, so that the key is still valid"
        assert ring.failures
    assert not await valid(ring, new)
    assert threading.main_thread() not in threads


async def test_a_new_key_is_not_refused_while_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with known keys do not wait for the read; a call with a new key does."""
    keys, key, ring = key_of(tmp_path)
    assert await valid(ring, key)
    new = keys.create("new")
    may_read = threading.Event()
    monkeypatch.setattr("crawler.service.keys.WAIT_SECONDS", 0.0)
    monkeypatch.setattr(keys, "read", lambda: may_read.wait(60) and KeyStore.read(keys))
    try:
        assert (await ring.holder(key)).client == "acme", "a known key does not wait"
        looked_up = asyncio.create_task(ring.holder(new))
        await asyncio.wait([looked_up], timeout=0.1)
    finally:
        may_read.set()
    assert (await looked_up).client == "new"


async def test_keys_that_were_never_read_are_unavailable(tmp_path: Path) -> None:
    keys, key, ring = key_of(tmp_path)
    with locked(keys.path), pytest.raises(StoreUnavailable):
        await ring.holder(key)
    await settled(ring)
    await valid(ring, key)
    assert (await ring.holder(key)).client == "acme"


# Usage


def counted(store: Store) -> int:
    with closing(sqlite3.connect(store.location)) as database:
        return int(database.execute("SELECT coalesce(sum(calls), 0) FROM usage").fetchone()[0])


async def count(counts: Usage, calls: int) -> None:
    for _ in range(calls):
        counts.count("acme", "a", "OK", billable=True)
    await counts.flush()


async def test_usage_is_exact_after_a_lock_and_reports_what_is_pending(store: Store, counts: Usage) -> None:
    await count(counts, 3)
    with locked(Path(store.location)):
        await count(counts, 4)
        report = await counts.report(Holder("acme", "k"))
        assert (report["calls"], report["pending"]) == (3, 4)
        assert (await counts.report(Holder("other", "k")))["pending"] == 0
        await count(counts, 1)
    await counts.flush()
    assert counted(store) == 8
    assert (await counts.report(Holder("acme", "k")))["pending"] == 0
    assert store.failures
    assert not store.losses


@pytest.mark.parametrize("fault", [remove, empty, damage, replace])
async def test_usage_is_exact_from_then_on_if_the_store_is_lost(
    open_store: Callable[..., Store], fault: Callable[[Path], None]
) -> None:
    workers = [Usage(open_store()) for _ in range(3)]
    path = Path(workers[0].store.location)
    for worker in workers:
        await count(worker, 5)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fault(path)
    for _ in range(4):
        for worker in workers:
            await count(worker, 1)
    for worker in workers:
        await worker.flush()
    assert counted(workers[0].store) == 12
    assert all(worker.store.losses == 1 for worker in workers)
    for worker in workers:
        await worker.store.close()
    assert counted(workers[0].store) == 12


async def test_a_file_that_is_not_a_database_is_not_replaced(tmp_path: Path, counts: Usage) -> None:
    path = tmp_path / "service.sqlite3"
    path.write_text("not a database, but important" * 1_000)
    before = path.read_bytes()
    await count(counts, 2)
    assert counts.pending() == 2
    assert path.read_bytes() == before
    with pytest.raises(StoreUnavailable):
        await counts.report(Holder("acme", "k"))


async def test_counts_are_stored_once_if_the_flush_takes_longer_than_its_caller_waits(
    store: Store, counts: Usage
) -> None:
    release = threading.Event()
    busy = asyncio.ensure_future(store.transact(lambda _: release.wait()))
    counts.count("acme", "a", "OK", billable=True)
    await counts.flush(0.01)
    counts.count("acme", "a", "OK", billable=True)
    await counts.flush(0.01)
    assert counts.pending() == 2
    release.set()
    await busy
    await counts.flush()
    assert (counts.pending(), counted(store)) == (0, 2)


async def test_wide_reports_are_consistent_while_usage_is_stored(
    open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.store.BUSY_SECONDS", 60.0)
    workers = [Usage(open_store()) for _ in range(3)]
    totals = []

    async def write(worker: Usage) -> None:
        for number in range(20):
            worker.count("acme", f"scraper {number}", "OK", billable=True)
            await worker.flush()

    async def read(worker: Usage) -> None:
        for _ in range(20):
            report = await worker.report(Holder("acme", "k"), date.min, date.max)
            assert report["calls"] == report["billable"] == sum(row["calls"] for row in report["usage"])
            totals.append(report["calls"])

    await asyncio.gather(*(write(worker) for worker in workers), read(workers[0]))
    assert totals == sorted(totals)
    assert (await workers[0].report(Holder("acme", "k"), date.min, date.max))["calls"] == 60


# Clocks


async def test_usage_of_a_clock_that_is_set_back_is_counted_on_the_earlier_day(
    counts: Usage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    for days in (0, 2, 1, 0):
        monkeypatch.setattr(usage, "store_time", lambda days=days: now - days * 86_400)
        counts.count("acme", "a", "OK", billable=True)
    report = await counts.report(Holder("acme", "k"))
    assert report["calls"] == 4
    assert [row["calls"] for row in report["usage"]] == [2, 1, 1]


def test_a_transaction_stores_nothing_if_its_caller_stops_waiting_meanwhile(store: Store) -> None:
    """The client is told that its call was not accepted, so it will make the call again."""

    def add(session: Session) -> None:
        usage.add(session, {("acme", "a", "2026-11-22", "OK"): [1, 1, 0]})
        job.abandoned = True

    job = _Job(add, write=True)
    with pytest.raises(_AbandonedError):
        store.transact_sync(job.run)
    assert store.transact_sync(usage.clients) == []


def test_a_closed_store_is_one_file(store: Store, tmp_path: Path) -> None:
    """SQLite removes the files beside it when the last connection is closed."""
    asyncio.run(store.transact(usage.clients))
    assert len(list(tmp_path.iterdir())) > 1
    asyncio.run(store.close())
    assert [each.name for each in tmp_path.iterdir()] == ["service.sqlite3"]


async def test_waiting_transactions_fail_together_with_the_one_that_was_locked(store: Store) -> None:
    """If each transaction waited for the lock in turn, a thousand calls would take a thousand seconds."""
    await store.transact(lambda session: session.run("DELETE FROM usage"))
    release = threading.Event()
    busy = asyncio.ensure_future(store.transact(lambda _: release.wait()))

    def work(session: Session) -> int:
        return session.run("DELETE FROM usage")

    waiting = [asyncio.ensure_future(store.transact(work)) for _ in range(50)]
    await asyncio.sleep(0)
    release.set()
    await busy
    with locked(Path(store.location)):
        results = await asyncio.gather(*(store.transact(work) for _ in range(50)), return_exceptions=True)
    assert all(isinstance(each, StoreUnavailable) for each in results)
    assert store.failures < 50
    await asyncio.gather(*waiting, return_exceptions=True)


# PostgreSQL


@pytest.fixture
def pair(open_store: Callable[..., Store], postgresql: str) -> tuple[Store, Store]:
    """The stores of two processes."""
    return open_store(postgresql), open_store(postgresql)


def terminate(session: Session) -> None:
    """Close all other connections."""
    session.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


async def test_connections_that_postgresql_closes_lose_no_usage(pair: tuple[Store, Store]) -> None:
    store, other = pair
    counts = Usage(store)
    client = f"client-{time.time_ns()}"
    for _ in range(5):
        counts.count(client, "a", "OK", billable=True)
        await counts.flush()
        await other.transact(terminate)
    with pytest.raises(StoreUnavailable):
        await store.transact(lambda session: session.rows("SELECT 1"))
    report = await counts.report(Holder(client, "k"))
    assert (report["calls"], report["pending"]) == (5, 0)


async def test_a_read_is_repeated_after_postgresql_has_closed_the_connection(pair: tuple[Store, Store]) -> None:
    store, other = pair
    for _ in range(3):
        assert await store.transact(lambda session: session.rows("SELECT 1"), write=False) == [(1,)]
        await other.transact(terminate)
    assert store.failures == 0


async def test_a_locked_table_of_postgresql_is_a_typed_error(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.store.BUSY_SECONDS", 0.05)
    monkeypatch.setattr("crawler.jobs.store.IDLE_SECONDS", 600)  # the lock must last longer than the call
    store, other = pair
    await other.transact(lambda session: session.run("DELETE FROM usage"))
    release = threading.Event()
    held = threading.Event()

    def hold(session: Session) -> None:
        session.execute("LOCK TABLE usage", {})
        held.set()
        release.wait()

    await store.transact(lambda session: session.rows("SELECT 1"))
    holding = asyncio.ensure_future(other.transact(hold))
    await asyncio.to_thread(held.wait)
    with pytest.raises(StoreUnavailable):
        await usage.check_quota(store, Holder("acme", "k", quota=1))
    release.set()
    await holding
    await usage.check_quota(store, Holder("acme", "k", quota=1))


def test_processes_on_hosts_with_different_clocks_have_the_time_of_the_database(
    postgresql: str, open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the fix, processes used their own clocks. If these differed by 20 s, each took over the other's calls."""
    real, times = time.time, []
    for behind in (0, 20):
        clock = StoreTime()
        monkeypatch.setattr("crawler.jobs.store.STORE_TIME", clock)
        monkeypatch.setattr(time, "time", lambda behind=behind: real() - behind)
        open_store(postgresql).transact_sync(lambda session: session.rows("SELECT 1"))
        times.append(clock.now() - real())
    assert max(times) - min(times) < 1


@pytest.mark.parametrize(
    ("hours", "until", "steady"),
    [
        pytest.param(26, 24, 34, id="ahead for four seconds"),
        pytest.param(-26, 24, 34, id="behind for four seconds"),
        pytest.param(1, 40, 30, id="set"),
    ],
)
def test_the_time_of_the_store_has_no_jumps_and_follows_a_clock_that_was_set(
    hours: int, until: int, steady: int
) -> None:
    """The clock jumps by ``hours`` at second 20, and back at ``until``. It is steady again at ``steady``."""
    passed = 0.0
    clock = StoreTime(needed=10, monotonic=lambda: passed)
    for second in range(40):
        passed = float(second)
        observed = 1_000_000 + second + (hours * 3_600 if 20 <= second < until else 0)
        clock.observe(observed)
        assert clock.now() == (observed if second >= steady else 1_000_000 + second)
        assert clock.is_steady == (10 <= second < 20 or second >= steady)
