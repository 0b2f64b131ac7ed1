"""Coverage: the number of rows that a platform states for a listing, the number collected, and the reasons for a
difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NO_END = "no_end"
"""The listing ended early: the platform stated that further pages follow, but served none."""
REPEATED = "repeated_page"
"""A page contained only rows of earlier pages, for example because a cursor led back to them."""
CEILING = "ceiling"
"""The platform serves only a part of each listing, although it states more rows."""
FEWER = "fewer_than_stated"
"""The platform stated that the listing ends, but its pages contained fewer rows than it had stated."""
MORE = "more_than_stated"
"""The pages of a listing with a ceiling contained more rows than the platform stated, so that its number is wrong."""
UNPROVEN = "unproven"
"""The pages do not confirm a requested param, such as a price filter, so the rows may be those of another listing."""

MAX_IDLE_PAGES = 3
"""A run requests no further page of a listing after this number of pages in a row without a new row, because a platform
that repeats itself would otherwise be read up to ``max_pages``."""

NOTES = frozenset({CEILING, FEWER})
"""Reasons that need not be a failure: platforms are known to serve less than they state (docs/completeness.md)."""


class Coverage(NamedTuple):
    """The numbers of rows of a listing: stated by the platform, and collected from all of its pages.

    docs/completeness.md lists the numbers that each platform states, and the reasons.
    """

    expected: int | None
    """The number of rows that the platform states. None: it states only whether more rows follow."""
    collected: int
    """The number of distinct rows that were collected."""
    reasons: tuple[str, ...] = ()
    """Slugs for the causes of the difference. Empty for a complete listing."""

    @property
    def failures(self) -> tuple[str, ...]:
        """The reasons which suggest that the platform would have served rows that were not collected."""
        return tuple(reason for reason in self.reasons if reason not in NOTES)

    def as_dict(self) -> dict[str, Any]:
        """Return the coverage as JSON data."""
        return {"expected": self.expected, "collected": self.collected, "reasons": list(self.reasons)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Coverage:
        """Restore a coverage from the JSON data of ``as_dict``."""
        return cls(stored["expected"], stored["collected"], tuple(stored["reasons"]))

    def __str__(self) -> str:
        """Describe the coverage in one line for people.

        >>> str(Coverage(2_160, 2_074, ("no_price",))), str(Coverage(None, 12, ("challenge",))), str(Coverage(5, 5))
        ('2,074 of 2,160 collected (no_price)', '12 collected (challenge)', '5 of 5 collected')
        """
        of = "" if self.expected is None else f" of {self.expected:,}"
        reasons = f" ({', '.join(self.reasons)})" if self.reasons else ""
        return f"{self.collected:,}{of} collected{reasons}"


@dataclass
class Tally:
    """Counts the distinct rows of a listing across its pages."""

    _ids: set[str] = field(default_factory=set)
    _rows: int = 0
    _expected: int | None = None
    _repeated: bool = False
    _unproven: bool = False
    _page: str = ""
    _idle: int = 0
    """Number of the last pages in a row that had no new row."""

    @property
    def is_stuck(self) -> bool:
        """Whether further pages are not worth a request: see ``MAX_IDLE_PAGES``."""
        return self._idle >= MAX_IDLE_PAGES

    def add(
        self, page: str, ids: Sequence[str], stated: int | None, *, advertised: int = 0, is_proven: bool = True
    ) -> None:
        """Add a page: its target's id, the ids of its rows, and the number of rows in the whole listing that it states.

        ``advertised``: the number of further rows, which are not part of the listing. ``is_proven``: whether the page
        confirms the requested params. If the last page is added again, because its target was started again on another
        lane, it counts once.
        """
        before = len(self._ids)
        self._ids.update(ids)
        if page != self._page:
            self._page = page
            self._rows += len(ids) + advertised
            has_new = len(self._ids) > before
            self._idle = 0 if has_new else self._idle + 1
            self._repeated = self._repeated or (len(ids) > 0 and not has_new)
        self._unproven = self._unproven or not is_proven
        if stated is not None:
            self._expected = max(stated, self._expected or 0)

    def coverage(self, *, ended: bool | None, ceiling: int | None = None) -> Coverage:
        """Return the coverage after the last page.

        ``ended``: whether the platform has stated that this is the last page; None if the run does not request further
        pages, so that missing rows are expected, unless the listing is stuck. ``ceiling``: the number of rows after
        which the platform is known to end any listing.
        """
        collected, expected = len(self._ids), self._expected
        reasons = [REPEATED] if self._repeated else []
        at_ceiling = ceiling is not None and self._rows >= ceiling
        if ended is False or (ended is None and self.is_stuck):
            reasons.append(CEILING if at_ceiling else NO_END)
        elif ended and expected is not None and collected < expected:
            reasons.append(FEWER)
        elif ended and at_ceiling:
            reasons.append(CEILING)
        elif ended and expected is not None and ceiling is not None and collected > expected:
            reasons.append(MORE)
        if self._unproven and ended is not None:
            reasons.append(UNPROVEN)
        return Coverage(expected, collected, tuple(reasons))
