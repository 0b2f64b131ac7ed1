"""What the service tells Prometheus of itself (``GET /metrics``).

Where ``PROMETHEUS_MULTIPROC_DIR`` is set, the workers of a host add up in it, and each answers for all.
"""

from __future__ import annotations

import os
import time
from collections import Counter as Tally
from typing import TYPE_CHECKING, Any, ClassVar

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from scrapy import signals

from crawler.downloads.shared import platform_state
from crawler.registry import spiders
from crawler.service.fill_rates import fill_rates
from crawler.targets.target import InvalidTarget, Outcome
from crawler.targets.tracker import target_completed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

    from crawler.service.envelope import Answer, Call
    from crawler.service.open_crawlers import OpenCrawlers

disable_created_metrics()  # a second series for each, which nobody asks for

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

CALLS = Counter("crawler_calls", "Calls answered, by scraper and code.", ["scraper", "code"])
BILLABLE = Counter("crawler_billable_calls", "Calls answered with fresh data.", ["scraper"])
DURATION = Histogram(
    "crawler_call_duration_seconds",
    "Time from a call's first line to its answer.",
    ["scraper"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
)
CACHE = Counter("crawler_cache_answers", "Calls of a cached scraper, by result (hit, miss).", ["scraper", "result"])
REPLAYS = Counter("crawler_idempotent_replays", "Calls answered by what their Idempotency-Key had kept.", ["scraper"])
OUTCOMES = Counter("crawler_outcomes", "Targets settled by the crawlers, by code.", ["scraper", "code"])
RETRIES = Counter("crawler_retries", "Downloads that were repeated.", ["platform"])
VALUES = Counter("crawler_field_values", "Values seen of fields that may be empty (a sample).", ["scraper", "field"])
EMPTY = Counter("crawler_field_empty", "Those of them that were empty.", ["scraper", "field"])
PAGES_OPENED = Counter("crawler_browser_pages_opened", "Browser pages that were visited.", ["platform"])

PAGES = Gauge("crawler_browser_pages", "Browser pages open.", ["platform"], multiprocess_mode="livesum")
WAITING = Gauge("crawler_calls_waiting", "Calls that no crawler has taken.", ["platform"], multiprocess_mode="livesum")
IN_FLIGHT = Gauge(
    "crawler_calls_in_flight", "Calls that wait for an outcome.", ["platform"], multiprocess_mode="livesum"
)
BREAKER = Gauge("crawler_breaker_open", "1 while a platform is left alone.", ["platform"], multiprocess_mode="livemax")
CONNECTIONS = Gauge("crawler_connections", "Connections of clients.", multiprocess_mode="livesum")

UNKNOWN = "unknown"
"""The scraper of calls that name none that there is: callers must not be able to make series."""

SAMPLE_EVERY = 1.0
"""Seconds between two records of a scraper whose fields are looked at: all would cost more than they tell."""


def count_call(call: Call, answer: Answer) -> None:
    """One call that was answered, or whose client is gone. What the service says of itself is not counted."""
    if not call.scraper and answer.code == "OK":
        return
    scraper = call.scraper or UNKNOWN
    CALLS.labels(scraper, answer.code).inc()
    DURATION.labels(scraper).observe(call.duration_ms / 1000)
    if answer.billable:
        BILLABLE.labels(scraper).inc()
    if "X-Cache" in answer.headers:
        CACHE.labels(scraper, answer.headers["X-Cache"].lower()).inc()
    if "Idempotent-Replayed" in answer.headers:
        REPLAYS.labels(scraper).inc()


class CrawlerMetrics:
    """An extension of the open crawlers: outcomes, retries, browser pages, and a sample of the fields."""

    open: ClassVar[set[CrawlerMetrics]] = set()
    """Those of the crawlers that are open now."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._told: Tally[str] = Tally()
        self._sampled: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlerMetrics:
        metrics = cls(crawler)
        crawler.signals.connect(metrics.spider_opened, signals.spider_opened)
        crawler.signals.connect(metrics.spider_closed, signals.spider_closed)
        crawler.signals.connect(metrics.target_completed, target_completed)
        return metrics

    def spider_opened(self) -> None:
        self.open.add(self)

    def spider_closed(self) -> None:
        self.collect()
        self.open.discard(self)

    def target_completed(self, outcome: Outcome) -> None:
        """Counts an outcome, and looks at its fields where the last look is a while ago."""
        target = outcome.target
        if isinstance(target, InvalidTarget):
            return
        name = target.scraper.name
        OUTCOMES.labels(name, outcome.code).inc()
        now = time.monotonic()
        if outcome.data is not None and now - self._sampled.get(name, -SAMPLE_EVERY) >= SAMPLE_EVERY:
            self._sampled[name] = now
            seen = Tally(fill_rates(target.scraper.data, outcome.data))
            for (field, empty), times in seen.items():
                VALUES.labels(name, field).inc(times)
                EMPTY.labels(name, field).inc(times if empty else 0)

    @property
    def pages(self) -> int:
        """Browser pages that are open: whoever opens one keeps this statistic."""
        return self._stat("browser/pages/open")

    def collect(self) -> None:
        """Passes on what the crawler's own statistics have gained."""
        platform = self.crawler.spidercls.name
        for counter, stat in ((RETRIES, "retry/count"), (PAGES_OPENED, "browser/pages")):
            value = self._stat(stat)
            counter.labels(platform).inc(value - self._told[stat])
            self._told[stat] = value

    def _stat(self, name: str) -> int:
        assert self.crawler.stats is not None
        value: int = self.crawler.stats.get_value(name, 0)
        return value


def collect(crawlers: OpenCrawlers, settings: Settings, connections: int) -> None:
    """Sets what is a state and no count. Once a second: no worker can ask another for its own."""
    pages: Tally[str] = Tally()
    for crawler in CrawlerMetrics.open:
        crawler.collect()
        pages[crawler.crawler.spidercls.name] += crawler.pages
    for platform, (waiting, in_flight) in crawlers.load.items():
        WAITING.labels(platform).set(waiting)
        IN_FLIGHT.labels(platform).set(in_flight)
        PAGES.labels(platform).set(pages[platform])
        BREAKER.labels(platform).set(bool(platform_state(crawlers.shared, platform, settings).breaker.remaining))
    CONNECTIONS.set(connections)


def expose() -> bytes:
    """The text that Prometheus reads."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


def prepare() -> dict[str, Any]:
    """Makes the series that would be missing until they first happen, so that a rate can be taken from the start."""
    for name, spider in spiders().items():
        RETRIES.labels(name)
        PAGES_OPENED.labels(name)
        for scraper in spider.scrapers:
            CALLS.labels(scraper.name, "OK")
            BILLABLE.labels(scraper.name)
            DURATION.labels(scraper.name)
            OUTCOMES.labels(scraper.name, "OK")
            REPLAYS.labels(scraper.name)
            for result in ("hit", "miss"):
                CACHE.labels(scraper.name, result)
    return {"crawler.service.metrics.CrawlerMetrics": 500}
