"""``-a since=last``: stores which entries of each listing a run has seen, so that the next run reads only new pages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from crawler.storage.sqlite import SqliteFile
from crawler.targets.target import Entries, InvalidTarget, Outcome, Target

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

    def has(self, listing: str, entry: str) -> bool:
        """Whether an earlier run has seen this entry of the listing."""
        with closing(self._file.connect()) as database:
            found = database.execute("SELECT 1 FROM seen WHERE listing = ? AND id = ?", (listing, entry))
            return found.fetchone() is not None

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
    ids: list[str] = field(default_factory=list)


class Seen:
    """Collects the entries of each listing during a run, and stores them after the last page of the listing.

    If a page fails, none of its listing's entries are stored, so that the next run reads the listing again.
    """

    def __init__(self, file: SeenFile) -> None:
        self.file = file
        self._listings: dict[str, _Listing] = {}
        """Target id of the next page of a listing -> that listing."""

    def unseen_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain entries that no earlier run has seen.

        Only the page's last entry is compared: the first entries may be pinned posts, which are seen in every run.
        """
        listing = self._of(target)
        ids = entry_ids(target.scraper.entries, data)
        return listing is None or not ids or not self.file.has(listing.key, ids[-1])

    def completed(self, outcome: Outcome) -> None:
        """Add the entries of a page to its listing. If it was the last page, store the entries of the listing."""
        if isinstance(outcome.target, InvalidTarget):
            return
        listing = self._of(outcome.target)
        self._listings.pop(outcome.target.id, None)
        if listing is None or outcome.data is None:
            return
        listing.ids += entry_ids(outcome.target.scraper.entries, outcome.data)
        if outcome.followups:
            self._listings[outcome.followups[0].id] = listing
        else:
            self.file.add(listing.key, listing.ids[:MAX_IDS_PER_LISTING])

    def _of(self, target: Target) -> _Listing | None:
        """Return the listing of a page, or None if this run did not read the listing's first page.

        A resumed run, for example, continues a listing with a later page.
        """
        if target.scraper.entries is None or target.parent is not None:
            return self._listings.get(target.id)
        params = orjson.dumps(target.as_dict()["params"], option=orjson.OPT_SORT_KEYS).decode()
        return _Listing(f"{target.scraper.name} {params}")


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
