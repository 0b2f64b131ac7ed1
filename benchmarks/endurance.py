"""Many calls, a third of them on faults, with recycling: outcomes, memory and open files over time.

What is measured: calls with ``--at-once`` in flight, in portions; after each portion the resident memory of the service
and its open files. The code of each response is compared with the sandbox's fault table.

Usage: .venv/bin/python -m benchmarks.endurance [--calls N] [--at-once N]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from typing import Any

import aiohttp

from benchmarks.stack import open_files, rss_megabytes, stack
from crawler.sandbox.retail.site import FAULTS, Site

PORTION = 5_000
CATEGORY = "/v1/scrapers/retail-category-v4"
SLOW = {"hang", "slow"}  # their duration is fixed

Checked = tuple[dict[str, Any], str]
"""The params of a call, and its expected code."""


def mixed(size: int) -> list[Checked]:
    """Build the params and expected codes of calls, a third of them on faults of every kind in turn."""
    faults = [(cat_id, FAULTS[name].code) for cat_id, name in sorted(Site.fault_ids.items()) if name not in SLOW]
    calls: list[Checked] = []
    for number in range(size):
        if number % 3:
            calls.append(({"cat_id": "3944", "page": number % 5 + 1}, "OK"))
        else:
            cat_id, code = faults[number // 3 % len(faults)]
            calls.append(({"cat_id": cat_id}, code))
    return calls


async def make_calls(
    url: str, headers: dict[str, str], calls: list[tuple[dict[str, Any], str]], at_once: int
) -> Counter[str]:
    """Make the calls. Return the number of expected codes, and of each other result."""
    found: Counter[str] = Counter()
    remaining = iter(calls)
    async with aiohttp.ClientSession(headers=headers) as session:

        async def client() -> None:
            for params, expected in remaining:
                async with session.post(url, json=params) as response:
                    code = (await response.json())["status"]["code"]
                    found["as expected" if code == expected else f"{params}: {code} for {expected}"] += 1

        await asyncio.gather(*(client() for _ in range(at_once)))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The endpoint over many calls.")
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    settings: dict[str, Any] = {
        "PLATFORM_BUDGETS": {"retail": {"concurrency": 32, "delay": 0.0}},
        "RETRY_BACKOFF_BASE": 0.01,
        "SERVICE_RECYCLE_TARGETS": 2_500,
    }
    total: Counter[str] = Counter()
    memory: list[float] = []
    with stack(**settings) as running:
        port, pid = running.endpoint()
        for number in range(0, options.calls, PORTION):
            start = time.perf_counter()
            calls = mixed(min(PORTION, options.calls - number))
            total += asyncio.run(
                make_calls(f"http://127.0.0.1:{port}{CATEGORY}", running.headers, calls, options.at_once)
            )
            time.sleep(1)  # until closed connections have disappeared
            memory.append(rss_megabytes(pid))
            speed = len(calls) / (time.perf_counter() - start)
            print(
                f"{total.total():6} calls  {memory[-1]:6.1f} MB  {open_files(pid):3} files  {speed:5.0f} calls/s",
                flush=True,
            )
    print(f"outcomes: {dict(total)}")
    if len(memory) > 2:
        print(f"memory over the last calls: {memory[-1] / memory[1] - 1:+.1%} since the {2 * PORTION}th")


if __name__ == "__main__":
    main()
