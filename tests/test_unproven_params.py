"""A shop that ignores a price filter, or whose pages do not prove it: the same result in a call, a crawl and a job.

The processes are real. In the category ``880006`` of the simulated shop, price filters have no effect. A search for
``no-prices`` gives products without prices.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.crawls import QUICK, ROOT, crawl, lines
from tests.service.client import CATEGORY, SEARCH, call
from tests.service.conftest import Service, running

PRICES = {"min_price": 20, "max_price": 30}
IGNORED = {"cat_id": "880006", **PRICES}
UNPROVEN = {"query": "no-prices", **PRICES}
PROVEN = {"cat_id": "976759", **PRICES}
NAMES = ["min_price", "max_price"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log") as started:
        yield started


def arguments(params: dict[str, Any]) -> list[str]:
    return [part for name, value in params.items() for part in ("-a", f"{name}={value}")]


def collected(folder: Path, params: dict[str, Any]) -> tuple[int, list[Any], list[Any]]:
    """Run a job with one target. Return the exit code, and the objects of its feed and failures feed."""
    targets, out, failures = folder / "targets.jsonl", folder / "job.jsonl", folder / "job-failures.jsonl"
    targets.write_text(json.dumps(params))
    settings = ("SANDBOX=1", f"STORE={folder / 'jobs.sqlite3'}", f"FAILURES_FEED={failures}")
    options = [part for setting in settings for part in ("-s", setting)]
    run = forks.run(
        [sys.executable, "-m", "scrapy", "collect", str(targets), "-O", str(out), *QUICK, *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=dict(os.environ),
        timeout=300,
    )
    return run.returncode, lines(out), lines(failures)


def test_an_ignored_filter_is_the_same_typed_error_everywhere(service: Service, tmp_path: Path) -> None:
    status, out, failures, _ = crawl(tmp_path, *arguments(IGNORED))
    assert (status, out) == (4, [])
    job_status, job_out, job_failures = collected(tmp_path, IGNORED)
    assert (job_status, job_out) == (4, [])
    for (failure,) in (failures, job_failures):
        assert (failure["code"], failure["upstream"]["reason"]) == ("EXTRACTION_FAILED", "filter_ignored")
    reply = call(service.url, CATEGORY, IGNORED)
    assert (reply.code, reply.body["meta"]["billable"]) == ("EXTRACTION_FAILED", False)
    assert reply.body["error"]["upstream"]["reason"] == "filter_ignored"
    assert reply.body["error"]["message"] == failures[0]["message"] == job_failures[0]["message"]
    assert "20.00..30.00" in failures[0]["message"]


def test_an_unproven_filter_is_the_same_warning_everywhere(service: Service, tmp_path: Path) -> None:
    targets = tmp_path / "crawl.jsonl"
    targets.write_text(json.dumps(UNPROVEN))
    status, (line,), failures, _ = crawl(tmp_path, "-a", f"targets={targets}")
    job_status, (job_line,), job_failures = collected(tmp_path, UNPROVEN)
    assert (status, failures, job_status, job_failures) == (0, [], 0, [])
    assert line["data"]["products"] == job_line["data"]["products"] != []
    for each in (line, job_line):
        (warning,) = (warning for warning in each["warnings"] if warning["reason"] == "unproven")
        assert (warning["names"], warning["cause"], warning["of"]) == (NAMES, "unproven", 0)
    reply = call(service.url, SEARCH, UNPROVEN)
    assert reply.body["data"]["products"] == line["data"]["products"]
    assert "Not confirmed by the page: min_price, max_price." in reply.body["status"]["message"]
    assert "reason=unproven" in reply.headers["x-partial"]


def test_a_proven_filter_has_no_warning(service: Service) -> None:
    reply = call(service.url, CATEGORY, PROVEN)
    assert (reply.code, reply.headers.get("x-partial")) == ("OK", None)
    prices = [row["price"] for row in reply.body["data"]["products"] if not row["is_sponsored"]]
    assert prices
    assert all(20 <= price["current_price"] <= 30 for price in prices)
