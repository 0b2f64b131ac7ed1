"""Bills the targets of jobs that belong to a client, in the transaction that stores their outcomes.

A target that waits or runs counts as a reservation of its client's quota (``clients/quotas.py``). So the billable calls
and the reservations together never exceed the quota.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawler.service.clients import usage

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.jobs.store import Session


def store_bills(session: Session, batch: Sequence[Stored]) -> None:
    """Count the outcomes of a batch in their owners' usage.

    A worker's ``also_store``. A record is billable; a failure, or a target without new data, is counted as a call only.
    """
    counts: dict[usage.Key, usage.Count] = defaultdict(lambda: [0, 0, 0])
    day = usage.today()
    for finished in (each.finished for each in batch):
        claim = finished.claim
        is_target = bool(claim.platform)  # not a line of a file that is not valid
        if not claim.owner or not is_target or finished.state == "paused":
            continue
        billable = finished.state == "done" and finished.record is not None
        count = counts[claim.owner, claim.work["scraper"], day, finished.code]
        count[0] += 1
        count[1] += billable
        count[2] += billable and bool(finished.outcome.get("warnings"))
    usage.add(session, counts)
