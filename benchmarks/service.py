"""The same retail spider behind scrapyrt and behind our endpoint: calls per second, and the ratio of the two.

What is measured: one call is one search page of the sandbox (``--light``: small, so that the servers are measured and
not the reading of the page), from the HTTP request of a client to the last byte of the answer, with ``CLIENTS`` calls
in flight. scrapyrt makes a crawler for each call (``spider_start=1`` with ``crawl_args``: by default it replaces
``start()`` on the spider class and loses it when calls overlap); our endpoint keeps one open.

What is equal: the machine, the run, the sandbox process and its page, the spider, its page object and its pipelines, no
delays. Rounds alternate, the figures are medians over the rounds; every answer is checked to hold the same products.
Clients and sandbox take their part of the machine's cores from both alike; the processor time that each server itself
used for a call (Linux: from /proc) does not depend on what else the machine does.

What is not, because both run as they ship: scrapyrt writes a log file for each call, at DEBUG, and runs on asyncio's
own event loop (it cannot run a project that asks for uvloop, which is worth about a fifth); our endpoint checks keys.

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
from dataclasses import dataclass, field
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


@dataclass
class Server:
    """A server under test, and its figures by round."""

    name: str
    port: int
    pid: int
    calls_per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    """Processor time of the server for a call."""


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


def play(server: Server, call: Call, calls: int, expected: list[str]) -> None:
    """One round: ``calls`` calls over ``CLIENTS`` kept connections.

    Raises:
        SystemExit: when an answer holds other products than expected.
    """

    def client(share: int) -> None:
        with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
            for _ in range(share):
                if call(connection) != expected:
                    raise SystemExit("An answer holds other products than the first one.")

    share = calls // CLIENTS
    start, cpu = time.perf_counter(), cpu_seconds(server.pid)
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [share] * CLIENTS))
    server.calls_per_second.append(share * CLIENTS / (time.perf_counter() - start))
    server.milliseconds.append((cpu_seconds(server.pid) - cpu) / (share * CLIENTS) * 1000)


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def servers() -> Iterator[tuple[Server, Server, str]]:
    """Runs the sandbox and both servers on it. Gives scrapyrt, the endpoint, and a key for the latter."""
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

        def start(port: int, ready: str, program: str, *arguments: str) -> int:
            log = folder / f"{program}-{port}.log"
            process = stack.enter_context(running(BIN / program, *arguments, env=env, log=log))
            wait_for(port, process, ready)
            return process.pid

        start(shop, "/__world__", "scrapy", "sandbox", "--light", "--port", str(shop))
        key = subprocess.check_output([BIN / "scrapy", "keys", "create", "benchmark"], cwd=ROOT, env=env, text=True)
        endpoint = Server("endpoint", ours, start(ours, "/readyz", "scrapy", "serve", "--port", str(ours)))
        options = ("-S", "benchmarks.scrapyrt_settings", "-s", f"LOG_DIR={folder / 'logs'}")
        pid = start(theirs, "/", "scrapyrt", "-i", "127.0.0.1", "-p", str(theirs), *options)
        yield Server("scrapyrt", theirs, pid), endpoint, key.strip()


def measure(rounds: int, calls: int) -> tuple[Server, Server]:
    """Plays the rounds, in turn. Returns scrapyrt and the endpoint with their figures; a first round is not counted."""
    with servers() as (scrapyrt, endpoint, key):
        pairs: tuple[tuple[Server, Call], ...] = ((scrapyrt, scrapyrt_call), (endpoint, endpoint_call(key)))
        with contextlib.closing(HTTPConnection("127.0.0.1", endpoint.port)) as connection:
            expected = pairs[1][1](connection)
        for number in range(rounds + 1):
            for server, call in pairs:
                play(server, call, calls if number else CLIENTS, expected)
                if number:
                    print(f"round {number}: {figures(server, -1)}", flush=True)
        for server, _ in pairs:
            del server.calls_per_second[0], server.milliseconds[0]
        return scrapyrt, endpoint


def figures(server: Server, number: int | None = None) -> str:
    """A round's figures, or the medians of all."""
    speed, cpu = (
        median(values) if number is None else values[number]
        for values in (server.calls_per_second, server.milliseconds)
    )
    return f"{server.name:9} {speed:6.1f} calls/s {cpu:6.2f} ms of processor time a call"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Our endpoint against scrapyrt, calls per second.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="calls a round")
    options = parser.parse_args()
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {CLIENTS} calls in flight, {options.calls} calls a round")
    scrapyrt, endpoint = measure(options.rounds, options.calls)
    for server in (scrapyrt, endpoint):
        print(f"median:  {figures(server)}")
    speed = median(endpoint.calls_per_second) / median(scrapyrt.calls_per_second)
    cpu = median(scrapyrt.milliseconds) / median(endpoint.milliseconds)
    print(f"ratio: {speed:.2f} times the calls/s, 1/{cpu:.2f} of the processor time a call")


if __name__ == "__main__":
    main()
