"""A Scrapy extension that records long turns of the event loop in a service under attack."""

from __future__ import annotations

import asyncio
import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

TURNS_FILE = "TURNS_FILE"
"""The environment variable with the path of the file to which turns are written."""
INTERVAL_SECONDS = 0.005
SHORTEST_SECONDS = 0.02


class Turns:
    """Appends the end and the processor time of each long turn to ``TURNS_FILE``.

    The end is a ``time.monotonic()`` value. The processor time is that of the loop's thread, so other load does not
    count. Turns within 5 ms are added up, so no turn takes longer than its line says.
    """

    @classmethod
    def from_crawler(cls, _crawler: Crawler) -> Turns:
        _measure_once()
        return cls()


@cache
def _measure_once() -> None:
    """Start measuring with the first crawler of a process. All its crawlers share the event loop."""
    measure_turns()


def measure_turns() -> TextIO:
    """Measure the turns of the running event loop. Return the open file to which they are written."""
    loop = asyncio.get_running_loop()
    file = Path(os.environ[TURNS_FILE]).open("a", buffering=1)  # noqa: SIM115  # open until the process ends
    last = time.thread_time()

    def measure() -> None:
        nonlocal last
        now = time.thread_time()
        if now - last >= SHORTEST_SECONDS:
            file.write(f"{time.monotonic():.3f} {now - last:.3f}\n")
        last = now
        loop.call_later(INTERVAL_SECONDS, measure)

    measure()
    return file


def longest_turn(file: Path, since: float) -> float:
    """Return the processor time of the longest turn that ended after ``since`` (a ``time.monotonic()`` value)."""
    turns = [line.split() for line in file.read_text().splitlines()]
    return max((float(seconds) for end, seconds in turns if float(end) >= since), default=0.0)
