"""Who called what, how it ended, and what of it is billable: by client, scraper, day and code.

Counted in memory, written once in a while off the event loop: a process that is killed loses less than a second of it.
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
FLUSH_EVERY = 0.75
"""Seconds between writes: with the time that a write takes, at most the last second is lost."""

DAYS = 31
"""How many days are reported where nobody says from when."""

DAY = 24 * 60 * 60

Key = tuple[str, str, str, str]
Count = list[int]


class Usage:
    """Counts calls, and tells what was counted."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pending: defaultdict[Key, Count] = defaultdict(lambda: [0, 0])
        self._day = (0, "")

    def count(self, client: str, scraper: str, code: str, *, billable: bool) -> None:
        """One call. Costs a dictionary's lookup; days are UTC's."""
        number = int(time.time()) // DAY
        if number != self._day[0]:
            self._day = (number, datetime.now(UTC).date().isoformat())
        entry = self._pending[client, scraper, self._day[1], code]
        entry[0] += 1
        entry[1] += billable

    async def flush(self) -> None:
        """Writes what was counted. Where the store is away, it is kept for the next time."""
        if not self._pending:
            return
        pending, self._pending = self._pending, defaultdict(lambda: [0, 0])
        try:
            await self.store.transact(lambda session: _add(session, pending))
        except Exception:  # any database's, any driver's: calls are served all the same
            logger.exception("usage_not_stored", calls=sum(calls for calls, _ in pending.values()))
            for key, (calls, billable) in pending.items():
                entry = self._pending[key]
                entry[0] += calls
                entry[1] += billable

    async def report(self, client: str, since: date | None, until: date | None) -> dict[str, Any]:
        """A client's usage of all days between two, inclusive: by default the last 31."""
        await self.flush()
        return await self.store.transact(lambda session: report(session, client, since, until))


def _add(session: Session, counts: dict[Key, Count]) -> None:
    for (client, scraper, day, code), (calls, billable) in sorted(
        counts.items()
    ):  # in one order everywhere: no two writers wait in a circle
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
    """What ``GET /v1/usage`` answers: one entry a day and scraper, the newest day first, and the sums."""
    until = until or datetime.now(UTC).date()
    since = since or until - timedelta(days=min(DAYS - 1, until.toordinal() - 1))
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
    """Every client that has made a call."""
    return [client for (client,) in session.rows("SELECT DISTINCT client FROM usage ORDER BY client")]
