"""Usage: the number of calls and of billable calls, by client, scraper, day and code.

Calls are counted in memory, and the counts are stored regularly. If the process is killed, it loses the counts of less
than one second.
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

import structlog

from crawler.service.store import Session, Store

logger = structlog.get_logger(__name__)

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS usage (client TEXT NOT NULL, scraper TEXT NOT NULL, day TEXT NOT NULL,"
        " code TEXT NOT NULL, calls BIGINT NOT NULL, billable BIGINT NOT NULL,"
        " PRIMARY KEY (client, day, scraper, code))"
    ),
)
FLUSH_SECONDS = 0.75
"""Interval in seconds at which the counts are stored. Including the time of a write, it stays below one second."""

DEFAULT_REPORT_DAYS = 31
"""Number of days in a report whose first day is not given."""

DAY_SECONDS = 24 * 60 * 60

Key = tuple[str, str, str, str]
Count = list[int]


class Usage:
    """Counts calls, stores the counts and reports them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pending: defaultdict[Key, Count] = defaultdict(lambda: [0, 0])
        self._day = (0, "")

    def count(self, client: str, scraper: str, code: str, *, billable: bool) -> None:
        """Count one call in memory, for the current day in UTC."""
        number = int(time.time()) // DAY_SECONDS
        if number != self._day[0]:
            self._day = (number, datetime.now(UTC).date().isoformat())
        entry = self._pending[client, scraper, self._day[1], code]
        entry[0] += 1
        entry[1] += billable

    async def flush(self) -> None:
        """Store the counts. If the store is unavailable, they stay in memory for the next flush."""
        if not self._pending:
            return
        pending, self._pending = self._pending, defaultdict(lambda: [0, 0])
        try:
            await self.store.transact(lambda session: _add(session, pending))
        except Exception:  # depends on the database driver; calls must succeed even if the store is unavailable
            logger.exception("usage_not_stored", calls=sum(calls for calls, _ in pending.values()))
            for key, (calls, billable) in pending.items():
                entry = self._pending[key]
                entry[0] += calls
                entry[1] += billable

    async def report(self, client: str, since: date | None, until: date | None) -> dict[str, Any]:
        """Return a client's usage from the day ``since`` to the day ``until``, by default of the last 31 days."""
        await self.flush()
        return await self.store.transact(lambda session: report(session, client, since, until))


def _add(session: Session, counts: dict[Key, Count]) -> None:
    for (client, scraper, day, code), (calls, billable) in sorted(
        counts.items()
    ):  # all processes update the rows in the same order, which prevents deadlocks
        session.run(
            "INSERT INTO usage (client, scraper, day, code, calls, billable)"
            " VALUES (:client, :scraper, :day, :code, :calls, :billable)"
            " ON CONFLICT (client, day, scraper, code) DO UPDATE"
            " SET calls = usage.calls + excluded.calls, billable = usage.billable + excluded.billable",
            client=client,
            scraper=scraper,
            day=day,
            code=code,
            calls=calls,
            billable=billable,
        )


def report(session: Session, client: str, since: date | None = None, until: date | None = None) -> dict[str, Any]:
    """Return the response body of ``GET /v1/usage``: the totals, and an entry per day and scraper, newest day first."""
    until = until or datetime.now(UTC).date()
    since = since or until - timedelta(days=min(DEFAULT_REPORT_DAYS - 1, until.toordinal() - 1))
    rows = session.rows(
        "SELECT day, scraper, code, calls, billable FROM usage WHERE client = :client AND day BETWEEN :since AND :until"
        " ORDER BY day DESC, scraper, code",
        client=client,
        since=since.isoformat(),
        until=until.isoformat(),
    )
    days: dict[tuple[str, str], dict[str, Any]] = {}
    for day, scraper, code, calls, billable in rows:
        entry = days.setdefault(
            (day, scraper), {"day": day, "scraper": scraper, "calls": 0, "billable": 0, "outcomes": {}}
        )
        entry["calls"] += calls
        entry["billable"] += billable
        entry["outcomes"][code] = calls
    return {
        "client_id": client,
        "from": since.isoformat(),
        "to": until.isoformat(),
        "calls": sum(entry["calls"] for entry in days.values()),
        "billable": sum(entry["billable"] for entry in days.values()),
        "usage": list(days.values()),
    }


def clients(session: Session) -> list[str]:
    """Return the names of all clients with stored calls."""
    return [client for (client,) in session.rows("SELECT DISTINCT client FROM usage ORDER BY client")]
