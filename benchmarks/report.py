"""The report of several runs: ``RESULTS.md``, with the runs side by side, and the table of ``docs/speed.md``."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.figures import Figure, Table
from benchmarks.tables import grid, value

LIBRARIES = ("Scrapy", "scrapyrt", "crawlee", "Twisted")
AT_REST = "Calls of an endpoint at rest"
"""The title of the table whose figures are named after a scraper and the number of a call."""
INTRODUCTION = """\
# Benchmark results

Written by `python -m benchmarks report` from {number} of `python -m benchmarks`. Each run has several rounds. A round
measures all opponents in turn, so figures of the same round can be compared although the speed of the machine changes.
Columns of runs have the medians of their rounds; "smallest and largest" is over all rounds of all runs. "a to b" is the
figure of a divided by that of b, taken in each round. A goal is reached if the median of the runs reaches it.
"""


def machine() -> str:
    """Return a line about this machine, its load and the versions of those libraries that are installed."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES if find_spec(name.lower()))
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run"
    return f"Python {platform.python_version()}, {cores}, {libraries}"


@dataclass
class Run:
    """A run of the benchmarks, as ``python -m benchmarks --json`` stores it."""

    machine: str = field(default_factory=machine)
    day: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    tables: list[Table] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the run to a file."""
        path.write_bytes(TypeAdapter(Run).dump_json(self, indent=1))

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a run from its file."""
        return TypeAdapter(Run).validate_json(path.read_bytes())


def titles(runs: list[Run]) -> list[str]:
    """Return the titles of all tables."""
    return list(dict.fromkeys(table.title for run in runs for table in run.tables))


def rows(runs: list[Run], title: str) -> list[list[Figure | None]]:
    """Return the figures of a table by row: the same name and unit in each run; None for a run without it."""
    columns = [
        {(each.name, each.unit): each for table in run.tables if table.title == title for each in table.figures}
        for run in runs
    ]
    return [[column.get(key) for column in columns] for key in dict.fromkeys(key for each in columns for key in each)]


def overall(row: list[Figure | None]) -> Figure:
    """Return a figure whose values are the medians of the runs."""
    present = [each for each in row if each]
    return replace(present[0], values=[each.median for each in present])


def section(runs: list[Run], title: str) -> str:
    """Return the section of a table."""
    conditions = next(table.conditions for run in runs for table in run.tables if table.title == title)
    header = ("figure", "unit", "goal", *(f"run {number}" for number, _ in enumerate(runs, 1)), "smallest and largest")
    cells = []
    for row in rows(runs, title):
        whole, all_values = overall(row), [number for each in row if each for number in each.values]
        medians = [value(each.median) if each else "–" for each in row]
        spread = f"{value(min(all_values))} to {value(max(all_values))}"
        cells.append([whole.name, whole.unit, whole.goal, *medians, spread, whole.reached])
    return f"## {title}\n\n{conditions.strip()}\n\n{grid([*header, 'reached'], cells)}\n"


def goals(runs: list[Run]) -> str:
    """Return a table of the figures that have goals, without those of calls in a row."""
    found = [(title, overall(row)) for title in titles(runs) if title != AT_REST for row in rows(runs, title)]
    header = ("benchmark", "figure", "goal", "median of the runs", "reached")
    cells = [(title, each.name, each.goal, value(each.median), each.reached) for title, each in found if each.goal]
    return grid(header, cells)


def calls_in_a_row(runs: list[Run]) -> str:
    """Return the seconds of calls in a row, with a row for each scraper."""
    found: dict[str, dict[str, str]] = {}
    for figure in map(overall, rows(runs, AT_REST)):
        scraper, _, number = figure.name.partition(", call ")
        found.setdefault(scraper, {})[number] = f"{figure.median:.1f}" if figure.unit == "s" else "refused"
    numbers = next(iter(found.values()))
    header = ("scraper", f"calls {', '.join(numbers)}")
    return grid(header, [(f"`{scraper}`", ", ".join(calls.values())) for scraper, calls in found.items()])


def replaced(page: str, name: str, text: str) -> str:
    r"""Return a page with another text between the comments with which a generated part begins and ends.

    >>> replaced("<!-- calls -->\nold\n<!-- end of calls -->", "calls", "new")
    '<!-- calls -->\n\nnew\n\n<!-- end of calls -->'
    """
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*?{end}", lambda _: f"{start}\n\n{text}\n\n{end}", page, flags=re.DOTALL)


def write(runs: list[Run], root: Path) -> None:
    """Write ``benchmarks/RESULTS.md``, whose end is a copy of ``notes.md``, and the table of ``docs/speed.md``."""
    machines = grid(("run", "day", "machine"), [(str(n), run.day, run.machine) for n, run in enumerate(runs, 1)])
    parts = [INTRODUCTION.format(number=f"{len(runs)} run{'s' if len(runs) > 1 else ''}"), f"{machines}\n"]
    parts += [f"## Goals\n\n{goals(runs)}\n", *(section(runs, title) for title in titles(runs))]
    notes = (root / "benchmarks/notes.md").read_text()
    (root / "benchmarks/RESULTS.md").write_text("\n".join([*parts, notes]))
    speed = root / "docs/speed.md"
    speed.write_text(replaced(speed.read_text(), "calls in a row", calls_in_a_row(runs)))
