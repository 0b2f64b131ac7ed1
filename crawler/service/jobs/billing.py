"""Counts the targets of clients' jobs in their usage, in the transaction that stores their outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crawler.jobs.job import ACCOUNT, Account
from crawler.service.clients import usage

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.jobs.store import Session


def store_bills(session: Session, batch: Sequence[Stored]) -> None:
    """Count the outcomes of a batch in their owners' usage. The ``also_store`` of workers.

    A record is billable. A failure, or a target without new data, counts as a call that is not billable. Targets
    without an owner and invalid lines are not counted.
    """
    counts: dict[usage.Key, usage.Count] = defaultdict(lambda: [0, 0, 0])
    day = usage.today()
    for finished in (each.finished for each in batch):
        claim = finished.claim
        is_target = bool(claim.platform)  # invalid lines of a file have no platform
        if not claim.owner or not is_target:
            continue
        has_record = finished.state == "done" and finished.record is not None
        count = counts[claim.owner, claim.work["scraper"], day, finished.code]
        count[0] += 1
        count[1] += has_record
        count[2] += has_record and bool(finished.outcome.get("warnings"))
    usage.add(session, counts)


def account_settings(owner: str, *, waits: bool = True) -> dict[str, Any]:
    """Return the settings of a crawl that is a worker of a client's job. ``waits``: as in ``Account``."""
    return {ACCOUNT: Account(owner, store_bills, waits)}
