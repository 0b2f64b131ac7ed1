"""One ``scrapy crawl`` of one target, compared with the start of an empty Scrapy project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import Figure, Table, ratio
from benchmarks.stack import ROOT, Stack, stack

CATEGORY = "976759"
EMPTY = "benchmarks.opponents.empty_settings"

CONDITIONS = """\
The whole process of one `scrapy crawl`, from its start to its exit: CPU time, and seconds by the clock. "One target" is
a crawl of this project for one category page of the sandbox, with a feed. The opponents are the spiders of a project
as `scrapy startproject` makes it, with the add-on of scrapy-poet: one that yields nothing, and one that fetches the
same page, writes a feed and reads nothing from it. All log warnings only. The sandbox is a process of its own, and is
not counted. The commands run in turn in each round; a first round, which fills the caches of files, is not counted."""


@dataclass
class Command:
    """A crawl, and its figures by round."""

    name: str
    settings_module: str
    arguments: list[str]
    lines: int
    """Lines that its feed must have."""
    cpu_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """Return the figures of all rounds."""
        return [
            Figure(self.name, "s of CPU time", self.cpu_seconds),
            Figure(f"{self.name}, wall", "s", self.seconds),
        ]


def commands(running: Stack) -> list[Command]:
    """Return this project's crawl twice, and the crawls of the empty project."""
    origin = json.loads(running.env["CRAWLER_PLATFORM_ORIGINS"])["retail"]
    own = ["retail", "-a", f"cat_id={CATEGORY}"]
    page = ["page", "-a", f"url={origin}/browse/{CATEGORY}"]
    return [
        Command("one target", "crawler.settings", own, lines=1),
        Command("empty project", EMPTY, ["nothing"], lines=0),
        Command("empty project, one page", EMPTY, page, lines=1),
        Command("one target again", "crawler.settings", own, lines=1),
    ]


def execute(command: Command, running: Stack) -> None:
    """Run a crawl, and add its figures.

    Raises:
        SystemExit: the crawl failed.
    """
    out: Path = running.folder / "out.jsonl"
    env = {**running.env, "SCRAPY_SETTINGS_MODULE": command.settings_module}
    options = ["-s", "LOG_LEVEL=WARNING", "-O", str(out)]
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", *command.arguments, *options], cwd=ROOT, env=env
    )
    _, status, usage = os.wait4(process.pid, 0)
    command.seconds.append(time.perf_counter() - started)
    command.cpu_seconds.append(usage.ru_utime + usage.ru_stime)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = len(out.read_text().splitlines()) if out.exists() else 0
    out.unlink(missing_ok=True)
    if process.returncode or lines != command.lines:
        raise SystemExit(f"{command.name}: exit code {process.returncode}, {lines} lines")


def run(rounds: int = 5) -> Table:
    """Run the commands in turn."""
    with stack() as running:
        tested = commands(running)
        for number in range(rounds + 1):
            for command in tested[number % len(tested) :] + tested[: number % len(tested)]:
                execute(command, running)
    for command in tested:
        del command.cpu_seconds[0], command.seconds[0]
    table = Table("The start of a crawl", CONDITIONS)
    table.figures.extend(figure for command in tested for figure in command.figures())
    own, empty, page, again = (command.figures() for command in tested)
    table.ratios.extend(
        (
            ratio("one target to empty project, CPU time", own[0], empty[0], at_most=1.1),
            ratio("one target to empty project, wall", own[1], empty[1]),
            ratio("one target to empty project with one page, CPU time", own[0], page[0]),
            ratio("one target to itself, CPU time", own[0], again[0]),
        )
    )
    return table
