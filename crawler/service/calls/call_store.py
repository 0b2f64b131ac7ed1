"""Asynchronous calls in the service's store: accept, find, list and delete them for their clients.

A call waits, runs or is done. ``call_leases.py`` has the functions for the processes that run calls.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs.clock import store_time, utc_text
from crawler.jobs.job import decompress
from crawler.registry import scrapers
from crawler.service.calls import idempotency
from crawler.service.calls.envelope import Answer, Call
from crawler.service.clients import quotas, usage
from crawler.service.clients.quotas import Reservation
from crawler.targets.target import Target, check_params

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.store import Session
    from crawler.service.calls.idempotency import Claim, Found
    from crawler.service.clients.keys import Holder

WAITING, RUNNING, DONE = "waiting", "running", "done"
STATES = (WAITING, RUNNING, DONE)


COLUMNS = (
    "request_id, client, key_id, concurrency, platform, scraper, params, cache_control, idempotency_key, state, turn,"
    " accepted, expires, completed, status, code, billable"
)
INSERT = f"INSERT INTO calls ({COLUMNS}, ready, bytes) VALUES (:{COLUMNS.replace(', ', ', :')}, :accepted, :bytes)"
READABLE = f"(state <> '{DONE}' OR expires > :now)"
"""SQL condition: the response of a call has not expired."""

OVERHEAD_BYTES = 1_000
"""Estimated bytes of a stored call in addition to its params and its response, for rows and indexes."""
GONE = "CLIENT_GONE"
"""The code in usage of a call that its client has deleted before it was done."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """An asynchronous call, without its response."""

    request_id: str
    client: str
    key_id: str
    concurrency: int | None
    """The limit of the API key with which the call was made: see ``Holder``."""
    platform: str
    scraper: str
    params: str
    """The valid params as JSON."""
    cache_control: str | None
    idempotency_key: str | None
    state: str = WAITING
    turn: int = 0
    """Sorts the platform's queue. Clients take turns: the first waiting calls of all clients have the same turn."""
    accepted: float = 0.0
    """Unix time, as in all columns."""
    expires: float = 0.0
    """When a waiting call ends, or the response of a completed call is deleted."""
    completed: float | None = None
    status: int | None = None
    code: str | None = None
    billable: int = 0

    @classmethod
    def new(
        cls, target: Target, holder: Holder, seconds: float, *, cache_control: str | None, key: str | None
    ) -> StoredCall:
        """Return the call of a client for a target.

        ``seconds``: for how long it may wait. ``key``: its ``Idempotency-Key``.
        """
        now = store_time()
        scraper = target.scraper
        params = orjson.dumps(target.params.model_dump(mode="json", exclude_none=True)).decode()
        names = (holder.client, holder.key_id, holder.concurrency, scraper.platform, scraper.name)
        return cls(target.id, *names, params, cache_control, key, accepted=now, expires=now + seconds)

    def target(self, deadline: float) -> Target:
        """Return the target. ``deadline``: a time of the event loop.

        Raises:
            InvalidRequest: this version of the scraper does not accept the params.
        """
        scraper = scrapers()[self.scraper]
        params = check_params(scraper, orjson.loads(self.params))
        return Target(self.request_id, scraper, params, deadline=deadline, background=True)

    def call(self, service_url: str) -> Call:
        """Return the values for the envelope. The duration begins when the call was accepted."""
        started = time.monotonic() - (store_time() - self.accepted)
        return Call(self.request_id, self.client, self.scraper, service_url=service_url, started=started)

    def as_dict(self) -> dict[str, Any]:
        """Return the call's entry in the list of calls."""
        return {
            "request_id": self.request_id,
            "scraper": self.scraper,
            "params": orjson.Fragment(self.params),
            "state": self.state,
            "accepted_at": utc_text(self.accepted, "milliseconds"),
            "completed_at": None if self.completed is None else utc_text(self.completed, "milliseconds"),
            "code": self.code,
            "http_status": self.status,
            "billable": bool(self.billable),
            "expires_at": utc_text(self.expires, "milliseconds"),
        }


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How long calls may wait, how long they are stored, and how much space they may take."""

    max_seconds: float
    """The setting ``CALL_MAX_HOURS``."""
    result_seconds: float
    """The setting ``CALL_RESULT_HOURS``."""
    idempotency_seconds: float
    """The setting ``IDEMPOTENCY_HOURS``."""
    max_bytes: int
    """The setting ``CALL_STORE_MB``."""

    @classmethod
    def read(cls, settings: BaseSettings) -> CallSettings:
        """Return the values of the settings."""
        return cls(
            max_seconds=settings.getfloat("CALL_MAX_HOURS") * 3_600,
            result_seconds=settings.getfloat("CALL_RESULT_HOURS") * 3_600,
            idempotency_seconds=settings.getfloat("IDEMPOTENCY_HOURS") * 3_600,
            max_bytes=settings.getint("CALL_STORE_MB") * 1_000_000,
        )


@dataclass(frozen=True, slots=True)
class Room:
    """The limits under which a new call is accepted."""

    max_ahead: float
    """Maximum number of calls ahead of the new one in the queue of its platform."""
    is_full: bool = False
    """Whether the stored calls have their maximum size, so that no further call is accepted."""
    quota: int | None = None
    """The client's quota of billable calls per month; None if it has none."""
    reserved_until: float = 0.0
    """Unix time at which the call's reservation expires."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a call was not accepted."""

    ahead: int | None = None
    """Number of calls ahead of it, if they are too many; None if that is not the cause."""
    quota: int | None = None
    """The client's quota, if it is used up; None if that is not the cause. If both are None, the store is full."""


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A stored call of a client, with its position or its response."""

    call: StoredCall
    position: int | None
    """The position in the queue of the platform: 1 is the next call. None if the call does not wait."""
    answer: Answer | None = None
    """The response, the same as for a synchronous call. None if the call is not done."""


def accept(session: Session, call: StoredCall, claim: Claim | None, room: Room) -> FoundCall | Found | Refused:
    """Store a new call. Return it, or the row of its ``Idempotency-Key`` if another call has the key."""
    if claim is not None and (found := claim.take(session)) is not None:
        return found
    call = replace(call, turn=_next_turn(session, call))
    ahead = _count_ahead(session, call)
    if (refused := _refused(session, call, ahead, room)) is not None:
        if claim is not None:
            idempotency.release_key(session, (claim.client, claim.key, claim.owner))
        return refused
    session.run(INSERT, **asdict(call), bytes=OVERHEAD_BYTES + len(call.params))
    return FoundCall(call, ahead + 1)


def _refused(session: Session, call: StoredCall, ahead: int, room: Room) -> Refused | None:
    """Check the limits for a call, and make its reservation. Return why the call is not accepted, or None."""
    if ahead > room.max_ahead:
        return Refused(ahead=ahead)
    if room.is_full:
        return Refused()
    if room.quota is None:
        return None
    reservation = Reservation(call.client, room.quota, call.request_id, math.ceil(room.reserved_until))
    return Refused(quota=room.quota) if quotas.reserve(session, [reservation]) else None


def _next_turn(session: Session, call: StoredCall) -> int:
    """Return the turn of a client's new call: after its own waiting calls, and not before the first waiting call."""
    ((first,),) = session.rows(
        "SELECT MIN(turn) FROM calls WHERE platform = :platform AND state = 'waiting'", platform=call.platform
    )
    ((last,),) = session.rows(
        "SELECT MAX(turn) FROM calls WHERE client = :client AND platform = :platform AND state = 'waiting'",
        client=call.client,
        platform=call.platform,
    )
    return max(first or 0, 0 if last is None else last + 1)


def _count_ahead(session: Session, call: StoredCall) -> int:
    ((ahead,),) = session.rows(
        "SELECT COUNT(*) FROM calls WHERE platform = :platform AND state = 'waiting'"
        " AND (turn < :turn OR (turn = :turn AND request_id < :request_id))",
        platform=call.platform,
        turn=call.turn,
        request_id=call.request_id,
    )
    return int(ahead)


def find(session: Session, client: str, request_id: str) -> FoundCall | None:
    """Return a client's call, or None if the client has no such call."""
    rows = session.rows(
        f"SELECT {COLUMNS}, headers, body FROM calls"
        f" WHERE request_id = :request_id AND client = :client AND {READABLE}",
        request_id=request_id,
        client=client,
        now=store_time(),
    )
    if not rows:
        return None
    *columns, headers, body = rows[0]
    call = StoredCall(*columns)
    if call.status is None:
        return FoundCall(call, 1 + _count_ahead(session, call) if call.state == WAITING else None)
    return FoundCall(call, None, Answer(call.status, orjson.loads(headers), decompress(body), call.code or ""))


def page(session: Session, client: str, state: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return the response body of ``GET /v1/calls``: the calls of a client, the newest first."""
    now = store_time()
    numbers = f"SELECT state, COUNT(*) FROM calls WHERE client = :client AND {READABLE} GROUP BY state"
    counts = dict.fromkeys(STATES, 0)
    for each, number in session.rows(numbers, client=client, now=now):
        counts[each] = number
    rows = session.rows(
        f"SELECT {COLUMNS} FROM calls WHERE client = :client AND {READABLE}"
        f"{' AND request_id < :cursor' if cursor else ''}{' AND state = :state' if state else ''}"
        f" ORDER BY request_id DESC LIMIT {limit + 1:d}",
        client=client,
        now=now,
        **({"cursor": cursor} if cursor else {}),
        **({"state": state} if state else {}),
    )
    calls = [StoredCall(*row) for row in rows[:limit]]
    return {
        "client_id": client,
        "counts": counts,
        "calls": [call.as_dict() for call in calls],
        "next_cursor": calls[-1].request_id if len(rows) > limit else None,
    }


def delete(session: Session, client: str, request_id: str) -> bool:
    """Delete a client's call with its response and its ``Idempotency-Key``. Return False if there is no such call.

    A call that is not done is thereby cancelled.
    """
    rows = session.rows(
        f"DELETE FROM calls WHERE request_id = :request_id AND client = :client AND {READABLE}"
        " RETURNING scraper, idempotency_key, state",
        request_id=request_id,
        client=client,
        now=store_time(),
    )
    if not rows:
        return False
    ((scraper, key, state),) = rows
    if key is not None:
        idempotency.release_key(session, (client, key, request_id), stored=True)
    if state != DONE:
        usage.add(session, {(client, scraper, usage.today(), GONE): [1, 0, 0]})
        quotas.settle(session, [(client, request_id)])
    return True
