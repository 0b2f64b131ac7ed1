"""Run benchmarks, and write the report of several runs.

``python -m benchmarks [NAME ...] [--rounds N] [--json FILE]`` runs the named benchmarks, or all of them, and prints
their tables. ``python -m benchmarks report RUN.json ...`` writes ``benchmarks/RESULTS.md`` and ``docs/benchmarks.svg``.
``python -m benchmarks lines`` prints the code lines of each room, and ``python -m benchmarks calls [--top]`` how many
functions of the project a call and a crawl target run.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks import calls, lines
from benchmarks.plot import plot
from benchmarks.report import goals, results
from benchmarks.runs import Run, machine
from benchmarks.stack import ROOT
from benchmarks.tables import markdown

NAMES = "endpoint load latency reading crawl start stores jobs changes browser workers"
BENCHMARKS = {name: f"benchmarks.{name}" for name in NAMES.split()}
"""Name -> module. Each has ``run(rounds)``, which returns a table or a list of tables."""
ROUNDS = 5


def measure(names: list[str], rounds: int, file: Path | None) -> None:
    """Run benchmarks, print their tables, and how long each took. After each, write the tables so far to the file.

    If the file has a run, its tables are kept, except those that are measured again.
    """
    run = Run(machine(), datetime.now(UTC).date().isoformat(), rounds)
    if file and file.exists():
        run.tables = Run.read(file).tables
    print(f"{run.machine}; {rounds} rounds\n", flush=True)
    for name in names or BENCHMARKS:
        started = time.monotonic()
        measured = import_module(BENCHMARKS[name]).run(rounds)
        tables = measured if isinstance(measured, list) else [measured]
        measured_again = {table.title for table in tables}
        run.tables = [table for table in run.tables if table.title not in measured_again] + tables
        print("\n".join(map(markdown, tables)), f"{name}: {time.monotonic() - started:.0f} s", sep="\n", flush=True)
        if file:
            run.write(file)


def report(files: list[Path]) -> None:
    """Write the report of runs and its plot."""
    runs = [Run.read(file) for file in files]
    notes = (ROOT / "benchmarks/notes.md").read_text()
    (ROOT / "benchmarks/RESULTS.md").write_text(results(runs, notes))
    (ROOT / "docs/benchmarks.svg").write_text(plot(goals(runs)))


def main(arguments: list[str]) -> None:
    """Read the arguments, and run benchmarks, write a report, or count lines or calls."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    if arguments[:1] == ["report"]:
        parser.add_argument("runs", nargs="+", type=Path, help="files that --json has written")
        report(parser.parse_args(arguments[1:]).runs)
        return
    if arguments == ["lines"]:
        print(lines.report(ROOT), end="")
        return
    if arguments[:1] == ["calls"]:
        print(calls.report(top="--top" in arguments), end="")
        return
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS) + "; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="file of a run, from which reports are made")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(unknown)}. Choose from {', '.join(BENCHMARKS)}.")
    measure(options.names, options.rounds, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
