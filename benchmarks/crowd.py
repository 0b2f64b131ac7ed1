"""Many simultaneous calls to one slow platform: the wait of the last call, and the memory of the service.

What is measured: ``--calls`` calls at once of a search whose page takes ``--seconds`` (the sandbox waits), with a
throttle of ``--concurrency`` download slots and a queue for all other calls. With these settings the last response
takes calls / concurrency * seconds; the figure is the ratio of the measured time to it.

Usage: .venv/bin/python -m benchmarks.crowd [--calls N] [--concurrency N] [--seconds S]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from typing import Any

import aiohttp

from benchmarks.stack import rss_megabytes, stack

SEARCH = "/v1/scrapers/retail-search-v4"


async def crowd(url: str, headers: dict[str, str], calls: int, pid: int) -> tuple[Counter[str], float, float]:
    """Return the responses by code, the seconds until the last one, and the peak memory in MB."""
    peak = rss_megabytes(pid)
    start = time.perf_counter()
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=calls)) as session:

        async def one() -> str:
            async with session.post(url, json={"query": "mustard"}, timeout=aiohttp.ClientTimeout(150)) as answer:
                return str((await answer.json())["status"]["code"])

        tasks = [asyncio.ensure_future(one()) for _ in range(calls)]
        while not all(task.done() for task in tasks):
            peak = max(peak, rss_megabytes(pid))
            await asyncio.sleep(0.25)
        return Counter(task.result() for task in tasks), time.perf_counter() - start, peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Many simultaneous calls to one slow platform.")
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    settings: dict[str, Any] = {
        "PLATFORM_BUDGETS": {"retail": {"concurrency": options.concurrency, "delay": 0.0}},
        "SERVICE_MAX_WAITING": options.calls,
    }
    with stack("--latency", str(options.seconds), **settings) as running:
        port, pid = running.endpoint()
        headers = running.headers | {"Prefer": "wait=120"}
        responses, last, memory = asyncio.run(crowd(f"http://127.0.0.1:{port}{SEARCH}", headers, options.calls, pid))
    ideal = options.calls / options.concurrency * options.seconds
    print(f"{options.calls} calls at once, {options.concurrency} download slots, {options.seconds} s a page")
    print(f"responses: {dict(responses)}; the last after {last:.1f} s, {last / ideal:.2f} times {ideal:.0f} s")
    print(f"memory: {memory:.0f} MB at the peak")


if __name__ == "__main__":
    main()
