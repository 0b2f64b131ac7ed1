"""The argument ``since=last``: the store records which entries of each listing earlier runs have seen."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs import prepare, store_location
from crawler.jobs import tables as sql
from crawler.jobs.job import Stored
from crawler.jobs.store import Store
from crawler.targets.arguments import Since
from crawler.targets.target import Target

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.job import Job
    from crawler.jobs.store import Session
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

MAX_IDS_PER_LISTING = 2_000
"""Number of newest ids stored for a listing. The ids of one page would not suffice: its entries may be deleted."""
NOTE = "seen"
"""The key under which a note contains the ids of a page's entries."""
DIGEST_BYTES = 16


@dataclass
class _Listing:
    """A listing in progress: the ids that earlier runs have seen, and those of the pages read so far."""

    key: bytes
    seen: frozenset[str]
    ids: list[str] = field(default_factory=list)


class ComparesEntries(Since):
    """Compares the entries of pages with those that earlier runs have seen in the same listing.

    The entries of a listing are stored as seen when its last page is completed. If a page fails, none of them is
    stored, so that the next run reads the listing again.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._listings: dict[str, _Listing] = {}
        """The listings by the id of their page in progress."""

    def key_of(self, target: Target) -> bytes | None:
        """Return the key of the listing to which a page belongs, or None if nothing must be loaded for the page."""
        raise NotImplementedError

    async def load(self, target: Target) -> None:
        """Read which entries of the target's listing earlier runs have seen.

        If the store is unavailable, the crawl continues as if no entry had been seen.
        """
        if target.scraper.entries is not None and (key := self.key_of(target)) is not None:
            self._listings[target.id] = _Listing(key, await entries_seen(self.store, key))

    def _seen(self, target: Target) -> frozenset[str]:
        listing = self._listings.get(target.id)
        return listing.seen if listing else frozenset()

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain entries that no earlier run has seen.

        Only the page's last entry is compared: the first entries may be pinned posts, which are seen in every run.
        """
        ids = entry_ids(target, data)
        return not ids or ids[-1] not in self._seen(target)

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        """Return the ids of the page's entries that no earlier run has seen. None: the scraper has no entries."""
        return None if target.scraper.entries is None else frozenset(entry_ids(target, data)) - self._seen(target)


def entry_ids(target: Target, data: dict[str, Any]) -> list[str]:
    """Return the ids of a page's entries in the order of the page."""
    entries = target.scraper.entries
    return [] if entries is None else [row[entries.key] for row in entries.of(data)]


class SeenByCrawls(ComparesEntries):
    """The entries that crawls without a job have seen. Jobs of the same store without an owner share them."""

    def __init__(self, store: Store, *, sandbox: bool) -> None:
        super().__init__(store)
        self._sandbox = sandbox
        self._storing: set[asyncio.Task[None]] = set()

    @classmethod
    def of(cls, settings: BaseSettings) -> SeenByCrawls:
        """Return the seen entries in the store that the settings name.

        Raises:
            UsageError: the store cannot be opened.
        """
        location = store_location(settings)
        prepare(location, must_open=True)
        return cls(Store(location), sandbox=settings.getbool("SANDBOX"))

    def key_of(self, target: Target) -> bytes | None:
        return _listing("", target.key, sandbox=self._sandbox) if target.parent is None else None

    def completed(self, outcome: Outcome) -> None:
        """Remember the entries of a page. After the last page of a listing, store the entries of all its pages."""
        listing = self._listings.pop(outcome.target.id, None)
        if listing is None or outcome.data is None or not isinstance(outcome.target, Target):
            return
        listing.ids += entry_ids(outcome.target, outcome.data)
        if outcome.followups:
            self._listings[outcome.followups[0].id] = listing
        else:
            self._storing.add(asyncio.ensure_future(self._store(listing)))

    async def close(self) -> None:
        await asyncio.gather(*self._storing)
        await self.store.close()

    async def _store(self, listing: _Listing) -> None:
        try:
            await self.store.transact(lambda session: add_entries(session, listing.key, listing.ids))
        except StoreUnavailable as error:
            logger.error("seen_not_stored", error=str(error))  # noqa: TRY400  # the store logs the cause


class SeenByJobs(ComparesEntries):
    """The entries that earlier jobs have seen in a job's listings. Each input line is a listing: its target is a root.

    The ids of a page's entries are stored in the note of its outcome, so that any worker may read the next page.
    """

    def __init__(self, store: Store, job: Job, root_of: Callable[[str], bytes | None]) -> None:
        """``root_of``: returns the root of a target in progress by its id."""
        super().__init__(store)
        self.job = job
        self._root_of = root_of

    def key_of(self, target: Target) -> bytes | None:
        root = self._root_of(target.id)
        return None if root is None else self._key(root)

    def completed(self, outcome: Outcome) -> None:
        self._listings.pop(outcome.target.id, None)

    def note(self, outcome: Outcome) -> dict[str, list[str]] | None:
        """Return the note of a page's outcome. None: the scraper has no entries, or the page has no data."""
        target = outcome.target
        if outcome.data is None or not isinstance(target, Target) or target.scraper.entries is None:
            return None
        return {NOTE: entry_ids(target, outcome.data)}

    def store_entries(self, session: Session, batch: Sequence[Stored]) -> None:
        """Store the entries of each listing whose last page is in a batch, in the transaction that stores the batch."""
        for each in batch:
            finished, root = each.finished, each.finished.claim.root
            if root is None or finished.state != "done" or finished.followups or NOTE not in (finished.note or {}):
                continue
            notes = session.rows(sql.NOTES, job=finished.claim.job, root=root)
            new = [entry for _, note in notes for entry in orjson.loads(note)[NOTE]]
            add_entries(session, self._key(root), new)

    def _key(self, root: bytes) -> bytes:
        return _listing(self.job.owner, root, sandbox=self.job.options.sandbox)


def _listing(owner: str, root: bytes, *, sandbox: bool) -> bytes:
    """Return the key of a listing, which all runs of an owner share. The sandbox's listings have other keys."""
    return hashlib.blake2b(orjson.dumps([owner, sandbox]) + root, digest_size=DIGEST_BYTES).digest()


async def entries_seen(store: Store, listing: bytes) -> frozenset[str]:
    """Return the entries that earlier runs have seen. Return none if the store is unavailable: all pages are read."""
    try:
        rows = await store.transact(lambda session: session.rows(sql.SEEN, listing=listing), write=False)
    except StoreUnavailable as error:
        logger.warning("seen_not_read", error=str(error))
        return frozenset()
    return frozenset(orjson.loads(rows[0][0]) if rows else ())


def add_entries(session: Session, listing: bytes, new: Iterable[str]) -> None:
    """Store that entries of a listing were seen. Only the newest ``MAX_IDS_PER_LISTING`` ids are kept."""
    former = [entry for (ids,) in session.rows(sql.LOCK_SEEN, listing=listing) for entry in orjson.loads(ids)]
    ids = list(dict.fromkeys([*new, *former]))[:MAX_IDS_PER_LISTING]
    session.execute(sql.SET_SEEN, [{"listing": listing, "ids": orjson.dumps(ids)}])
