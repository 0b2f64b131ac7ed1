"""The report of several runs: ``RESULTS.md``, with the runs side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from benchmarks.figures import Figure, Ratio, Table
from benchmarks.runs import Run
from benchmarks.tables import goal, grid, reached, spread, value, wrapped

F = TypeVar("F", bound=Figure)

INTRODUCTION = """\
Written by `python -m benchmarks report` from {number} of `python -m benchmarks`. Each run has one or more rounds. A
round measures all opponents in turn, so figures of the same round can be compared although the speed of the machine
changes. Columns of runs have the medians of their rounds; "smallest and largest" is over all rounds of all runs. "a to
b" is the figure of a divided by that of b, taken in each round. A goal is reached if the median of the runs reaches it.

{machines}"""


def merged(figures: list[Figure | None]) -> Figure:
    """Return one figure with the values of all runs. None: a run does not have it."""
    present = [each for each in figures if each]
    return Figure(present[0].name, present[0].unit, [value for each in present for value in each.values])


def overall(ratios: list[Ratio | None]) -> Ratio:
    """Return a ratio whose values are the medians of the runs, with the goal."""
    present = [each for each in ratios if each]
    return Ratio(present[0].name, "", [each.median for each in present], present[0].at_least, present[0].at_most)


def titles(runs: list[Run]) -> list[str]:
    """Return the titles of all tables."""
    return list(dict.fromkeys(table.title for run in runs for table in run.tables))


def tables_named(runs: list[Run], title: str) -> list[Table]:
    """Return each run's table with a title; an empty table for a run without it."""
    empty = Table(title, "")
    return [next((table for table in run.tables if table.title == title), empty) for run in runs]


def rows_of(columns: list[list[F]]) -> list[list[F | None]]:
    """Return the figures of the runs by row: the same name and unit in each run."""
    keys = list(dict.fromkeys((each.name, each.unit) for column in columns for each in column))
    indexed = [{(each.name, each.unit): each for each in column} for column in columns]
    return [[column.get(key) for column in indexed] for key in keys]


def medians(row: Iterable[Figure | None]) -> list[str]:
    """Return the medians of a row's runs."""
    return [value(each.median) if each else "–" for each in row]


def goals(runs: list[Run]) -> list[tuple[str, Ratio]]:
    """Return the ratios that have goals, with the title of their table. Their values are the medians of the runs."""
    found = [
        (title, overall(row))
        for title in titles(runs)
        for row in rows_of([t.ratios for t in tables_named(runs, title)])
    ]
    return [(title, ratio) for title, ratio in found if goal(ratio)]


def goals_grid(found: list[tuple[str, Ratio]]) -> str:
    """Return a Markdown table of goals."""
    return grid(
        ("benchmark", "ratio", "goal", "median of the runs", "reached"),
        [(title, each.name, goal(each), value(each.median), reached(each)) for title, each in found],
    )


def section(runs: list[Run], title: str) -> str:
    """Return the section of a table."""
    tables = tables_named(runs, title)
    numbers = tuple(f"run {number}" for number in range(1, len(runs) + 1))
    parts = [f"## {title}", wrapped(next(table.conditions for table in tables if table.figures or table.ratios))]
    figures = rows_of([table.figures for table in tables])
    if figures:
        named = [(row, merged(row)) for row in figures]
        parts.append(
            grid(
                ("figure", "unit", *numbers, "smallest and largest"),
                [(each.name, each.unit, *medians(row), spread(each)) for row, each in named],
            )
        )
    ratios = rows_of([table.ratios for table in tables])
    if ratios:
        summed = [(row, overall(row), merged(list(row))) for row in ratios]
        parts.append(
            grid(
                ("ratio", "goal", *numbers, "smallest and largest", "reached"),
                [(each.name, goal(each), *medians(row), spread(whole), reached(each)) for row, each, whole in summed],
            )
        )
    return "\n\n".join(parts)


def results(runs: list[Run], notes: str) -> str:
    """Return the report. ``notes`` are sections that a person has written; they come last."""
    number = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    machines = [f"- run {number}, {run.day}: {run.machine}" for number, run in enumerate(runs, 1)]
    introduction = INTRODUCTION.format(number=number, machines="\n".join(machines))
    parts = ["# Benchmark results", wrapped(introduction)]
    if goals(runs):
        parts += ["## Goals", goals_grid(goals(runs))]
    parts += [section(runs, title) for title in titles(runs)]
    return "\n\n".join([*parts, notes.strip()]).strip() + "\n"
