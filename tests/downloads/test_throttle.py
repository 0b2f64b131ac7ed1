"""Throttles of this process."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.throttle import Throttle
from crawler.errors import Overloaded, UpstreamTimeout


def test_downloads_in_flight_are_limited() -> None:
    async def scenario() -> int:
        throttle = Throttle(concurrency=3)
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
    async def scenario() -> tuple[float, list[float]]:
        throttle = Throttle(concurrency=10, delay=0.02, jitter=0)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        starts: list[float] = []

        async def download() -> None:
            release = await throttle.acquire()
            starts.append(loop.time())
            release()

        await asyncio.gather(*(download() for _ in range(5)))
        return begin, starts

    begin, starts = asyncio.run(scenario())
    assert starts == sorted(starts)
    # The delays are not measured from the first start, which may be late, but from the time at which it was allowed.
    assert starts[-1] - begin >= 0.02 * 4 - 0.001, "not before the sum of the delays"


def test_a_start_after_the_deadline_is_refused_at_once() -> None:
    async def scenario() -> None:
        throttle = Throttle(concurrency=1, delay=30, jitter=0)
        now = asyncio.get_running_loop().time()
        await throttle.acquire(now + 10)
        with pytest.raises(Overloaded) as refused:
            await throttle.acquire(now + 10)
        assert refused.value.retry_after == 30

    asyncio.run(scenario())


def test_a_slot_that_is_not_released_in_time_is_a_timeout() -> None:
    async def scenario() -> None:
        throttle = Throttle(concurrency=1)
        release = await throttle.acquire()
        with pytest.raises(UpstreamTimeout):
            await throttle.acquire(asyncio.get_running_loop().time() + 0.01)
        release()
        await throttle.acquire(asyncio.get_running_loop().time() + 10)

    asyncio.run(scenario())


def test_background_downloads_let_all_others_go_first() -> None:
    async def scenario() -> list[str]:
        throttle = Throttle(concurrency=10, delay=0.3, jitter=0)
        started: list[str] = []

        async def download(name: str) -> None:
            (await throttle.acquire(background=name.startswith("background")))()
            started.append(name)

        names = ("background 1", "background 2", "background 3", "call 1", "call 2")
        await asyncio.gather(*(download(name) for name in names))
        return started

    assert asyncio.run(scenario()) == ["background 1", "call 1", "call 2", "background 2", "background 3"]


def test_waiting_background_downloads_delay_no_estimate() -> None:
    async def scenario() -> None:
        throttle = Throttle(concurrency=1, delay=30, jitter=0)
        (await throttle.acquire())()
        next_start = throttle.earliest()
        loop = asyncio.get_running_loop()
        waiting = [
            asyncio.ensure_future(throttle.acquire(loop.time() + seconds, background=True)) for seconds in (0.01, 3_600)
        ]
        with pytest.raises(Overloaded):
            await waiting[0]
        assert throttle.earliest() == pytest.approx(next_start, abs=1)
        waiting[1].cancel()

    asyncio.run(scenario())
