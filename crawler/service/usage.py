"""Counts of calls, billable calls and partial records by client, scraper, day and code.

Calls are counted in memory, and the counts are stored regularly. If the process is killed, it loses the counts of less
than one second. The targets of jobs are counted in the transaction that stores their outcomes.

A quota is the records per month (UTC) of a client, with all of its keys together. It counts what is stored as usage:
there are no reservations. If it is used up, calls and new jobs are refused, and accepted jobs are finished. So a client
may exceed its quota by the calls in progress and by the rest of its jobs.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from crawler.errors import QuotaExceeded, StoreUnavailable
from crawler.jobs import tables
from crawler.jobs.job import ACCOUNT, Account
from crawler.jobs.store import Session, Store, store_time, utc_text
from crawler.jobs.tables import insert_into

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.service.keys import Holder

FLUSH_SECONDS = 0.75
"""Interval in seconds at which the counts are stored. Interval and write together take less than a second."""

REPORT_SECONDS = 2.0
"""Maximum seconds for which a report waits for the last counts to be stored, and then for the stored counts."""

COUNTED = ("calls", "billable", "partial")
ADD = insert_into(tables.usage, add=COUNTED)
ADD_TOTALS = insert_into(tables.totals, add=("targets", "records"))

DEFAULT_REPORT_DAYS = 31
"""Number of days in a report whose first day is not given."""

EPOCH = date(1970, 1, 1)
DAY_SECONDS = 24 * 60 * 60

Key = tuple[str, str, str, str]
Count = list[int]
"""The numbers of all calls, of billable calls, and of calls with a partial record."""


class Usage:
    """Counts calls, stores the counts and reports them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pending: defaultdict[Key, Count] = defaultdict(_no_calls)
        self._batch: dict[Key, Count] = {}
        """The counts that are being stored, or may be stored already, because the end of their write is unknown."""
        self._batch_id = ""
        self._write: asyncio.Task[None] | None = None

    def count(self, client: str, scraper: str, code: str, *, billable: bool, partial: bool = False) -> None:
        """Count a call in memory. Days are in UTC."""
        entry = self._pending[client, scraper, today(), code]
        entry[0] += 1
        entry[1] += billable
        entry[2] += partial

    async def flush(self, seconds: float | None = None) -> None:
        """Store the counts. If the store is unavailable, they stay in memory for the next flush.

        ``seconds``: how long to wait. None: until the transaction ends. A transaction that takes longer continues.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if self._write is not None:
                    await asyncio.shield(self._write)
                if (self._pending or self._batch) and self._write is None:
                    self._write = asyncio.create_task(self._store_pending())
                    await asyncio.shield(self._write)

    async def _store_pending(self) -> None:
        try:
            if self._batch:
                await self._store_batch()
            if self._pending:
                self._batch, self._pending = self._pending, defaultdict(_no_calls)
                self._batch_id = secrets.token_hex(16)
                await self._store_batch()
        except StoreUnavailable:  # the store logs the outage, and the next flush repeats the write with the same id
            pass
        finally:
            self._write = None

    async def _store_batch(self) -> None:
        await self.store.write_once(lambda session: add(session, self._batch), self._batch_id)
        self._batch = {}

    async def report(self, holder: Holder, since: date | None = None, until: date | None = None) -> dict[str, Any]:
        """Return a client's usage from the day ``since`` to the day ``until``, by default of the last 31 days.

        ``pending`` is the number of the client's calls that this process could not store yet. ``quota`` is the state of
        the client's quota in this month, None if it has none.

        Raises:
            StoreUnavailable: the store cannot be read.
        """

        def read(session: Session) -> tuple[dict[str, Any], dict[str, Any] | None]:
            quota = None if holder.quota is None else quota_report(session, holder.client, holder.quota)
            return report(session, holder.client, since, until), quota

        await self.flush(REPORT_SECONDS)
        found, quota = await self.store.transact(read, seconds=REPORT_SECONDS, write=False)
        return found | {"pending": self.pending(holder.client), "quota": quota}

    def pending(self, client: str | None = None) -> int:
        """Return the number of calls, of one or of all clients, whose counts this process has not stored yet."""
        counts = [*self._pending.items(), *self._batch.items()]
        return sum(count[0] for key, count in counts if client in {None, key[0]})


def _no_calls() -> Count:
    return [0, 0, 0]


def today() -> str:
    """Return the current day in UTC, in the format of usage rows."""
    return _day(int(store_time()) // DAY_SECONDS)


@lru_cache(2)
def _day(number: int) -> str:
    """Return a day by its number since the epoch."""
    return (EPOCH + timedelta(days=number)).isoformat()


def add(session: Session, counts: Mapping[Key, Count]) -> None:
    """Add counts of completed calls to the stored ones.

    The caller counts each call once: calls by ``Store.write_once``, targets of jobs in the transaction that stores
    their outcomes.
    """
    names = ("client", "scraper", "day", "code", *COUNTED)
    # All processes update the rows in the same order, which prevents deadlocks.
    session.execute(ADD, [dict(zip(names, (*key, *count), strict=True)) for key, count in sorted(counts.items())])


def report(session: Session, client: str, since: date | None = None, until: date | None = None) -> dict[str, Any]:
    """Return the stored usage of a client: the totals, and an entry per day and scraper, newest day first.

    The response body of ``GET /v1/usage`` has further keys (see ``Usage.report``).
    """
    until = until or date.fromisoformat(today())
    since = since or until - timedelta(days=min(DEFAULT_REPORT_DAYS - 1, until.toordinal() - 1))
    rows = session.rows(
        "SELECT day, scraper, code, calls, billable, partial FROM usage"
        " WHERE client = :client AND day BETWEEN :since AND :until ORDER BY day DESC, scraper, code",
        client=client,
        since=since.isoformat(),
        until=until.isoformat(),
    )
    days: dict[tuple[str, str], dict[str, Any]] = {}
    for day, scraper, code, calls, billable, partial in rows:
        empty = {"day": day, "scraper": scraper, "calls": 0, "billable": 0, "partial": 0, "outcomes": {}}
        entry = days.setdefault((day, scraper), empty)
        for name, number in zip(COUNTED, (calls, billable, partial), strict=True):
            entry[name] += number
        entry["outcomes"][code] = calls
    totals = {name: sum(entry[name] for entry in days.values()) for name in COUNTED}
    period = {"client_id": client, "from": since.isoformat(), "to": until.isoformat()}
    return period | totals | {"usage": list(days.values())}


def clients(session: Session) -> list[str]:
    """Return the names of all clients with stored calls."""
    return [client for (client,) in session.rows("SELECT DISTINCT client FROM usage ORDER BY client")]


USED = "SELECT COALESCE(SUM(billable), 0) FROM usage WHERE client = :client AND day >= :since"
STORE_SECONDS = 5.0
"""Maximum seconds for which a call waits for the number of used records."""


async def check_quota(store: Store, holder: Holder) -> None:
    """Check that a client has records left in this month. A client without a quota always has.

    Raises:
        QuotaExceeded: the quota is used up.
        StoreUnavailable: the usage cannot be read.
    """
    if holder.quota is None:
        return
    used = await store.transact(lambda session: _used(session, holder.client), seconds=STORE_SECONDS, write=False)
    if used >= holder.quota:
        reset = _next_month()
        raise QuotaExceeded(
            f"Quota exceeded: all {holder.quota} records of this month are used. The next month begins at"
            f" {utc_text(reset.timestamp())}.",
            retry_after=max(1, math.ceil(reset.timestamp() - store_time())),
        )


def quota_report(session: Session, client: str, quota: int) -> dict[str, Any]:
    """Return the state of a client's quota in this month."""
    return {"limit": quota, "used": _used(session, client), "resets_at": utc_text(_next_month().timestamp())}


def _used(session: Session, client: str) -> int:
    return int(session.rows(USED, client=client, since=_this_month().date().isoformat())[0][0])


def _next_month() -> datetime:
    """Return the beginning of the next month."""
    return (_this_month() + timedelta(days=31)).replace(day=1)


def _this_month() -> datetime:
    """Return the beginning of the current month."""
    return datetime.fromtimestamp(store_time(), UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def store_bills(session: Session, batch: Sequence[Stored]) -> None:
    """Count the outcomes of a batch in their owners' usage, and in the totals of all owners.

    The ``also_store`` of workers. A record is billable. A failure, or a target without new data, counts as a call that
    is not billable. Targets without an owner are not counted.
    """
    counts: dict[Key, Count] = defaultdict(_no_calls)
    of_all: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    day = today()
    for finished in (each.finished for each in batch):
        claim = finished.claim
        if not claim.owner:
            continue
        has_record = finished.state == "done" and finished.record is not None
        scraper = claim.work["scraper"]
        count, total = counts[claim.owner, scraper, day, finished.code], of_all[scraper, finished.code]
        for each in (count, total):
            each[0] += 1
            each[1] += has_record
        count[2] += has_record and bool(finished.outcome.get("warnings"))
    add(session, counts)
    names = ("scraper", "code", "targets", "records")
    rows = [dict(zip(names, (*key, *total), strict=True)) for key, total in sorted(of_all.items())]
    session.execute(ADD_TOTALS, rows)


def totals(session: Session) -> list[Any]:
    """Return scraper, code, the number of targets with this outcome, and the number of records, of all jobs so far."""
    return session.rows(sa.select(tables.totals))


def account_settings(owner: str, *, waits: bool = True) -> dict[str, Any]:
    """Return the settings of a crawl that is a worker of a client's job. ``waits``: as in ``Account``."""
    return {ACCOUNT: Account(owner, store_bills, waits)}
