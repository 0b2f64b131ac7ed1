"""Throttles and circuit breakers of this process."""

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

BLOCK = UpstreamBlocked("blocked")


def test_downloads_in_flight_are_limited() -> None:
    async def scenario() -> int:
        throttle = LocalThrottle(concurrency=3)
        in_flight = most = 0

        async def download() -> None:
            nonlocal in_flight, most
            release = await throttle.acquire()
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0)
            in_flight -= 1
            release()

        await asyncio.gather(*(download() for _ in range(20)))
        return most

    assert asyncio.run(scenario()) == 3


def test_downloads_start_a_delay_apart() -> None:
    async def scenario() -> list[float]:
        throttle = LocalThrottle(concurrency=10, delay=0.02, jitter=0)
        loop = asyncio.get_running_loop()
        starts: list[float] = []

        async def download() -> None:
            release = await throttle.acquire()
            starts.append(loop.time())
            release()

        await asyncio.gather(*(download() for _ in range(5)))
        return starts

    starts = asyncio.run(scenario())
    assert starts == sorted(starts)
    assert starts[-1] - starts[0] >= 0.02 * 4 - 0.001, "not before the sum of the delays"


def test_a_start_after_the_deadline_is_refused_at_once() -> None:
    async def scenario() -> None:
        throttle = LocalThrottle(concurrency=1, delay=30, jitter=0)
        now = asyncio.get_running_loop().time()
        await throttle.acquire(now + 10)
        with pytest.raises(Overloaded) as refused:
            await throttle.acquire(now + 10)
        assert refused.value.retry_after == 30

    asyncio.run(scenario())


def test_a_slot_that_is_not_released_in_time_is_a_timeout() -> None:
    async def scenario() -> None:
        throttle = LocalThrottle(concurrency=1)
        release = await throttle.acquire()
        with pytest.raises(UpstreamTimeout):
            await throttle.acquire(asyncio.get_running_loop().time() + 0.01)
        release()
        await throttle.acquire(asyncio.get_running_loop().time() + 10)

    asyncio.run(scenario())


def is_open(breaker: CircuitBreaker) -> bool:
    try:
        breaker.check()
    except CircuitOpen:
        return True
    return False


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ([BLOCK, BLOCK], False),
        ([BLOCK, BLOCK, BLOCK], True),
        ([BLOCK, BLOCK, None, BLOCK], False),
        ([BLOCK, BLOCK, TargetNotFound("not found"), BLOCK], False),
        ([BLOCK, BLOCK, ExtractionFailed("unknown page"), BLOCK], True),
        ([BLOCK, BLOCK, InvalidRequest("no request was sent"), BLOCK], True),
    ],
)
def test_consecutive_blocks_open_the_breaker(outcomes: list[ScrapeError | None], opens: bool) -> None:  # noqa: FBT001  # a table
    breaker = CircuitBreaker(threshold=3, cooldown=60)
    for outcome in outcomes:
        breaker.record(outcome)
    assert is_open(breaker) is opens


def test_a_block_with_retry_after_opens_the_breaker_for_that_time() -> None:
    breaker = CircuitBreaker(threshold=3, cooldown=60, max_cooldown=200)
    breaker.record(UpstreamBlocked("blocked", retry_after=3_600))
    assert is_open(breaker)
    assert round(breaker.remaining) == 3_600
    breaker.record(None)
    assert not is_open(breaker)


@pytest.mark.parametrize("retry_after", [None, 3_600])
def test_a_threshold_of_zero_disables_the_breaker(retry_after: int | None) -> None:
    breaker = CircuitBreaker(threshold=0, cooldown=60)
    for _ in range(20):
        breaker.record(UpstreamBlocked("blocked", retry_after=retry_after))
    assert not is_open(breaker)


def test_one_target_is_tried_after_the_cooldown() -> None:
    breaker = CircuitBreaker(threshold=1, cooldown=0)
    breaker.record(BLOCK)
    assert not is_open(breaker), "the first target is tried"
    assert is_open(breaker), "the others wait for its outcome"
    breaker.record(None)
    assert not is_open(breaker)


def test_each_failed_trial_doubles_the_cooldown() -> None:
    breaker = CircuitBreaker(threshold=1, cooldown=60, max_cooldown=200)
    cooldowns = []
    for _ in range(4):
        breaker.record(BLOCK)
        cooldowns.append(round(breaker.remaining))
    assert cooldowns == [60, 120, 200, 200]
