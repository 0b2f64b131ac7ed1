"""Round trips of a call: how long records of several requests take, in units of the platform's response time."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
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
own. "Default budget" is one call, the first, with the budgets of the platforms' pages: it is shown without a goal,
because it consists of the delays between the requests. Requests are those of one call."""


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


def run(rounds: int) -> Table:
    """Measure the calls with generous budgets, and each of them once with the default budgets."""
    generous = measure(CALLS, rounds + 1, {"microblog": GENEROUS, "videosite": GENEROUS})
    default = measure((MICROBLOG, VIDEOSITE), 1, {})
    table = Table("Round trips of a call", CONDITIONS)
    for name, (_, _, goal) in CALLS.items():
        first, *others = generous[name]
        table.figures.append(Figure(f"{name}, requests", "requests", [requests for _, requests in others]))
        table.figures.append(Figure(f"{name}, first call", "round trips", [first[0]]))
        if name in default:
            table.figures.append(Figure(f"{name}, default budget", "round trips", [default[name][0][0]]))
        table.ratios.append(Ratio(f"{name}: call to round trip", "", [trips for trips, _ in others], at_most=goal))
    return table
