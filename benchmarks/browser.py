"""A call that uses the browser, compared with loading the same page in Chromium with Playwright alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright
from scrapy.utils.project import get_project_settings

from benchmarks.figures import Figure, Table, ratio
from benchmarks.stack import ROOT, Stack, processes, stack
from crawler.browser.chromium import executable
from crawler.downloads.local_origins import moved
from crawler.errors import ServiceError
from crawler.platforms.shortvideo.requests import RESULTS_PATH, search_request

SCRAPER = "shortvideo-photo-search-v4"
KEYWORDS = "whales"
WAITS = {"one response": 1, "three responses": 3}
"""How many responses to the page's API call are waited for."""
ROWS = {1: 8, 3: 30}
"""How many rows a call needs, so that it waits for this many responses of at most 12 rows."""
TITLE = "A call that uses the browser"
SETTINGS: dict[str, Any] = {
    "PLATFORM_BUDGETS": {"shortvideo": {"concurrency": 4, "delay": 0.0}},
    "BROWSER_SCROLL_PAUSE": 0,
}

CONDITIONS = """\
Seconds by the clock, and CPU time of all processes with the browser's, for one page of the sandbox's short-video site.
"Call" is a call of the endpoint (`shortvideo-photo-search-v4`, one after another; the browser is already running).
"Chromium" is Playwright alone in a process of its own: the same executable, a fresh context for each page, `goto` until
the document arrives, the wait for the same responses of the page's API call with their bodies, the page's HTML, and the
end of the context. With three responses, both wait 0.05 s after each response and scroll the page to its end; the
setting `BROWSER_SCROLL_PAUSE` is 0. Only the call connects through a proxy that refuses foreign hosts, aborts images
and trackers, and reads and validates the record. Both run in turn in each round; a first round is not counted."""


@dataclass
class Loader:
    """What loads the page, and its figures by round."""

    name: str
    pid: int
    load: Callable[[int], None]
    """Loads the page, and waits for this many responses."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {wait: [] for wait in WAITS})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {wait: [] for wait in WAITS})

    def measure(self, wait: str) -> None:
        """Load the page once."""
        cpu, start = tree_cpu_seconds(self.pid), time.perf_counter()
        self.load(WAITS[wait])
        self.seconds[wait].append(time.perf_counter() - start)
        self.cpu[wait].append(tree_cpu_seconds(self.pid) - cpu)

    def figures(self, wait: str) -> tuple[Figure, Figure]:
        """Return the figures of all rounds but the first."""
        return (
            Figure(f"{self.name}, {wait}", "s", self.seconds[wait][1:]),
            Figure(f"{self.name}, {wait}, CPU time", "s", self.cpu[wait][1:]),
        )


def tree_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants, with those that have exited: each page has processes."""
    ticks = 0
    for each in processes(pid):
        with contextlib.suppress(FileNotFoundError):  # it has just exited
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def find_chromium() -> str | None:
    """Return the path of Chromium; None if none is installed."""

    async def own() -> str:
        async with async_playwright() as playwright:
            return playwright.chromium.executable_path

    with contextlib.suppress(ServiceError):
        return executable({}, asyncio.run(own()))
    return None


def calling(running: Stack, port: int) -> Callable[[int], None]:
    """Return a function that calls the endpoint.

    The function raises SystemExit if the record has another number of rows than the responses.
    """

    def load(responses: int) -> None:
        count = ROWS[responses]
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
            body = json.dumps({"keywords": KEYWORDS, "count": count})
            connection.request("POST", f"/v1/scrapers/{SCRAPER}", body, running.headers)
            response = json.load(connection.getresponse())
        rows = len((response.get("data") or {}).get("search_item_list", []))
        if rows != count:
            raise SystemExit(f"The call returned {rows} rows instead of {count}: {response['status']}")

    return load


@contextlib.contextmanager
def chromium(path: str, url: str) -> Iterator[Loader]:
    """Run Playwright alone."""
    user_agent = get_project_settings()["USER_AGENT"]
    command = [sys.executable, "-m", "benchmarks.opponents.chromium", path, RESULTS_PATH, user_agent]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        answers, requests = process.stdout, process.stdin

        def load(responses: int) -> None:
            requests.write(json.dumps([url, responses]) + "\n")
            requests.flush()
            if not answers.readline():
                raise SystemExit("Chromium could not load the page.")

        yield Loader("Chromium", process.pid, load)
        requests.close()


def run(rounds: int = 5) -> Table:
    """Load the page in turn. Without Chromium, the table says so and has no figures."""
    path = find_chromium()
    if path is None:
        return Table(TITLE, "Not measured: Chromium is not installed.")
    with stack(light=False, **SETTINGS) as running:
        origin = json.loads(running.env["CRAWLER_PLATFORM_ORIGINS"])["shortvideo"]
        port, pid = running.endpoint()
        call = Loader("call", pid, calling(running, port))
        again = Loader("call again", pid, call.load)
        with chromium(path, moved(search_request(keywords=KEYWORDS).url, origin)) as bare:
            for _ in range(rounds + 1):
                for wait in WAITS:
                    for loader in (call, bare, again):
                        loader.measure(wait)
    table = Table(TITLE, CONDITIONS)
    for wait in WAITS:
        own, own_cpu = call.figures(wait)
        other, other_cpu = bare.figures(wait)
        table.figures.extend((own, other, own_cpu, other_cpu))
        table.ratios.extend(
            (
                ratio(f"call to Chromium, {wait}", own, other, at_most=1.5),
                ratio(f"call to Chromium, {wait}, CPU time", own_cpu, other_cpu),
                ratio(f"call to itself, {wait}", own, again.figures(wait)[0]),
            )
        )
    return table
