"""Download slots of one process, and those that several processes share through SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pytest

from crawler.downloads.facts import Facts
from crawler.downloads.throttle import Limit, Start, Starts, Throttle
from crawler.errors import Overloaded, StoreUnavailable, UpstreamTimeout
from crawler.jobs.shared_facts import SharedFacts
from crawler.jobs.store import Session
from tests.downloads.processes import UNREACHABLE, processes

Pair = tuple[Throttle, Throttle]
T = TypeVar("T")


@asynccontextmanager
async def shared(store: str, concurrency: int = 1, delay: float = 0.0, *, seconds: float = 60.0) -> AsyncIterator[Pair]:
    """The throttles of two processes, or twice the throttle of one process (""). ``seconds``: the lease of a slot."""
    if not store:
        yield (Throttle(concurrency, delay, 0),) * 2
        return
    async with processes(store) as facts:
        one, two = (Throttle(concurrency, delay, 0, facts=each, name="shop", lease=seconds) for each in facts)
        yield one, two


@pytest.fixture(params=["one process", "sqlite_store", "postgresql_store"])
def anywhere(request: pytest.FixtureRequest) -> str:
    """The store that two processes share, or "" for a single process."""
    return "" if request.param == "one process" else str(request.getfixturevalue(request.param))


async def test_downloads_in_flight_are_limited(anywhere: str) -> None:
    """The first downloads end only when three run at once, the limit: on a slow machine, slots are assigned slowly."""

    in_flight = most = 0
    full = asyncio.Event()

    async def download(throttle: Throttle) -> None:
        nonlocal in_flight, most
        release = await throttle.acquire()
        in_flight += 1
        most = max(most, in_flight)
        if in_flight == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        in_flight -= 1
        release()

    async with shared(anywhere, concurrency=3) as processes, asyncio.timeout(300):
        await asyncio.gather(*(download(throttle) for throttle in processes for _ in range(8)))
    assert most == 3


def test_downloads_start_a_delay_apart(anywhere: str) -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()

        async def download(throttle: Throttle) -> None:
            release = await throttle.acquire()
            release()

        async with shared(anywhere, concurrency=10, delay=0.1) as processes:
            began = loop.time()
            await asyncio.gather(*(download(throttle) for throttle in processes for _ in range(3)))
            return loop.time() - began

    assert asyncio.run(scenario()) >= 0.1 * 5 - 0.05, "not before the sum of the delays"


async def test_a_start_after_the_deadline_is_refused_at_once(anywhere: str) -> None:
    async with shared(anywhere, concurrency=2, delay=3_000) as (one, two):
        await one.acquire()
        for _ in range(2):
            with pytest.raises(Overloaded) as refused:
                await two.acquire(asyncio.get_running_loop().time() + 10)
        assert two.start_in() > 1_000, "the refusal has updated it"
        assert two.free_in() < math.inf, "a refused start holds no slot"
    assert 2_000 < (refused.value.retry_after or 0) <= 3_000


async def test_a_slot_that_is_not_released_in_time_is_a_timeout(anywhere: str) -> None:
    async with shared(anywhere) as (one, two):
        release = await one.acquire()
        with pytest.raises(UpstreamTimeout):
            await two.acquire(asyncio.get_running_loop().time() + 0.05)
        release()
        with pytest.raises(UpstreamTimeout):  # not OVERLOADED, which names the seconds until a retry, here none
            await two.acquire(asyncio.get_running_loop().time() - 1)
        await two.acquire(asyncio.get_running_loop().time() + 60)


async def test_background_downloads_let_all_others_go_first() -> None:
    throttle = Throttle(concurrency=10, delay=0.1, jitter=0)
    started: list[str] = []

    async def download(name: str) -> None:
        (await throttle.acquire(background=name.startswith("background")))()
        started.append(name)

    names = ("background 1", "background 2", "background 3", "call 1", "call 2")
    await asyncio.gather(*(download(name) for name in names))
    assert started == ["background 1", "call 1", "call 2", "background 2", "background 3"]


async def test_waiting_background_downloads_delay_no_estimate() -> None:
    throttle = Throttle(concurrency=1, delay=3_000, jitter=0)
    (await throttle.acquire())()
    next_start, now = throttle.start_in(), asyncio.get_running_loop().time()
    waiting = [asyncio.ensure_future(throttle.acquire(now + wait, background=True)) for wait in (0.01, 3_600)]
    with pytest.raises(Overloaded):
        await waiting[0]
    assert throttle.start_in() <= next_start
    waiting[1].cancel()


async def test_the_slot_of_a_killed_process_expires(location: str) -> None:
    async with shared(location, seconds=0.2) as (one, two):
        await one.acquire()  # never released
        await two.acquire(asyncio.get_running_loop().time() + 60)


async def test_each_process_uses_its_local_share_while_the_store_is_unavailable() -> None:
    async with shared(UNREACHABLE, concurrency=2) as (throttle, _):
        release = await throttle.acquire()
        with pytest.raises(UpstreamTimeout):
            await throttle.acquire(asyncio.get_running_loop().time() + 0.05)
        release()
        await throttle.acquire(asyncio.get_running_loop().time() + 60)
        assert throttle.concurrency == 1


async def test_after_an_outage_slots_that_were_released_meanwhile_are_free(location: str) -> None:
    async with shared(location) as (one, two):
        release = await one.acquire()
        facts = one.facts
        assert isinstance(facts, SharedFacts)
        facts._failed(StoreUnavailable("gone"))
        release()
        facts._retry_at = 0.0
        await facts.change(Starts, "another", lambda *_: None)
        await two.acquire(asyncio.get_running_loop().time() + 60)


async def test_in_an_outage_a_process_keeps_only_its_own_slots(location: str) -> None:
    async with shared(location, concurrency=4) as (one, two):
        held = [await one.acquire(), await two.acquire(), await two.acquire()]
        (await one.acquire())()  # now it knows the other process's slots
        for each in (one, two):
            await each.facts.change(Starts, "another", lambda *_: None)  # stores the release, too
        for each in (one, two):
            each.facts._failed(StoreUnavailable("gone"))  # type: ignore[attr-defined]  # of SharedFacts
        loop = asyncio.get_running_loop()
        await one.acquire(loop.time() + 60)
        with pytest.raises(UpstreamTimeout):
            await two.acquire(loop.time() + 0.5)
        assert len(held) == 3


async def test_a_caller_that_gives_up_holds_no_slot(location: str) -> None:
    async with shared(location) as (one, two):
        waiting = asyncio.ensure_future(one.acquire())
        await asyncio.sleep(0)
        waiting.cancel()
        await two.acquire(asyncio.get_running_loop().time() + 60)


async def test_a_call_that_cannot_start_in_time_reserves_nothing(location: str) -> None:
    async with shared(location, concurrency=9, delay=500) as (one, two):
        await one.acquire()
        for _ in range(3):
            with pytest.raises(Overloaded):
                await two.acquire(asyncio.get_running_loop().time() + 60)
        assert two.start_in() <= 500


@pytest.mark.parametrize(
    ("next_at", "slots", "expected"),
    [
        pytest.param(0.0, {}, Start(0.0, "own"), id="free"),
        pytest.param(103.0, {}, Start(3.0, "own"), id="later"),
        pytest.param(120.0, {}, Start(20.0), id="too late"),
        pytest.param(0.0, {"other": 100.0}, Start(0.0, "own"), id="expired lease"),
        pytest.param(0.0, {"other": 130.0}, None, id="taken"),
        pytest.param(4_000.0, {}, Start(20.0), id="clock was set back by an hour"),
    ],
)
def test_a_start_is_decided_by_the_facts(next_at: float, slots: dict[str, float], expected: Start | None) -> None:
    starts = Starts(next_at, dict(slots))
    found = starts.take(100.0, 1, limit=Limit(1, 5.0, 60.0), token="own", patience=10.0, spacing=5.0)
    assert found == expected
    if found is not None and found.token:
        assert starts == Starts(100.0 + found.seconds + 5, {"own": 100.0 + found.seconds + 60})


def test_a_lease_that_began_before_the_clock_was_set_back_ends() -> None:
    starts = Starts(0.0, {"other": 4_000.0})
    limit = Limit(1, 0.0, 60.0)
    assert starts.take(100.0, 1, limit=limit, token="own") is None
    assert starts.take(161.0, 1, limit=limit, token="own") == Start(0.0, "own")


@pytest.mark.parametrize("starts", [Starts(4_000.0), Starts(gap_until=4_000.0)], ids=["delay", "gap"])
def test_a_wait_that_began_before_the_clock_was_set_back_ends(starts: Starts) -> None:
    take = partial(starts.take, processes=1, limit=Limit(1, 5.0, 60.0), token="own", patience=10.0)
    assert [take(100.0), take(120.0)] == [Start(20.0), Start(0.0, "own")]


def decisions(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each stored decision about a throttle is appended."""
    assert isinstance(facts, SharedFacts)
    found: list[str] = []
    original = facts.store.transact

    async def transact(work: Callable[[Session], T], **options: Any) -> T:
        found.append("stored")
        return await original(work, **options)

    monkeypatch.setattr(facts.store, "transact", transact)
    return found


@pytest.mark.parametrize(
    ("delay", "kept_for", "number"),
    [
        pytest.param(0.0, 60.0, 1, id="without a delay"),
        pytest.param(0.01, 60.0, 5, id="each start is reserved"),
        pytest.param(0.0, 0.0, 5, id="not if it was kept for long"),
    ],
)
async def test_a_released_slot_is_used_again_without_a_transaction(
    location: str, monkeypatch: pytest.MonkeyPatch, delay: float, kept_for: float, number: int
) -> None:
    async with shared(location, delay=delay) as (one, two):
        monkeypatch.setattr("crawler.downloads.throttle.REUSE_SECONDS", kept_for)
        stored = decisions(one.facts, monkeypatch)
        for _ in range(5):
            (await one.acquire())()
        assert len(stored) == number
        monkeypatch.undo()
        await two.acquire(asyncio.get_running_loop().time() + 60)  # it was released after all


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("slots", [1, 2])
async def test_no_process_is_starved_by_others_that_always_have_work(
    location: str, monkeypatch: pytest.MonkeyPatch, slots: int, *, background: bool
) -> None:
    monkeypatch.setattr("crawler.downloads.throttle.REUSE_SECONDS", 0.05)
    turns, started = 3, [0, 0, 0]

    async def work(number: int, throttle: Throttle) -> None:
        while min(started) < turns:
            release = await throttle.acquire(background=background)
            started[number] += 1
            await asyncio.sleep(0.002)
            release()

    async with processes(location, 3) as facts:
        throttles = [Throttle(slots, facts=each, name="shop", lease=60) for each in facts]
        async with asyncio.timeout(300):
            await asyncio.gather(*(work(n, each) for n, each in enumerate(throttles) for _ in range(3)))


def test_a_free_slot_is_left_to_a_process_that_has_none_and_waits() -> None:
    starts = Starts(0.0, {"one:0": 160.0})
    take = partial(starts.take, processes=1, limit=Limit(1, 0.0, 60.0))
    assert take(100.0, token="two:0") is None
    starts.release(100.1, 1, token="one:0")
    assert take(100.1, token="one:1") is None, "the other one has waited for longer"
    assert take(100.2, token="three:0") is None
    assert take(100.3, token="two:1") == Start(0.0, "two:1")
    starts.release(100.4, 1, token="two:1")
    assert [take(100.4, token=each) for each in ("two:2", "three:0", "one:1")] == [None, None, Start(0.0, "one:1")]


def test_a_free_slot_is_left_to_a_download_that_is_not_in_the_background() -> None:
    """The slot is left to the waiting download even if the download's process already has another slot."""
    starts = Starts(0.0, {"one:0": 160.0, "two:0": 160.0})
    take = partial(starts.take, processes=1, limit=Limit(2, 0.0, 60.0))
    assert take(100.0, token="one:1") is None
    starts.release(100.1, 1, token="two:0")
    assert take(100.1, token="two:1", background=True) is None
    assert take(100.2, token="one:1") == Start(0.0, "one:1")


@pytest.mark.parametrize(
    "now", [pytest.param(101.5, id="it may be killed"), pytest.param(50.0, id="the clock was set")]
)
def test_a_process_waits_for_a_time(now: float) -> None:
    starts, limit = Starts(0.0, {"one:0": 160.0}), Limit(1, 0.0, 60.0)
    assert starts.take(100.0, 1, limit=limit, token="two:0") is None
    starts.release(100.1, 1, token="one:0")
    assert starts.take(now, 1, limit=limit, token="one:1") == Start(0.0, "one:1")


def test_slots_for_all_are_taken_at_once_and_waits_of_a_holder_do_not_count() -> None:
    starts, limit = Starts(0.0, {"one:0": 160.0, "two:0": 160.0}), Limit(2, 0.0, 60.0)
    assert starts.take(100.0, 1, limit=limit, token="one:1") is None
    starts.release(100.1, 1, token="two:0")
    assert starts.take(100.1, 1, limit=limit, token="two:1") == Start(0.0, "two:1")


async def test_a_decision_that_is_withdrawn_at_the_last_moment_is_not_stored(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.shared_facts.SOON_SECONDS", 0.0)
    async with processes(location) as (facts, _):
        stored = decisions(facts, monkeypatch)
        withdraw = facts.change_soon(Starts, "shop", partial(Starts.release, token="own"))
        while facts._running is None:  # noqa: ASYNC110  # one turn of the event loop, not a wait
            await asyncio.sleep(0)
        assert withdraw(), "the task that stores it has not begun"
        await asyncio.sleep(0.05)
        assert stored == []
