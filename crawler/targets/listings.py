"""Counts the rows of listings whose pages are separate targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawler.targets.coverage import Coverage, Tally

if TYPE_CHECKING:
    from crawler.targets.target import Target


class Listings:
    """The listings in progress. The target of a page passes its listing to the target of the next page."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        """Id of the target of a page -> the rows of its listing up to this page."""

    def add(self, target: Target, ids: Sequence[str], stated: int | None, *, is_first: bool) -> None:
        """Add a page of a listing: the ids of its rows, and the number of rows of the whole listing that it states.

        A listing is not counted if the crawl did not begin at its first page, or if an earlier start of the run read
        the pages before this one.
        """
        tally = Tally() if is_first and target.parent is None else self._tallies.get(target.id)
        if tally is not None:
            tally.add(target.id, ids, stated)
            self._tallies[target.id] = tally

    def pass_on(self, target: Target, followup: Target) -> None:
        """Continue a listing with the target of its next page."""
        if tally := self._tallies.pop(target.id, None):
            self._tallies[followup.id] = tally

    def close(self, target: Target, *, ended: bool | None, ceiling: int | None = None) -> Coverage | None:
        """Return the coverage of a listing after its last page. None if the listing was not counted.

        ``ended``: whether the platform has stated the end; None if the run reads no further pages. ``ceiling``: the
        number of rows after which the platform is known to end any listing.
        """
        tally = self._tallies.pop(target.id, None)
        return None if tally is None else tally.coverage(ended=ended, ceiling=ceiling)

    def drop(self, target_id: str) -> None:
        """Forget a listing whose page has failed."""
        self._tallies.pop(target_id, None)
