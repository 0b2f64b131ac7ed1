"""``-a since=last``: stores which entries of each listing a run has seen, so that the next run reads only new pages."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import structlog

from crawler.storage.sqlite import SqliteFile
from crawler.targets.target import Entries, InvalidTarget, Outcome, Target

logger = structlog.get_logger(__name__)

MAX_IDS_PER_LISTING = 2_000
"""Number of newest ids that are stored for a listing. One page of ids would not be enough, as posts can be deleted."""

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS seen"
        " (listing TEXT, id TEXT, run INTEGER, place INTEGER, PRIMARY KEY (listing, id)) WITHOUT ROWID"
    ),
)


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


class Seen:
    """Collects the entries of each listing during a run, and stores them after the last page of the listing.

    If a page fails, none of its listing's entries are stored, so that the next run reads the listing again. The file is
    used in a thread, because another run may lock it.
    """

    def __init__(self, file: SeenFile) -> None:
        self.file = file
        self._listings: dict[str, _Listing] = {}
        """Target id of a listing's page that is in progress, or is the next one -> that listing."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seen")

    async def load(self, target: Target) -> None:
        """Read which entries earlier runs have seen, if the target is the first page of a listing.

        If the file cannot be read, the run continues as if it had seen nothing, and reads all pages.
        """
        if target.scraper.entries is None or target.parent is not None:
            return
        params = orjson.dumps(target.as_dict()["params"], option=orjson.OPT_SORT_KEYS).decode()
        key = f"{target.scraper.name} {params}"
        try:
            seen = await asyncio.get_running_loop().run_in_executor(self._thread, self.file.ids, key)
        except (sqlite3.Error, OSError):
            logger.exception("seen_not_read", listing=key)
            seen = frozenset()
        self._listings[target.id] = _Listing(key, seen)

    def unseen_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain entries that no earlier run has seen.

        Only the page's last entry is compared: the first entries may be pinned posts, which are seen in every run.
        """
        listing = self._listings.get(target.id)
        ids = entry_ids(target.scraper.entries, data)
        return listing is None or not ids or ids[-1] not in listing.seen

    def completed(self, outcome: Outcome) -> None:
        """Add the entries of a page to its listing. If it was the last page, store the entries of the listing."""
        if isinstance(outcome.target, InvalidTarget):
            return
        listing = self._listings.pop(outcome.target.id, None)
        if listing is None or outcome.data is None:
            return
        listing.ids += entry_ids(outcome.target.scraper.entries, outcome.data)
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


def entry_ids(entries: Entries | None, data: dict[str, Any]) -> list[str]:
    """Return the ids of a page's entries in the order of the page.

    >>> entry_ids(Entries("posts.main", "post_id"), {"posts": {"main": [{"post_id": "7"}, {"post_id": "6"}]}})
    ['7', '6']
    """
    if entries is None:
        return []
    rows: Any = data
    for key in entries.path.split("."):
        rows = rows[key]
    return [row[entries.key] for row in rows]
