"""The scheduler of the platforms' spiders."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from crawler.spiders.retail import RetailSpider
from crawler.targets.tracker import TargetScheduler

URL = "https://shop.example/"


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler(Spider)
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


@pytest.mark.parametrize("chosen", ["", "scrapy.core.scheduler.Scheduler"])
def test_spiders_of_platforms_have_a_small_scheduler_unless_the_command_line_names_another(chosen: str) -> None:
    settings = Settings({"ADDONS": {"crawler.Addon": 500}})
    if chosen:
        settings.set("SCHEDULER", chosen, priority="cmdline")
    RetailSpider.update_settings(settings)
    assert settings["SCHEDULER"] == (chosen or "crawler.targets.tracker.TargetScheduler")


def test_requests_keep_their_order_within_a_priority(crawler: Crawler) -> None:
    scheduler = TargetScheduler.from_crawler(crawler)
    assert isinstance(scheduler, BaseScheduler)
    requests = [Request(f"{URL}{number}", priority=priority) for number, priority in enumerate((0, 0, 5, -1, 5, 0))]
    assert all(scheduler.enqueue_request(request) for request in requests)
    found = [scheduler.next_request() for _ in requests]
    assert found == [requests[number] for number in (2, 4, 0, 1, 5, 3)]
    assert scheduler.next_request() is None
    assert not scheduler.has_pending_requests()


def test_the_same_page_is_requested_for_each_of_its_targets(crawler: Crawler) -> None:
    scheduler = TargetScheduler.from_crawler(crawler)
    assert scheduler.enqueue_request(Request(URL))
    assert scheduler.enqueue_request(Request(URL))
    assert scheduler.next_request() is not scheduler.next_request()


def test_the_stats_are_those_of_scrapys_scheduler(crawler: Crawler) -> None:
    scheduler = TargetScheduler.from_crawler(crawler)
    for number in range(3):
        scheduler.enqueue_request(Request(f"{URL}{number}"))
    scheduler.next_request()
    assert scheduler.has_pending_requests()
    scheduler.close("shutdown")
    assert crawler.stats is not None
    assert crawler.stats.get_stats() == {
        "scheduler/enqueued": 3,
        "scheduler/enqueued/memory": 3,
        "scheduler/dequeued": 1,
        "scheduler/dequeued/memory": 1,
    }
