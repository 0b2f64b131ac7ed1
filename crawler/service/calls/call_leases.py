"""Asynchronous calls in the service's store: claim, put back and complete them for the processes that run them.

A process that runs a call has a lease on it, which the process renews. If the process is killed, the lease expires, and
the call waits again. Only the process with the lease can complete the call, so each call is completed and billed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs.clock import store_time
from crawler.jobs.job import compress
from crawler.service.calls import idempotency
from crawler.service.calls.call_store import COLUMNS, DONE, RUNNING, StoredCall
from crawler.service.clients import quotas, usage

if TYPE_CHECKING:
    from crawler.jobs.store import Session
    from crawler.service.calls.call_store import CallSettings
    from crawler.service.calls.envelope import Answer
    from crawler.targets.warning import OutcomeWarning

CLAIM_ATTEMPTS = 3
"""Number of tries, because another process may claim the same call at the same time."""
CLEAN_UP_CALLS = 500
"""Maximum number of calls that one clean-up changes, so that its transaction is short even after a long stop."""
MAX_HOLD_SECONDS = 120
"""No call is held for longer. If it is to be claimed later than that, the system's clock was set back."""
DUE = f"state = 'waiting' AND expires > :now AND (ready <= :now OR ready - {MAX_HOLD_SECONDS} > :now)"
"""SQL condition: a call can be claimed to be run. Calls that have waited for too long are only claimed to be ended."""


def claim(
    session: Session, platform: str, owner: str, lease: float, without: Collection[str] = ()
) -> tuple[StoredCall | None, bool]:
    """Claim the next call in the queue of a platform for a process (``owner``), until the Unix time ``lease``.

    ``without``: clients whose calls must wait. Return the call, and whether others can be claimed after it.
    """
    names = {f"client{number}": client for number, client in enumerate(sorted(without))}
    others = f" AND client NOT IN ({', '.join(f':{name}' for name in names)})" if names else ""
    queue = f"platform = :platform AND {DUE}{others} ORDER BY turn, request_id"
    return _claim(session, queue, owner, lease, platform=platform, **names)


def claim_expired(session: Session, owner: str, lease: float) -> StoredCall | None:
    """Claim a call that has waited for too long, so that the process can end it."""
    return _claim(session, "state = 'waiting' AND expires <= :now", owner, lease)[0]


def _claim(session: Session, condition: str, owner: str, lease: float, **values: Any) -> tuple[StoredCall | None, bool]:
    for _ in range(CLAIM_ATTEMPTS):
        values["now"] = store_time()
        candidates = session.rows(f"SELECT request_id FROM calls WHERE {condition} LIMIT 2", **values)
        if not candidates:
            break
        rows = session.rows(
            "UPDATE calls SET state = 'running', owner = :owner, lease = :lease"
            f" WHERE request_id = :request_id AND state = 'waiting' RETURNING {COLUMNS}",
            owner=owner,
            lease=lease,
            request_id=candidates[0][0],
        )
        if rows:
            return StoredCall(*rows[0]), len(candidates) > 1
    return None, False


def put_back(session: Session, call: StoredCall, owner: str, ready: float) -> None:
    """Return a running call to its queue, where it keeps its turn.

    ``ready``: the Unix time until which it must wait, at most ``MAX_HOLD_SECONDS`` from now.
    """
    session.run(
        "UPDATE calls SET state = 'waiting', owner = NULL, lease = NULL, ready = :ready"
        " WHERE request_id = :request_id AND state = 'running' AND owner = :owner",
        request_id=call.request_id,
        owner=owner,
        ready=ready,
    )


def hold_key(session: Session, key_id: str, ready: float) -> None:
    """Delay the waiting calls of an API key until a Unix time, because the key has its maximum of calls in flight."""
    _hold(session, "key_id = :key_id", ready, key_id=key_id)


def hold_scraper(session: Session, scraper: str, ready: float) -> None:
    """Delay the waiting calls of a scraper until a Unix time, because a source that it needs refuses requests."""
    _hold(session, "scraper = :scraper", ready, scraper=scraper)


def _hold(session: Session, condition: str, ready: float, **values: str) -> None:
    session.run(
        f"UPDATE calls SET ready = :ready WHERE {condition} AND state = 'waiting' AND ready < :ready",
        ready=ready,
        **values,
    )


@dataclass(frozen=True, slots=True)
class Result:
    """The response of a call that was run, and what is stored with its ``Idempotency-Key``."""

    answer: Answer
    data: bytes | None = None
    """The JSON of the record; None if the call failed."""
    warnings: tuple[OutcomeWarning, ...] = ()


def complete(session: Session, call: StoredCall, owner: str, result: Result, settings: CallSettings) -> bool:
    """Store the response of a running call, and count it in usage. Return False if the process has lost the call.

    The response is stored without ``Retry-After``, because a repeated ``GET`` returns the same response. A process has
    lost a call if the client has deleted it, or if the lease has expired and another process has claimed it. The
    response is then not billed.
    """
    now = store_time()
    answer = result.answer
    body = compress(answer.body)
    if not session.run(
        "UPDATE calls SET state = 'done', owner = NULL, lease = NULL, completed = :now, expires = :expires,"
        " status = :status, code = :code, billable = :billable, bytes = bytes + :bytes, headers = :headers,"
        " body = :body WHERE request_id = :request_id AND state = 'running' AND owner = :owner",
        now=now,
        expires=now + settings.result_seconds,
        status=answer.status,
        code=answer.code,
        billable=int(answer.billable),
        bytes=len(body),
        headers=orjson.dumps({name: answer.headers[name] for name in answer.headers if name != "Retry-After"}).decode(),
        body=body,
        request_id=call.request_id,
        owner=owner,
    ):
        return False
    counts = [1, int(answer.billable), int(answer.partial)]
    usage.add(session, {(call.client, call.scraper, usage.today(), answer.code): counts})
    quotas.settle(session, [(call.client, call.request_id)])
    if call.idempotency_key is not None:
        owned = (call.client, call.idempotency_key, call.request_id)
        if result.data is None:
            idempotency.release_key(session, owned)
        else:
            idempotency.store_result(session, owned, result.data, result.warnings, settings.idempotency_seconds)
    return True


# Upkeep


@dataclass(frozen=True, slots=True)
class Pending:
    """The tasks of a process."""

    platforms: tuple[str, ...]
    """The platforms with calls that can be claimed."""
    lost: bool
    """Whether leases of killed processes or stored responses have expired."""
    expired: bool
    """Whether calls have waited for too long."""
    owned: frozenset[str]
    """The ids of the calls on which the process has a lease."""


def pending(session: Session, owner: str, platforms: Iterable[str]) -> Pending:
    """Return the tasks of a process. ``platforms``: the platforms to check for waiting calls."""
    now = store_time()
    due = f"SELECT 1 FROM calls WHERE platform = :platform AND {DUE} LIMIT 1"
    lost = "SELECT 1 FROM calls WHERE (state = 'running' AND lease <= :now) OR (state = 'done' AND expires <= :now)"
    expired = "SELECT 1 FROM calls WHERE state = 'waiting' AND expires <= :now LIMIT 1"
    owned = "SELECT request_id FROM calls WHERE state = 'running' AND owner = :owner"
    return Pending(
        tuple(platform for platform in platforms if session.rows(due, platform=platform, now=now)),
        bool(session.rows(f"{lost} LIMIT 1", now=now)),
        bool(session.rows(expired, now=now)),
        frozenset(request_id for (request_id,) in session.rows(owned, owner=owner)),
    )


def renew(session: Session, owner: str, running: Iterable[str], lease: float) -> None:
    """Renew the leases of a process on its running calls."""
    renewal = "UPDATE calls SET lease = :lease WHERE request_id = :id AND state = 'running' AND owner = :owner"
    for request_id in sorted(running):
        session.run(renewal, id=request_id, lease=lease, owner=owner)


def clean_up(session: Session) -> None:
    """Let calls of killed processes wait again, and delete expired responses: at most ``CLEAN_UP_CALLS`` of each.

    A process renews its own leases in another transaction before: with both in one, two processes would wait for each
    other's calls if the leases of both have expired, because the store was unavailable.
    """
    now = store_time()
    expired = "SELECT request_id FROM calls WHERE state = :state AND {} <= :now ORDER BY request_id LIMIT :limit"
    for (request_id,) in session.rows(expired.format("lease"), state=RUNNING, now=now, limit=CLEAN_UP_CALLS):
        session.run(
            "UPDATE calls SET state = 'waiting', owner = NULL, lease = NULL"
            " WHERE request_id = :id AND state = 'running' AND lease <= :now",
            id=request_id,
            now=now,
        )
    for (request_id,) in session.rows(expired.format("expires"), state=DONE, now=now, limit=CLEAN_UP_CALLS):
        session.run("DELETE FROM calls WHERE request_id = :id", id=request_id)


def unfinished(session: Session, request_ids: list[str]) -> frozenset[str]:
    """Return the ids whose calls wait or run."""
    if not request_ids:
        return frozenset()
    names = {f"id{number}": request_id for number, request_id in enumerate(request_ids)}
    rows = session.rows(
        f"SELECT request_id FROM calls WHERE request_id IN ({', '.join(f':{name}' for name in names)})"
        " AND state <> 'done'",
        **names,
    )
    return frozenset(request_id for (request_id,) in rows)


def load(session: Session) -> tuple[dict[tuple[str, str], int], int]:
    """Return the numbers of calls by platform and state, and the size of all calls in bytes."""
    rows = session.rows("SELECT platform, state, COUNT(*) FROM calls GROUP BY platform, state")
    ((size,),) = session.rows("SELECT COALESCE(SUM(bytes), 0) FROM calls")
    return {(platform, state): int(number) for platform, state, number in rows}, int(size)
