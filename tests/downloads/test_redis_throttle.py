"""Turns that several processes share through a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from crawler.downloads.redis_throttle import RedisThrottle
from crawler.downloads.throttle import LocalThrottle
from crawler.errors import Overloaded, UpstreamTimeout

Pair = tuple[RedisThrottle, RedisThrottle]
NOWHERE = "redis://127.0.0.1:1"


@asynccontextmanager
async def shared(url: str, concurrency: int = 1, delay: float = 0.0, *, longest: float = 30.0) -> AsyncIterator[Pair]:
    """How two processes see the turns. A process' own part, while Redis is away, is one place."""
    one, two = (
        RedisThrottle(url, "shop", concurrency, delay, longest=longest, alone=LocalThrottle(1, delay * 2), jitter=0)
        for _ in range(2)
    )
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


def test_no_more_turns_than_places(redis_url: str) -> None:
    async def scenario() -> int:
        inside = most = 0

        async def visit(turns: RedisThrottle) -> None:
            nonlocal inside, most
            end = await turns.acquire()
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1
            end()

        async with shared(redis_url, concurrency=3) as processes:
            await asyncio.gather(*(visit(turns) for turns in processes for _ in range(8)))
        return most

    assert asyncio.run(scenario()) == 3


def test_turns_start_a_delay_apart(redis_url: str) -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        starts: list[float] = []

        async def visit(turns: RedisThrottle) -> None:
            end = await turns.acquire()
            starts.append(loop.time())
            end()

        async with shared(redis_url, concurrency=10, delay=0.1) as processes:
            await asyncio.gather(*(visit(turns) for turns in processes for _ in range(3)))
        return sorted(starts)

    starts = asyncio.run(scenario())
    assert starts[-1] - starts[0] >= 0.1 * 5 - 0.05, "never sooner than the delays add up to"


def test_a_turn_after_the_deadline_is_refused_at_once(redis_url: str) -> None:
    async def scenario() -> int | None:
        async with shared(redis_url, concurrency=2, delay=30) as (one, two):
            await one.acquire()
            with pytest.raises(Overloaded) as refused:
                await two.acquire(asyncio.get_running_loop().time() + 10)
            assert two.earliest() > asyncio.get_running_loop().time() + 20, "it knows now"
        return refused.value.retry_after

    assert asyncio.run(scenario()) == 30


def test_a_place_that_does_not_come_free_in_time_is_a_timeout(redis_url: str) -> None:
    async def scenario() -> None:
        async with shared(redis_url) as (one, two):
            await one.acquire()
            with pytest.raises(UpstreamTimeout):
                await two.acquire(asyncio.get_running_loop().time() + 0.05)

    asyncio.run(scenario())


def test_the_turn_of_a_process_that_was_killed_comes_free(redis_url: str) -> None:
    async def scenario() -> None:
        async with shared(redis_url, longest=0.1) as (one, two):
            await one.acquire()  # and never ended
            await two.acquire(asyncio.get_running_loop().time() + 5)

    asyncio.run(scenario())


def test_each_process_keeps_to_its_own_part_while_redis_is_away() -> None:
    async def scenario() -> None:
        async with shared(NOWHERE, concurrency=10) as (turns, _):
            end = await turns.acquire()
            with pytest.raises(UpstreamTimeout):
                await turns.acquire(asyncio.get_running_loop().time() + 0.05)
            end()
            await turns.acquire(asyncio.get_running_loop().time() + 5)

    asyncio.run(scenario())
