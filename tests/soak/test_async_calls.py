"""Thousands of asynchronous calls next to synchronous ones, while the service is killed again and again."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from crawler.registry import scrapers
from crawler.service.clients.key_store import KeyStore
from tests.crawls import lines, sandbox
from tests.service.client import HEADERS, SEARCH, call
from tests.soak.fleet import Fleet, serve, wait_for

CALLS = int(os.environ.get("SOAK_ASYNC_CALLS", "1140"))
"""Number of asynchronous calls, except those for the short-video platform."""
BROWSER_CALLS = int(os.environ.get("SOAK_ASYNC_BROWSER_CALLS", "10"))
SYNCHRONOUS = int(os.environ.get("SOAK_SYNCHRONOUS_CALLS", "30"))
KILLS = int(os.environ.get("SOAK_KILLS", "5"))
WORKERS = int(os.environ.get("SOAK_WORKERS", "1"))
DELAY = 0.25
SLOTS = 4
"""Maximum number of concurrent downloads of each platform."""
LEASE = 2
"""Seconds: short, because until then a killed process's targets count as running, and the other client goes first.
"""
SHORT_VIDEO = "shortvideo"
SPACING_SECONDS = 4 * DELAY
"""Seconds between two synchronous calls, so that they do not wait for each other."""

pytestmark = pytest.mark.soak


def synchronous(fleet: Fleet, number: int, requests: Path) -> tuple[list[int], list[float], list[float]]:
    """Make synchronous calls. Return for each the number of requests that the platform got before it, and the seconds
    until it started and until it ended.

    A call starts with its request to the platform, which is found in the sandbox's log ``requests``. Calls that a kill
    has interrupted are left out.
    """
    headers = {**HEADERS, "X-API-Key": fleet.keys["small"]}
    begun: dict[str, float] = {}
    ends: list[float] = []
    while len(ends) < number:
        query = f"mustard {time.time_ns()}"
        with suppress(OSError, http.client.HTTPException, ValueError):
            begin = time.time()
            if call(fleet.url, SEARCH, {"query": query}, headers=headers, timeout=60).status == 200:
                begun[query] = begin
                ends.append(time.time() - begin)
        time.sleep(SPACING_SECONDS)
    seen = [each for each in lines(requests) if each["platform"] == "retail"]
    starts = {query: min(each["time"] for each in seen if quote_plus(query) in each["uri"]) for query in begun}
    before = [sum(begin < each["time"] < starts[query] for each in seen) for query, begin in begun.items()]
    return before, [starts[query] - begin for query, begin in begun.items()], ends


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def test_asynchronous_calls_outlive_kills_and_delay_no_synchronous_call(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.sqlite")
    requests = tmp_path / "requests.jsonl"
    with sandbox("--log", str(requests)) as origins:
        budgets = {
            platform: {"concurrency": SLOTS, "delay": DELAY, "sources": {}}
            for platform in json.loads(origins["PLATFORM_ORIGINS"])
        }
        fleet = Fleet(
            tmp_path,
            (
                f"KEYS_FILE={tmp_path / 'keys.sqlite'}",
                f"STORE={tmp_path / 'service.sqlite3'}",
                f"PLATFORM_ORIGINS={origins['PLATFORM_ORIGINS']}",
                f"PLATFORM_BUDGETS={json.dumps(budgets)}",
                "BROWSER_SCROLL_PAUSE=0",
                "VIDEOSITE_ENRICH_MAX=0",  # details would take a request for each item
                f"JOB_LEASE={LEASE}",
                "DOWNLOAD_TIMEOUT=60",
            ),
            {"busy": keys.create("busy"), "small": keys.create("small")},
            WORKERS,
        )
        platforms = {scraper.name: scraper.platform for scraper in scrapers().values()}
        names = [name for name, platform in platforms.items() if platform != SHORT_VIDEO]
        wanted = [names[number % len(names)] for number in range(CALLS)]
        wanted += [name for name, platform in platforms.items() if platform == SHORT_VIDEO] * BROWSER_CALLS
        with ThreadPoolExecutor(9) as threads:
            with serve(fleet):
                _, starts_alone, ends_alone = synchronous(fleet, SYNCHRONOUS, requests)
                # The client "busy" makes three quarters of the calls. The client "small" makes the rest afterwards.
                split = len(wanted) * 3 // 4
                first = [*threads.map(lambda n: fleet.accept("busy", n, wanted[n]), range(split))]
                second = [*threads.map(lambda n: fleet.accept("small", n, wanted[n]), range(split, len(wanted)))]
                total = len(first) + len(second)
                assert len({*first, *second}) == total
                begun = time.time()
                beside = threads.submit(synchronous, fleet, SYNCHRONOUS, requests)
                wait_for(fleet, total // (KILLS + 1))
            for kill in range(1, KILLS + 1):
                with serve(fleet):
                    wait_for(fleet, total * (kill + 1) // (KILLS + 1))
                    if kill == KILLS:
                        before, starts, ends = beside.result()
                        figures = report(fleet, {"busy": first, "small": second})
    figures["seconds"] = time.time() - begun
    figures["p95 of the synchronous calls"] = {
        "alone": {"start": p95(starts_alone), "end": p95(ends_alone)},
        "beside": {"start": p95(starts), "end": p95(ends)},
    }
    figures["requests before a synchronous call"] = before
    print(json.dumps(figures))  # noqa: T201  # the measured figures
    assert max(before) <= 2, "a call waits for the target that is starting, not for those that wait"


def report(fleet: Fleet, made: dict[str, list[str]]) -> dict[str, Any]:
    """Check that each call was answered and billed once, and that the clients took turns. Return measurements."""
    figures: dict[str, Any] = {}
    by_platform: dict[str, list[dict[str, Any]]] = {}
    for client, ids in made.items():
        calls = [{**each, "client": client} for each in fleet.calls(client)]
        assert Counter(each["request_id"] for each in calls) == Counter(ids), "none lost, none twice"
        assert {each["state"] for each in calls} == {"done"}
        codes = Counter(each["code"] for each in calls)
        assert codes["OK"] >= 0.95 * len(calls), codes
        assert all(each["billable"] is (each["code"] == "OK") for each in calls)
        usage = fleet.send(client, "GET", "/v1/usage").body
        figures[client] = {"codes": codes, "usage": {key: usage[key] for key in ("calls", "billable")}}
        for each in calls:
            by_platform.setdefault(scrapers()[each["scraper"]].platform, []).append(each)
    busy = figures["busy"]
    assert busy["usage"]["billable"] == busy["codes"]["OK"], "none billed twice"
    for platform, calls in by_platform.items():
        small, others = figures[platform] = turns_taken(calls)
        most = small + SLOTS * (KILLS + 3) + KILLS * LEASE / DELAY
        assert others <= most, f"{platform}: the busy client went first"
    return figures


def turns_taken(calls: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many calls of "small" and of "busy" were completed while both had calls waiting."""
    begin = max(each["accepted_at"] for each in calls if each["client"] == "small")
    end = max(each["completed_at"] for each in calls if each["client"] == "small")
    both = Counter(each["client"] for each in calls if begin < each["completed_at"] <= end)
    return both["small"], both["busy"]
