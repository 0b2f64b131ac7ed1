"""Download slots: taken before a request reaches the network, and released when its transfer has ended."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from scrapy import Request, signals
from scrapy.http import Response

from crawler.downloads.facts import Facts
from crawler.downloads.shared_state import SharedState
from crawler.downloads.throttle import Throttle
from crawler.errors import ShuttingDown
from crawler.middlewares import ThrottleMiddleware
from crawler.targets.shutdown import crawler_closing
from crawler.targets.target import Target
from tests.downloads.sending import Sending, made, target

URL = "https://shop.example/"


@pytest.fixture
def slot(monkeypatch: pytest.MonkeyPatch) -> Sending:
    """The throttle middleware of a platform with one download slot."""
    return Sending(made(EGRESSES=[], BREAKER_THRESHOLD=0), monkeypatch)


def left_downloader(slot: Sending, request: Request) -> None:
    slot.crawler.signals.send_catch_log(signals.request_left_downloader, request=request, spider=slot.crawler.spider)


async def is_free(middleware: ThrottleMiddleware) -> bool:
    """Whether another request gets the only download slot immediately."""
    probe = Request(URL)
    admitted = asyncio.ensure_future(middleware.process_request(probe))
    for _ in range(20):  # rounds of the event loop, in which a free slot is taken
        await asyncio.sleep(0)
    if admitted.done():
        middleware.release(probe)
        return True
    admitted.cancel()
    await asyncio.wait([admitted])
    return False


async def test_the_slot_is_released_when_the_request_has_left_the_downloader(slot: Sending) -> None:
    middleware, request = slot.middleware, Request(URL)
    await middleware.process_request(request)
    assert not await is_free(middleware)
    left_downloader(slot, request)
    assert await is_free(middleware)


async def test_a_slot_is_released_once(slot: Sending) -> None:
    middleware, first, second = slot.middleware, Request(URL), Request(URL)
    await middleware.process_request(first)
    left_downloader(slot, first)
    await middleware.process_request(second)
    middleware.process_response(first, Response(URL))
    middleware.process_exception(first, ValueError())
    assert not await is_free(middleware)


async def test_a_request_that_is_discarded_releases_its_slot(slot: Sending) -> None:
    middleware, request = slot.middleware, Request(URL)
    await middleware.process_request(request)
    del request
    gc.collect()
    assert await is_free(middleware)


@pytest.mark.parametrize(
    ("given", "left", "expected"), [(60.0, 1_000.0, 60.0), (60.0, 20.0, 20.0), (None, 20.0, 20.0), (60.0, -1.0, 0.001)]
)
async def test_a_download_ends_by_its_timeout_or_its_targets_deadline(
    slot: Sending, monkeypatch: pytest.MonkeyPatch, given: float | None, left: float, expected: float
) -> None:
    monkeypatch.setattr(Target, "seconds_left", left)
    admission = SimpleNamespace(admit=AsyncMock(return_value=lambda: None))
    slot.middleware.admission = cast("Any", admission)
    request = Request(URL, meta={"target": target("1")} | ({} if given is None else {"download_timeout": given}))
    await slot.middleware.process_request(request)
    assert request.meta["download_timeout"] == expected


async def test_a_request_that_waits_for_a_slot_gives_up_when_the_crawler_closes(slot: Sending) -> None:
    middleware = slot.middleware
    holding = Request(URL)
    await middleware.process_request(holding)
    waiting = asyncio.ensure_future(middleware.process_request(Request(URL)))
    await asyncio.sleep(0)
    slot.crawler.signals.send_catch_log(crawler_closing, reason="shutdown")
    with pytest.raises(ShuttingDown):
        await waiting
    with pytest.raises(ShuttingDown):
        await middleware.process_request(Request(URL))
    left_downloader(slot, holding)


async def test_a_cancelled_download_does_not_delay_the_next_one() -> None:
    throttle = Throttle(1, delay=100.0, jitter=0.0)
    await throttle.acquire()
    waiting = asyncio.ensure_future(throttle.acquire())
    await asyncio.sleep(0)
    assert throttle.start_in() > 100.0
    waiting.cancel()
    await asyncio.wait([waiting])
    assert throttle.start_in() <= 100.0


async def test_closing_the_shared_state_closes_its_facts() -> None:
    closed = []

    class Noting(Facts):
        async def close(self) -> None:
            closed.append(self)

    shared = SharedState()
    facts = shared.get(Facts, "", Noting)
    await shared.close()
    assert closed == [facts]


async def test_each_download_ahead_adds_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Facts, "now", lambda _: 1_000.0)
    throttle = Throttle(5, delay=1.0, jitter=0.0, burst=5, gap=10.0)
    await throttle.acquire()
    assert [throttle.start_in(ahead) for ahead in range(3)] == [10.0, 20.0, 30.0]
