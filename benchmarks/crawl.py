"""A crawl of many targets beside crawlee and stock Scrapy, and a crawl of one target beside an empty project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.request import urlopen

from benchmarks.endpoint import shop
from benchmarks.figures import Table, in_turn, ratio
from benchmarks.opponents.pages import COUNT, LIGHT
from benchmarks.opponents.work import DOWNLOADS
from benchmarks.stack import ROOT, Stack, cpu_seconds

TARGETS = 2_000
"""Targets of each crawl in each round."""
POLL_SECONDS = 0.02
OWN, AGAIN, CRAWLEE, STOCK = "this project", "this project again", "crawlee", "stock Scrapy with the page object"
Watch = Callable[[int, int], None]
"""Gets the process id of a crawl and the number of its requests so far, again and again."""
EMPTY, COST = "empty project with one page", "ms of CPU time per target"

CONDITIONS = f"""\
Each opponent crawls the same {TARGETS:,} targets of a file from the same web server with ready pages (a process of its
own, small pages of 57 kB, HTTP without TLS), with {DOWNLOADS} downloads at once, and writes a feed of JSON lines. CPU
time is that of the crawl's process from its first request to its exit, without the start of the process, which has a
table of its own; so other work on the machine has little influence. "Wall" is the same with the clock: server and crawl
use the machine's cores together. All use uvloop, the same page object and the same validation. Only this project has
deadlines, throttles, and one outcome for each target.

- *{CRAWLEE}* is `HttpCrawler` of crawlee-python with storages in memory, whose dataset is written to the feed at the
  end. Its concurrency is fixed, and it does not log.
- *{STOCK}* calls the page object in the callback, with Scrapy's default settings.
- *{AGAIN}* is another crawl. Its distance from 1 is the error of the comparison."""
START_CONDITIONS = """\
CPU time of the whole process, from its start to its exit. "This project" is `scrapy crawl` for one page of search
results of the same web server, with a feed. The opponent is a spider of a project as `scrapy startproject` makes it,
with the add-on of scrapy-poet: it fetches the same page, writes a feed and reads nothing from it. Both log warnings
only. A first round, which fills the caches of files, is not counted."""


def unwatched(_pid: int, _requested: int) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Crawls:
    """Runs crawls of the web server's pages."""

    running: Stack
    origin: str

    def requests(self) -> int:
        """Return how many pages were requested so far."""
        with urlopen(f"{self.origin}{COUNT.decode()}") as response:
            return int(response.read())

    def targets(self, number: int) -> str:
        """Write a targets file. No target stands in it twice, because this project would fetch it once."""
        file = self.running.folder / f"{number}.jsonl"
        lines = ({"query": LIGHT, "max_price": 1_000 + each} for each in range(number))
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return str(file)

    def run(
        self,
        number: int,
        module: str,
        *arguments: str,
        settings: str = "",
        watch: Watch = unwatched,
    ) -> tuple[float, float, float]:
        """Run a crawl of so many targets.

        Returns:
            the CPU time of the process, that before its first request, and seconds by the clock after it.

        Raises:
            SystemExit: the crawl failed, or the number of requests or of lines in its feed is not that of its targets.
        """
        out = self.running.folder / "out.jsonl"
        out.unlink(missing_ok=True)
        already, started, start_cpu = self.requests(), 0.0, 0.0
        env = {**self.running.env, "SCRAPY_SETTINGS_MODULE": settings}
        process = subprocess.Popen([sys.executable, "-m", module, *arguments, str(out)], cwd=ROOT, env=env)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            requested = self.requests() - already
            if requested and not started:
                started, start_cpu = time.perf_counter(), cpu_seconds(process.pid)
            watch(process.pid, requested)
            time.sleep(POLL_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        with out.open() as lines:
            written = sum(bool(json.loads(line)) for line in lines)
        if process.returncode or (written, self.requests() - already) != (number, number):
            raise SystemExit(f"{arguments}: exit code {process.returncode}, {written} of {number} targets")
        return usage.ru_utime + usage.ru_stime, start_cpu, time.perf_counter() - started

    def own(self, number: int, watch: Watch = unwatched) -> tuple[float, float, float]:
        """Run a crawl of this project."""
        failures = f"FAILURES_FEED={self.running.folder}/failures.jsonl"
        arguments = spider("retail", targets=self.targets(number))
        return self.run(number, *arguments, "-s", failures, "-O", settings="crawler.settings", watch=watch)

    def opponents(self) -> dict[str, Callable[[], tuple[float, float, float]]]:
        """Return this project twice, and its opponents. All crawl the same targets."""
        folder, targets = "benchmarks.opponents", self.targets(TARGETS)
        stock = spider("stock", targets=targets, origin=self.origin)
        return {
            OWN: partial(self.own, TARGETS),
            CRAWLEE: partial(self.run, TARGETS, f"{folder}.crawl_crawlee", targets, self.origin),
            STOCK: partial(self.run, TARGETS, *stock, "-O", settings=f"{folder}.stock_settings"),
            AGAIN: partial(self.own, TARGETS),
        }

    def starts(self) -> dict[str, Callable[[], tuple[float, float, float]]]:
        """Return a crawl of one target, the crawl of an empty project, and the first one again."""
        page = spider("page", url=f"{self.origin}/search?q={LIGHT}")
        empty = partial(self.run, 1, *page, "-O", settings="benchmarks.opponents.empty_settings")
        return {OWN: partial(self.own, 1), EMPTY: empty, AGAIN: partial(self.own, 1)}


def spider(name: str, **arguments: str) -> list[str]:
    """Return the command of a spider's crawl."""
    given = [part for key, each in arguments.items() for part in ("-a", f"{key}={each}")]
    return ["scrapy", "crawl", name, *given, "-s", "LOG_LEVEL=WARNING"]


def after_start(crawl: Callable[[], tuple[float, float, float]]) -> Mapping[str, float]:
    """Return what a crawl took after its first request."""
    cpu, before, seconds = crawl()
    return {COST: (cpu - before) / TARGETS * 1000, "targets per second, wall": TARGETS / seconds}


def run(rounds: int) -> list[Table]:
    """Run the crawls in turn."""
    with shop() as (running, origin):
        crawls = Crawls(running, origin)
        many = in_turn({name: partial(after_start, crawl) for name, crawl in crawls.opponents().items()}, rounds)
        unit = "s of CPU time"
        starts = {name: lambda crawl=crawl: {unit: crawl()[0]} for name, crawl in crawls.starts().items()}
        one = in_turn(starts, rounds, warm_up=1)
    own, goals = many[OWN, COST], {CRAWLEE: 1.25, STOCK: 0.7, AGAIN: None}
    ratios = [ratio(f"{OWN} to {name}", own, many[name, COST], at_most=goal) for name, goal in goals.items()]
    start = [
        ratio(f"{OWN} to {name}", one[OWN, unit], one[name, unit], at_most=goal)
        for name, goal in {EMPTY: 0.85, AGAIN: None}.items()
    ]
    return [
        Table("A crawl of many targets", CONDITIONS, [*many.values(), *ratios]),
        Table("The start of a crawl", START_CONDITIONS, [*one.values(), *start]),
    ]
