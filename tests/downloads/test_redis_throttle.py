"""Download slots that several processes share through a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from crawler.downloads.redis_throttle import RedisThrottle
from crawler.downloads.throttle import LocalThrottle
from crawler.errors import Overloaded, UpstreamTimeout

Pair = tuple[RedisThrottle, RedisThrottle]
UNREACHABLE = "redis://127.0.0.1:1"


@asynccontextmanager
async def shared(url: str, concurrency: int = 1, delay: float = 0.0, *, seconds: float = 30.0) -> AsyncIterator[Pair]:
    """The throttles of two processes. The local share of each, while Redis is unavailable, is one slot."""
    one, two = (
        RedisThrottle(
            url, "shop", concurrency, delay, download_timeout=seconds, local=LocalThrottle(1, delay * 2), jitter=0
        )
        for _ in range(2)
    )
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


def test_downloads_in_flight_are_limited(redis_url: str) -> None:
    async def scenario() -> int:
        in_flight = most = 0

        async def download(throttle: RedisThrottle) -> None:
            nonlocal in_flight, most
            release = await throttle.acquire()
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0.01)
            in_flight -= 1
            release()

        async with shared(redis_url, concurrency=3) as processes:
            await asyncio.gather(*(download(throttle) for throttle in processes for _ in range(8)))
        return most

    assert asyncio.run(scenario()) == 3


def test_downloads_start_a_delay_apart(redis_url: str) -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        starts: list[float] = []

        async def download(throttle: RedisThrottle) -> None:
            release = await throttle.acquire()
            starts.append(loop.time())
            release()

        async with shared(redis_url, concurrency=10, delay=0.1) as processes:
            await asyncio.gather(*(download(throttle) for throttle in processes for _ in range(3)))
        return sorted(starts)

    starts = asyncio.run(scenario())
    assert starts[-1] - starts[0] >= 0.1 * 5 - 0.05, "not before the sum of the delays"


def test_a_start_after_the_deadline_is_refused_at_once(redis_url: str) -> None:
    async def scenario() -> int | None:
        async with shared(redis_url, concurrency=2, delay=30) as (one, two):
            await one.acquire()
            with pytest.raises(Overloaded) as refused:
                await two.acquire(asyncio.get_running_loop().time() + 10)
            assert two.earliest() > asyncio.get_running_loop().time() + 20, "the refusal has updated it"
        return refused.value.retry_after

    assert asyncio.run(scenario()) == 30


def test_a_slot_that_is_not_released_in_time_is_a_timeout(redis_url: str) -> None:
    async def scenario() -> None:
        async with shared(redis_url) as (one, two):
            await one.acquire()
            with pytest.raises(UpstreamTimeout):
                await two.acquire(asyncio.get_running_loop().time() + 0.05)

    asyncio.run(scenario())


def test_the_slot_of_a_killed_process_expires(redis_url: str) -> None:
    async def scenario() -> None:
        async with shared(redis_url, seconds=0.1) as (one, two):
            await one.acquire()  # never released
            await two.acquire(asyncio.get_running_loop().time() + 5)

    asyncio.run(scenario())


def test_each_process_uses_its_local_share_while_redis_is_unavailable() -> None:
    async def scenario() -> None:
        async with shared(UNREACHABLE, concurrency=10) as (throttle, _):
            release = await throttle.acquire()
            with pytest.raises(UpstreamTimeout):
                await throttle.acquire(asyncio.get_running_loop().time() + 0.05)
            release()
            await throttle.acquire(asyncio.get_running_loop().time() + 5)

    asyncio.run(scenario())
