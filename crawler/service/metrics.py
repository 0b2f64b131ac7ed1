"""Prometheus metrics of the service (``GET /metrics``).

If ``PROMETHEUS_MULTIPROC_DIR`` is set, each worker process returns the metrics of all workers of its host together.
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

from crawler.monitoring.fields import optional_values
from crawler.registry import scrapers, spiders
from crawler.service import usage
from crawler.targets.target import Outcome, Target
from crawler.targets.warning import UNREAD as UNREAD_REASON
from crawler.targets.warning import unread_paths

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.downloads.lane import Lane
    from crawler.jobs.store import Store
    from crawler.service.envelope import Answer, Call
    from crawler.service.keys import Keys
    from crawler.service.open_crawlers import OpenCrawlers
    from crawler.service.usage import Usage

disable_created_metrics()  # the ``_created`` series would double the number of series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

CALLS = Counter("crawler_calls", "Completed calls, by scraper and code.", ["scraper", "code"])
BILLABLE = Counter("crawler_billable_calls", "Calls that returned fresh data.", ["scraper"])
DURATION = Histogram(
    "crawler_call_duration_seconds",
    "Seconds from the arrival of a call to its response.",
    ["scraper"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
)
WEBHOOKS = Counter(
    "crawler_webhooks",
    "Tries to deliver an event to a webhook, by result: delivered, failed (it is tried again), given_up.",
    ["result"],
)
WEBHOOKS_AGE = Gauge(
    "crawler_webhooks_undelivered_age_seconds",
    "Age of the oldest event that is not delivered yet and not given up, 0 if there is none.",
    multiprocess_mode="livemax",
)
OUTCOMES = Counter("crawler_outcomes", "Targets completed by the crawlers, by code.", ["scraper", "code"])
JOB_TARGETS = Gauge(
    "crawler_job_targets",
    "Targets of clients' jobs with a stored outcome, by code, since the store was made: they equal the bills.",
    ["scraper", "code"],
    multiprocess_mode="livemax",
)
JOB_RECORDS = Gauge(
    "crawler_job_records",
    "Billed records of clients' jobs since the store was made.",
    ["scraper"],
    multiprocess_mode="livemax",
)
ALARMS = Counter(
    "crawler_alarms",
    "Failed targets whose page may have a new layout (layout), or is the right page without data (shell).",
    ["scraper", "alarm"],
)
SOURCE_FAILURES = Counter(
    "crawler_source_failures",
    "Targets for which an optional source failed, by source and reason.",
    ["platform", "source", "reason"],
)
UNREAD = Counter(
    "crawler_unread",
    "Targets in whose payloads a path of the contract could not be read, by source and path.",
    ["platform", "source", "path"],
)
RETRIES = Counter("crawler_retries", "Retried downloads.", ["platform"])
VALUES = Counter("crawler_field_values", "Sampled values of fields that may be empty.", ["scraper", "field"])
EMPTY = Counter("crawler_field_empty", "Sampled values that were empty.", ["scraper", "field"])
PAGES_OPENED = Counter("crawler_browser_pages_opened", "Browser pages opened since the start.", ["platform"])

STORE_FAILURES = Counter("crawler_store_failures", "Failed reads and writes of a store: keys, service.", ["store"])
STORE_LOSSES = Counter("crawler_store_losses", "Data losses of a store: its data was deleted or damaged.", ["store"])
USAGE_PENDING = Gauge("crawler_usage_pending", "Calls whose usage is not stored yet.", multiprocess_mode="livesum")

PAGES = Gauge("crawler_browser_pages", "Open browser pages.", ["platform"], multiprocess_mode="livesum")
WAITING = Gauge("crawler_calls_waiting", "Calls that wait for a crawler.", ["platform"], multiprocess_mode="livesum")
IN_FLIGHT = Gauge(
    "crawler_calls_in_flight",
    "Calls without a response yet, and running targets of clients' jobs.",
    ["platform"],
    multiprocess_mode="livesum",
)
BREAKER = Gauge(
    "crawler_breaker_open",
    "1 while a circuit breaker of the platform is open.",
    ["platform"],
    multiprocess_mode="livemax",
)
EGRESS_SUSPENDED = Gauge(
    "crawler_egress_resting",
    "1 while the egress is suspended for the platform, after refusals or failures of its own.",
    ["platform", "egress"],
    multiprocess_mode="livemax",
)
EGRESS_TARGETS = Gauge(
    "crawler_egress_targets",
    "Targets in flight that are bound to the egress: their first request has been sent through it.",
    ["platform", "egress"],
    multiprocess_mode="livesum",
)
EGRESS_CAPACITY = Gauge(
    "crawler_egress_targets_per_hour",
    "Targets per hour that the egress's budget allows; 0 while it is suspended.",
    ["platform", "egress"],
    multiprocess_mode="livemin",
)
EGRESS_FAILURES = Counter(
    "crawler_egress_failures", "Failures of the egress itself, not of the platform.", ["platform", "egress"]
)
CONNECTIONS = Gauge("crawler_connections", "Open connections of clients.", multiprocess_mode="livesum")

UNKNOWN = "unknown"
"""The scraper label of calls without a known scraper, so that callers cannot create new series."""

TOTALS_SECONDS = 5.0
"""Interval in seconds at which ``StoreMetrics.read_totals()`` is called."""
SAMPLE_SECONDS = 1.0
"""At most one record per scraper is sampled in this many seconds. Sampling every record would take too much CPU."""

_SAMPLED: dict[str, float] = {}
"""Scraper -> when its last record was sampled, on the monotonic clock."""


def count_call(call: Call, answer: Answer, duration_ms: int) -> None:
    """Count a call that was completed or whose client disconnected, ``duration_ms`` after its arrival.

    Calls whose ``is_counted`` is false, and successful requests to routes that are not scrapers, are not counted.
    """
    if not call.is_counted or (not call.scraper and answer.code == "OK"):
        return
    scraper = call.scraper or UNKNOWN
    CALLS.labels(scraper, answer.code).inc()
    DURATION.labels(scraper).observe(duration_ms / 1000)
    if answer.billable:
        BILLABLE.labels(scraper).inc()


def count_outcome(outcome: Outcome) -> None:
    """Count a target's outcome. Once in ``SAMPLE_SECONDS`` per scraper, also count the empty fields of its record."""
    assert isinstance(outcome.target, Target)
    scraper = outcome.target.scraper
    OUTCOMES.labels(scraper.name, outcome.code).inc()
    if outcome.warnings:
        for source, path in unread_paths(outcome.warnings):
            UNREAD.labels(scraper.platform, source, path).inc()
        for source, reason in {(each.source, each.reason) for each in outcome.warnings}:
            if reason != UNREAD_REASON:
                SOURCE_FAILURES.labels(scraper.platform, source, reason).inc()
    if outcome.error is not None and outcome.error.alarm:
        ALARMS.labels(scraper.name, outcome.error.alarm).inc()
    now = time.monotonic()
    record = outcome.record
    if record is not None and now - _SAMPLED.get(scraper.name, -SAMPLE_SECONDS) >= SAMPLE_SECONDS:
        _SAMPLED[scraper.name] = now
        values = Tally(optional_values(scraper.data, record.data))
        for (field, is_empty), number in values.items():
            VALUES.labels(scraper.name, field).inc(number)
            EMPTY.labels(scraper.name, field).inc(number if is_empty else 0)


class CrawlerMetrics:
    """A Scrapy extension that counts an open crawler's retries and browser pages."""

    open: ClassVar[set[CrawlerMetrics]] = set()
    """The extension instances of all open crawlers in this process."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._reported: Tally[str] = Tally()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlerMetrics:
        metrics = cls(crawler)
        crawler.signals.connect(metrics.spider_opened, signals.spider_opened)
        crawler.signals.connect(metrics.spider_closed, signals.spider_closed)
        return metrics

    def spider_opened(self) -> None:
        self.open.add(self)

    def spider_closed(self) -> None:
        self.collect()
        self.open.discard(self)

    @property
    def pages(self) -> int:
        """The number of open browser pages, from the crawler's stats."""
        return self._stat("browser/pages/open")

    def collect(self) -> None:
        """Increase the counters by as much as the crawler's stats have increased since the last call."""
        platform = self.crawler.spidercls.name
        for counter, stat in ((RETRIES, "retry/count"), (PAGES_OPENED, "browser/pages")):
            value = self._stat(stat)
            counter.labels(platform).inc(value - self._reported[stat])
            self._reported[stat] = value

    def _stat(self, name: str) -> int:
        assert self.crawler.stats is not None
        value: int = self.crawler.stats.get_value(name, 0)
        return value


class StoreMetrics:
    """Counts failed reads of the keys, and failed transactions and data losses of the service's store."""

    def __init__(self, keys: Keys, store: Store, usage: Usage) -> None:
        self.keys = keys
        self.store = store
        self.usage = usage
        self._reported: Tally[tuple[Counter, str]] = Tally()

    def collect(self) -> None:
        """Increase the counters by as much as the numbers of the stores have increased since the last call."""
        numbers = (
            (STORE_FAILURES, "keys", self.keys.failures),
            (STORE_FAILURES, "service", self.store.failures),
            (STORE_LOSSES, "service", self.store.losses),
        )
        for counter, store, number in numbers:
            counter.labels(store).inc(number - self._reported[counter, store])
            self._reported[counter, store] = number
        USAGE_PENDING.set(self.usage.pending())

    async def read_totals(self) -> None:
        """Set the numbers of targets and records of jobs to the stored ones, which are exact also after a kill.

        The series begin with the first read. If they were 0 before it, Prometheus would count all targets again.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        found = await self.store.transact(usage.totals, write=False)
        records = Tally({each.name: 0 for each in scrapers().values()})
        for scraper in records:
            JOB_TARGETS.labels(scraper, "OK")
        for scraper, code, targets, billed in found:
            JOB_TARGETS.labels(scraper, code).set(targets)
            records[scraper] += billed
        for scraper, number in records.items():
            JOB_RECORDS.labels(scraper).set(number)


def collect(crawlers: OpenCrawlers, connections: int) -> None:
    """Set the gauges of this process, and increase the counters of its open crawlers.

    The endpoint calls this function regularly, and not for ``GET /metrics``: the worker that responds cannot read the
    state of the others.
    """
    pages: Tally[str] = Tally()
    for extension in CrawlerMetrics.open:
        extension.collect()
        pages[extension.crawler.spidercls.name] += extension.pages
    for platform, crawler in crawlers.of.items():
        WAITING.labels(platform).set(len(crawler.source))
        IN_FLIGHT.labels(platform).set(crawler.in_flight)
        PAGES.labels(platform).set(pages[platform])
        BREAKER.labels(platform).set(any(lane.breakers.any_open for lane in crawler.lanes))
        for lane in crawler.lanes:
            _collect_lane(platform, lane)
    CONNECTIONS.set(connections)


def _collect_lane(platform: str, lane: Lane) -> None:
    labels = platform, lane.egress.name
    EGRESS_SUSPENDED.labels(*labels).set(lane.usable_in > 0)
    EGRESS_TARGETS.labels(*labels).set(lane.targets)
    EGRESS_CAPACITY.labels(*labels).set(0 if lane.usable_in else lane.targets_per_hour)
    EGRESS_FAILURES.labels(*labels).inc(lane.take_failures())


def expose() -> bytes:
    """Return the metrics in Prometheus' text format."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


def prepare() -> dict[str, Any]:
    """Create the series of all platforms and scrapers with the value 0, except those of errors and fields.

    Return the extension to add to the open crawlers, for ``EXTENSIONS``.

    Prometheus would miss the first increase of a series that does not start at 0.
    """
    for result in ("delivered", "failed", "given_up"):
        WEBHOOKS.labels(result)
    for name, spider in spiders().items():
        RETRIES.labels(name)
        PAGES_OPENED.labels(name)
        for scraper in spider.scrapers:
            for counter in (CALLS, OUTCOMES):
                counter.labels(scraper.name, "OK")
            for alarm in ("layout", "shell"):
                ALARMS.labels(scraper.name, alarm)
            for metric in (BILLABLE, DURATION):
                metric.labels(scraper.name)
    return {"crawler.service.metrics.CrawlerMetrics": 500}
