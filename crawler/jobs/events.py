"""The events of clients' jobs, for their webhooks.

An event is a row of the table ``deliveries``. The event is stored in the transaction that changes the job, so that the
event of each committed change is sent, even if processes are killed. The endpoint sends the events
(``service/webhooks/dispatcher.py``).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs import statements as sql
from crawler.jobs.clock import utc_text
from crawler.jobs.states import STATES, TargetState

if TYPE_CHECKING:
    from crawler.jobs.store import Session

LEFT: tuple[TargetState, ...] = ("waiting", "running", "paused")
"""The states of targets that have no outcome yet."""


def id_prefix(time: float) -> str:
    """Return the first characters of the ids of deliveries made at a Unix time in seconds. The ids sort by time."""
    return f"msg_{round(time * 1000):012x}"


def post(session: Session, client: str, event: str, data: dict[str, Any], now: float) -> str | None:
    """Store an event for a client. Return the id of its delivery. None: the client has no webhook, nothing is stored.

    ``data``: the event's data, as JSON data. ``now``: the Unix time of the database.
    """
    if not session.rows(sql.HAS_WEBHOOK, client=client):
        return None
    sent = id_prefix(now) + secrets.token_hex(10)
    body = orjson.dumps({"type": event, "timestamp": utc_text(now), "data": data})
    own = {"id": sent, "client": client, "type": event, "body": body}
    session.execute(sql.ADD_DELIVERY, own | {"created": now, "due": now, "attempts": b"[]"})
    return sent


def post_change(session: Session, before: Any, after: dict[str, Any], now: float) -> None:
    """Store the event of a client's job that has become done, cancelled or paused.

    ``before``: the job's row before the change. ``after``: the new values of its state, end and counters. ``now``: the
    Unix time of the database.
    """
    if before.kind != "job" or not before.owner or (event := _event(before, after)) is None:
        return
    counts: dict[str, int] = {state: after[state] for state in STATES}
    data = {
        "job_id": str(before.id),
        "state": after["state"],
        "idempotency_key": orjson.loads(before.options).get("key"),
        "targets": {"total": sum(counts.values()), **counts},
        "created_at": utc_text(before.created),
        "ended_at": None if after["ended"] is None else utc_text(after["ended"]),
    }
    post(session, before.owner, event, data, now)


def _event(before: Any, after: dict[str, Any]) -> str | None:
    """Return the name of the event for a change of a job, or None.

    A cancelled job ends when its last running target has ended. The deletion of targets is not an event.
    """
    if after["state"] != "cancelled":
        return f"job.{after['state']}" if after["state"] in {"done", "paused"} - {before.state} else None
    removed = sum(getattr(before, state) - after[state] for state in STATES) > 0
    ends = any(getattr(before, state) for state in LEFT) and not any(after[state] for state in LEFT)
    return "job.cancelled" if ends and not removed else None
