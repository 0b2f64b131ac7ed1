"""A crawl of many targets, compared with crawlee, Scrapy and aiohttp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import orjson

from benchmarks.figures import Figure, Table, ratio
from benchmarks.opponents.listing import DOWNLOADS
from benchmarks.opponents.pages import CATEGORY, CATEGORY_PAGES, COUNT
from benchmarks.servers import pages
from benchmarks.stack import ROOT, Stack, cpu_seconds, peak_megabytes, stack

TARGETS = 2_000
"""Targets of each crawl in each round."""
POLL_SECONDS = 0.02

CONDITIONS = f"""\
Each opponent crawls the same {TARGETS:,} targets of a file from the same web server with ready pages (a process of its
own, small pages of 53 kB, HTTP without TLS), with {DOWNLOADS} downloads at once, and writes a feed of JSON lines.
Opponents run in turn in each round. Targets per second of CPU time are those of the crawl's process from its first
request to its exit, without the start of the process, which has a table of its own; so other work on the machine has
little influence. "Wall" is the same with the clock: server and crawl use the machine's cores together. Memory is the
peak of the whole process. All use uvloop. Only this project has deadlines, throttles, and one outcome for each target.

- With the same page object and the same validation: *crawlee* is `HttpCrawler` of crawlee-python with storages in
  memory, whose dataset is written to the feed at the end. *stock Scrapy* calls the page object in the callback, with
  Scrapy's default settings. *aiohttp* and *asyncio floor* are {DOWNLOADS} coroutines that share a session of aiohttp,
  or connections with no more HTTP than this needs.
- *scrapy-poet* is Scrapy with its add-on and the same page object, without validation.
- *hand-written* is a spider in one file that reads the same fields from the page's JSON, as a user would write it,
  without checks and without conversion of the values.
- *this project again* is another crawl. Its distance from 1 is the error of the comparison."""
CRAWLEE, STOCK, AIOHTTP, FLOOR = "crawlee", "stock Scrapy with the page object", "aiohttp", "asyncio floor"


@dataclass
class Opponent:
    """A crawl, and its figures by round."""

    name: str
    command: list[str]
    """A module with its arguments. The name of the feed is the last one."""
    settings_module: str = ""
    """For opponents that use Scrapy."""
    per_core: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """Return the figures of all rounds."""
        return [
            Figure(self.name, "targets per second of CPU time", self.per_core),
            Figure(f"{self.name}, wall", "targets per second", self.per_second),
            Figure(f"{self.name}, memory", "MB", self.megabytes),
        ]


def spider(name: str, arguments: dict[str, str], **settings: str) -> list[str]:
    """Return the command of a spider's crawl."""
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    given += [part for key, value in {"LOG_LEVEL": "WARNING", **settings}.items() for part in ("-s", f"{key}={value}")]
    return ["scrapy", "crawl", name, *given, "-O"]


def opponents(running: Stack, origin: str) -> list[Opponent]:
    """Return this project twice, and its opponents. All crawl the same targets."""
    targets = str(running.folder / "targets.jsonl")
    plain = {"targets": targets, "origin": origin}
    own = spider("retail", {"targets": targets}, FAILURES_FEED=str(running.folder / "failures.jsonl"))
    folder = "benchmarks.opponents"
    return [
        Opponent("this project", own, "crawler.settings"),
        Opponent(CRAWLEE, [f"{folder}.crawl_crawlee", targets, origin]),
        Opponent(STOCK, spider("stock", plain), f"{folder}.stock_settings"),
        Opponent(AIOHTTP, [f"{folder}.crawl_aiohttp", targets, origin]),
        Opponent(FLOOR, [f"{folder}.crawl_floor", targets, origin]),
        Opponent("scrapy-poet", spider("poet", plain), f"{folder}.poet_settings"),
        Opponent("hand-written", spider("plain", plain), f"{folder}.plain_settings"),
        Opponent("this project again", own, "crawler.settings"),
    ]


def requests(origin: str) -> int:
    """Return how many pages were requested so far."""
    with urlopen(f"{origin}{COUNT.decode()}") as response:
        return int(response.read())


def crawl(opponent: Opponent, running: Stack, origin: str) -> Counter[tuple[str, ...]]:
    """Run a crawl, and add its figures. Return how often each list of products is in its feed.

    Raises:
        SystemExit: the crawl failed.
    """
    out = running.folder / "out.jsonl"
    already = requests(origin)
    env = {**running.env, "SCRAPY_SETTINGS_MODULE": opponent.settings_module}
    process = subprocess.Popen([sys.executable, "-m", *opponent.command, str(out)], cwd=ROOT, env=env)
    started, start_cpu, peak = 0.0, 0.0, 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if not started and requests(origin) > already:
            started, start_cpu = time.perf_counter(), cpu_seconds(process.pid)
        peak = peak_megabytes(process.pid) or peak
        time.sleep(POLL_SECONDS)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    with out.open("rb") as lines:
        found = Counter(item_ids(orjson.loads(line)) for line in lines)
    if process.returncode or found.total() != TARGETS or requests(origin) != already + TARGETS:
        raise SystemExit(f"{opponent.name}: exit code {process.returncode}, {found.total()} of {TARGETS} targets")
    opponent.per_core.append(TARGETS / (usage.ru_utime + usage.ru_stime - start_cpu))
    opponent.per_second.append(TARGETS / seconds)
    opponent.megabytes.append(peak)
    return found


def item_ids(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the ids of the products in a line of a feed: a record, or a record with its target."""
    return tuple(product["item_id"] for product in line.get("data", line)["products"])


def write_targets(file: Path) -> None:
    """Write the targets file. No target stands in it twice, because this project would fetch it once."""
    targets = (
        {"id": str(number), "cat_id": CATEGORY, "page": number % CATEGORY_PAGES + 1, "max_price": 1_000 + number}
        for number in range(TARGETS)
    )
    file.write_text("".join(json.dumps(target) + "\n" for target in targets))


def run(rounds: int = 3) -> Table:
    """Run the crawls in turn.

    Raises:
        SystemExit: a crawl failed, the opponents found different products, or crawlee is not installed.
    """
    if find_spec("crawlee") is None:
        raise SystemExit("The benchmark of crawls needs crawlee: pip install -e '.[benchmarks]'")
    budget = {"retail": {"concurrency": DOWNLOADS, "delay": 0}}
    with (
        tempfile.TemporaryDirectory() as folder,
        pages(Path(folder) / "certificate.pem") as origins,
        stack(PLATFORM_ORIGINS={"retail": origins.plain}, PLATFORM_BUDGETS=budget) as running,
    ):
        write_targets(running.folder / "targets.jsonl")
        tested = opponents(running, origins.plain)
        for number in range(rounds):
            rotated = tested[number % len(tested) :] + tested[: number % len(tested)]
            found = [crawl(opponent, running, origins.plain) for opponent in rotated]
            if found[1:] != found[:-1]:
                raise SystemExit("The opponents found different products.")
    table = Table("A crawl of many targets", CONDITIONS)
    table.figures.extend(figure for opponent in tested for figure in opponent.figures())
    per_core = {opponent.name: opponent.figures()[0] for opponent in tested}
    own = per_core.pop("this project")
    goals = {CRAWLEE: 1.2, STOCK: 1.0}
    table.ratios.append(ratio("this project to scrapy-poet, per core", own, per_core["scrapy-poet"], at_least=1.5))
    table.ratios.extend(
        ratio(f"CPU time per target: this project to {name}", other, own, at_most=goals.get(name))
        for name, other in per_core.items()
    )
    return table
