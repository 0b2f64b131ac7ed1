"""Commands that do little, compared with those of an empty Scrapy project."""

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
from crawler.platforms.retail import PLATFORM as RETAIL

CATEGORY = "976759"
OWN, EMPTY = "crawler.settings", "benchmarks.opponents.empty_settings"
ONE = "one target"

CONDITIONS = """\
The whole process of a command, from its start to its exit: CPU time, and seconds by the clock. "One target" is
`scrapy crawl` of this project for one category page of the sandbox, with a feed, and "one link" is `scrapy collect` of
a file with the link of the same page. The opponents are the spiders of a project as `scrapy startproject` makes it,
with the add-on of scrapy-poet: a spider without requests, and a spider that fetches the same page, writes a feed and
reads nothing from it. All log warnings only. The sandbox is a process of its own, and is not counted. The commands run
in turn in each round; a first round, which fills the caches of files, is not counted."""
OUT = "out.jsonl"


@dataclass
class Command:
    """A command, and its figures by round."""

    name: str
    settings_module: str
    arguments: list[str]
    lines: int = 0
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
    """Return this project's commands, and those of the empty project."""
    origin = json.loads(running.env["CRAWLER_PLATFORM_ORIGINS"])["retail"]
    out = ["-s", "LOG_LEVEL=WARNING", "-O", str(running.folder / OUT)]
    link = running.folder / "link.txt"
    link.write_text(f"{RETAIL.origin}/browse/{CATEGORY}\n")
    own = ["crawl", "retail", "-a", f"cat_id={CATEGORY}", *out]
    page = ["crawl", "page", "-a", f"url={origin}/browse/{CATEGORY}", *out]
    return [
        Command(ONE, OWN, own, lines=1),
        Command("empty project", EMPTY, ["crawl", "nothing", *out]),
        Command("empty project, one page", EMPTY, page, lines=1),
        Command("one link", OWN, ["collect", str(link), "--fresh", *out], lines=1),
        Command("--help", OWN, ["--help"]),
        Command("empty project, --help", EMPTY, ["--help"]),
        Command("one target again", OWN, own, lines=1),
    ]


def execute(command: Command, running: Stack) -> None:
    """Run a command, and add its figures.

    Raises:
        SystemExit: the command failed.
    """
    out: Path = running.folder / OUT
    env = {**running.env, "SCRAPY_SETTINGS_MODULE": command.settings_module}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", *command.arguments], cwd=ROOT, env=env, stdout=subprocess.DEVNULL
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
    cpu = {command.name: command.figures()[0] for command in tested}
    table.ratios.extend(
        (
            ratio(
                f"{ONE} to empty project with one page, CPU time", cpu[ONE], cpu["empty project, one page"], at_most=0.8
            ),
            ratio(f"{ONE} to empty project, CPU time", cpu[ONE], cpu["empty project"]),
            ratio("one link to empty project with one page, CPU time", cpu["one link"], cpu["empty project, one page"]),
            ratio("--help to that of the empty project, CPU time", cpu["--help"], cpu["empty project, --help"]),
            ratio(f"{ONE} to itself, CPU time", cpu[ONE], cpu["one target again"]),
        )
    )
    return table
