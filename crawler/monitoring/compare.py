"""Compares a run with the sums over the last runs, and finds differences that are statistically significant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from crawler.errors import TargetError, documented
from crawler.monitoring.fields import FieldCount
from crawler.monitoring.run import EXTRACTION_FAILED, Run

MIN_DEVIATIONS = 3.0
"""Two shares differ significantly if they differ by at least this many standard deviations.

At 3, about one comparison in 700 is a false alarm.
"""
MIN_LOSS = 0.2
"""A field is reported only if its coverage has fallen by more than this share of its earlier coverage."""

MAX_HEADLINE_FIELDS = 8


@dataclass(frozen=True)
class FieldChange:
    """The counts of a field: the sum over the last runs (``before``), and in this run (``now``)."""

    scraper: str
    path: str
    before: FieldCount
    now: FieldCount

    @property
    def change(self) -> Literal["vanished", "dropped", ""]:
        """Return "vanished" if the field is no longer filled in any row, "dropped" if it is filled less often.

        Return "" if the difference is small, or if it may be a coincidence because there are few rows.
        """
        lost = self.before.coverage - self.now.coverage
        if lost <= MIN_LOSS * self.before.coverage or _deviations(self.before, self.now) < MIN_DEVIATIONS:
            return ""
        return "dropped" if self.now.filled else "vanished"


@dataclass(frozen=True)
class ShareChange:
    """The share of targets with a property: over the last runs together (``before``), and in this run (``now``)."""

    name: str
    """The property: an outcome code, an optional source that failed, or an unread path with its source."""
    before: FieldCount
    now: FieldCount

    @property
    def risen(self) -> bool:
        """Whether the share is significantly greater than before."""
        return self.now.coverage > self.before.coverage and _deviations(self.now, self.before) >= MIN_DEVIATIONS

    @property
    def is_new(self) -> bool:
        """Whether no target of the last runs had the property.

        For unread paths, one target suffices, because known pages have no unread paths.
        """
        return self.now.filled > 0 and not self.before.filled


@dataclass(frozen=True)
class CodeChange(ShareChange):
    """The share of targets with one outcome code."""

    limit: float
    """Maximum share of targets that may end with this code, unless its frequency depends on the choice of targets
    (``_TARGET_CODES``)."""

    @property
    def risen(self) -> bool:
        """Whether significantly more targets failed with this code than before, or more than ``limit`` allows."""
        is_above = self.name not in _TARGET_CODES and self.now.coverage > self.limit
        return self.name != "OK" and (super().risen or is_above)


@dataclass(frozen=True)
class Report:
    """The result of comparing a run with the last runs."""

    run: Run
    last: list[Run]
    fields: list[FieldChange]
    codes: list[CodeChange]
    sources: list[ShareChange]
    unread: list[ShareChange]

    @property
    def vanished(self) -> list[FieldChange]:
        """Fields that are no longer filled in any row."""
        return [each for each in self.fields if each.change == "vanished"]

    @property
    def dropped(self) -> list[FieldChange]:
        """Fields that are filled significantly less often than before."""
        return [each for each in self.fields if each.change == "dropped"]

    @property
    def failing(self) -> list[CodeChange]:
        """Error codes with which significantly more targets failed than before, or more than ``limit`` allows."""
        return [each for each in self.codes if each.risen]

    @property
    def failing_sources(self) -> list[ShareChange]:
        """Optional sources that failed for a significantly greater share of the targets than before."""
        return [each for each in self.sources if each.risen]

    @property
    def newly_unread(self) -> list[ShareChange]:
        """Paths that were unread in this run, and in none of the last runs."""
        return [each for each in self.unread if each.is_new]

    @property
    def page_changed(self) -> bool:
        """Whether the platform seems to have changed its pages.

        Fields vanished, extraction fails more often, or a path is unread that was read before.
        """
        return self._extraction_changed or bool(self.newly_unread)

    @property
    def _extraction_changed(self) -> bool:
        return bool(self.vanished) or any(each.name == EXTRACTION_FAILED for each in self.failing)

    @property
    def missing(self) -> list[str]:
        """The vanished fields, and the 20 most frequent paths at which extraction failed.

        Empty unless a field has vanished or extraction fails more often.
        """
        paths = self.run.not_understood if self._extraction_changed else {}
        names = [f"{each.path} of {each.scraper}" for each in self.vanished]
        return names + [path for path, _ in Counter(paths).most_common(20)]

    @property
    def headline(self) -> str:
        """A summary of the report in one sentence."""
        if self.page_changed:
            missing = _listed("Missing", self.missing)
            return f"The platform changed its page.{missing}{_listed('Unread', [e.name for e in self.newly_unread])}"
        problems = [f"{each.path} is filled less often" for each in self.dropped]
        problems += [f"{each.now.coverage:.0%} of the targets ended with {each.name}" for each in self.failing]
        problems += [f"{each.name} failed for {each.now.coverage:.0%} of the targets" for each in self.failing_sources]
        if problems:
            return f"The page did not change, but {'; '.join(problems)}."
        return "No changes." if self.last else "First run: no earlier runs to compare with."


def compare(run: Run, last: list[Run], *, max_failed: float) -> Report:
    """Compare a run with the sums over the last runs. ``max_failed``: see ``CodeChange.limit``."""
    codes = [CodeChange(each.name, each.before, each.now, max_failed) for each in _shares(run, last, lambda r: r.codes)]
    sources, unread = _shares(run, last, lambda r: r.failed_sources), _shares(run, last, lambda r: r.unread)
    return Report(run, last, list(_fields(run, last)), codes, list(sources), list(unread))


def _listed(title: str, names: Sequence[str]) -> str:
    """Return the names as a sentence of the headline, "" if there are none."""
    omitted = len(names) - MAX_HEADLINE_FIELDS
    more = f" and {omitted} more" if omitted > 0 else ""
    return f" {title}: {', '.join(names[:MAX_HEADLINE_FIELDS])}{more}." if names else ""


def _fields(run: Run, last: Sequence[Run]) -> Iterator[FieldChange]:
    for scraper, counts in sorted(run.fields.items()):
        for path, now in counts.items():
            known = [each.fields.get(scraper, {}).get(path, FieldCount()) for each in last]
            yield FieldChange(scraper, path, _sum(known), now)


def _shares(run: Run, last: Sequence[Run], counter: Callable[[Run], Counter[str] | None]) -> Iterator[ShareChange]:
    """Yield the share of targets with each name of a counter. Runs of versions without this counter are skipped."""
    counted = [(each.targets, counts) for each in last if (counts := counter(each)) is not None]
    now = counter(run) or Counter()
    for name in sorted({*now, *(name for _, counts in counted for name in counts)}, key=lambda n: (n != "OK", n)):
        known = [FieldCount(rows=targets, filled=counts[name]) for targets, counts in counted]
        yield ShareChange(name, _sum(known), FieldCount(rows=run.targets, filled=now[name]))


def _sum(counts: Sequence[FieldCount]) -> FieldCount:
    return FieldCount(
        rows=sum(each.rows for each in counts),
        filled=sum(each.filled for each in counts),
        null=sum(each.null for each in counts),
    )


def _deviations(more: FieldCount, less: FieldCount) -> float:
    """Return the difference between the shares ``more`` and ``less`` in standard deviations of the difference between
    two samples with the same true share.
    """
    if not more.rows or not less.rows:
        return 0.0
    pooled = (more.filled + less.filled) / (more.rows + less.rows)
    deviation = math.sqrt(pooled * (1 - pooled) * (1 / more.rows + 1 / less.rows))
    return (more.coverage - less.coverage) / deviation if deviation else 0.0


_TARGET_CODES = {each.code for each in documented() if issubclass(each, TargetError)}
"""Error codes whose frequency depends on the choice of targets. Only a significant rise of their share is reported."""
