"""A run against the last ones taken together: what is different, beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from crawler.errors import RequestError, ScrapeError, TargetError
from crawler.monitoring.fields import FieldCount
from crawler.monitoring.run import NOT_UNDERSTOOD, Run

BEYOND_CHANCE = 3.0
"""Standard deviations from which two shares are taken to differ: one in seven hundred times it is chance."""
MUCH = 0.2
"""Share of its former coverage that a field must have lost to be worth a word."""

NAMED = 8
"""Fields that a headline names."""


@dataclass(frozen=True)
class FieldChange:
    """A field before (the last runs together) and now."""

    scraper: str
    path: str
    before: FieldCount
    now: FieldCount

    @property
    def change(self) -> Literal["vanished", "dropped", ""]:
        """Whether it is filled nowhere any more, or clearly less often. Empty: as before, or too few rows to tell."""
        lost = self.before.coverage - self.now.coverage
        if lost <= MUCH * self.before.coverage or _deviations(self.before, self.now) < BEYOND_CHANCE:
            return ""
        return "dropped" if self.now.filled else "vanished"


@dataclass(frozen=True)
class CodeChange:
    """How many targets ended with a code, before and now."""

    code: str
    before: FieldCount
    now: FieldCount
    limit: float
    """Share of targets that may fail by the platform's or our own fault, whatever it was before."""

    @property
    def risen(self) -> bool:
        """Whether more targets than before, or than is allowed, failed this way."""
        if self.code == "OK":
            return False
        if self.before.rows:
            rise = self.now.coverage - self.before.coverage
            if rise > 0 and _deviations(self.now, self.before) >= BEYOND_CHANCE:
                return True
        return self.code not in _CALLERS and self.now.coverage > self.limit


@dataclass(frozen=True)
class Report:
    """A run, the runs that it is compared with, and what differs."""

    run: Run
    last: list[Run]
    max_failed: float
    fields: list[FieldChange] = field(default_factory=list)
    codes: list[CodeChange] = field(default_factory=list)

    @property
    def vanished(self) -> list[FieldChange]:
        """Fields that are filled nowhere any more."""
        return [each for each in self.fields if each.change == "vanished"]

    @property
    def dropped(self) -> list[FieldChange]:
        """Fields that are filled clearly less often."""
        return [each for each in self.fields if each.change == "dropped"]

    @property
    def failing(self) -> list[CodeChange]:
        """Codes with which more targets failed than they may."""
        return [each for each in self.codes if each.risen]

    @property
    def page_changed(self) -> bool:
        """Whether the platform's page is another one now: fields vanished, or more pages are not understood."""
        return bool(self.vanished) or any(each.code == NOT_UNDERSTOOD for each in self.failing)

    @property
    def gone(self) -> list[str]:
        """What the platform's page no longer has: fields that vanished, and paths that the extraction missed."""
        missed = self.run.not_understood if self.page_changed else {}
        names = [f"{each.path} of {each.scraper}" for each in self.vanished]
        return names + [path for path, _ in Counter(missed).most_common(20)]

    @property
    def headline(self) -> str:
        """The report in one sentence."""
        if self.page_changed:
            if not self.gone:
                return "The platform changed its page."
            more = f" and {len(self.gone) - NAMED} more" if len(self.gone) > NAMED else ""
            return f"The platform changed its page. Gone: {', '.join(self.gone[:NAMED])}{more}."
        troubles = [f"{each.path} is filled less often" for each in self.dropped]
        troubles += [f"{each.now.coverage:.0%} of the targets ended with {each.code}" for each in self.failing]
        if troubles:
            return f"The page is as it was, but {'; '.join(troubles)}."
        return "All as before." if self.last else "The first run: nothing to compare it with."


def compare(run: Run, last: list[Run], *, max_failed: float) -> Report:
    """What is different in a run, against the last ones taken together."""
    return Report(run, last, max_failed, list(_fields(run, last)), list(_codes(run, last, max_failed)))


def _fields(run: Run, last: Sequence[Run]) -> Iterator[FieldChange]:
    for scraper, counts in sorted(run.fields.items()):
        for path, now in counts.items():
            known = [each.fields.get(scraper, {}).get(path, FieldCount()) for each in last]
            yield FieldChange(scraper, path, _together(known), now)


def _codes(run: Run, last: Sequence[Run], max_failed: float) -> Iterator[CodeChange]:
    for code in sorted({code for each in (run, *last) for code in each.codes}, key=lambda code: (code != "OK", code)):
        known = [FieldCount(rows=each.targets, filled=each.codes[code]) for each in last]
        now = FieldCount(rows=run.targets, filled=run.codes[code])
        yield CodeChange(code, _together(known), now, max_failed)


def _together(counts: Sequence[FieldCount]) -> FieldCount:
    return FieldCount(
        rows=sum(each.rows for each in counts),
        filled=sum(each.filled for each in counts),
        null=sum(each.null for each in counts),
    )


def _deviations(more: FieldCount, less: FieldCount) -> float:
    """By how many standard deviations one share is above another one, if both were the same in truth."""
    if not more.rows or not less.rows:
        return 0.0
    pooled = (more.filled + less.filled) / (more.rows + less.rows)
    deviation = math.sqrt(pooled * (1 - pooled) * (1 / more.rows + 1 / less.rows))
    return (more.coverage - less.coverage) / deviation if deviation else 0.0


def _codes_of(kind: type[ScrapeError]) -> Iterator[str]:
    if "code" in vars(kind):
        yield kind.code
    for child in kind.__subclasses__():
        yield from _codes_of(child)


_CALLERS = {code for kind in (RequestError, TargetError) for code in _codes_of(kind)}
"""Codes that say something of the list of targets, and nothing of the platform."""
