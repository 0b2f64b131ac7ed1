"""A Scrapy extension for the processes under attack: operations of the store fail by chance, and the clock jumps."""

from __future__ import annotations

import os
import random
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.jobs.store import Store
from tests.jobs.store_faults import Faults, unavailable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

RATE_FILE = "STORE_FAULTS"
"""The environment variable with the path of the file that contains the share of operations to fail."""
CLOCK_FILE = "CLOCK_OFFSET"
"""The environment variable with the path of the file that contains the seconds by which the wall clock is wrong.

libfaketime would make ``time.sleep()`` fail, and so the endpoint's supervisor and the reader of workbooks.
"""


class FaultsByChance(Faults):
    """Fails statements, commits and responses to commits, each with the same probability."""

    def __init__(self, location: str, rate: Path) -> None:
        super().__init__(0, lambda: unavailable(location))
        self.rate = rate

    def operate(self) -> None:
        if random.random() < float(self.rate.read_text() or 0):  # noqa: S311  # no secret
            raise self.error()


class StoreFaults:
    """Installs the faults with the first crawler of a process."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StoreFaults:
        _install(crawler.settings["STORE"])
        return cls()


@cache
def _install(location: str) -> None:
    faults = FaultsByChance(location, Path(os.environ[RATE_FILE]))
    Store._run = faults.run(Store._run)  # type: ignore[method-assign]
    if CLOCK_FILE in os.environ:
        real, offset = time.time, Path(os.environ[CLOCK_FILE])
        time.time = lambda: real() + float(offset.read_text() or 0)
