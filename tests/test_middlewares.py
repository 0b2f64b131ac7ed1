"""Retries by Scrapy's retry middleware, with a wait before each."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError, IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from crawler.errors import UpstreamError, UpstreamTimeout
from crawler.middlewares import Decompression, Redirect, Retry
from crawler.registry import scrapers
from crawler.targets.target import Target

URL = "https://shop.example/"


def due(deadline: float) -> Target:
    scraper = scrapers()["retail-search-v4"]
    return Target("1", scraper, scraper.params.model_validate({"query": "mustard"}), deadline=deadline)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Records the waits before retries in seconds, instead of waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("crawler.middlewares.asyncio.sleep", sleep)
    return found


def retry(**settings: Any) -> Retry:
    backoff = {"RETRY_BACKOFF_BASE": 0.5, "RETRY_BACKOFF_MAX": 30.0}
    crawler = Crawler(Spider, Settings({**backoff, **settings}))
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.spider = Spider.from_crawler(crawler, "shop")
    return Retry.from_crawler(crawler)


def stats(middleware: Retry) -> dict[str, Any]:
    assert middleware.crawler.stats is not None
    return {k: v for k, v in middleware.crawler.stats.get_stats().items() if k.startswith("retry/")}


def request(**meta: Any) -> Request:
    return Request(URL, meta=meta)


def unavailable(retry_after: str | None = None) -> Response:
    return Response(URL, status=503, headers={"Retry-After": retry_after} if retry_after else None)


def process_response(middleware: Retry, sent: Request, response: Response) -> Request | Response:
    return asyncio.run(middleware.process_response(sent, response))


def process_exception(middleware: Retry, sent: Request, exception: Exception) -> Request | Response | None:
    return asyncio.run(middleware.process_exception(sent, exception))


def test_a_request_may_forbid_its_retries(waits: list[float]) -> None:
    middleware, response = retry(), unavailable()
    assert process_response(middleware, request(dont_retry=True), response) is response
    assert process_exception(middleware, request(dont_retry=True), DownloadConnectionRefusedError()) is None
    assert (waits, stats(middleware)) == ([], {})


@pytest.mark.usefixtures("waits")
def test_a_request_may_have_its_own_number_of_retries() -> None:
    middleware, response = retry(RETRY_TIMES=2), unavailable()
    assert process_response(middleware, request(max_retry_times=0), response) is response
    assert stats(middleware) == {"retry/max_reached": 1}
    again = process_response(middleware, request(max_retry_times=7, retry_times=6), response)
    assert isinstance(again, Request)
    assert again.meta["retry_times"] == 7


def test_retries_are_counted_as_scrapy_counts_them(waits: list[float]) -> None:
    middleware, sent = retry(RETRY_TIMES=2), request()
    sent = process_response(middleware, sent, unavailable())  # type: ignore[assignment]
    sent = process_exception(middleware, sent, DownloadConnectionRefusedError())  # type: ignore[assignment]
    assert process_exception(middleware, sent, DownloadConnectionRefusedError()) is None
    assert stats(middleware) == {
        "retry/count": 2,
        "retry/reason_count/503 Service Unavailable": 1,
        "retry/reason_count/scrapy.exceptions.DownloadConnectionRefusedError": 1,
        "retry/max_reached": 1,
    }
    assert len(waits) == 2


def test_a_response_after_too_many_redirects_shows_where_they_lead() -> None:
    crawler = Crawler(Spider, Settings({"REDIRECT_MAX_TIMES": 2}))
    crawler.spider = Spider.from_crawler(crawler, "shop")
    middleware = Redirect.from_crawler(crawler)
    found: Any = request()
    login = Response(f"{URL}login", status=302, headers={"Location": f"{URL}login"})
    for _ in range(2):
        found = middleware.process_response(found, login)
    assert middleware.process_response(found, login) is login


def test_retries_may_be_switched_off() -> None:
    with pytest.raises(NotConfigured):
        retry(RETRY_ENABLED=False)


def test_a_retry_waits_at_random_up_to_a_limit_that_doubles(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.middlewares.random.uniform", lambda _, limit: limit)
    middleware = retry(RETRY_TIMES=9, RETRY_BACKOFF_MAX=3.0)
    sent: Any = request()
    for _ in range(4):
        sent = process_response(middleware, sent, unavailable())
    assert waits == [0.5, 1.0, 2.0, 3.0]
    assert sent.dont_filter


def test_retry_after_is_waited_for_up_to_the_longest_wait(waits: list[float]) -> None:
    middleware, late = retry(), unavailable("31")
    assert isinstance(process_response(middleware, request(), unavailable("7")), Request)
    assert process_response(middleware, request(), late) is late
    assert waits == [7.0]
    assert stats(middleware)["retry/count"] == 1


def test_no_retry_starts_after_the_deadline(waits: list[float]) -> None:
    middleware, response = retry(), unavailable("7")
    now = time.monotonic()
    assert process_response(middleware, request(target=due(now + 5)), response) is response
    with pytest.raises(UpstreamTimeout):
        process_exception(middleware, request(target=due(now)), DownloadTimeoutError())
    assert (waits, stats(middleware)) == ([], {})


def test_other_responses_and_exceptions_pass(waits: list[float]) -> None:
    middleware, response = retry(), Response(URL, status=404)
    assert process_response(middleware, request(), response) is response
    assert process_exception(middleware, request(), ValueError()) is None
    assert (waits, stats(middleware)) == ([], {})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(gzip.compress(b" " * 2_000_000), IgnoreRequest, id="too large"),
        pytest.param(gzip.compress(b"")[:10] + b"\xff" * 99, UpstreamError, id="damaged"),
    ],
)
def test_the_error_of_a_body_that_cannot_be_decompressed_keeps_nothing_of_it(
    body: bytes, error: type[Exception]
) -> None:
    """Errors live on in the reference cycles of libraries, and a page of a few kB may become many MB."""
    crawler = Crawler(Spider, Settings({"DOWNLOAD_MAXSIZE": 1_000_000}))
    crawler.stats = MemoryStatsCollector(crawler)
    middleware = Decompression.from_crawler(crawler)
    middleware.open_spider(Spider.from_crawler(crawler, "shop"))
    response = Response(URL, headers={"Content-Encoding": "gzip"}, body=body)
    with pytest.raises(error) as raised:
        middleware.process_response(request(), response)
    assert raised.value.__context__ is None
    assert not [each for each in raised.traceback if "site-packages" in str(each.path)]
