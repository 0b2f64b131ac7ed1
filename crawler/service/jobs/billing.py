"""Bills the targets of jobs that belong to a client, in the transaction that stores their outcomes.

A target that waits or runs counts as a reservation of its client's quota (``clients/quotas.py``). So the billable calls
and the reservations together never exceed the quota.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs.clock import store_time
from crawler.jobs.events import post
from crawler.jobs.job import ACCOUNT, Account
from crawler.service.calls import once, stored
from crawler.service.clients import quotas, usage

if TYPE_CHECKING:
    from crawler.jobs.job import Finished, Stored
    from crawler.jobs.store import Session


def store_bills(session: Session, batch: Sequence[Stored]) -> None:
    """Count the outcomes of a batch in their owners' usage, and keep or release the ``Idempotency-Key`` of calls.

    The ``also_store`` of workers. The events of calls are stored, too. A record is billable unless it was cached. A
    failure, or a target without new data, counts as a call that is not billable. Targets without an owner, invalid
    lines and paused targets are not counted.
    """
    counts: dict[usage.Key, usage.Count] = defaultdict(lambda: [0, 0, 0])
    day = usage.today()
    for finished in (each.finished for each in batch):
        claim = finished.claim
        is_target = bool(claim.platform)  # invalid lines of a file have no platform
        if not claim.owner or not is_target or finished.state == "paused":
            continue
        has_record = finished.state == "done" and finished.record is not None
        count = counts[claim.owner, claim.work["scraper"], day, finished.code]
        count[0] += 1
        count[1] += has_record and finished.outcome.get("billable", True)
        count[2] += has_record and bool(finished.outcome.get("warnings"))
    usage.add(session, counts)
    calls = [each for each in batch if each.finished.claim.kind == stored.KIND]
    stored.count_ended(session, calls)
    for each in calls:
        _post_done(session, each.finished)
        claim, until = each.finished.claim, each.finished.outcome.get("key_until")
        if (key := claim.work["key"]) is not None:
            named = (claim.owner, key, claim.key.decode())
            if until is None:
                once.release_key(session, *named)
            else:
                once.keep_key(session, *named, until)


def _post_done(session: Session, finished: Finished) -> None:
    claim = finished.claim
    billable = finished.record is not None and finished.outcome.get("billable", True)
    data = {"request_id": claim.key.decode(), "scraper": claim.work["scraper"], "code": finished.code}
    post(session, claim.owner, "call.done", data | {"billable": billable}, store_time())


def room(session: Session, job: Any) -> int | None:
    """Return how many more targets of a client's job may wait. None: the client has no quota.

    The ``room`` of workers. The quota is read from the job's options, because workers on other machines cannot read
    the API keys.
    """
    quota = orjson.loads(job.options).get("quota")
    return None if quota is None else quotas.room(session, job.owner, quota)


def account_settings(owner: str, *, waits: bool = True) -> dict[str, Any]:
    """Return the settings of a crawl that is a worker of a client's job. ``waits``: as in ``Account``."""
    return {ACCOUNT: Account(owner, store_bills, room, waits)}
