"""Run benchmarks, and write the report of several runs.

``python -m benchmarks [NAME ...] [--rounds N] [--json FILE]`` runs the named benchmarks, or all of them, and prints
their tables. ``python -m benchmarks report RUN.json ...`` writes ``benchmarks/RESULTS.md`` and the table of
``docs/speed.md``. ``python -m benchmarks lines`` prints the code lines of each room, and ``python -m benchmarks calls
[--top]`` how many functions of the project a call and a crawl target run.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks import calls, lines, report
from benchmarks.stack import ROOT

NAMES = ("endpoint", "latency", "reading", "crawl", "memory")
"""Modules. Each has ``run(rounds)``, which returns a list of tables."""
ROUNDS = 5


def known(name: str) -> str:
    """Return the name of a benchmark. Raises ``ValueError`` for any other text."""
    if name not in NAMES:  # argparse would also refuse an empty list that has choices
        raise ValueError(name)
    return name


def measure(names: list[str], rounds: int, file: Path | None) -> None:
    """Run benchmarks, print their tables, and how long each took. After each, write the tables so far to the file."""
    run = report.Run()
    print(f"{run.machine}; {rounds} rounds\n", flush=True)
    for name in names:
        started = time.monotonic()
        tables = import_module(f"benchmarks.{name}").run(rounds)
        run.tables += tables
        for table in tables:
            print(report.section([run], table.title))
        print(f"{name}: {time.monotonic() - started:.0f} s\n", flush=True)
        if file:
            run.write(file)


def main(arguments: list[str]) -> None:
    """Read the arguments, and run benchmarks, write a report, or count lines or calls."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    match arguments:
        case ["report", *_]:
            parser.add_argument("runs", nargs="+", type=Path, help="files that --json has written")
            report.write([report.Run.read(each) for each in parser.parse_args(arguments[1:]).runs], ROOT)
        case ["lines"]:
            print(lines.report(ROOT), end="")
        case ["calls", *rest]:
            print(calls.report(top="--top" in rest), end="")
        case _:
            parser.add_argument(
                "names", nargs="*", type=known, metavar="NAME", help=f"{', '.join(NAMES)}; default: all"
            )
            parser.add_argument("--rounds", type=int, default=ROUNDS)
            parser.add_argument("--json", type=Path, metavar="FILE", help="file of a run, from which reports are made")
            options = parser.parse_args(arguments)
            measure(options.names or list(NAMES), options.rounds, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
