"""The webhooks of clients, and the deliveries of their events, in the store.

A process claims a delivery by delaying its next try by ``CLAIM_SECONDS``. If the process is killed, another process
sends the event after this time, with the same id.
"""

from __future__ import annotations

import base64
import random
import secrets
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import bindparam as param

from crawler.jobs.clock import utc_text
from crawler.jobs.events import id_prefix
from crawler.jobs.store import Session
from crawler.jobs.tables import deliveries, insert_into, webhooks

CLAIM_SECONDS = 30.0
DELAYS = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, *[7_200.0] * 11)
"""The delay in seconds after each failed try, in total about a day. If the try after the last delay also fails, the
delivery has failed."""
JITTER = 0.1
"""Maximum random change of a delay, as a share of it, so that a receiver does not get all events at once."""
KEEP_SECONDS = 7 * 86_400.0
"""Seconds for which deliveries are kept, so that clients can list them."""
PURGED_AT_ONCE = 500
PER_CLIENT = 4
"""Maximum number of deliveries to one client in flight in a process. A slow receiver must not delay other clients."""

SECRET_PREFIX = "whsec_"  # noqa: S105  # the prefix of all secrets
SECRET_BYTES = range(24, 65)
"""Valid sizes of a secret, by the specification."""

D, W = deliveries.c, webhooks.c
WEBHOOK = sa.select(webhooks).where(W.client == param("client"))
DROP_WEBHOOK = sa.delete(webhooks).where(W.client == param("client_"))
SET_WEBHOOK = insert_into(webhooks, replace=("url", "secret", "changed"))
DUE = (
    sa.select(deliveries, W.url, W.secret)
    .outerjoin(webhooks, W.client == D.client)
    .where(D.due <= param("now"), D.client.not_in(param("busy", expanding=True)))
    .order_by(D.due)
    .limit(param("limit"))
    .with_for_update(skip_locked=True, of=deliveries)
)
_ONE = (D.id == param("id_")) & (D.tries == param("tries_"))
START = sa.update(deliveries).where(_ONE).values(due=param("due_"), tries=D.tries + 1)
END = (
    sa.update(deliveries)
    .where(_ONE)
    .values(due=param("due_"), delivered=param("delivered_"), attempts=param("attempts_"))
)
NEXT = sa.select(sa.func.min(D.due)).where(D.due.is_not(None))
OLDEST = sa.select(sa.func.min(D.created)).where(D.due.is_not(None))
LIST = (
    sa.select(deliveries)
    .where(D.client == param("client"), D.id < param("before"))
    .order_by(D.id.desc())
    .limit(param("limit"))
)
EXPIRED = sa.select(D.id).where(D.id < param("before"), D.due.is_(None)).order_by(D.id).limit(PURGED_AT_ONCE)
PURGE = sa.delete(deliveries).where(D.id.in_(param("ids", expanding=True)))


def new_secret() -> str:
    """Return a new random secret."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(text: str) -> str:
    """Check a secret that a client has chosen, and return it.

    Raises:
        ValueError: the specification does not allow this secret. The message does not contain it.
    """
    try:
        size = len(base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True))
    except ValueError:
        size = 0
    if not text.startswith(SECRET_PREFIX) or size not in SECRET_BYTES:
        raise ValueError(
            f"expected {SECRET_PREFIX} and the Base64 form of {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes"
        )
    return text


def find(session: Session, client: str) -> Any | None:
    """Return the row of a client's webhook, None if the client has no webhook."""
    return session.execute(WEBHOOK, {"client": client}).fetchone()


def put(session: Session, client: str, url: str, secret: str | None) -> str | None:
    """Set the webhook of a client. Return its secret if it was generated now.

    ``secret``: None keeps the current secret, or generates one for a new webhook.
    """
    found = find(session, client)
    made = None
    if secret is None:
        secret = found.secret if found else (made := new_secret())
    row = {"client": client, "url": url, "secret": secret, "changed": session.now()}
    session.execute(SET_WEBHOOK, row)
    return made


def drop(session: Session, client: str) -> None:
    """Delete the webhook of a client. The client's deliveries fail when their next try is due."""
    session.run(DROP_WEBHOOK, client_=client)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of a try."""

    at: str
    """When the try began, as RFC 3339 text."""
    status: int | None
    """The HTTP status of the receiver's response. None: there was none."""
    error: str | None
    """Why the try failed. None: the event is delivered."""
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed delivery."""

    id: str
    client: str
    type: str
    body: bytes
    tries: int
    attempts: tuple[dict[str, Any], ...]
    url: str | None
    """The URL of the client's webhook. None: the webhook was deleted."""
    secret: str = field(repr=False)


def claim(session: Session, n: int, in_flight: Counter[str]) -> list[Delivery]:
    """Claim at most ``n`` due deliveries. ``in_flight``: the number of this process's deliveries by client."""
    now = session.now()
    busy = [client for client, number in in_flight.items() if number >= PER_CLIENT]
    rows = session.execute(DUE, {"now": now, "busy": ["", *busy], "limit": n}).fetchall()
    taken, mine = Counter(in_flight), []
    for row in rows:
        taken[row.client] += 1
        if taken[row.client] <= PER_CLIENT:
            mine.append(row)
    for row in mine:
        session.run(START, id_=row.id, tries_=row.tries, due_=now + CLAIM_SECONDS)
    return [
        Delivery(
            *(row.id, row.client, row.type, row.body, row.tries + 1, tuple(orjson.loads(row.attempts))),
            url=row.url,
            secret=row.secret or "",
        )
        for row in mine
    ]


def end(session: Session, delivery: Delivery, attempt: Attempt) -> bool:
    """Store the result of a try. Return whether there will be another try."""
    now = session.now()
    attempts = orjson.dumps([*delivery.attempts, asdict(attempt)])
    is_over = attempt.error is None or delivery.url is None or delivery.tries > len(DELAYS)
    due = None
    if not is_over:
        due = now + DELAYS[delivery.tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # not a secret
    values = {"due_": due, "delivered_": now if attempt.error is None else None}
    session.run(END, id_=delivery.id, tries_=delivery.tries, attempts_=attempts, **values)
    return not is_over


def listed(session: Session, client: str, before: str, limit: int) -> list[dict[str, Any]]:
    """Return the deliveries of a client whose ids are before another id, the newest first."""
    return [
        {
            "id": row.id,
            "type": row.type,
            "state": "delivered" if row.delivered else "failed" if row.due is None else "pending",
            "created_at": utc_text(row.created),
            "delivered_at": utc_text(row.delivered) if row.delivered else None,
            "next_attempt_at": utc_text(row.due) if row.due else None,
            "attempts": orjson.loads(row.attempts),
        }
        for row in session.execute(LIST, {"client": client, "before": before, "limit": limit}).fetchall()
    ]


def seconds_until_due(session: Session) -> float | None:
    """Return the seconds until the next try, at most 0 if it is due. None: all events are delivered, or have failed."""
    ((due,),) = session.rows(NEXT)
    return None if due is None else due - session.now()


def undelivered_age(session: Session) -> float:
    """Return the age in seconds of the oldest event that is neither delivered nor failed, 0 without events."""
    ((created,),) = session.rows(OLDEST)
    return 0.0 if created is None else max(0.0, session.now() - created)


def purge(session: Session) -> int:
    """Delete at most ``PURGED_AT_ONCE`` deliveries that are older than ``KEEP_SECONDS`` and have ended.

    Return their number.
    """
    ids = [each for (each,) in session.rows(EXPIRED, before=id_prefix(session.now() - KEEP_SECONDS))]
    return session.run(PURGE, ids=ids) if ids else 0
