"""Figures of a benchmark: values by round, ratios between two of them in the same round, and goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Figure:
    """What was measured, once per round.

    Rounds run all opponents in turn, so that figures of the same round can be compared although the speed of the
    machine changes.
    """

    name: str
    unit: str
    """For example ``ms of CPU time per call``."""
    values: Sequence[float]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return min(self.values), max(self.values)


@dataclass(frozen=True)
class Ratio(Figure):
    """A ratio of two figures, taken in each round, and the goal for its median."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_reached(self) -> bool | None:
        """Whether the median reaches the goal. None: there is no goal."""
        if self.at_least is not None:
            return self.median >= self.at_least
        return self.median <= self.at_most if self.at_most is not None else None


def ratio(name: str, of: Figure, to: Figure, *, at_least: float | None = None, at_most: float | None = None) -> Ratio:
    """Return the ratio of two figures round by round."""
    return Ratio(name, "", [a / b for a, b in zip(of.values, to.values, strict=True)], at_least, at_most)


@dataclass(frozen=True)
class Table:
    """The result of one benchmark."""

    title: str
    conditions: str
    """What was measured, how, and against which opponents: a paragraph of Markdown."""
    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
