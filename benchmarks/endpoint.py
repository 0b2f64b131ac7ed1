"""The endpoint, compared with scrapyrt and with a bare Twisted server."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from benchmarks import callers
from benchmarks.figures import Figure, Table, in_turn, ratio
from benchmarks.opponents.http import get, post
from benchmarks.opponents.pages import LARGE, LIGHT
from benchmarks.stack import BIN, ROOT, Stack, cpu_seconds, free_port, stack
from crawler.sandbox.retail.site import Site

ORDINARY, ENDPOINT, AGAIN, BARE = "scrapyrt, ordinary spider", "endpoint", "endpoint, a second time", "bare Twisted"
SEARCH = "/v1/scrapers/retail-search-v4"
CALLERS = 8
SECONDS = 1.0
RATE, COST = "calls/s", "ms of CPU time per call"

CONDITIONS = f"""\
A call of each server fetches a page of search results (57 kB of HTML, 6 products) over plain HTTP and returns its
products. {CALLERS} callers in a process of their own call each server for {SECONDS:g} s per round. A web server with
ready pages is a third process, so that a server waits for no rendering. Every response must contain the same products.
All of them share the machine's cores, so CPU time per call is the more exact figure.

- *{ORDINARY}*: an ordinary project (`benchmarks/opponents/ordinary`) without anything of this project.
  scrapyrt creates a crawler for each call. It runs as for production: `DEBUG = False`, logs at INFO instead of DEBUG,
  no delay, no cookies, no telnet console, no `robots.txt`.
- *{BARE}*: a Twisted server and client with the endpoint's page object and validation, on uvloop, without Scrapy,
  queue, retries, throttle, API keys and log.
- *{AGAIN}*: another process of the endpoint. Its distance from 1 is the error of the comparison."""
PAGES = {
    "A call, light page": (LIGHT, CONDITIONS, 8, 0.45),
    "A call, page of 0.66 MB": (LARGE, "As above, with a page of real size (0.66 MB of HTML, 50 products).", 5.5, None),
}
"""Title -> the query of the page, the conditions, and the goals for the ratios to scrapyrt and to bare Twisted."""


@dataclass(frozen=True)
class Server:
    """A server under test."""

    port: int
    pid: int
    path: str = ""
    """For servers that take the params of a search as a JSON body. "": the path has the URL of the page."""
    headers: tuple[str, ...] = ()
    origin: str = ""

    def request(self, query: str) -> bytes:
        """Return the bytes of a call."""
        if self.path:
            return post("127.0.0.1", self.path, json.dumps({"query": query}).encode(), *self.headers)
        url = f"{self.origin}/search?{urlencode({'q': query})}"
        return get("127.0.0.1", f"/crawl.json?{urlencode({'spider_name': 'search', 'url': url})}")

    def measure(self, query: str) -> Mapping[str, float]:
        """Call the server, and return calls per second and CPU time."""
        before = cpu_seconds(self.pid)
        found = callers.run(self.request(query), self.port, CALLERS, SECONDS, expected_products(query))
        return {RATE: found.per_second, COST: (cpu_seconds(self.pid) - before) / found.calls * 1000}


def expected_products(query: str) -> callers.Products:
    """Return the products that the sandbox states for a query."""
    record = Site(light=query == LIGHT).expected_record({"query": query})
    return [(each["item_id"], each["name"]) for each in record["products"]]


@contextlib.contextmanager
def shop(**settings: Any) -> Iterator[tuple[Stack, str]]:
    """Run the web server with the pages. Yield what starts processes that fetch them without delays, and its origin."""
    port = free_port()
    budget = {"concurrency": 16, "delay": 0}
    origin = f"http://127.0.0.1:{port}"
    with stack(PLATFORM_ORIGINS={"retail": origin}, PLATFORM_BUDGETS={"retail": budget}, **settings) as running:
        running.start(sys.executable, "-m", "benchmarks.opponents.pages", str(port), port=port, ready="/")
        yield running, origin


def endpoint(running: Stack, *options: str) -> Server:
    """Start an endpoint with options of ``scrapy serve``, and a store of its own."""
    headers = tuple(f"{name}: {each}" for name, each in running.headers.items())
    return Server(*running.endpoint(*options, "-s", f"STORE={running.folder}/{free_port()}.sqlite3"), SEARCH, headers)


def bare(running: Stack) -> Server:
    """Start the Twisted server."""
    port = free_port()
    command = (sys.executable, "-m", "benchmarks.opponents.bare", str(port))
    return Server(port, running.start(*command, port=port, ready="/"), "/")


def scrapyrt(running: Stack, origin: str) -> Server:
    """Start scrapyrt with an ordinary project. A call contains the page's URL, as in scrapyrt's documentation."""
    port = free_port()
    options = ("-S", "benchmarks.opponents.scrapyrt_settings", "-s", f"LOG_DIR={running.folder}/scrapyrt")
    command = (BIN / "scrapyrt", "-i", "127.0.0.1", "-p", str(port), *options)
    folder = ROOT / "benchmarks/opponents/ordinary"
    return Server(port, running.start(*command, port=port, ready="/", folder=folder), origin=origin)


def ratios(figures: dict[tuple[str, str], Figure], to_scrapyrt: float, to_bare: float | None) -> list[Figure]:
    """Return the ratios of a page, with the goals for two of them."""
    rate, cost = ({name: each for (name, its), each in figures.items() if its == unit} for unit in (RATE, COST))
    return [
        ratio(f"calls/s: {ENDPOINT} to {ORDINARY}", rate[ENDPOINT], rate[ORDINARY], at_least=to_scrapyrt),
        ratio(f"CPU time per call: {ORDINARY} to {ENDPOINT}", cost[ORDINARY], cost[ENDPOINT]),
        ratio(f"CPU time per call: {BARE} to {ENDPOINT}", cost[BARE], cost[ENDPOINT], at_least=to_bare),
        ratio(f"CPU time per call: {AGAIN} to {ENDPOINT}", cost[AGAIN], cost[ENDPOINT]),
    ]


def run(rounds: int) -> list[Table]:
    """Measure the endpoint and its opponents. The first round is not counted."""
    tables = []
    with shop(ASYNCIO_EVENT_LOOP=None) as (running, origin):  # scrapyrt supports no other; the endpoint installs uvloop
        servers = {ORDINARY: scrapyrt(running, origin), ENDPOINT: endpoint(running), BARE: bare(running)}
        servers[AGAIN] = endpoint(running)
        for title, (query, conditions, to_scrapyrt, to_bare) in PAGES.items():
            measures = {name: partial(each.measure, query) for name, each in servers.items()}
            figures = in_turn(measures, rounds, warm_up=1)
            tables.append(Table(title, conditions, [*figures.values(), *ratios(figures, to_scrapyrt, to_bare)]))
    return tables
