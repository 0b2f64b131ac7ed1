"""Tables of figures as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from benchmarks.figures import Figure, Ratio, Table

WIDTH = 120
"""The longest line of text. Rows of tables may be longer."""


def markdown(table: Table) -> str:
    """Return a table of one run: each figure with its median and spread, each ratio also with its goal."""
    parts = [f"## {table.title}", wrapped(table.conditions)]
    if table.figures:
        cells = [(each.name, each.unit, value(each.median), spread(each)) for each in table.figures]
        parts.append(grid(("figure", "unit", "median", "smallest and largest"), cells))
    if table.ratios:
        rows = [(each.name, goal(each), value(each.median), spread(each), reached(each)) for each in table.ratios]
        parts.append(grid(("ratio", "goal", "median", "smallest and largest", "reached"), rows))
    return "\n\n".join(parts) + "\n"


def grid(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    r"""Return a Markdown table.

    >>> print(grid(("figure", "ms"), [("a|b", "3")]))
    | figure | ms |
    |---|---|
    | a\|b | 3 |
    """
    lines = [header, *rows]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([body[0], "|" + "---|" * len(header), *body[1:]])


def value(number: float) -> str:
    """Return a number with three digits, or with all digits before the point.

    >>> [value(each) for each in (0, 0.0213, 0.5, 6.248, 64.21, 1234.5)]
    ['0', '0.0213', '0.500', '6.25', '64.2', '1,234']
    """
    size = abs(number)
    digits = 0 if not size else 4 if size < 0.1 else 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{number:,.{digits}f}"


def spread(figure: Figure) -> str:
    """Return the smallest and the largest value of a figure."""
    return " to ".join(map(value, figure.spread))


def goal(ratio: Ratio) -> str:
    """Return a ratio's goal, "" if it has none."""
    if ratio.at_least is not None:
        return f"≥ {ratio.at_least:g}"
    return "" if ratio.at_most is None else f"≤ {ratio.at_most:g}"


def reached(ratio: Ratio) -> str:
    """Return whether a ratio's median reaches its goal, "" if it has none."""
    return {True: "yes", False: "no", None: ""}[ratio.is_reached]


def wrapped(text: str) -> str:
    """Return a text without long lines."""
    return "\n".join(textwrap.fill(line, WIDTH) if len(line) > WIDTH else line for line in text.strip().splitlines())
