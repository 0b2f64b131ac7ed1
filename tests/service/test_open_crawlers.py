"""The limits of an open crawler while its platform's egresses rest."""

from __future__ import annotations

import asyncio

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
