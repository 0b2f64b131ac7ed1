"""Asynchronous calls in the store of jobs: accept, find, list, count and delete them.

The calls of a client are the targets of its standing job, whose kind is ``calls``. So calls have the same claims,
leases, outcomes and bills as other targets, and a waiting or running call is a reservation of its client's quota. With
one job for each call, computing fair shares and quotas would take time proportional to the number of calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from crawler.errors import Overloaded, ScrapeError, error_of
from crawler.jobs import statements as sql
from crawler.jobs.clock import store_time, utc_text
from crawler.jobs.counters import Changes, lock_jobs
from crawler.jobs.job import decompress
from crawler.jobs.leases import by_job
from crawler.service.calls import once
from crawler.service.calls.envelope import Answer, Call, Served, failure, success
from crawler.service.clients import quotas, usage
from crawler.targets.target import Target
from crawler.targets.warning import OutcomeWarning

if TYPE_CHECKING:
    from crawler.jobs.job import Key, Stored
    from crawler.jobs.store import Session
    from crawler.outputs.selection import Selection
    from crawler.service.calls.once import Found
    from crawler.service.clients.keys import Holder

NAME, KIND = "calls", "calls"
"""The name and the kind of the standing jobs. Other jobs of clients have other names."""
WAITING, RUNNING, DONE = STATES = ("waiting", "running", "done")
"""The states of a call. A call is ``done`` if its target is ``done``, ``failed`` or ``dead``."""
ENDED = ("done", "failed", "dead")
BYTES, NUMBER = "bytes", "ended"
"""The tallies of a standing job: the stored bytes of ended calls, and their number by platform."""
OVERHEAD_BYTES = 1_000
"""Estimated bytes of a stored call in addition to its response, for rows and indexes."""
FULL_RETRY_SECONDS = 600
"""``Retry-After`` while the stored calls take too much space."""
GONE = "CLIENT_GONE"
"""The code in usage for a call that its client deleted before it was done."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """An asynchronous call, without its record."""

    request_id: str
    client: str
    platform: str
    work: dict[str, Any]
    """The scraper, the params, the values of the headers, and the id and the limit of the API key."""
    expires: float
    """The time of the store at which a waiting call ends, or an ended call is deleted."""
    state: str = WAITING
    code: str | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    """The stored outcome: duration, billing, headers and warnings, or the error. Empty until the call is done."""
    job: int = 0

    @classmethod
    def new(
        cls, target: Target, holder: Holder, seconds: float, *, cache_control: str | None, key: str | None
    ) -> StoredCall:
        """Return the call of a client for a target.

        ``seconds``: the maximum time for which the call may wait. ``key``: the call's ``Idempotency-Key``.
        """
        now, scraper = store_time(), target.scraper
        params = target.params.model_dump(mode="json", exclude_none=True)
        work = {"scraper": scraper.name, "params": params, "accepted": now, "key_id": holder.key_id}
        work |= {"concurrency": holder.concurrency, "cache_control": cache_control, "key": key}
        return cls(target.id, holder.client, scraper.platform, work, now + seconds)

    @classmethod
    def of(cls, row: Any, client: str) -> StoredCall:
        """Return the call in a row of the table ``targets``."""
        request_id, work, outcome = row.key.decode(), orjson.loads(row.work), orjson.loads(row.outcome or b"{}")
        state = DONE if row.state in ENDED else row.state
        return cls(request_id, client, row.platform, work, row.expires, state, row.code, outcome, row.job)

    @property
    def scraper(self) -> str:
        """The name of the scraper."""
        return str(self.work["scraper"])

    def as_dict(self) -> dict[str, Any]:
        """Return the call's entry in the list of calls."""
        error, completed = self.outcome.get("error"), self.outcome.get("completed")
        status = None if self.code is None else error_of(error).http_status if error else 200
        return {
            "request_id": self.request_id,
            "scraper": self.scraper,
            "params": self.work["params"],
            "state": self.state,
            "accepted_at": utc_text(self.work["accepted"], "milliseconds"),
            "completed_at": None if completed is None else utc_text(completed, "milliseconds"),
            "code": self.code,
            "http_status": status,
            "billable": self.outcome.get("billable", False),
            "expires_at": utc_text(self.expires, "milliseconds"),
        }


@dataclass(frozen=True, slots=True)
class Room:
    """The limits under which a new call is accepted."""

    max_ahead: float
    """Maximum number of calls ahead of the new one in the queue of its platform."""
    seconds_per_call: float = 0.0
    """Estimated seconds between the ends of two calls in this queue."""
    is_full: bool = False
    """Whether the stored calls have their maximum size, so that no further call is accepted."""
    quota: int | None = None
    """The client's quota of billable calls per month; None if it has none."""


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A stored call of a client, with its position or its record."""

    call: StoredCall
    position: int | None = None
    """The position in the queue of the platform: 1 is the next call. None if the call does not wait."""
    record: bytes = b""
    """The JSON of the record, compressed; empty without a record."""

    @property
    def is_done(self) -> bool:
        """Whether the call has a response."""
        return self.call.state == DONE

    def answer(self, service_url: str, fields: Selection | None = None, *, replayed: bool = False) -> Answer:
        """Return the response of a call that is done, without ``Retry-After``, so that it is always the same.

        ``fields``: the fields of the record to return.
        ``replayed``: whether it is returned to a repeated call, which is not billed.
        """
        own, outcome = self.call, self.call.outcome
        seconds = outcome.get("duration_ms", 0) / 1_000
        call = Call(own.request_id, own.client, own.scraper, service_url=service_url, fields=fields)
        call.started, call.ended = 0.0, seconds
        if "error" not in outcome:
            record = orjson.Fragment(decompress(self.record))
            warnings = tuple(map(OutcomeWarning.from_dict, outcome["warnings"]))
            billable = outcome["billable"] and not replayed
            return success(call, Served(record, billable, outcome["headers"], warnings))
        found = failure(call, error_of(outcome["error"]))
        found.headers.pop("Retry-After", None)
        return found


def accept(session: Session, call: StoredCall, claim: once.Claim | None, room: Room) -> FoundCall | Found | ScrapeError:
    """Store a new call. Return it, or the row of its ``Idempotency-Key`` if another call has the key.

    If there is no room for the call, return the error. Nothing is stored.
    """
    if claim is not None and (found := claim.take(session)) is not None:
        return found
    job = _standing_job(session, call.client)
    ahead = _count_ahead(session, call.platform, job.id)
    if (error := _no_room(session, call, ahead, room)) is not None:
        if claim is not None:
            once.release_key(session, call.client, claim.key, call.request_id)
        return error
    row = {"job": job.id, "key": call.request_id.encode(), "platform": call.platform, "state": WAITING}
    session.execute(sql.ADD_TARGETS, row | {"work": orjson.dumps(call.work), "expires": call.expires})
    changes = Changes(session, {job.id: job})
    changes.move(job.id, to=WAITING)
    changes.store(store_time())
    return FoundCall(replace(call, job=job.id), ahead + 1)


def _standing_job(session: Session, client: str) -> Any:
    """Lock the row of a client's standing job, and return it. Add the row if it is missing."""
    named = {"owner": client, "name": NAME}
    found = session.execute(sql.LOCK_JOB, named).fetchone()
    if found is None:
        new = named | {"kind": KIND, "state": "open", "whole_roots": False, "options": b"{}", "created": store_time()}
        session.execute(sql.ADD_JOB, new)
        found = session.execute(sql.LOCK_JOB, named).fetchone()
    return found


def _no_room(session: Session, call: StoredCall, ahead: int, room: Room) -> ScrapeError | None:
    if ahead > room.max_ahead:
        late = (ahead + 1 - room.max_ahead) * room.seconds_per_call
        return Overloaded(
            f"{ahead} calls of {call.platform} are waiting, so this call could not start within the time for which"
            " calls may wait (CALL_MAX_HOURS).",
            retry_after=max(1, math.ceil(late)),
        )
    if room.is_full:
        return Overloaded(
            "The stored calls have reached their maximum size (CALL_STORE_MB). Delete calls that you do not need.",
            retry_after=FULL_RETRY_SECONDS,
        )
    if room.quota is not None and not quotas.room(session, call.client, room.quota):
        return quotas.exceeded(room.quota)
    return None


def _count_ahead(session: Session, platform: str, job: int, own: int | None = None) -> int:
    """Return the number of calls ahead of a call: clients take turns.

    ``own``: the number of its client's calls ahead of it. None: all waiting calls of its client.
    """
    waiting: dict[int, int] = dict(session.rows(sql.WAITING_CALLS, platform=platform))
    own = waiting.get(job, 0) if own is None else own
    return own + sum(min(number, own + (other < job)) for other, number in waiting.items() if other != job)


def find(session: Session, client: str, request_id: str) -> FoundCall | None:
    """Return a client's call, or None if the client has no such call."""
    row = session.execute(sql.CALL, _named(client, request_id)).fetchone()
    if row is None:
        return None
    call = StoredCall.of(row, client)
    if call.state != WAITING:
        return FoundCall(call, record=row.data or b"")
    ((own,),) = session.rows(sql.OWN_AHEAD, job=row.job, platform=call.platform, key=row.key)
    return FoundCall(call, 1 + _count_ahead(session, call.platform, row.job, own))


def _named(client: str, request_id: str) -> dict[str, Any]:
    return {"owner": client, "key": request_id.encode(), "now": store_time()}


def page(session: Session, client: str, state: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return the response body of ``GET /v1/calls``: the calls of a client, the newest first."""
    job = session.execute(sql.FIND_JOB, {"owner": client, "name": NAME}).fetchone()
    counts = dict.fromkeys(STATES, 0)
    calls = []
    if job is not None:
        counts = {WAITING: job.waiting, RUNNING: job.running, DONE: sum(getattr(job, each) for each in ENDED)}
        states = [*STATES, *ENDED] if state is None else ENDED if state == DONE else [state]
        before = b"\xff" if cursor is None else cursor.encode()
        values = {"job": job.id, "before": before, "states": states, "limit": limit + 1, "now": store_time()}
        calls = [StoredCall.of(row, client) for row in session.execute(sql.LIST_CALLS, values).fetchall()]
    return {
        "client_id": client,
        "counts": counts,
        "calls": [call.as_dict() for call in calls[:limit]],
        "next_cursor": calls[limit - 1].request_id if len(calls) > limit else None,
    }


def delete(session: Session, client: str, request_id: str) -> Key | None:
    """Delete a client's call with its record and its ``Idempotency-Key``.

    A waiting or running call is cancelled. Return the key of its target, None if the call does not exist.
    """
    row = session.execute(sql.LOCK_CALL, _named(client, request_id)).fetchone()
    if row is None:
        return None
    call = StoredCall.of(row, client)
    _drop(session, [row])
    if (key := call.work["key"]) is not None:
        once.release_key(session, client, key, request_id, stored=True)
    if call.state != DONE:
        usage.add(session, {(client, call.scraper, usage.today(), GONE): [1, 0, 0]})
    return row.job, row.key


def delete_expired(session: Session, limit: int) -> int:
    """Delete at most ``limit`` ended calls that have expired. Return their number."""
    rows = session.execute(sql.EXPIRED_CALLS, {"now": store_time(), "limit": limit}).fetchall()
    _drop(session, rows)
    return len(rows)


def _drop(session: Session, rows: list[Any]) -> None:
    """Delete locked targets with their records."""
    changes = Changes(session, lock_jobs(session, (row.job for row in rows)))
    for row in rows:
        changes.move(row.job, out=row.state)
        if row.state in ENDED:
            changes.tallies[row.job, BYTES, ""] -= len(row.outcome) + (row.size or 0)
            changes.tallies[row.job, NUMBER, row.platform] -= 1
    for job, keys in by_job((row.job, row.key) for row in rows).items():
        for statement in sql.DROP_TARGETS:
            session.execute(statement, {"job_": job, "keys": keys})
    changes.store(store_time())


def count_ended(session: Session, calls: Iterable[Stored]) -> None:
    """Count calls that end in this transaction, and their stored bytes."""
    counts: Counter[tuple[int, str, str]] = Counter()
    for each in calls:
        claim = each.finished.claim
        counts[claim.job, BYTES, ""] += len(each.outcome) + len(each.record)
        counts[claim.job, NUMBER, claim.platform] += 1
    rows = [
        {"job": job, "kind": kind, "name": name.encode(), "n": n} for (job, kind, name), n in sorted(counts.items())
    ]
    session.execute(sql.ADD_TALLIES, rows)


def unfinished(session: Session, calls: Iterable[tuple[int, bytes]]) -> set[bytes]:
    """Return which of these calls wait or run, as a set of their keys in the store.

    ``calls``: the job and key of each call.
    """
    return {
        key for job, keys in by_job(calls).items() for (key,) in session.rows(sql.UNFINISHED_OF, job_=job, keys=keys)
    }


def load(session: Session, platforms: Iterable[str]) -> tuple[dict[tuple[str, str], int], int]:
    """Return the numbers of calls by platform and state, and the size of all calls in bytes."""
    numbers = {
        (platform, state): int(number)
        for state, statement in ((WAITING, sql.CALLS_WAITING), (RUNNING, sql.CALLS_RUNNING))
        for platform, number in session.rows(statement, platforms=[*platforms])
    }
    tallies = {(kind, name.decode()): int(n) for kind, name, n in session.rows(sql.CALL_TALLIES)}
    numbers |= {(name, DONE): n for (kind, name), n in tallies.items() if kind == NUMBER}
    return numbers, tallies.get((BYTES, ""), 0) + OVERHEAD_BYTES * sum(numbers.values())
