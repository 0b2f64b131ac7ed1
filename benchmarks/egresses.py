"""Processor time of calls through a good egress alone, and beside one that stalls and one whose head never ends.

What is measured: rounds of ``--calls`` searches by eight callers. ``--fresh`` leaves out the warm-up: the first round
has the calls that find out that an egress is bad, and suspend it.

Usage: .venv/bin/python -m benchmarks.egresses [--calls N] [--rounds N] [--fresh]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from itertools import count
from typing import Any

from benchmarks.stack import cpu_seconds, stack

SEARCH = "/v1/scrapers/retail-search-v4"
CALLERS = 8
NUMBERS = count()


async def _good(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Open a tunnel."""
    head = await reader.readuntil(b"\r\n\r\n")
    host, _, port = head.split()[1].decode().rpartition(":")
    inner = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    await asyncio.gather(_copy(reader, inner[1]), _copy(inner[0], writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _stall(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3_600)


async def _endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    with suppress(ConnectionError):
        while True:
            writer.write(b"X-Filler: " + b"x" * 1_000 + b"\r\n")
            await writer.drain()


PROXIES = {"stall": _stall, "endless-head": _endless, "good": _good}


@contextmanager
def proxies() -> Iterator[list[dict[str, Any]]]:
    """Serve the proxies in a thread. Yield the value of ``EGRESSES``."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    found = []
    for name, serve in PROXIES.items():
        starting = asyncio.start_server(serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, loop).result()
        found.append({"name": name, "proxy": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    yield found
    loop.call_soon_threadsafe(_stop, loop)
    thread.join()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_soon(loop.stop)


class Endpoint:
    """An endpoint, and what its calls cost."""

    def __init__(self, port: int, pid: int, headers: dict[str, str]) -> None:
        self.port, self.pid, self.headers = port, pid, headers | {"Prefer": "wait=8"}

    def round(self, calls: int) -> tuple[float, int]:
        """Make calls. Return the milliseconds of processor time per call, and the number of failed calls."""
        begin = cpu_seconds(self.pid)
        with ThreadPoolExecutor(CALLERS) as threads:
            failed = sum(threads.map(self._calls, [calls // CALLERS] * CALLERS))
        return (cpu_seconds(self.pid) - begin) / calls * 1e3, failed

    def _calls(self, number: int) -> int:
        failed = 0
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            for _ in range(number):
                connection.request("POST", SEARCH, json.dumps({"query": f"tea {next(NUMBERS)}"}), self.headers)
                response = connection.getresponse()
                response.read()
                failed += response.status != 200
        return failed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Calls beside bad egresses, compared with the good egress alone.")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fresh", action="store_true", help="count the first calls, too")
    options = parser.parse_args()
    common: dict[str, Any] = {
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 2, "delay": 0.0}},
        "BREAKER_THRESHOLD": 5,
        "BREAKER_COOLDOWN": 600,
        "DOWNLOAD_VERIFY_CERTIFICATES": False,
    }
    with proxies() as found, stack("--tls") as sandbox:  # proxies open tunnels to https only
        origins = json.loads(sandbox.env["CRAWLER_PLATFORM_ORIGINS"])

        def rounds(egresses: list[dict[str, Any]]) -> Iterator[tuple[float, int]]:
            with stack(PLATFORM_ORIGINS=origins, EGRESSES=egresses, **common) as running:
                endpoint = Endpoint(*running.endpoint(), running.headers)
                if not options.fresh:
                    endpoint.round(options.calls)
                while True:
                    yield endpoint.round(options.calls)

        kinds = [rounds(found[-1:]), rounds(found), rounds(found[-1:])]
        figures = [[next(each) for each in kinds] for _ in range(options.rounds)]
        for name, number in (("beside the bad ones", 1), ("good one again", 2)):
            ratio = statistics.median(row[number][0] / row[0][0] for row in figures)
            cost = [statistics.median(row[n][0] for row in figures) for n in (0, number)]
            failed = sum(row[number][1] for row in figures)
            print(f"{name}: {cost[1]:.2f} ms of processor time, ratio to the good one alone {ratio:.2f}", end="; ")
            print(f"{failed} calls failed")


if __name__ == "__main__":
    main()
