"""The parts of the benchmarks that need no measurement: rounds, ratios, goals, the report of several runs."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.figures import Figure, Table, in_turn, ratio
from benchmarks.report import Run

pytestmark = pytest.mark.meta

ENDPOINT = Figure("endpoint", "calls/s", [600.0, 300.0, 500.0])
OTHER = Figure("scrapyrt", "calls/s", [100.0, 50.0, 125.0])


def run(*figures: Figure, title: str = "A call", day: str = "2026-11-22") -> Run:
    return Run("Python 3.11, 2 cores", day, [Table(title, "Conditions.", [*figures])])


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of the Markdown tables in a text."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_each_round_begins_with_another_opponent() -> None:
    ran: list[str] = []

    def measure(name: str) -> dict[str, float]:
        ran.append(name)
        return {"s": float(len(ran)), "MB": 1.0}

    found = in_turn({name: partial(measure, name) for name in "abc"}, 2, warm_up=1)
    assert "".join(ran) == "cababcbca"
    assert [(each.name, each.unit, each.values) for each in found.values()] == [
        ("a", "s", [4.0, 9.0]),
        ("a", "MB", [1.0, 1.0]),
        ("b", "s", [5.0, 7.0]),
        ("b", "MB", [1.0, 1.0]),
        ("c", "s", [6.0, 8.0]),
        ("c", "MB", [1.0, 1.0]),
    ]


def test_a_ratio_is_taken_in_each_round() -> None:
    found = ratio("calls/s", ENDPOINT, OTHER, at_least=6)
    assert (found.values, found.median) == ([6.0, 6.0, 4.0], 6.0)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ({}, ("", "")),
        ({"at_least": 6.0}, ("≥ 6", "yes")),
        ({"at_least": 6.1}, ("≥ 6.1", "no")),
        ({"at_most": 6.0}, ("≤ 6", "yes")),
        ({"at_most": 5.9}, ("≤ 5.9", "no")),
    ],
)
def test_a_goal_is_compared_with_the_median(goal: dict[str, float], expected: tuple[str, str]) -> None:
    figure = Figure("calls/s", "", [6.0, 6.0, 4.0], **goal)
    assert (figure.goal, figure.reached) == expected


def three_runs() -> list[Run]:
    """Three runs with the medians 4, 5 and 7. The second lacks a figure, and only the last has calls in a row."""
    values = [[3.0, 4.0, 9.0], [5.0, 5.0, 5.0], [7.0, 2.0, 8.0]]
    first, second, third = (Figure("endpoint / scrapyrt", "", each, at_least=6) for each in values)
    noise = Figure("twice", "", [1.0, 1.1, 0.9])
    last = run(third, noise, day="2026-11-23")
    calls = [Figure("retail, call 1", "s", [0.71], at_most=3), Figure("retail, call 2", "s until a retry", [52.0])]
    last.tables += run(*calls, title=report.AT_REST).tables
    return [run(first, noise), run(second), last]


def test_a_report_has_three_runs_side_by_side(tmp_path: Path) -> None:
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "benchmarks/notes.md").write_text("## What is left, and why\n\nScrapy.\n")
    page = tmp_path / "docs/speed.md"
    page.write_text("# Speed\n\n<!-- calls in a row -->\nold\n<!-- end of calls in a row -->\n")
    report.write(three_runs(), tmp_path)
    found = (tmp_path / "benchmarks/RESULTS.md").read_text()
    assert ["endpoint / scrapyrt", "", "≥ 6", "4.00", "5.00", "7.00", "2.00 to 9.00", "no"] in rows(found)
    assert ["twice", "", "", "1.00", "–", "1.00", "0.900 to 1.10", ""] in rows(found)
    assert re.findall("^#+ .*", found, re.MULTILINE) == [
        "# Benchmark results",
        "## Goals",
        "## A call",
        f"## {report.AT_REST}",
        "## What is left, and why",
    ]
    assert found.endswith("\n\nScrapy.\n")
    assert ["3", "2026-11-23", "Python 3.11, 2 cores"] in rows(found)
    assert ["A call", "endpoint / scrapyrt", "≥ 6", "5.00", "no"] in rows(found)
    assert rows(page.read_text()) == [
        ["scraper", "calls 1, 2"],
        ["---"] * 2,
        ["`retail`", "0.7, refused"],
    ]
    assert "old" not in page.read_text()
