"""The Prometheus metrics of the service, and the dashboard that uses them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest
from scrapy import Spider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from crawler.jobs.store import Store
from crawler.registry import scrapers, spiders
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.service import metrics as service_metrics
from crawler.service.metrics import CrawlerMetrics, StoreMetrics
from crawler.service.usage import ADD_TOTALS
from tests.changed_shop import BEFORE, CHANGED
from tests.service.client import CATEGORY, HEADERS, SEARCH, call
from tests.service.clients import serving
from tests.service.conftest import ROOT, Service, running
from tests.service.metrics_of import becomes, samples, value

DASHBOARD = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
ALERTS = yaml.safe_load((ROOT / "deploy/compose/alerts.yml").read_text())
RETAIL = "retail-category-v4"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that other tests have not called."""
    with running(tmp_path_factory.mktemp("metrics") / "log", before=BEFORE) as started:
        yield started


def test_every_scraper_and_platform_has_its_series_from_the_start(fresh: Service) -> None:
    # The gauges of all platforms are updated together once a second.
    assert becomes(fresh.url, 0, "crawler_calls_waiting", platform="retail")
    found = samples(fresh.url)
    for scraper in scrapers().values():
        for alarm in ("layout", "shell"):
            assert found["crawler_alarms_total", frozenset({("scraper", scraper.name), ("alarm", alarm)})] == 0
        for name in ("crawler_calls_total", "crawler_outcomes_total"):
            assert (name, frozenset({("scraper", scraper.name), ("code", "OK")})) in found
    for platform in spiders():
        for name in ("calls_waiting", "calls_in_flight", "breaker_open", "browser_pages", "retries_total"):
            assert (f"crawler_{name}", frozenset({("platform", platform)})) in found


def test_calls_are_counted_by_code(fresh: Service) -> None:
    for params in ({"cat_id": "976759"}, {"cat_id": "3944"}, {"cat_id": "424242"}, {}, {"cat_id": 1}):
        call(fresh.url, CATEGORY, params)
    call(fresh.url, CATEGORY, {"cat_id": "976759"}, headers={**HEADERS, "X-API-Key": "wrong"})
    call(fresh.url, SEARCH, {"query": "flaky"})
    call(fresh.url, "/v1/scrapers/made-up", {})
    call(fresh.url, "/v1/scrapers/made-up-too", {})
    call(fresh.url, "/healthz", method="GET")
    expected = {
        (RETAIL, "OK"): 2,
        (RETAIL, "TARGET_NOT_FOUND"): 1,
        (RETAIL, "INVALID_REQUEST"): 2,
        (RETAIL, "INVALID_API_KEY"): 1,
        ("retail-search-v4", "OK"): 1,
        ("unknown", "SCRAPER_NOT_FOUND"): 2,
    }
    found = {
        (dict(labels)["scraper"], dict(labels)["code"]): number
        for (name, labels), number in samples(fresh.url).items()
        if name == "crawler_calls_total" and number
    }
    assert found == expected
    assert value(fresh.url, "crawler_call_duration_seconds_count", scraper=RETAIL) == 6
    assert value(fresh.url, "crawler_billable_calls_total", scraper=RETAIL) == 2
    assert value(fresh.url, "crawler_outcomes_total", scraper=RETAIL, code="TARGET_NOT_FOUND") == 1
    assert value(fresh.url, "crawler_field_values_total", scraper=RETAIL, field="products.flag") > 0
    assert becomes(fresh.url, 1, "crawler_retries_total", platform="retail")


def test_the_targets_of_jobs_are_those_of_the_usage(tmp_path: Path) -> None:
    links = b"https://www.walmart.com/browse/food/976759\nhttps://x.com/nobody_here\nnothing to scrape\n"
    headers = {**HEADERS, "Content-Type": "text/plain", "Prefer": "wait=100"}
    expected = {(RETAIL, "OK"): 1, ("microblog-profile", "TARGET_NOT_FOUND"): 1}
    with running(
        tmp_path / "log", before="from crawler.service import metrics; metrics.TOTALS_SECONDS = 0.1"
    ) as service:
        assert call(service.url, "/v1/jobs", links, headers=headers).body["job"]["state"] == "done"
        for (scraper, code), number in expected.items():
            assert becomes(service.url, number, "crawler_job_targets", scraper=scraper, code=code)
        assert becomes(service.url, 1, "crawler_job_records", scraper=RETAIL)
        used = call(service.url, "/v1/usage", method="GET").body["usage"]
    assert {(each["scraper"], code): n for each in used for code, n in each["outcomes"].items()} == expected


def test_alarms_are_counted_from_zero(fresh: Service) -> None:
    """A truncated page counts as a layout, the right page without data as a shell, and a ruling as neither."""
    posts, path = PhotoApp(), "/v1/scrapers/photoapp-post-v4"
    labels = {"scraper": "photoapp-post-v4"}
    for fault in ("broken-json", "shell", "age-gate"):
        call(fresh.url, path, {"url": posts.url_of_fault(fault)})
    assert becomes(fresh.url, 1, "crawler_alarms_total", **labels, alarm="layout")
    assert becomes(fresh.url, 1, "crawler_alarms_total", **labels, alarm="shell")


def test_gauges_show_the_current_state(tmp_path: Path) -> None:
    with serving(tmp_path, "BREAKER_THRESHOLD=1") as clients, ThreadPoolExecutor(1) as pool:
        url = clients.service.url
        assert becomes(url, 0, "crawler_breaker_open", platform="retail")
        waiting = pool.submit(clients.send, "POST", SEARCH, {"query": "hang"})
        assert becomes(url, 1, "crawler_calls_in_flight", platform="retail")
        assert value(url, "crawler_connections") >= 1
        clients.platform.release.set()
        assert waiting.result().code == "OK"
        assert becomes(url, 0, "crawler_calls_in_flight", platform="retail")
        assert clients.send("POST", SEARCH, {"query": "forbidden"}).code == "UPSTREAM_BLOCKED"
        assert becomes(url, 1, "crawler_breaker_open", platform="retail")


def test_the_dashboard_and_the_alerts_use_the_series_that_exist(fresh: Service) -> None:
    """Counters of warnings have series only after records that lack an optional source and a path."""
    call(fresh.url, CATEGORY, {"cat_id": "976759"})
    partial = {"url": PhotoApp().url_of_fault("embed-forbidden")}
    assert "x-partial" in call(fresh.url, "/v1/scrapers/photoapp-post-v4", partial).headers
    assert "x-partial" in call(fresh.url, SEARCH, {"query": CHANGED}).headers
    families = {name: {label for label, _ in labels} for name, labels in samples(fresh.url)}
    panels = [(panel["title"], each["expr"]) for panel in DASHBOARD["panels"] for each in panel["targets"]]
    alerts = [(rule["alert"], rule["expr"]) for group in ALERTS["groups"] for rule in group["rules"]]
    for title, expression in [*panels, *alerts]:
        used = set(re.findall(r"\bcrawler_\w+", expression))
        assert used or title == "EndpointDown"
        assert used <= families.keys(), title
        labels = {label for each in re.findall(r"by \(([^)]*)\)", expression) for label in each.split(", ")}
        labels |= set(re.findall(r"[{,]\s*(\w+)\s*=", expression)) - {"job"}
        assert labels <= {"le"}.union(*(families[name] for name in used)), title
    shown = {name for _, expression in panels for name in re.findall(r"crawler_\w+", expression)}
    assert {name for name in families if name.startswith("crawler_")} == shown


def test_services_and_workers_of_a_host_expose_their_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shared", "a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "shared"))
    with running(tmp_path / "a" / "log") as one, running(tmp_path / "b" / "log", workers=2) as other:
        for service in (one, *[other] * 4):
            assert call(service.url, CATEGORY, {"cat_id": "976759"}).code == "OK"
        for service in (one, *[other] * 4):
            assert value(service.url, "crawler_calls_total", scraper=RETAIL, code="OK") == 5
            assert becomes(service.url, 0, "crawler_calls_in_flight", platform="retail")
        while call(other.url, "/v1/usage", method="GET").body["billable"] < 4:
            time.sleep(0.1)  # each worker stores its counts once a second


def test_crawler_stats_are_added_to_the_counters_once() -> None:
    """The test sets the browser stats itself, because its spider opens no browser pages."""
    crawler = get_crawler(type("Retail", (Spider,), {"name": "retail"}))  # none of a crawl's components are enabled
    crawler.stats = MemoryStatsCollector(crawler)
    metrics = CrawlerMetrics(crawler)

    def opened() -> float:
        return REGISTRY.get_sample_value("crawler_browser_pages_opened_total", {"platform": "retail"}) or 0.0

    before = opened()
    crawler.stats.inc_value("browser/pages", 3)
    crawler.stats.inc_value("browser/pages/open", 2)
    metrics.collect()
    metrics.collect()
    assert opened() - before == 3
    assert metrics.pages == 2


async def test_the_numbers_of_jobs_do_not_start_at_zero_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a restart of the service would look like new targets, as many as the store has."""
    registry = CollectorRegistry()
    for name, labels in (("JOB_TARGETS", ["scraper", "code"]), ("JOB_RECORDS", ["scraper"])):
        monkeypatch.setattr(service_metrics, name, Gauge(name.lower(), "", labels, registry=registry))
    store = Store(str(tmp_path / "store.sqlite3"))
    row = {"scraper": RETAIL, "code": "OK", "targets": 3, "records": 2}
    await store.transact(lambda session: session.execute(ADD_TOTALS, [row]))
    service_metrics.prepare()
    assert not generate_latest(registry).count(b"{")
    unused: Any = None
    await StoreMetrics(unused, store, unused).read_totals()
    await store.close()
    numbers = {
        (sample.name, sample.labels["scraper"]): sample.value for each in registry.collect() for sample in each.samples
    }
    assert numbers.pop(("job_targets", RETAIL)) == 3
    assert numbers.pop(("job_records", RETAIL)) == 2
    assert set(numbers.values()) == {0}
    assert {scraper for _, scraper in numbers} == {each.name for each in scrapers().values()} - {RETAIL}
