"""Turns and circuit breakers."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.throttle import CircuitBreaker, LocalThrottle
from crawler.errors import (
    CircuitOpen,
    ExtractionFailed,
    InvalidRequest,
    Overloaded,
    ScrapeError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamTimeout,
)

WALL = UpstreamBlocked("a wall")


def test_no_more_turns_than_places() -> None:
    async def scenario() -> int:
        budget = LocalThrottle(concurrency=3)
        inside = most = 0

        async def visit() -> None:
            nonlocal inside, most
            end = await budget.acquire()
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            end()

        await asyncio.gather(*(visit() for _ in range(20)))
        return most

    assert asyncio.run(scenario()) == 3


def test_turns_start_a_delay_apart() -> None:
    async def scenario() -> list[float]:
        budget = LocalThrottle(concurrency=10, delay=0.02, jitter=0)
        loop = asyncio.get_running_loop()
        starts: list[float] = []

        async def visit() -> None:
            end = await budget.acquire()
            starts.append(loop.time())
            end()

        await asyncio.gather(*(visit() for _ in range(5)))
        return starts

    starts = asyncio.run(scenario())
    assert starts == sorted(starts)
    assert starts[-1] - starts[0] >= 0.02 * 4 - 0.001, "never sooner than the delays add up to"


def test_a_turn_after_the_deadline_is_refused_at_once() -> None:
    async def scenario() -> None:
        budget = LocalThrottle(concurrency=1, delay=30, jitter=0)
        now = asyncio.get_running_loop().time()
        await budget.acquire(now + 10)
        with pytest.raises(Overloaded) as refused:
            await budget.acquire(now + 10)
        assert refused.value.retry_after == 30

    asyncio.run(scenario())


def test_a_place_that_does_not_come_free_in_time_is_a_timeout() -> None:
    async def scenario() -> None:
        budget = LocalThrottle(concurrency=1)
        end = await budget.acquire()
        with pytest.raises(UpstreamTimeout):
            await budget.acquire(asyncio.get_running_loop().time() + 0.01)
        end()
        await budget.acquire(asyncio.get_running_loop().time() + 10)

    asyncio.run(scenario())


def opened(breaker: CircuitBreaker) -> bool:
    try:
        breaker.check()
    except CircuitOpen:
        return True
    return False


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ([WALL, WALL], False),
        ([WALL, WALL, WALL], True),
        ([WALL, WALL, None, WALL], False),
        ([WALL, WALL, TargetNotFound("gone"), WALL], False),
        ([WALL, WALL, ExtractionFailed("what is this"), WALL], True),
        ([WALL, WALL, InvalidRequest("never asked the platform"), WALL], True),
    ],
)
def test_opens_after_walls_in_a_row(outcomes: list[ScrapeError | None], opens: bool) -> None:  # noqa: FBT001  # a table
    breaker = CircuitBreaker(threshold=3, cooldown=60)
    for outcome in outcomes:
        breaker.record(outcome)
    assert opened(breaker) is opens


def test_a_wall_that_lasts_opens_at_once_and_for_as_long() -> None:
    breaker = CircuitBreaker(threshold=3, cooldown=60, longest=200)
    breaker.record(UpstreamBlocked("not you", retry_after=3_600))
    assert opened(breaker)
    assert round(breaker.remaining) == 3_600
    breaker.record(None)
    assert not opened(breaker)


@pytest.mark.parametrize("retry_after", [None, 3_600])
def test_without_a_threshold_it_never_opens(retry_after: int | None) -> None:
    breaker = CircuitBreaker(threshold=0, cooldown=60)
    for _ in range(20):
        breaker.record(UpstreamBlocked("not you", retry_after=retry_after))
    assert not opened(breaker)


def test_after_the_cooldown_one_target_tries() -> None:
    breaker = CircuitBreaker(threshold=1, cooldown=0)
    breaker.record(WALL)
    assert not opened(breaker), "the one that tries"
    assert opened(breaker), "the others wait for its outcome"
    breaker.record(None)
    assert not opened(breaker)


def test_each_failed_try_doubles_the_pause() -> None:
    breaker = CircuitBreaker(threshold=1, cooldown=60, longest=200)
    pauses = []
    for _ in range(4):
        breaker.record(WALL)
        pauses.append(round(breaker.remaining))
    assert pauses == [60, 120, 200, 200]
