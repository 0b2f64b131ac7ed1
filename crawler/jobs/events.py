"""The events of clients' jobs, in an outbox: a row for each event that is to be sent to the webhook of a client.

An event is stored in the transaction that ends the job, so that the event of each committed end is sent, even if
processes are killed. The endpoint sends the events (``service/webhooks.py``), and deletes each row when the event is
delivered or given up. A process claims an event by delaying its next try. If the process is killed, another process
sends the event after this time, with the same id.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
import sqlalchemy as sa
from sqlalchemy import bindparam as param

from crawler.jobs.clock import utc_text
from crawler.jobs.tables import STATES, outbox

if TYPE_CHECKING:
    from crawler.jobs.store import Session

PER_CLIENT = 4
"""Maximum number of events of a client that a process sends at the same time."""

E = outbox.c
_place = sa.func.row_number().over(partition_by=E.client, order_by=(E.due, E.id)).label("place")
_waiting = (
    sa.select(E.id, E.client, E.body, E.tries, _place)
    .where((E.due <= param("now")) | (E.due > param("far")), E.client.not_in(param("busy", expanding=True)))
    .subquery()
)
DUE = sa.select(_waiting).where(_waiting.c.place <= PER_CLIENT).order_by(_waiting.c.id)
_CHANGE = sa.update(outbox).where(E.id == param("id_"), E.tries == param("tries_"))
CLAIM = _CHANGE.values(due=param("due_"), tries=E.tries + 1)
DELAY = _CHANGE.values(body=param("body_"), due=param("due_"))
DROP = sa.delete(outbox).where(E.id.in_(param("ids", expanding=True)))
OLDEST = sa.select(E.created).order_by(E.id).limit(1)
ADD = sa.insert(outbox)


@dataclass(frozen=True, slots=True)
class Event:
    """An event that is to be sent."""

    id: str
    client: str
    body: bytes
    tries: int
    """The number of tries, with the one that was claimed."""


def post_done(session: Session, before: Any, after: dict[str, Any], now: float) -> None:
    """Store the event of a client's job that has become done, again after each retry.

    ``before``: the job's row before the change. ``after``: the new values of its state, end and counters. ``now``: the
    Unix time of the database.
    """
    if not before.owner or before.kind != "job" or after["state"] != "done" or before.state == "done":
        return
    counts: dict[str, int] = {state: after[state] for state in STATES if state != "paused"}
    data = {
        "job_id": str(before.id),
        "name": before.name,
        "run": before.run,
        "revision": after["revision"],
        "state": after["state"],
        "idempotency_key": before.key,
        "targets": {"total": sum(counts.values()), **counts},
        "created_at": utc_text(before.created),
        "ended_at": utc_text(after["ended"]),
    }
    body = orjson.dumps({"type": "job.done", "timestamp": utc_text(now), "data": data})
    sorted_by_time = f"msg_{round(now * 1000):012x}{secrets.token_hex(10)}"
    # A new event is due at every time, also if the clock has jumped.
    row = {"id": sorted_by_time, "client": before.owner, "body": body, "created": now, "due": 0.0}
    session.execute(ADD, row)


def due(session: Session, now: float, far: float, busy: Collection[str]) -> list[Event]:
    """Return the events to send now, at most ``PER_CLIENT`` of a client, without those of ``busy`` clients.

    ``far``: a time after all times until which a try may be delayed. An event that is due later was delayed while the
    clock was ahead, and is due now.
    """
    # An empty list would become NULL, and ``NOT IN (NULL)`` holds for no row.
    rows = session.execute(DUE, {"now": now, "far": far, "busy": ["", *busy]}).fetchall()
    return [Event(row.id, row.client, row.body, row.tries) for row in rows]


def claim(session: Session, events: Iterable[Event], until: float) -> list[Event]:
    """Claim events until a time. Return them without those that another process has claimed."""
    return [
        replace(each, tries=each.tries + 1)
        for each in events
        if session.run(CLAIM, id_=each.id, tries_=each.tries, due_=until)
    ]


def delay(session: Session, event: Event, due: float) -> bool:
    """Store the body of a claimed event, and delay its next try. Return False if another process has the claim."""
    return bool(session.run(DELAY, id_=event.id, tries_=event.tries, body_=event.body, due_=due))


def drop(session: Session, ids: list[str]) -> None:
    """Delete events that are delivered or will never be."""
    session.run(DROP, ids=ids)


def age(session: Session, now: float) -> float:
    """Return the age in seconds of the oldest event that is neither delivered nor given up, 0 without events."""
    rows = session.rows(OLDEST)
    return max(0.0, now - rows[0][0]) if rows else 0.0
