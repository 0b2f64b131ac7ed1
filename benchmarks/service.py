"""The same retail spider behind scrapyrt and behind our endpoint: calls per second, and the ratio of the two.

What is measured: one call is one search page of the sandbox (``--light``: small, so that the servers are measured and
not the reading of the page), from the HTTP request of a client to the last byte of the answer, with ``CLIENTS`` calls
in flight. scrapyrt makes a crawler for each call (``spider_start=1`` with ``crawl_args``: by default it replaces
``start()`` on the spider class and loses it when calls overlap); our endpoint keeps one open.

What is equal: the machine, the run, the sandbox process and its page, the spider, its page object and its pipelines, no
delays. Rounds alternate, the figures are medians over the rounds; every answer is checked to hold the same products. The
clients take their part of the machine's cores from both alike.

What is not, because both run as they ship: scrapyrt writes a log file for each call, at DEBUG, and runs on asyncio's own
event loop (it cannot run a project that asks for uvloop, which is worth about a fifth); our endpoint checks keys.

Usage: .venv/bin/python -m benchmarks.service [--rounds N] [--calls N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
CLIENTS = 8
READY_WITHIN = 60.0  # seconds
PARAMS = {"query": "mustard"}
FREE_BUDGET = {"retail": {"concurrency": CLIENTS, "delay": 0.0}}

Call = Callable[[HTTPConnection], list[str]]
"""Makes one call over a connection; returns the item ids of the answer."""


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(*command: str | Path, env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the benchmark, ended with it. What it prints goes to a file."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def wait_for(port: int, process: subprocess.Popen[bytes], path: str) -> None:
    """Returns when the server answers a path with any status below 500.

    Raises:
        SystemExit: when it ended, or is not ready in time.
    """
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", path)
            if connection.getresponse().status < 500:
                return
        time.sleep(0.1)
    raise SystemExit(f"{process.args!r} did not start")


def endpoint_call(key: str) -> Call:
    """A call of our endpoint."""
    headers = {"Content-Type": "application/json", "X-API-Key": key}

    def call(connection: HTTPConnection) -> list[str]:
        connection.request("POST", "/v1/scrapers/retail-search-v4", json.dumps(PARAMS), headers)
        envelope = json.load(connection.getresponse())
        if not envelope["success"]:
            raise SystemExit(f"The endpoint failed: {envelope}")
        return item_ids(envelope["data"])

    return call


def scrapyrt_call(connection: HTTPConnection) -> list[str]:
    """A call of scrapyrt, with the spider's own ``start()``."""
    query = urlencode({"spider_name": "retail", "spider_start": "1", "crawl_args": json.dumps(PARAMS)})
    connection.request("GET", f"/crawl.json?{query}")
    answer = json.load(connection.getresponse())
    if len(answer.get("items", [])) != 1:
        raise SystemExit(f"scrapyrt failed: {answer}")
    return item_ids(answer["items"][0])


def item_ids(data: dict[str, Any]) -> list[str]:
    """What tells that an answer is the right one."""
    return [product["item_id"] for product in data["products"]]


def calls_per_second(port: int, call: Call, calls: int, expected: list[str]) -> float:
    """One round: ``calls`` calls over ``CLIENTS`` kept connections.

    Raises:
        SystemExit: when an answer holds other products than expected.
    """

    def client(share: int) -> None:
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
            for _ in range(share):
                if call(connection) != expected:
                    raise SystemExit("An answer holds other products than the first one.")

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [calls // CLIENTS] * CLIENTS))
    return calls // CLIENTS * CLIENTS / (time.perf_counter() - start)


@contextlib.contextmanager
def servers() -> Iterator[tuple[int, int, str]]:
    """Runs the sandbox and both servers on it. Gives the ports of scrapyrt and of the endpoint, and a key."""
    shop, theirs, ours = free_port(), free_port(), free_port()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
        env |= {
            "CRAWLER_PLATFORM_ORIGINS": json.dumps({"retail": f"http://127.0.0.1:{shop}"}),
            "CRAWLER_PLATFORM_BUDGETS": json.dumps(FREE_BUDGET),
            "CRAWLER_ASYNCIO_EVENT_LOOP": "null",  # scrapyrt refuses any other; our endpoint installs uvloop anyway
            "CRAWLER_FAILURES_FEED": "null",
            "CRAWLER_KEYS_FILE": str(folder / "keys.sqlite3"),
        }

        def start(port: int, ready: str, program: str, *arguments: str) -> None:
            log = folder / f"{program}-{port}.log"
            wait_for(port, stack.enter_context(running(BIN / program, *arguments, env=env, log=log)), ready)

        start(shop, "/__world__", "scrapy", "sandbox", "--light", "--port", str(shop))
        key = subprocess.check_output([BIN / "scrapy", "keys", "create", "benchmark"], cwd=ROOT, env=env, text=True)
        start(ours, "/readyz", "scrapy", "serve", "--port", str(ours))
        options = ("-S", "benchmarks.scrapyrt_settings", "-s", f"LOG_DIR={folder / 'logs'}")
        start(theirs, "/", "scrapyrt", "-i", "127.0.0.1", "-p", str(theirs), *options)
        yield theirs, ours, key.strip()


def measure(rounds: int, calls: int) -> tuple[list[float], list[float]]:
    """Calls per second by round: scrapyrt's, then ours."""
    with servers() as (theirs, ours, key):
        endpoint = endpoint_call(key)
        with contextlib.closing(HTTPConnection("127.0.0.1", ours)) as connection:
            expected = endpoint(connection)
        calls_per_second(theirs, scrapyrt_call, CLIENTS, expected)  # warm up
        calls_per_second(ours, endpoint, CLIENTS, expected)
        figures: tuple[list[float], list[float]] = ([], [])
        for number in range(1, rounds + 1):
            figures[0].append(calls_per_second(theirs, scrapyrt_call, calls, expected))
            figures[1].append(calls_per_second(ours, endpoint, calls, expected))
            print(f"round {number}: scrapyrt {figures[0][-1]:.1f}, endpoint {figures[1][-1]:.1f} calls/s", flush=True)
        return figures


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Our endpoint against scrapyrt, calls per second.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=160, help="calls a round")
    options = parser.parse_args()
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {CLIENTS} calls in flight, {options.calls} calls a round")
    theirs, ours = measure(options.rounds, options.calls)
    print(f"median: scrapyrt {median(theirs):.1f} calls/s, endpoint {median(ours):.1f} calls/s")
    print(f"ratio: {median(ours) / median(theirs):.2f}")


if __name__ == "__main__":
    main()
