"""Seconds of calls with the default budgets: ten in a row of each scraper, on an endpoint at rest."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from benchmarks.figures import Figure, Table
from benchmarks.report import AT_REST
from benchmarks.stack import stack

LATENCY = 0.3
"""Seconds before each response of the sandbox."""
CALLS: dict[str, dict[str, Any]] = {
    "photoapp-post-v4": {"url": "https://www.instagram.com/p/DaSandbox01/"},
    "microblog-profile": {"username": "quiet_harbor"},
    "videosite-profile-v3": {"username": "@harborlights"},
    "videosite-profile": {"username": "@harborlights"},
    "professional-profile": {"url": "https://www.linkedin.com/in/mara-lindqvist"},
    "retail-category-v4": {"cat_id": "976759"},
    "retail-search-v4": {"query": "mustard"},
}
"""Scraper -> its params. Each scraper has an endpoint of its own."""
GOALS = {1: 3.0, 2: 5.0, 3: 5.0, 10: 17.0}
"""Number of a call -> the goal in seconds. The other calls have no figures."""
GOALS_WITH_DETAILS = {1: 5.0, 2: 12.0, 3: 12.0, 10: 17.0}
"""The goals of ``videosite-profile-v3``, whose default requests the details that can start within 10 s."""
CONDITIONS = f"""\
Ten calls of each scraper, one after the other, on an endpoint that has sent nothing before: the seconds of the calls
{", ".join(map(str, GOALS))}, with the budgets of the platforms' pages and {LATENCY:g} s before each response of the
sandbox. A call that is refused with `OVERLOADED` has the seconds of its `Retry-After`. Each run has one round, because
calls wait for the budgets."""


def calls_in_a_row(scraper: str) -> list[Figure]:
    """Return the seconds of calls of a fresh endpoint, in a row."""
    goals = GOALS_WITH_DETAILS if scraper == "videosite-profile-v3" else GOALS
    found = []
    with stack("--latency", str(LATENCY), light=False) as running:
        port, _ = running.endpoint()
        url, body = f"http://127.0.0.1:{port}/v1/scrapers/{scraper}", json.dumps(CALLS[scraper]).encode()
        for number in range(1, max(goals) + 1):
            unit, start = "s", time.perf_counter()
            try:
                with urlopen(Request(url, body, running.headers)) as response:
                    response.read()
                seconds = time.perf_counter() - start
            except HTTPError as error:
                failed = json.loads(error.read())["error"]
                unit, seconds = f"s until a retry, {failed['code']}", float(failed["retry_after"])
            if number in goals:
                goal = goals[number] if unit == "s" else None
                found.append(Figure(f"{scraper}, call {number}", unit, [seconds], at_most=goal))
    return found


def run(_rounds: int) -> list[Table]:
    """Measure all scrapers at the same time."""
    with ThreadPoolExecutor(len(CALLS)) as pool:
        measured = list(pool.map(calls_in_a_row, CALLS))
    return [Table(AT_REST, CONDITIONS, [each for figures in measured for each in figures])]
