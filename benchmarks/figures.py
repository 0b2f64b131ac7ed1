"""Figures of a benchmark: values by round, ratios between two of them in the same round, goals, and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

Measure = Callable[[], Mapping[str, float]]
"""Runs an opponent once, and returns its values by unit."""


@dataclass(frozen=True)
class Figure:
    """What was measured, once per round, or a ratio of two figures of the same round, and the goal for its median."""

    name: str
    unit: str
    """For example ``ms of CPU time per call``. "" for ratios."""
    values: list[float]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return median(self.values)

    @property
    def goal(self) -> str:
        """The goal, "" without one."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def reached(self) -> str:
        """Whether the median reaches the goal, "" without one."""
        if not self.goal:
            return ""
        low, high = self.at_least or 0, self.at_most or float("inf")
        return "yes" if low <= self.median <= high else "no"


@dataclass(frozen=True)
class Table:
    """The result of one benchmark. ``conditions``: what was measured, how, and against which opponents, in Markdown."""

    title: str
    conditions: str
    figures: list[Figure] = field(default_factory=list)


def ratio(name: str, of: Figure, to: Figure, *, at_least: float | None = None, at_most: float | None = None) -> Figure:
    """Return the ratio of two figures round by round."""
    return Figure(name, "", [a / b for a, b in zip(of.values, to.values, strict=True)], at_least, at_most)


def in_turn(opponents: Mapping[str, Measure], rounds: int, *, warm_up: int = 0) -> dict[tuple[str, str], Figure]:
    """Run all opponents in each round, and return their figures by name and unit.

    Each round begins with another opponent, and figures of the same round can be compared although the speed of the
    machine changes. ``warm_up``: rounds that are not counted.
    """
    names = list(opponents)
    found: dict[tuple[str, str], Figure] = {}
    for number in range(-warm_up, rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            for unit, value in opponents[name]().items():
                if number >= 0:
                    found.setdefault((name, unit), Figure(name, unit, [])).values.append(value)
    return {(name, unit): found[name, unit] for name in names for each, unit in list(found) if each == name}
