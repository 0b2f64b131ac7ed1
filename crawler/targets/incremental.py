"""The argument ``-a since=``, with which a run reads only the pages of a listing that contain new entries.

``SinceDate`` compares the time of the entries with a day. For ``since=last``, ``crawler.jobs.seen`` stores which
entries of a listing earlier runs have seen.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

from crawler.targets.target import Outcome, Target


class Since:
    """The base class of classes that decide which entries of a listing are new."""

    async def load(self, target: Target) -> None:
        """Prepare for a page before the page is read, such as by reading from a store."""

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain new entries."""
        raise NotImplementedError

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        """Return the ids of the page's new entries, or None if the scraper has no entries to compare."""
        raise NotImplementedError

    def completed(self, outcome: Outcome) -> None:
        """Handle the outcome of a page."""

    async def close(self) -> None:
        """Complete pending work at the end of the run, such as writes to a store."""


class SinceDate(Since):
    """Selects entries that are from a day (in UTC) or later. An entry without a known time is new."""

    def __init__(self, day: date) -> None:
        self._start = datetime.combine(day, time(), UTC).timestamp()

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain new entries.

        Only the page's last entry with a time is compared: the first entries may be pinned posts, which are older.
        """
        entries = target.scraper.entries
        times = [row[entries.time] for row in entries.of(data)] if entries else []
        known = [each for each in times if each is not None]
        return not known or bool(known[-1] >= self._start)

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        entries = target.scraper.entries
        if entries is None:
            return None
        rows = [(row[entries.key], row[entries.time]) for row in entries.of(data)]
        return frozenset(id_ for id_, seconds in rows if seconds is None or seconds >= self._start)
