"""Quotas: the records per month (UTC) of a client, with all of its keys together.

A quota counts what is stored as usage: there are no reservations. If it is used up, calls and new jobs are refused, and
accepted jobs are finished. So a client may exceed its quota by the calls in progress and by the rest of its jobs.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from crawler.errors import QuotaExceeded
from crawler.jobs.clock import store_time, utc_text

if TYPE_CHECKING:
    from crawler.jobs.store import Session, Store
    from crawler.service.clients.keys import Holder

USED = "SELECT COALESCE(SUM(billable), 0) FROM usage WHERE client = :client AND day >= :since"
STORE_SECONDS = 5.0
"""Maximum seconds for which a call waits for the number of used records."""


async def check(store: Store, holder: Holder) -> None:
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


def report(session: Session, client: str, quota: int) -> dict[str, Any]:
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
