"""The service's crawlers: their limits while egresses are suspended, and the memory of failed targets."""

from __future__ import annotations

import asyncio
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
from crawler.errors import CircuitOpen, UpstreamRateLimited
from crawler.registry import find_scraper, spiders
from crawler.service.calls.open_crawlers import MIN_IN_FLIGHT, UNREAD_STATS, OpenCrawler, settings_of_crawlers
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from tests.service.client import call
from tests.service.conftest import running

EGRESSES = [{"name": name, "proxy": "http://127.0.0.1:9"} for name in ("a", "b", "c")]
WAITING = 7


def open_crawler() -> OpenCrawler:
    values = {
        "EGRESSES": EGRESSES,
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 5, "delay": 0}},
        "PROCESSES": 1,
        "BREAKER_THRESHOLD": 2,
        "BREAKER_COOLDOWN": 60,
        "RETRY_AFTER_MAX": 3_600,
        "SERVICE_MAX_WAITING": WAITING,
    }
    return OpenCrawler(spiders()["retail"], settings_of_crawlers(Settings(values)), SharedState())


async def test_sp_2_an_open_crawler_counts_no_stats_that_nothing_reads() -> None:
    settings = open_crawler().settings
    assert not settings.getbool("DOWNLOADER_STATS")
    assert not set(UNREAD_STATS) & set(build_component_list(settings.getwithbase("EXTENSIONS")))
    assert set(UNREAD_STATS) <= set(build_component_list(Settings().getwithbase("EXTENSIONS")))


async def test_the_limits_exclude_egresses_that_rest() -> None:
    crawler = open_crawler()
    limits = [(crawler.source.max_in_flight, crawler.limit)]
    first, second, third = crawler.lanes
    await first.count("listing", egress_failed("a", "it was unplugged"))
    limits.append((crawler.source.max_in_flight, crawler.limit))
    await second.count("listing", UpstreamRateLimited("later", retry_after=60))
    limits.append((crawler.source.max_in_flight, crawler.limit))
    await third.count("listing", egress_failed("c", "it was unplugged"))
    await second.count("listing", egress_failed("b", "it was unplugged"))
    limits.append((crawler.source.max_in_flight, crawler.limit))
    assert limits == [(number, number + WAITING) for number in (30, 20, 10, MIN_IN_FLIGHT)]


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
        deadline = time.monotonic() + 30
        while not (found := re.search(r"(\d+) responses in memory", service.logged())):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert int(found[1]) < FAILED / 2
