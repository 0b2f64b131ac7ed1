"""The argument ``since=last`` in jobs: the store records which entries of each listing earlier jobs have seen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson
import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs import statements as sql
from crawler.jobs.job import Stored
from crawler.jobs.location import is_of_sandbox
from crawler.targets.incremental import MAX_IDS_PER_LISTING, ComparesEntries, entry_ids
from crawler.targets.target import Target

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.store import Session
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

NOTE = "seen"
"""The key under which a note contains the ids of a page's entries."""
DIGEST_BYTES = 16


@dataclass
class StoredSeen(ComparesEntries):
    """The entries that earlier jobs have seen in a job's listings. Each input line is a listing: its target is a root.

    The ids of a page's entries are stored in the note of its outcome. All entries of a listing are stored as seen
    together with the outcome of its last page. If a page fails, none of them is stored, so that the next job reads the
    listing again.
    """

    jobs: Jobs
    job: Job
    root_of: Callable[[str], bytes | None]
    """Returns the root of a target in progress by its id."""
    _seen: dict[str, frozenset[str]] = field(default_factory=dict)

    async def load(self, target: Target) -> None:
        """Read which entries of the target's listing earlier jobs have seen.

        If the store is unavailable, the crawl continues as if none had been seen.
        """
        root = self.root_of(target.id)
        if target.scraper.entries is None or root is None:
            return
        listing = _listing(self.job, root)
        try:
            rows = await self.jobs.read(sql.SEEN, listing=listing)
        except StoreUnavailable as error:
            logger.warning("seen_not_read", error=str(error))
            return
        self._seen[target.id] = frozenset(orjson.loads(rows[0][0]) if rows else ())

    def seen(self, target: Target) -> frozenset[str]:
        return self._seen.get(target.id, frozenset())

    def completed(self, outcome: Outcome) -> None:
        self._seen.pop(outcome.target.id, None)

    def note(self, outcome: Outcome) -> dict[str, list[str]] | None:
        """Return the note of a page. None: its scraper has no entries, or it has no data."""
        target = outcome.target
        if outcome.data is None or not isinstance(target, Target) or target.scraper.entries is None:
            return None
        return {NOTE: entry_ids(target, outcome.data)}

    def store(self, session: Session, batch: Sequence[Stored]) -> None:
        """Store the entries of the listings whose last pages are in a batch of outcomes, in their transaction."""
        for each in batch:
            finished, root = each.finished, each.finished.claim.root
            if root is None or finished.state != "done" or finished.followups or NOTE not in (finished.note or {}):
                continue
            notes = session.rows(sql.NOTES, job=finished.claim.job, root=root)
            listing = _listing(self.job, root)
            former = [entry for (ids,) in session.rows(sql.LOCK_SEEN, listing=listing) for entry in orjson.loads(ids)]
            new = [entry for _, note in notes for entry in orjson.loads(note)[NOTE]]
            ids = list(dict.fromkeys(new + former))[:MAX_IDS_PER_LISTING]
            session.execute(sql.SET_SEEN, [{"listing": listing, "ids": orjson.dumps(ids)}])


def _listing(job: Job, root: bytes) -> bytes:
    """Return the key of a listing, which the jobs of an owner share. The sandbox's listings have other keys."""
    of_job = orjson.dumps([job.owner, is_of_sandbox(job.options)])
    return hashlib.blake2b(of_job + root, digest_size=DIGEST_BYTES).digest()
