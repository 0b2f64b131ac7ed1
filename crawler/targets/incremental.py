"""The argument ``-a since=``, with which a run reads only the pages of a listing that contain new entries.

``SinceDate`` compares the time of the entries with a day. ``Seen`` (``since=last``) stores which entries of a listing
each run has seen.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from crawler.storage.data_files import data_file
from crawler.storage.sqlite import SqliteFile
from crawler.targets.target import InvalidTarget, Outcome, Target

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

MAX_IDS_PER_LISTING = 2_000
"""Number of newest ids that are stored for a listing. One page of ids would not be enough, as posts can be deleted."""

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS seen"
        " (listing TEXT, id TEXT, run INTEGER, place INTEGER, PRIMARY KEY (listing, id)) WITHOUT ROWID"
    ),
)


class Since:
    """The base class of classes that decide which entries of a listing are new."""

    async def load(self, target: Target) -> None:
        """Prepare for a page, before it is read."""

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain new entries."""
        raise NotImplementedError

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        """Return the ids of the page's new entries, or None if the scraper has no entries to compare."""
        raise NotImplementedError

    def completed(self, outcome: Outcome) -> None:
        """Handle the outcome of a page."""

    async def close(self) -> None:
        """Release everything at the end of the run."""


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


class ComparesEntries(Since):
    """Compares the entries of pages with the entries of earlier runs."""

    def seen(self, target: Target) -> frozenset[str]:
        """Return the ids of the entries that earlier runs have seen in the target's listing."""
        raise NotImplementedError

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain entries that no earlier run has seen.

        Only the page's last entry is compared: the first entries may be pinned posts, which are seen in every run.
        """
        ids = entry_ids(target, data)
        return not ids or ids[-1] not in self.seen(target)

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        """Return the ids of the page's entries that no earlier run has seen. None: its scraper has no entries."""
        return None if target.scraper.entries is None else frozenset(entry_ids(target, data)) - self.seen(target)


class SeenFile:
    """An SQLite file with the seen ids of each listing. Each call opens it again, so that several runs can share it."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, SCHEMA)

    def ids(self, listing: str) -> frozenset[str]:
        """Return the ids that earlier runs have seen in a listing, at most ``MAX_IDS_PER_LISTING``."""
        with closing(self._file.connect()) as database:
            return frozenset(id_ for (id_,) in database.execute("SELECT id FROM seen WHERE listing = ?", (listing,)))

    def add(self, listing: str, ids: Sequence[str]) -> None:
        """Store the ids of the entries that this run has seen in a listing, newest first."""
        with self._file.transaction() as database:
            (last,) = database.execute(
                "SELECT coalesce(max(run), 0) FROM seen WHERE listing = ?", (listing,)
            ).fetchone()
            database.executemany(
                "INSERT OR REPLACE INTO seen (listing, id, run, place) VALUES (?, ?, ?, ?)",
                [(listing, entry, last + 1, place) for place, entry in enumerate(dict.fromkeys(ids))],
            )
            database.execute(
                "DELETE FROM seen WHERE listing = ?1 AND id NOT IN"
                " (SELECT id FROM seen WHERE listing = ?1 ORDER BY run DESC, place LIMIT ?2)",
                (listing, MAX_IDS_PER_LISTING),
            )


@dataclass
class _Listing:
    """A listing whose pages this run reads, starting with the first page."""

    key: str
    seen: frozenset[str] = frozenset()
    """The ids that earlier runs have seen."""
    ids: list[str] = field(default_factory=list)


class Seen(ComparesEntries):
    """Collects the entries of each listing during a run, and stores them after the last page of the listing.

    If a page fails, none of its listing's entries are stored, so that the next run reads the listing again. The file is
    used in a thread, because another run may lock it.
    """

    def __init__(self, file: SeenFile, prefix: str = "") -> None:
        """``prefix``: put before the key of each listing, to separate the sandbox's listings from real ones."""
        self.file = file
        self.prefix = prefix
        self._listings: dict[str, _Listing] = {}
        """Id of the target of a listing's current or next page -> the listing."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seen")

    async def load(self, target: Target) -> None:
        """Read which entries earlier runs have seen, if the target is the first page of a listing.

        If the file cannot be read, the run continues as if it had seen nothing, and reads all pages.
        """
        if target.scraper.entries is None or target.parent is not None:
            return
        params = orjson.dumps(target.as_dict()["params"], option=orjson.OPT_SORT_KEYS).decode()
        key = f"{self.prefix}{target.scraper.name} {params}"
        try:
            seen = await asyncio.get_running_loop().run_in_executor(self._thread, self.file.ids, key)
        except (sqlite3.Error, OSError):
            logger.exception("seen_not_read", listing=key)
            seen = frozenset()
        self._listings[target.id] = _Listing(key, seen)

    def seen(self, target: Target) -> frozenset[str]:
        listing = self._listings.get(target.id)
        return listing.seen if listing else frozenset()

    def completed(self, outcome: Outcome) -> None:
        """Add the entries of a page to its listing. If it was the last page, store the entries of the listing."""
        if isinstance(outcome.target, InvalidTarget):
            return
        listing = self._listings.pop(outcome.target.id, None)
        if listing is None or outcome.data is None:
            return
        listing.ids += entry_ids(outcome.target, outcome.data)
        if outcome.followups:
            self._listings[outcome.followups[0].id] = listing
        else:
            self._thread.submit(self._store, listing.key, listing.ids[:MAX_IDS_PER_LISTING])

    async def close(self) -> None:
        """Wait until all entries are stored."""
        await asyncio.to_thread(self._thread.shutdown)

    def _store(self, key: str, ids: list[str]) -> None:
        try:
            self.file.add(key, ids)
        except (sqlite3.Error, OSError):
            logger.exception("seen_not_stored", listing=key)


def new_since(since: str, settings: BaseSettings) -> Since:
    """Return the object that decides which entries are new. ``since``: ``last``, or a day as YYYY-MM-DD."""
    if since != "last":
        return SinceDate(date.fromisoformat(since))
    return Seen(SeenFile(seen_file(settings)), "sandbox " if settings.getbool("SANDBOX") else "")


def seen_file(settings: BaseSettings) -> Path:
    """Return the path of the file with the entries that runs have seen.

    Raises:
        UsageError: no setting names the file, and there is no project folder.
    """
    return Path(settings["SEEN_FILE"] or data_file("seen.sqlite", instead="the setting SEEN_FILE"))


def entry_ids(target: Target, data: dict[str, Any]) -> list[str]:
    """Return the ids of a page's entries in the order of the page."""
    entries = target.scraper.entries
    return [] if entries is None else [row[entries.key] for row in entries.of(data)]
