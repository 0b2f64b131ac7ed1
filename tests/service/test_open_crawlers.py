"""The service's crawlers: their limits while egresses are suspended, and the memory of failed targets."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import time
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list

from crawler.downloads.lane import egress_failed
from crawler.downloads.shared_state import SharedState
from crawler.errors import CircuitOpen, Overloaded, UpstreamRateLimited
from crawler.registry import find_scraper, spiders
from crawler.service import open_crawlers
from crawler.service.open_crawlers import (
    MIN_IN_FLIGHT,
    UNREAD_STATS,
    OpenCrawler,
    OpenCrawlers,
    settings_of_crawlers,
)
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Target
from tests.service.client import HEADERS, call
from tests.service.conftest import running

EGRESSES = [{"name": name, "proxy": "http://127.0.0.1:9"} for name in ("a", "b", "c")]
WAITING = 7


def open_crawler(**more: int) -> OpenCrawler:
    values = {
        "EGRESSES": EGRESSES,
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 5, "delay": 0}},
        "PROCESSES": 1,
        "BREAKER_THRESHOLD": 2,
        "BREAKER_COOLDOWN": 60,
        "RETRY_AFTER_MAX": 3_600,
        "SERVICE_MAX_WAITING": WAITING,
    }
    return OpenCrawler(spiders()["retail"], settings_of_crawlers(Settings(values | more)), SharedState())


async def test_a_crawler_ends_after_a_number_of_targets_and_another_one_takes_its_place() -> None:
    crawler, scraper = open_crawler(SERVICE_RECYCLE_TARGETS=2), find_scraper("retail-search-v4")
    outcome = Outcome(Target("1", scraper, check_params(scraper, {"query": "tea"})), None, None, 0)
    renewing = []
    for _ in range(3):
        crawler.source.completed(outcome)
        renewing.append(crawler.source.renewing)
    assert renewing == [False, True, True]


async def test_a_crawler_that_cannot_be_closed_does_not_end_the_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further steps follow, such as storing the usage."""
    monkeypatch.setattr(open_crawlers, "CLOSE_SECONDS", 0)
    monkeypatch.setattr(OpenCrawler, "close", lambda _: asyncio.sleep(math.inf))
    await OpenCrawlers(Settings({"PROCESSES": 1}), SharedState()).drain()


async def test_an_open_crawler_counts_no_stats_that_nothing_reads() -> None:
    settings = open_crawler().settings
    assert not settings.getbool("DOWNLOADER_STATS")
    assert not set(UNREAD_STATS) & set(build_component_list(settings.getwithbase("EXTENSIONS")))
    assert set(UNREAD_STATS) <= set(build_component_list(Settings().getwithbase("EXTENSIONS")))


def test_features_of_a_single_crawl_are_off_in_an_open_crawler() -> None:
    """A folder of requests, or a limit at which Scrapy closes a crawler, would be shared by all calls."""
    given = {
        "FEEDS": {"out.jsonl": {"format": "jsonl"}},
        "FAILURES_FEED": "failures.jsonl",
        "JOBDIR": "requests",
        "MEMUSAGE_ENABLED": True,
        "LOGSTATS_INTERVAL": 60,
        "STATS_DUMP": True,
        **{f"CLOSESPIDER_{of}": 1 for of in ("TIMEOUT", "ITEMCOUNT", "PAGECOUNT", "ERRORCOUNT")},
    }
    settings = settings_of_crawlers(Settings(given))
    assert [name for name in given if settings.get(name)] == []


async def test_the_limits_exclude_egresses_that_rest() -> None:
    crawler = open_crawler()
    limits = [(crawler.max_in_flight, crawler.limit)]
    first, second, third = crawler.lanes
    await first.count("listing", egress_failed("a", "it was unplugged"))
    limits.append((crawler.max_in_flight, crawler.limit))
    await second.count("listing", UpstreamRateLimited("later", retry_after=60))
    limits.append((crawler.max_in_flight, crawler.limit))
    await third.count("listing", egress_failed("c", "it was unplugged"))
    await second.count("listing", egress_failed("b", "it was unplugged"))
    limits.append((crawler.max_in_flight, crawler.limit))
    assert limits == [(number, number + WAITING) for number in (30, 20, 10, MIN_IN_FLIGHT)]


@pytest.mark.parametrize(
    ("deadline", "patience", "retry_after"),
    [(60, 15, 6), (10, math.inf, 11), (60, 30, None), (60, math.inf, None)],
)
async def test_a_call_whose_source_has_no_slot_in_time_is_refused_with_the_seconds_until_one_is_accepted(
    tmp_path: Path, deadline: float, patience: float, retry_after: int | None
) -> None:
    """The source has a slot in 21 s. A call that waits for so long is queued."""
    budget = {"delay": 0, "sources": {"timeline": {"concurrency": 2, "delay": 21, "burst": 2}}}
    values = {
        "PLATFORM_BUDGETS": {"microblog": budget},
        "SERVICE_MAX_WAITING": WAITING,
        "PROCESSES": 1,
        "STORE": tmp_path / "store.sqlite3",  # the next starts are kept beside it
    }
    crawler = OpenCrawler(spiders()["microblog"], settings_of_crawlers(Settings(values)), SharedState())
    (lane,) = crawler.lanes
    scraper = find_scraper("microblog-profile")
    params = check_params(scraper, {"username": "harbor"})
    for _ in range(2):
        (await lane.sources["timeline"].acquire())()
    target = Target("1", scraper, params, deadline=asyncio.get_running_loop().time() + deadline)
    if retry_after is None:
        waiting = asyncio.ensure_future(crawler.scrape(target, patience))
        await asyncio.sleep(0)
        assert len(crawler.source) == 1
        waiting.cancel()
        return
    with pytest.raises(Overloaded, match=r"free in 2[01] s") as refused:
        await crawler.scrape(target, patience)
    assert refused.value.retry_after in {retry_after, retry_after - 1}


def test_a_call_waits_for_a_slot_only_if_it_says_so(tmp_path: Path) -> None:
    """The budget has a slot in 60 s."""
    budgets = {"retail": {"concurrency": 2, "delay": 60, "burst": 1, "gap": 0}}
    # A budget with a delay and without a burst varies each delay by up to half: the slot is free in 30 to 90 s.
    with running(tmp_path / "log", f"PLATFORM_BUDGETS={json.dumps(budgets)}") as service:
        begin = time.monotonic()
        answers = [
            call(service.url, "/v1/scrapers/retail-search-v4", {"query": "tea"}, headers={**HEADERS, **prefer})
            for prefer in ({}, {}, {"Prefer": "wait=2"})
        ]
        seconds = time.monotonic() - begin
    assert [answer.status for answer in answers] == [200, 503, 503]
    assert [answer.body["error"]["code"] for answer in answers[1:]] == ["OVERLOADED", "OVERLOADED"]
    default, shorter = (answer.body["error"]["retry_after"] for answer in answers[1:])
    assert 14 - seconds <= default <= 75
    assert 12 - seconds <= shorter - default <= 14, "15 s less 2 s, and the time between the calls"


async def test_if_all_egresses_rest_a_call_fails_with_the_seconds_until_the_first_rest_ends() -> None:
    crawler = open_crawler()
    for number, route in enumerate(crawler.lanes):
        await route.connection.record(UpstreamRateLimited("later", retry_after=300 - 100 * number))
    scraper = find_scraper("retail-search-v4")
    deadline = asyncio.get_running_loop().time() + 60
    with pytest.raises(CircuitOpen) as refused:
        await crawler.scrape(Target("1", scraper, check_params(scraper, {"query": "tea"}), deadline=deadline))
    assert refused.value.retry_after == 100
    assert len(crawler.source) == 0


WITHOUT_COLLECTOR = """
import gc, signal, sys
gc.disable()
def count(*_):
    from web_poet import HttpResponse
    found = sum(isinstance(each, HttpResponse) for each in gc.get_objects())
    print(f"{found} responses in memory", file=sys.stderr, flush=True)
signal.signal(signal.SIGUSR1, count)
gc.freeze = lambda: None  # count() would not find frozen objects
"""
FAILED = 12


def test_the_response_of_a_failed_target_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    """Before the fix, the error's traceback kept each response: 75 of them (57 MB) waited for the garbage collector."""
    with running(tmp_path / "log", before=WITHOUT_COLLECTOR) as service:
        for number in range(FAILED):
            params = {"url": f"https://www.instagram.com/p/Soak{number:07}/"}
            assert call(service.url, "/v1/scrapers/photoapp-post-v4", params).body["success"] is False
        os.kill(service.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 300
        while not (found := re.search(r"(\d+) responses in memory", service.logged())):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert int(found[1]) < FAILED / 2
