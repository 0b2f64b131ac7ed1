"""Round trips of a call: how long records of several requests take, in units of the platform's response time."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from benchmarks.figures import Figure, Ratio, Table
from benchmarks.stack import Stack, stack

LATENCY = 0.3
"""Seconds before each response of the sandbox."""
GENEROUS = {"concurrency": 8, "delay": 0, "sources": {}}
DETAILS = 30
MICROBLOG, VIDEOSITE = "microblog profile", f"video site, {DETAILS} details"
CALLS: dict[str, tuple[str, dict[str, Any], float]] = {
    MICROBLOG: ("microblog-profile", {"username": "quiet_harbor"}, 2.2),
    VIDEOSITE: ("videosite-profile-v3", {"username": "@harborlights"}, 6),
    f"{VIDEOSITE} and about": (
        "videosite-profile-v3",
        {"username": "@harborlights", "include_about": True},
        6,
    ),
}
"""Name -> the scraper, its params, and the goal in round trips."""
CONDITIONS = f"""\
The seconds of a call of the endpoint, divided by those before each response of the sandbox ({LATENCY:g} s): the round
trips that follow one another. Requests that are in flight together count as one. The budget is 8 downloads at once
without a delay. A first call of each scraper, which opens the connections and gets the guest token, is a line of its
own. Requests are those of one call."""

AT_REST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("photoapp-post-v4", {"url": "https://www.instagram.com/p/DaSandbox01/"}),
    ("microblog-profile", {"username": "quiet_harbor"}),
    ("videosite-profile-v3", {"username": "@harborlights"}),
    ("videosite-profile", {"username": "@harborlights"}),
    ("professional-profile", {"url": "https://www.linkedin.com/in/mara-lindqvist"}),
    ("retail-category-v4", {"cat_id": "976759"}),
    ("retail-search-v4", {"query": "mustard"}),
)
"""The scraper, and its params. Those of one platform are called one after the other on endpoints of their own."""
SHOWN = (1, 2, 3, 10)
GOALS = {1: 3.0, 2: 5.0, 3: 5.0, 10: 17.0}
"""Number of a call -> the goal in seconds."""
GOALS_WITH_DETAILS = {1: 5.0, 2: 12.0, 3: 12.0, 10: 17.0}
"""The goals of ``videosite-profile-v3``, whose default requests the details that can start within 10 s."""
AT_REST_CONDITIONS = f"""\
Ten calls of each scraper, one after the other, on an endpoint that has sent nothing before: the seconds of the calls
{", ".join(map(str, SHOWN))}, with the budgets of the platforms' pages and {LATENCY:g} s before each response of the
sandbox. "Refused" is the answer `OVERLOADED` with its `Retry-After`."""


class Caller:
    """Calls an endpoint whose sandbox writes a line for each request."""

    def __init__(self, running: Stack, log: Path) -> None:
        self.running = running
        self.log = log
        self.port, _ = running.endpoint()

    def call(self, scraper: str, params: dict[str, Any]) -> tuple[float, int]:
        """Return the round trips and the number of requests of a call.

        Raises:
            SystemExit: the record is not complete.
        """
        before = len(self.log.read_bytes().splitlines())
        headers = {**self.running.headers, "Cache-Control": "no-cache", "Prefer": "wait=120"}
        url = f"http://127.0.0.1:{self.port}/v1/scrapers/{scraper}"
        start = time.perf_counter()
        with urlopen(Request(url, json.dumps(params).encode(), headers)) as response:
            body = json.loads(response.read())
        seconds = time.perf_counter() - start
        if "warnings" in body.get("meta", {}) or "read" in body["status"]["message"]:
            raise SystemExit(f"{scraper}: {body['status']}")
        return seconds / LATENCY, len(self.log.read_bytes().splitlines()) - before


def measure(names: Iterable[str], calls: int, budgets: dict[str, Any]) -> dict[str, list[tuple[float, int]]]:
    """Return the round trips and requests of some calls of each name, by name."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        log.touch()
        options = ("--latency", str(LATENCY), "--log", str(log))
        with stack(*options, light=False, PLATFORM_BUDGETS=budgets, VIDEOSITE_ENRICH_MAX=DETAILS) as running:
            caller = Caller(running, log)
            measured: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
            for _ in range(calls):
                for name, trips in measured.items():
                    trips.append(caller.call(*CALLS[name][:2]))
    return measured


def calls_at_rest(scraper: str, params: dict[str, Any]) -> list[tuple[float, str]]:
    """Return the seconds of ten calls of a fresh endpoint, and what each returned: "" or the error with its wait."""
    with stack("--latency", str(LATENCY), light=False) as running:
        port, _ = running.endpoint()
        found = []
        for _ in range(max(SHOWN)):
            url = f"http://127.0.0.1:{port}/v1/scrapers/{scraper}"
            request = Request(url, json.dumps(params).encode(), running.headers)
            start = time.perf_counter()
            try:
                with urlopen(request) as response:
                    body = json.loads(response.read())
            except HTTPError as error:
                body = json.loads(error.read())
            seconds = time.perf_counter() - start
            failed = body.get("error")
            found.append((seconds, f"{failed['code']}, retry after {failed['retry_after']} s" if failed else ""))
        return found


def at_rest() -> Table:
    """Measure the calls of an endpoint at rest with the default budgets, all scrapers at the same time."""
    table = Table("Calls of an endpoint at rest", AT_REST_CONDITIONS)
    with ThreadPoolExecutor(len(AT_REST)) as pool:
        measured = list(pool.map(calls_at_rest, *zip(*AT_REST, strict=True)))
    for (scraper, _), calls in zip(AT_REST, measured, strict=True):
        for number in SHOWN:
            seconds, failed = calls[number - 1]
            name = f"{scraper}, call {number}{f': {failed}' if failed else ''}"
            goals = GOALS_WITH_DETAILS if scraper == "videosite-profile-v3" else GOALS
            table.ratios.append(Ratio(name, "s", [seconds], at_most=goals[number]))
    return table


def run(rounds: int) -> list[Table]:
    """Measure the calls with generous budgets, and those of an endpoint at rest once with the default budgets."""
    generous = measure(CALLS, rounds + 1, {"microblog": GENEROUS, "videosite": GENEROUS})
    table = Table("Round trips of a call", CONDITIONS)
    for name, (_, _, goal) in CALLS.items():
        first, *others = generous[name]
        table.figures.append(Figure(f"{name}, requests", "requests", [requests for _, requests in others]))
        table.figures.append(Figure(f"{name}, first call", "round trips", [first[0]]))
        table.ratios.append(Ratio(f"{name}: call to round trip", "", [trips for trips, _ in others], at_most=goal))
    return [table, at_rest()]
