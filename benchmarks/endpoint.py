"""The same retail spider in scrapyrt and in the project's endpoint, and its page object in a bare Twisted server.

What is measured: one call is one search page of the sandbox, from the HTTP request of a client to the last byte of the
response: calls per second with ``CLIENTS`` calls in flight, on a light page (53 kB, so that the servers dominate, not
the parsing) and on one of real size (0.6 MB), and the latency of single calls, one after another, on the light page.

- scrapyrt creates a crawler for each call (``spider_start=1`` with ``crawl_args``: by default it replaces ``start()``
  on the spider class and loses it when calls overlap); the endpoint keeps one open.
- ``bare.py`` is the lower bound: without Scrapy, queue, tracker, throttle and key.

Equal for all: the machine, the run, the sandbox process and its page, the page object and the data model, no delays.
Servers run in turn in each round, the figures are medians over the rounds; every response must contain the same
products. Clients and sandbox use the machine's cores too, equally for all servers; the CPU time of a server for
a call does not depend on that.

Different, because both run as shipped: scrapyrt writes a log file for each call, at DEBUG, and runs on asyncio's own
event loop (it cannot run a project with uvloop, which gains about a fifth); the endpoint checks keys.

Usage: .venv/bin/python -m benchmarks.service [--rounds N] [--calls N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from statistics import median
from typing import Any
from urllib.parse import urlencode

from benchmarks.stack import BIN, cpu_seconds, free_port, stack

CLIENTS = 8
PARAMS = {"query": "mustard"}
SETTINGS: dict[str, Any] = {
    "PLATFORM_BUDGETS": {"retail": {"concurrency": CLIENTS, "delay": 0.0}},
    "ASYNCIO_EVENT_LOOP": None,  # scrapyrt supports no other; the endpoint installs uvloop anyway
}

Call = Callable[[HTTPConnection], list[str]]
"""Makes one call over a connection, and returns the item ids of the response."""


@dataclass
class Server:
    """A server under test, its call function, and its figures by round."""

    name: str
    port: int
    pid: int
    call: Call
    calls_per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    """CPU time of the server per call."""
    latency: list[float] = field(default_factory=list)
    """Median milliseconds of single calls."""


def scrapyrt_call(connection: HTTPConnection) -> list[str]:
    """Call scrapyrt with the spider's own ``start()``."""
    query = urlencode({"spider_name": "retail", "spider_start": "1", "crawl_args": json.dumps(PARAMS)})
    connection.request("GET", f"/crawl.json?{query}")
    (data,) = json.load(connection.getresponse())["items"]
    return item_ids(data)


def posting(path: str, headers: dict[str, str]) -> Call:
    """Return a call function for a server that accepts the params as JSON."""

    def call(connection: HTTPConnection) -> list[str]:
        connection.request("POST", path, json.dumps(PARAMS), headers)
        return item_ids(json.load(connection.getresponse())["data"])

    return call


def item_ids(data: dict[str, Any]) -> list[str]:
    """Return the ids of the products, to compare responses."""
    return [product["item_id"] for product in data["products"]]


@contextlib.contextmanager
def servers(*, light: bool) -> Iterator[list[Server]]:
    """Run scrapyrt, the endpoint and the bare server, on one sandbox."""
    with stack(light=light, **SETTINGS) as running:
        port, pid = running.endpoint()
        endpoint = Server("endpoint", port, pid, posting("/v1/scrapers/retail-search-v4", running.headers))
        port = free_port()
        options = ("-S", "benchmarks.scrapyrt_settings", "-s", f"LOG_DIR={running.folder / 'logs'}")
        pid = running.start(BIN / "scrapyrt", "-i", "127.0.0.1", "-p", str(port), *options, port=port, ready="/")
        scrapyrt = Server("scrapyrt", port, pid, scrapyrt_call)
        port = free_port()
        pid = running.start(sys.executable, "-m", "benchmarks.bare", str(port), port=port, ready="/")
        yield [scrapyrt, endpoint, Server("bare", port, pid, posting("/", {}))]


def run_round(server: Server, calls: int, expected: list[str] | None = None) -> None:
    """Run one round: ``calls`` calls over ``CLIENTS`` kept connections.

    Raises:
        SystemExit: a response contains other products than expected.
    """

    def client(share: int) -> None:
        with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
            for _ in range(share):
                if server.call(connection) != expected and expected is not None:
                    raise SystemExit(f"{server.name} returned other products than expected.")

    share = calls // CLIENTS
    start, cpu = time.perf_counter(), cpu_seconds(server.pid)
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [share] * CLIENTS))
    server.calls_per_second.append(share * CLIENTS / (time.perf_counter() - start))
    server.milliseconds.append((cpu_seconds(server.pid) - cpu) / (share * CLIENTS) * 1000)


def measure_latency(server: Server, calls: int) -> None:
    """Run one round of single calls over one kept connection."""
    times = []
    with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
        for _ in range(calls):
            start = time.perf_counter()
            server.call(connection)
            times.append((time.perf_counter() - start) * 1000)
    server.latency.append(median(times))


def measure(rounds: int, calls: int, *, light: bool) -> dict[str, Server]:
    """Run the rounds, the servers in turn. The first round is not counted."""
    with servers(light=light) as tested:
        with contextlib.closing(HTTPConnection("127.0.0.1", tested[0].port)) as connection:
            expected = tested[0].call(connection)
        for number in range(rounds + 1):
            for server in tested:
                run_round(server, calls if number else 4 * CLIENTS, expected)
                if light:
                    measure_latency(server, 50 if number else 2)
        for server in tested:
            del server.calls_per_second[0], server.milliseconds[0], server.latency[:1]
        return {server.name: server for server in tested}


def report(title: str, results: dict[str, Server]) -> None:
    """Print the medians, and the ratios of the endpoint to the other servers."""
    print(title)
    for server in results.values():
        latency = f"  {median(server.latency):6.2f} ms for a single call" if server.latency else ""
        speed, cpu = median(server.calls_per_second), median(server.milliseconds)
        rounds = ", ".join(f"{each:.0f}" for each in server.calls_per_second)
        print(f"  {server.name:9} {speed:6.1f} calls/s  {cpu:5.2f} ms of CPU time per call{latency}  ({rounds})")
    endpoint, scrapyrt, bare = (results[name] for name in ("endpoint", "scrapyrt", "bare"))
    speed, *others = (median(server.calls_per_second) for server in (endpoint, scrapyrt, bare))
    ratios = [speed / other for other in others]
    print(f"  endpoint: {ratios[0]:.2f} times scrapyrt's calls/s, {ratios[1]:.2f} times the bare server's")
    if endpoint.latency:
        print(f"  endpoint: {median(endpoint.latency) / median(scrapyrt.latency):.2f} times scrapyrt's latency")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The endpoint compared with scrapyrt and with bare Twisted.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="calls per round")
    options = parser.parse_args()
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {CLIENTS} calls in flight, {options.calls} calls per round, medians of {options.rounds} rounds")
    report("light page", measure(options.rounds, options.calls, light=True))
    report("page of real size", measure(options.rounds, options.calls // 2, light=False))


if __name__ == "__main__":
    main()
