"""Throttles: downloads in the background. ``test_shared_throttle.py`` tests the rest, also in one process."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.throttle import Throttle
from crawler.errors import Overloaded


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
        next_start = throttle.start_in()
        loop = asyncio.get_running_loop()
        waiting = [
            asyncio.ensure_future(throttle.acquire(loop.time() + seconds, background=True)) for seconds in (0.01, 3_600)
        ]
        with pytest.raises(Overloaded):
            await waiting[0]
        assert throttle.start_in() == pytest.approx(next_start, abs=1)
        waiting[1].cancel()

    asyncio.run(scenario())
