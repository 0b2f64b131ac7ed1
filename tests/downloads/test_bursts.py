"""Budgets with a burst: a day of starts on a clock that is turned, and the throttles' own rules."""

from __future__ import annotations

import asyncio
import heapq
import math
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from scrapy.settings import Settings

from crawler import platforms
from crawler.downloads.egress_setting import Egress
from crawler.downloads.facts import Facts
from crawler.downloads.throttle import CLOCK_SECONDS, JITTER, Limit, Start, Starts, Throttle
from crawler.errors import Overloaded
from crawler.jobs.shared_facts import _Pending, decide
from crawler.jobs.store import STORE_TIME, Session, Store, _SqliteConnection
from tests.tiers import FAST_ON_SQLITE

DAY = 86_400.0
HOUR = 3_600.0
SECONDS = 0.4
"""Duration of a download."""
SHIPPED = {
    (name, source): Limit(limits["concurrency"], limits["delay"], 120.0, limits["burst"], limits.get("gap", 0.0))
    for name, platform in platforms.platforms().items()
    for source, limits in (
        ("", {key: getattr(platform, key) for key in platforms.LIMITS}),
        *platform.sources.items(),
    )
    if limits["delay"]
}
"""(Platform, source or "") -> the limits of each shipped budget with a delay."""


DISTURBANCES = {"rest": 5, "refusal": 10, "restart": 20, "clock": 6}
"""What happens to the processes -> how often a day."""


def times_of(kind: str, seconds: float, chance: random.Random) -> list[float]:
    """Return the times at which something happens within ``seconds``."""
    return [chance.uniform(0, seconds) for _ in range(round(DISTURBANCES[kind] * seconds / DAY) + 1)]


@dataclass
class Day:
    """A day in which ``processes`` download as much as they may. Their decisions are the throttle's own.

    ``decided``: makes a decision with a process's facts, at a time. ``is_shared``: whether the facts are those of all
    processes, whose clock may be set. ``restarted``: forgets what a process has in its memory.
    """

    limit: Limit
    processes: int
    decided: Callable[[int, Callable[..., Any] | None, float], Any]
    is_shared: bool
    seed: int
    poll: float = 0.5
    """Maximum delays until a process that found no slot tries again."""
    clock: float = 1e6
    """Seconds by which the clock of shared facts is ahead."""
    starts: list[float] = field(default_factory=list)
    known: dict[int, float] = field(default_factory=dict)
    """Process -> the time of ``next_at``, by its own clock."""
    unaware: set[int] = field(default_factory=set)
    """Processes that have decided nothing since the clock was set. They do not restart: nothing can show a process
    without a memory that the clock was set while it did not run, and then up to a burst is restored."""
    shut_until: float = 0.0
    idle_until: float = 0.0

    def run(self, seconds: float) -> list[float]:
        """Return the times of all starts."""
        chance = random.Random(self.seed)  # noqa: S311
        numbers = iter(range(10**9))
        events: list[tuple[float, int, str]] = [(chance.random(), process, "") for process in range(self.processes)]
        events += [(at, -1, kind) for kind in DISTURBANCES for at in times_of(kind, seconds, chance)]
        heapq.heapify(events)
        while events:
            now, process, token = heapq.heappop(events)
            if now > seconds:
                break
            if process < 0:
                self._disturb(token, now, chance)
            elif token:
                self._decide(process, partial(Starts.release, token=token), now)
            elif now < max(self.shut_until, self.idle_until):
                heapq.heappush(events, (max(self.shut_until, self.idle_until), process, ""))
            else:
                if self.shut_until:  # the trial of the closing breaker
                    self.shut_until = 0.0
                    self._decide(process, partial(Starts.drain, limit=self.limit), now)
                start, token = self._take(process, now, f"{process}:{next(numbers)}", chance)
                if start is None:
                    heapq.heappush(events, (now + self.limit.delay * chance.uniform(0.05, self.poll), process, ""))
                    continue
                self.starts.append(start)
                heapq.heappush(events, (start + SECONDS, process, token))
                heapq.heappush(events, (start + 0.001, process, ""))
        return sorted(each for each in self.starts if each < seconds)

    def _disturb(self, kind: str, now: float, chance: random.Random) -> None:
        process = chance.randrange(self.processes)
        match kind:
            case "rest":
                self.idle_until = now + chance.uniform(60, 1_800)
            case "refusal":
                self._decide(process, partial(Starts.drain, limit=self.limit), now)
                self.shut_until = now + chance.choice((60.0, 900.0))
            case "restart" if process not in self.unaware:
                self._decide(process, None, now)
                self.known.pop(process, None)
            case "clock" if self.is_shared:
                for each in range(self.processes):  # processes that wait have read the fact within POLL_SECONDS
                    self.known[each] = self.decided(each, lambda *_: None, now + self.clock)[1] - self.clock
                self.unaware = set(range(self.processes))
                self.clock += chance.choice((HOUR, -HOUR, 20.0, -20.0))

    def _take(self, process: int, now: float, token: str, chance: random.Random) -> tuple[float | None, str]:
        take = partial(
            Starts.take,
            limit=self.limit,
            token=token,
            spacing=self.limit.delay,
            debt=self.known.get(process, -math.inf) - now - CLOCK_SECONDS,
            vary=JITTER * chance.random(),
            background=process % 3 == 2,
            patience=math.inf,
        )
        found, next_at = self.decided(process, take, now + self.clock)
        self.known[process] = next_at - self.clock
        self.unaware.discard(process)
        return (None if found is None else now + found.seconds), token

    def _decide(self, process: int, decision: Callable[..., Any] | None, now: float) -> None:
        """Make a decision that tells the process nothing of the rate."""
        self.decided(process, decision, now + self.clock)


def in_processes(number: int) -> Callable[..., Any]:
    """Facts of each process, which keeps its next start in a file that a restart reads."""
    facts = {process: Starts() for process in range(number)}

    def decided(process: int, decision: Callable[..., Any] | None, now: float) -> Any:
        if decision is None:
            facts[process] = Starts(facts[process].next_at)
            return None, facts[process].next_at
        return decision(facts[process], now, number), facts[process].next_at

    return decided


SET_CLOCK = sa.text("SELECT set_config('tests.now', :now, false)")
TURNED_CLOCK = """
    CREATE SCHEMA turned;
    CREATE FUNCTION turned.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
    AS $$SELECT to_timestamp(coalesce(current_setting('tests.now', true), '0')::float8)$$;
"""


def turn_clock(location: str) -> None:
    """Let an empty PostgreSQL database take its time from the setting ``tests.now`` of each connection."""
    engine = sa.create_engine(location.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(TURNED_CLOCK))
        name = connection.scalar(sa.text("SELECT quote_ident(current_database())"))
        connection.execute(sa.text(f"ALTER DATABASE {name} SET search_path = public, turned, pg_catalog"))
    engine.dispose()


def in_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Facts in a store, in its own form. A restart changes nothing in the store."""

    def decided(_process: int, decision: Callable[..., Any] | None, now: float) -> Any:
        monkeypatch.setattr(_SqliteConnection, "now", lambda _: now)
        monkeypatch.setattr(STORE_TIME, "observe", lambda _: None)  # it stays in this process after the test
        pending = _Pending(Starts, "shop", decision or (lambda *_: None), None)

        def made_by(session: Session) -> Any:
            if session.dialect == "postgresql":
                session.execute(SET_CLOCK, {"now": str(now)})
            return decide(session, [pending], [])

        made = store.transact_sync(made_by)
        (fact,) = made.facts.values()
        assert isinstance(fact, Starts)
        return made.results[0], fact.next_at

    return decided


def excess(starts: list[float], limit: Limit) -> float:
    """Return by how many starts the fullest window has more than ``burst + time / delay``, negative if fewer."""
    worst, lowest = -math.inf, math.inf
    for number, at in enumerate(starts):
        used = number - at / limit.delay
        lowest = min(lowest, used)
        worst = max(worst, used - lowest + 1 - limit.burst)
    return worst


def in_window(starts: list[float], seconds: float) -> int:
    """Return the most starts in a window."""
    first = most = 0
    for number, at in enumerate(starts):
        while starts[first] <= at - seconds:
            first += 1
        most = max(most, number - first + 1)
    return most


DOCUMENTED = {("microblog", "timeline"): (900.0, 50), ("photoapp", ""): (HOUR, 75), ("videosite", ""): (HOUR, 1_000)}
"""The windows that the platforms' pages name: seconds, and the requests that were too many, or are allowed."""


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.soak), 8])
@pytest.mark.parametrize(("platform", "source"), SHIPPED)
def test_no_window_of_a_day_has_more_than_the_burst_and_the_rate(platform: str, source: str, processes: int) -> None:
    limit = SHIPPED[platform, source]
    starts = Day(limit, processes, in_processes(processes), is_shared=False, seed=processes).run(DAY)
    # Processes that share nothing have at least one start each: their bursts may add up to more than the burst.
    burst = max(limit.burst // processes, 1) * processes
    assert excess(starts, limit._replace(burst=burst)) <= 1e-6
    if (window := DOCUMENTED.get((platform, source))) and burst <= limit.burst:
        assert in_window(starts, window[0]) <= window[1]
    assert len(starts) > 0.5 * DAY / limit.delay, "the day had work"


@pytest.mark.parametrize("processes", [2, *(pytest.param(each, marks=pytest.mark.soak) for each in (1, 8))])
@pytest.mark.parametrize(
    ("budget", "seconds"),
    [(("microblog", "timeline"), DAY / 8), *(pytest.param(each, DAY, marks=pytest.mark.soak) for each in SHIPPED)],
)
@FAST_ON_SQLITE
def test_the_clock_of_a_store_restores_no_burst(
    location: str, monkeypatch: pytest.MonkeyPatch, budget: tuple[str, str], seconds: float, processes: int
) -> None:
    """A clock that is set ahead by an hour costs less than one start: a process knows what it used up itself.

    Each decision is a transaction of the database.
    """
    if "://" in location:
        turn_clock(location)
    limit = SHIPPED[budget]
    store, poll = Store(location, durable=False), 0.5 if seconds < DAY else 2.0
    try:
        day = Day(limit, processes, in_store(store, monkeypatch), is_shared=True, seed=processes, poll=poll)
        starts = day.run(seconds)
    finally:
        asyncio.run(store.close())
    assert excess(starts, limit) < 1
    if window := DOCUMENTED.get(budget):
        assert in_window(starts, window[0]) <= window[1]
    assert len(starts) > 0.5 * seconds / limit.delay, "the day had work"


def test_the_starts_of_a_burst_are_a_gap_apart_and_the_next_ones_a_delay() -> None:
    starts, limit, now, found = Starts(), Limit(9, 10.0, 60.0, 3, 1.0), 100.0, []
    for number in range(6):
        start = starts.take(now, 1, limit=limit, token=f"own:{number}", spacing=10.0)
        assert start is not None
        now += start.seconds
        found.append(now)
    assert [after - before for before, after in pairwise(found)] == [1, 1, 8, 10, 10]


def test_a_rest_restores_the_burst_up_to_its_size() -> None:
    starts, limit, waits = Starts(), Limit(9, 10.0, 60.0, 3), []
    for number, at in enumerate([100, 100, 100, 115, 1_000, 1_000, 1_000, 1_000]):
        start = starts.take(at, 1, limit=limit, token=f"own:{number}", spacing=10.0)
        assert start is not None
        waits.append(start.seconds)
    assert waits == [0, 0, 0, 0, 0, 0, 0, 10]


def test_a_background_download_leaves_the_burst() -> None:
    starts, limit = Starts(), Limit(9, 10.0, 60.0, 3)
    take = partial(starts.take, processes=1, limit=limit, spacing=10.0)
    assert take(100.0, token="job:0", background=True) == Start(0.0, "job:0")
    assert take(100.0, token="job:1", background=True) == Start(10.0, "job:1")
    starts = Starts()
    take = partial(starts.take, processes=1, limit=limit, spacing=10.0)
    assert take(100.0, token="job:0", background=True) == Start(0.0, "job:0")
    assert [take(100.0, token=f"call:{n}") for n in range(3)] == [
        Start(0.0, "call:0"),
        Start(0.0, "call:1"),
        Start(10.0, "call:2"),
    ]


async def test_a_background_download_starts_at_a_varied_time(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr("crawler.downloads.throttle.asyncio.sleep", sleep)
    monkeypatch.setattr("crawler.downloads.throttle.random.random", iter((0.0, 0.2, 0.2)).__next__)
    throttle = Throttle(9, 10.0, burst=3)
    for _ in range(2):
        (await throttle.acquire(background=True))()
    assert waits == [5, 4]


def test_a_clock_that_was_set_ahead_restores_no_burst() -> None:
    starts, limit = Starts(130.0), Limit(9, 10.0, 60.0, 3)
    assert starts.take(4_000.0, 1, limit=limit, token="own:0", spacing=10.0, debt=29.0) == Start(9.0, "own:0")


@pytest.mark.usefixtures("clock")
async def test_a_refusal_uses_up_the_burst() -> None:
    throttle = Throttle(5, 10.0, 0, burst=5)
    (await throttle.acquire())()
    assert throttle.burst_left == 4
    await throttle.drain()
    (await throttle.acquire())()
    with pytest.raises(Overloaded) as refused:
        await throttle.acquire(asyncio.get_running_loop().time() + 1)
    assert refused.value.retry_after == 10


@pytest.mark.usefixtures("clock")
async def test_estimates_count_the_burst() -> None:
    throttle = Throttle(9, 10.0, 0, burst=4)
    assert [round(throttle.start_in(ahead)) for ahead in (0, 3, 4, 6)] == [0, 0, 10, 30]
    (await throttle.acquire())()
    assert [round(throttle.start_in(ahead)) for ahead in (0, 2, 3)] == [0, 0, 10]
    assert round(throttle.start_in(background=True)) == 10
    assert throttle.free_in() == 0


async def test_estimates_ignore_starts_that_were_reserved_before_the_clock_was_set_back(
    clock: list[float],
) -> None:
    throttle = Throttle(1, 10.0, 0, gap=5.0)
    (await throttle.acquire())()
    assert (throttle.start_in(), throttle.starts_within(0)) == (10, 0)
    clock[0] -= 86_400
    assert (throttle.start_in(), throttle.starts_within(0)) == (0, 1)


async def test_a_restarted_process_continues_the_rate(tmp_path: Path) -> None:
    throttle = Throttle(9, 100.0, 0, burst=2, facts=Facts(folder=tmp_path), name="shop:")
    for _ in range(2):
        (await throttle.acquire())()
    again = Throttle(9, 100.0, 0, burst=2, facts=Facts(folder=tmp_path), name="shop:")
    assert again.burst_left == 1
    assert 50 < again.start_in() <= 101
    (kept,) = os.scandir(tmp_path)
    os.utime(kept, (time.time() + 1e6,) * 2)  # the clock was set back
    later = Throttle(9, 100.0, 0, burst=2, facts=Facts(folder=tmp_path), name="shop:")
    with pytest.raises(Overloaded):
        await later.acquire(asyncio.get_running_loop().time() + 1)


async def test_a_budget_without_a_burst_keeps_nothing(tmp_path: Path) -> None:
    (await Throttle(9, 100.0, 0, facts=Facts(folder=tmp_path), name="shop:").acquire())()
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # the test is a coroutine


async def test_the_first_download_starts_before_those_that_wait() -> None:
    throttle, started = Throttle(1), []

    async def download(name: str, *, first: bool = False) -> None:
        release = await throttle.acquire(first=first)
        started.append(name)
        await asyncio.sleep(0)
        release()

    held = await throttle.acquire()
    waiting = [asyncio.ensure_future(download(name)) for name in ("one", "two", "three")]
    await asyncio.sleep(0)
    urgent = asyncio.ensure_future(download("urgent", first=True))
    await asyncio.sleep(0)
    held()
    await asyncio.gather(*waiting, urgent)
    assert started == ["one", "urgent", "two", "three"]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (60.0, 10, 1.0)),
        ({"concurrency": 4}, (60.0, 10, 1.0)),
        ({"delay": 5}, (5, 1, 0.0)),
        ({"delay": 5, "burst": 3}, (5, 3, 0.0)),
        ({"burst": 3}, (60.0, 3, 1.0)),
    ],
)
def test_a_delay_without_a_burst_means_one_start(own: dict[str, Any], expected: tuple[float, int, float]) -> None:
    by_setting = platforms.budget("photoapp", Settings({"PLATFORM_BUDGETS": {"photoapp": own}}))
    egress = Egress.model_validate({"name": "a", "proxy": "http://127.0.0.1:9", "budgets": {"photoapp": own}})
    by_egress = egress.budget("photoapp", Settings())
    for found in (by_setting, by_egress):
        assert (found["delay"], found["burst"], found["gap"]) == expected


@pytest.mark.usefixtures("clock")
async def test_a_throttle_counts_the_starts_within_a_time() -> None:
    throttle = Throttle(9, 4.0, 0, burst=5)
    assert throttle.starts_within(10) == 7
    for _ in range(5):
        (await throttle.acquire())()
    assert throttle.starts_within(10) == 2
    assert Throttle(9).starts_within(10) == math.inf
    assert Throttle(9, 1.0, 0, burst=99, gap=2.0).starts_within(10) == 6
