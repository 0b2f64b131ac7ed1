"""A crawl of many targets, compared with plain Scrapy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from benchmarks.figures import Figure, Table, ratio
from benchmarks.stack import ROOT, Stack, cpu_seconds, peak_megabytes, stack

TARGETS = 2_000
"""Targets of each crawl in each round."""
PAGES = 9
"""Pages of the category that are requested in turn: the sandbox caches their rendered form."""
CATEGORY = "976759"
POLL_SECONDS = 0.02

CONDITIONS = f"""\
Each opponent crawls the same {TARGETS:,} targets of a file from the same sandbox (a process of its own, small pages of
53 kB, HTTP without TLS), with 16 downloads at once, and writes a feed of JSON lines. Opponents run in turn in each
round. Targets per second of CPU time are those of the crawl's process from its first request to its exit, without the
start of the process, which has a table of its own; so other work on the machine has little influence. "Wall" is the
same with the clock: sandbox and crawl use the machine's cores together. Memory is the peak of the whole process.
"scrapy-poet" is Scrapy with its add-on and the same page object. "hand-written" is a spider in one file that reads the
same fields from the page's JSON, as a user would write it, without checks and without conversion of the values. All
use uvloop; cookies and throttling are off. Only this project validates the data, has deadlines, and has one outcome
for each target."""


@dataclass
class Opponent:
    """A spider with its settings, and its figures by round."""

    name: str
    spider: str
    settings_module: str
    arguments: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    per_core: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def command(self, out: Path) -> list[str]:
        """Return the command line of the crawl."""
        arguments = [part for name, value in self.arguments.items() for part in ("-a", f"{name}={value}")]
        settings = [part for name, value in self.settings.items() for part in ("-s", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", "crawl", self.spider, *arguments, *settings, "-O", str(out)]

    def figures(self) -> list[Figure]:
        """Return the figures of all rounds."""
        return [
            Figure(self.name, "targets per second of CPU time", self.per_core),
            Figure(f"{self.name}, wall", "targets per second", self.per_second),
            Figure(f"{self.name}, memory", "MB", self.megabytes),
        ]


def opponents(running: Stack) -> list[Opponent]:
    """Return this project twice, and the plain Scrapy projects. All crawl the same targets."""
    targets = str(running.folder / "targets.jsonl")
    origin = json.loads(running.env["CRAWLER_PLATFORM_ORIGINS"])["retail"]
    plain = {"targets": targets, "origin": origin}
    quiet = {"LOG_LEVEL": "WARNING"}
    own = {**quiet, "FAILURES_FEED": str(running.folder / "failures.jsonl")}
    return [
        Opponent("this project", "retail", "crawler.settings", {"targets": targets}, own),
        Opponent("scrapy-poet", "poet", "benchmarks.opponents.poet_settings", plain, quiet),
        Opponent("hand-written", "plain", "benchmarks.opponents.plain_settings", plain, quiet),
        Opponent("this project again", "retail", "crawler.settings", {"targets": targets}, own),
    ]


def crawl(opponent: Opponent, running: Stack, requests: Path) -> Counter[tuple[str, ...]]:
    """Run a crawl, and add its figures. Return how often each list of products is in its feed.

    ``requests``: the sandbox's log, which has a line for each request.

    Raises:
        SystemExit: the crawl failed.
    """
    out = running.folder / "out.jsonl"
    already = requests.stat().st_size
    env = {**running.env, "SCRAPY_SETTINGS_MODULE": opponent.settings_module}
    process = subprocess.Popen(opponent.command(out), cwd=ROOT, env=env)
    started, start_cpu, peak = 0.0, 0.0, 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if not started and requests.stat().st_size > already:
            started, start_cpu = time.perf_counter(), cpu_seconds(process.pid)
        peak = peak_megabytes(process.pid) or peak
        time.sleep(POLL_SECONDS)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    with out.open("rb") as lines:
        found = Counter(item_ids(orjson.loads(line)) for line in lines)
    if process.returncode or found.total() != TARGETS:
        raise SystemExit(f"{opponent.name}: exit code {process.returncode}, {found.total()} of {TARGETS} targets")
    opponent.per_core.append(TARGETS / (usage.ru_utime + usage.ru_stime - start_cpu))
    opponent.per_second.append(TARGETS / seconds)
    opponent.megabytes.append(peak)
    return found


def item_ids(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the ids of the products in a line of a feed: a record, or a record with its target."""
    return tuple(product["item_id"] for product in line.get("data", line)["products"])


def write_targets(file: Path) -> None:
    """Write the targets file."""
    targets = ({"id": str(number), "cat_id": CATEGORY, "page": number % PAGES + 1} for number in range(TARGETS))
    file.write_text("".join(json.dumps(target) + "\n" for target in targets))


def run(rounds: int = 3) -> Table:
    """Run the crawls in turn.

    Raises:
        SystemExit: a crawl failed, or the opponents found different products.
    """
    budget = {"retail": {"concurrency": 16, "delay": 0}}
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests.jsonl"
        requests.touch()
        with stack("--log", str(requests), PLATFORM_BUDGETS=budget) as running:
            write_targets(running.folder / "targets.jsonl")
            tested = opponents(running)
            for number in range(rounds):
                rotated = tested[number % len(tested) :] + tested[: number % len(tested)]
                found = [crawl(opponent, running, requests) for opponent in rotated]
                if found[1:] != found[:-1]:
                    raise SystemExit("The opponents found different products.")
    table = Table("A crawl of many targets", CONDITIONS)
    table.figures.extend(figure for opponent in tested for figure in opponent.figures())
    own, poet, plain, again = (opponent.figures()[0] for opponent in tested)
    table.ratios.extend(
        (
            ratio("this project to scrapy-poet, per core", own, poet, at_least=1.5),
            ratio("this project to hand-written, per core", own, plain),
            ratio("this project to itself, per core", own, again),
        )
    )
    return table
