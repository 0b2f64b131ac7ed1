"""Quotas: limits of the billable calls of a client in one month (UTC), with all of its keys together.

A synchronous call of a client with a quota makes a reservation before it is scraped. The reservation is deleted in the
transaction that stores the call's usage. So the billable calls in the store and the reservations together never exceed
the quota. The reservation of a call whose process was killed expires after the call's deadline.

Each waiting or running target of the client's jobs is a reservation, too. The counters of jobs change in the same
transaction as the states of their targets and the usage. So cancelled, failed and removed targets need no release.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from crawler.errors import QuotaExceeded
from crawler.jobs import tables
from crawler.jobs.clock import store_time, utc_text
from crawler.jobs.tables import insert_into

if TYPE_CHECKING:
    from crawler.jobs.lifecycle import Room
    from crawler.jobs.store import Session, Store
    from crawler.service.clients.keys import Holder

LOCK = insert_into(tables.quotas, replace=["checked"])
"""Locks a client until the end of the transaction, so that only one process at a time counts and reserves."""
COUNT = (
    "SELECT (SELECT COALESCE(SUM(billable), 0) FROM usage WHERE client = :client AND day >= :since),"
    " (SELECT COUNT(*) FROM reservations WHERE client = :client AND expires > :now)"
    " + (SELECT COALESCE(SUM(waiting + running), 0) FROM jobs WHERE owner = :client)"
    " - (SELECT COUNT(*) FROM targets JOIN jobs ON jobs.id = targets.job"
    " WHERE targets.platform = '' AND targets.state = 'waiting' AND jobs.owner = :client)"
)
"""Counts the billable calls and the reservations in one statement, so that no usage is stored between the counts.

Invalid lines of a job, which have no platform and wait for a moment before they fail, do not count as reservations.
"""

ReservedCall = tuple[str, str]
"""Identifies a reservation: the client and the id of the call."""

RESERVE_SECONDS = 5.0
"""Maximum seconds for a transaction that makes reservations."""
LEASE_SECONDS = 30.0
"""A reservation expires this long after its call's deadline, in case its process was killed.

A running process completes the call and stores its usage before that.
"""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call's reservation of one billable call of its client's quota."""

    client: str
    quota: int
    call_id: str
    expires: int
    """Unix time in seconds."""


class Quotas:
    """Makes reservations in the service's store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pending: dict[str, Reservation] | None = None
        """Call id -> its reservation in the next transaction. None: no transaction is being prepared."""
        self._batch: asyncio.Task[set[str]] | None = None
        """The last transaction, which returns the ids of the refused calls."""

    async def reserve(self, client: str, quota: int, call_id: str, seconds: float) -> None:
        """Reserve one of a client's ``quota`` billable calls of this month for a call that ends within ``seconds``.

        ``settle()`` must be called for the reservation when the call's usage is stored, even after an error. Concurrent
        reservations share a transaction.

        Raises:
            QuotaExceeded: the whole quota of this month is used or reserved.
            StoreUnavailable: the store cannot be written.
        """
        if self._pending is None:
            self._pending = {}
            self._batch = asyncio.ensure_future(self._reserve_batch(self._pending, self._batch))
        requested, batch = self._pending, self._batch
        assert batch is not None
        expires = math.ceil(store_time() + seconds + LEASE_SECONDS)
        requested[call_id] = Reservation(client, quota, call_id, expires)
        try:
            refused = await asyncio.shield(batch)
        except asyncio.CancelledError:
            requested.pop(call_id, None)  # no effect if the transaction has begun: the caller settles it
            raise
        if call_id in refused:
            raise exceeded(quota)

    async def _reserve_batch(
        self, requested: dict[str, Reservation], previous: asyncio.Task[set[str]] | None
    ) -> set[str]:
        """Wait until the previous transaction ends, and make all reservations requested by then in one transaction."""
        if previous is not None:
            await asyncio.wait([previous])
        self._pending = None
        return await self.store.transact(partial(reserve, requested=[*requested.values()]), seconds=RESERVE_SECONDS)


def reserve(session: Session, requested: Sequence[Reservation]) -> set[str]:
    """Make reservations in a transaction, in the given order. Return the ids of the calls that are refused."""
    refused = set()
    now = int(store_time())
    for client in sorted({each.client for each in requested}):  # all processes lock clients in the same order
        session.run(LOCK, client=client, checked=now)
        session.run("DELETE FROM reservations WHERE client = :client AND expires <= :now", client=client, now=now)
        count = sum(_count(session, client, now))
        for each in requested:
            if each.client != client:
                continue
            if count >= each.quota:
                refused.add(each.call_id)
                continue
            insert = "INSERT INTO reservations (client, call_id, expires) VALUES (:client, :call_id, :expires)"
            session.run(insert, client=client, call_id=each.call_id, expires=each.expires)
            count += 1
    return refused


def left(session: Session, client: str, quota: int) -> int:
    """Return how many more reservations fit into a client's quota."""
    return max(0, quota - sum(_count(session, client, int(store_time()))))


def room(session: Session, client: str, quota: int) -> int:
    """Return how many more reservations fit into a client's quota, and lock the client until the commit."""
    session.run(LOCK, client=client, checked=int(store_time()))
    return left(session, client, quota)


def room_of(holder: Holder) -> Room | None:
    """Return the function that limits the waiting targets of a client. None: the client has no quota."""
    return None if holder.quota is None else partial(room, client=holder.client, quota=holder.quota)


def settle(session: Session, calls: Iterable[ReservedCall]) -> None:
    """Delete the reservations of completed calls, in the transaction that stores their usage.

    A billable call then counts as used, and any other reservation is released. Calls without a reservation are ignored.
    """
    delete = "DELETE FROM reservations WHERE client = :client AND call_id = :call_id"
    for client, call_id in sorted(calls):  # all processes delete in the same order, which prevents deadlocks
        session.run(delete, client=client, call_id=call_id)


def report(session: Session, client: str, quota: int) -> dict[str, Any]:
    """Return the state of a client's quota in this month."""
    used, reserved = _count(session, client, int(store_time()))
    return {"limit": quota, "used": used, "reserved": reserved, "resets_at": utc_text(_next_month().timestamp())}


def _count(session: Session, client: str, now: int) -> tuple[int, int]:
    """Return the client's billable calls of this month, and its reservations, which do not belong to a month."""
    ((used, reserved),) = session.rows(COUNT, client=client, since=_this_month().date().isoformat(), now=now)
    return int(used), int(reserved)


def exceeded(quota: int) -> QuotaExceeded:
    """Return the error for a call that exceeds its client's quota."""
    reset = _next_month()
    return QuotaExceeded(
        f"Quota exceeded: all {quota} billable calls of this month are used, or reserved by calls in progress. "
        f"The next month begins at {utc_text(reset.timestamp())}.",
        retry_after=max(1, math.ceil(reset.timestamp() - store_time())),
    )


def _next_month() -> datetime:
    """Return the beginning of the next month."""
    return (_this_month() + timedelta(days=31)).replace(day=1)


def _this_month() -> datetime:
    """Return the beginning of the current month."""
    return datetime.fromtimestamp(store_time(), UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
