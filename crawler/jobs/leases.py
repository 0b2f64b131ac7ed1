"""Leases of targets: the transactions in which workers claim, renew, expire, release and finish targets.

A worker holds a target by a lease. ``tries`` is a fencing token: if the lease expires and another worker claims the
target, outcomes of the first worker are refused.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import orjson

from crawler.downloads.facts import process_name
from crawler.jobs import tables as sql
from crawler.jobs.counters import Changes, by_job, lock_jobs
from crawler.jobs.job import AlsoStore, Claim, Finished, Key, Stored
from crawler.jobs.store import Session, lease_clock

EXPIRED_PER_TRANSACTION = 500
RENEWED_PER_STATEMENT = 200
MAX_LEASE_SECONDS = 3_600.0
"""Maximum seconds of a lease. A lease that ends later was renewed while the clock was ahead, and its worker has not
renewed it since: it has expired."""

NOT_HELD = {"worker": None, "tries": 0, "lease_until": None}

Result: TypeAlias = Literal["stored", "already stored", "lost"]
Status: TypeAlias = Literal["held", "already stored", "lost"]


@dataclass(frozen=True)
class Holder:
    """The properties of a worker that its transactions use.

    ``worker``: the name of the worker. ``lease``: the duration of its leases in seconds. ``exits``: a target is dead
    when more workers than this have exited while they held it.
    """

    worker: str = field(default_factory=process_name)
    lease: float = 60.0
    exits: int = 5
    job: int | None = None
    """The job whose targets the worker claims. None: all jobs, with fair shares for their owners."""
    needs_roots: bool = True
    """Whether the worker claims roots as a whole, if the job demands this. False: it ends targets without a spider."""
    owned_only: bool = False
    """Whether the worker claims only targets of clients' jobs without spider arguments."""
    also_store: AlsoStore | None = None
    """Stores rows of the same outcomes in other tables, such as usage and bills, in the same transaction."""
    turns: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Platform -> owner -> when the worker last claimed one of the owner's targets, as a time of ``lease_clock()``."""


@dataclass(frozen=True)
class Skipped:
    """The owners and jobs whose targets a claim skips."""

    owners: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()


def shares(running: dict[str, int], n: int, turns: dict[str, float]) -> Counter[str]:
    """Divide ``n`` free places among owners, so that each has the same number of running targets if possible.

    ``running``: owner -> the number of its running targets. ``turns``: owner -> when it last got a place. Of owners
    with equal numbers, the owner that has waited longest is first.

    >>> shares({"busy": 5, "new": 0, "other": 1}, 4, {}) == {"new": 3, "other": 1}
    True
    >>> shares({"first": 0, "second": 0}, 1, {"first": 10.0}) == {"second": 1}
    True
    """
    heap = [(count, turns.get(owner, 0.0), owner) for owner, count in running.items()]
    heapq.heapify(heap)
    found: Counter[str] = Counter()
    for _ in range(n if heap else 0):
        count, turn, owner = heap[0]
        heapq.heapreplace(heap, (count + 1, turn, owner))
        found[owner] += 1
    return found


def claim(session: Session, holder: Holder, platform: str, n: int, skipped: Skipped) -> list[Claim]:
    """Claim at most ``n`` targets, first the targets of the owners with the fewest running targets on the platform.

    Of a job of whole roots, claim all waiting targets of one root, even if these are more than ``n``.
    """
    if holder.job is not None:
        found = session.rows(sql.JOB_TO_CLAIM, job=holder.job)
        wanted = [(job, whole_roots and holder.needs_roots) for job, whole_roots in found]
        return _start(session, holder, _free(session, platform, n, wanted))
    values = {"platform": platform, "skipped": sorted({0, *skipped.jobs})}
    running: Counter[str] = Counter()
    jobs: dict[str, list[tuple[int, bool]]] = {}
    excluded = skipped.owners | {""} if holder.owned_only else skipped.owners
    for job, owner, whole_roots, number, has_targets in session.rows(sql.JOBS_TO_CLAIM, **values):
        running[owner] += number
        if has_targets and owner not in excluded and not (holder.owned_only and whole_roots):
            jobs.setdefault(owner, []).append((job, whole_roots))
    taken: dict[str, list[Any]] = {owner: [] for owner in jobs}
    turns = holder.turns[platform]
    while jobs and (left := n - sum(map(len, taken.values()))) > 0:
        waiting = {owner: running[owner] for owner in jobs}
        ((owner, share),) = shares(waiting, left, turns).most_common(1)
        had = len(taken[owner])
        taken[owner] = _free(session, platform, had + share, jobs[owner])
        running[owner] += len(taken[owner]) - had
        turns[owner] = lease_clock()
        if len(taken[owner]) < had + share:
            del jobs[owner]
    return _start(session, holder, [row for rows in taken.values() for row in rows])


def _free(session: Session, platform: str, n: int, jobs: Sequence[Any]) -> list[Any]:
    """Lock and return waiting targets of jobs, in the order of the jobs: at most ``n``, or more with a whole root.

    Of a job of whole roots, these are all waiting targets of one root, none of whose targets is running.
    """
    found: list[Any] = []
    for job, whole_roots in jobs:
        values = {"job": job, "platform": platform}
        if not whole_roots:
            found += session.execute(sql.TO_CLAIM, values | {"limit": n - len(found)}).fetchall()
        elif first := session.execute(sql.FREE_ROOT, values).fetchone():
            found += session.execute(sql.ROOT_TO_CLAIM, {"job": job, "root": first.root}).fetchall()
        if len(found) >= n:
            break
    return found


def _start(session: Session, holder: Holder, found: list[Any]) -> list[Claim]:
    """Start locked targets, except those whose job is no longer open, or whose root another worker has started."""
    if not found:
        return []
    changes = Changes(session, lock_jobs(session, (row.job for row in found)))
    is_open = {job for job, row in changes.jobs.items() if row.state == "open"}
    roots = {(row.job, row.root) for row in found if row.root}
    busy = {(job, root) for job, root in roots if session.rows(sql.BUSY, job=job, root=root)[0][0]}
    rows = [row for row in found if row.job in is_open and (row.job, row.root) not in busy]
    now = session.now()
    values = {"worker_": holder.worker, "until": now + holder.lease}
    for job, keys in by_job((row.job, row.key) for row in rows).items():
        session.execute(sql.START, {"job_": job, "keys": keys, **values})
        changes.move(job, out="waiting", to="running", n=len(keys))
    changes.store(now)
    return [_claim_of(row, changes, tries=row.tries + 1) for row in rows]


def _claim_of(row: Any, changes: Changes, tries: int) -> Claim:
    job = changes.jobs[row.job]
    own = (row.platform, orjson.loads(row.work), row.row, row.root)
    return Claim(row.job, row.key, tries, *own, job.owner)


def renew(session: Session, holder: Holder, claims: Sequence[Claim]) -> set[tuple[int, bytes, int]]:
    """Renew the leases of claims. Return (job, key, tries) of the claims that the worker still holds."""
    values = {"worker_": holder.worker, "until": session.now() + holder.lease}
    held: set[tuple[int, bytes, int]] = set()
    for job, keys in by_job(each.target for each in claims).items():
        for start in range(0, len(keys), RENEWED_PER_STATEMENT):
            part = keys[start : start + RENEWED_PER_STATEMENT]
            rows = session.execute(sql.RENEW, {"job_": job, "keys": part, **values}).fetchall()
            held.update((job, key, tries) for key, tries in rows)
    return held


def expire(session: Session, holder: Holder, is_steady: Callable[[float], bool]) -> int:
    """Put targets whose lease has expired back into their queues, or declare them dead. Return their number.

    In cancelled jobs, targets are not requeued, but cancelled. ``is_steady``: gets the time of the database, and
    returns whether its clock is steady. If it is not, nothing is changed.
    """
    now = session.now()
    if not is_steady(now):
        return 0
    values = {"now": now, "far": now + MAX_LEASE_SECONDS, "limit": EXPIRED_PER_TRANSACTION}
    rows = session.execute(sql.EXPIRED, values).fetchall()
    if not rows:
        return 0
    changes = Changes(session, lock_jobs(session, (row.job for row in rows)))
    moves, ends, dead = [], [], []
    for row in rows:
        bills = holder.owned_only or not changes.jobs[row.job].owner  # only workers of the endpoint bill clients
        if row.exits + 1 > holder.exits and bills:
            message = f"{row.exits + 1} workers exited while the target was in progress."
            claimed = _claim_of(row, changes, row.tries)
            dead.append(Stored.failure(Finished(claimed, "failed"), message))
            ends.append(_end(changes, dead[-1], "dead") | {"exits_": 1})
        else:
            moves.append(_requeue(changes, row.job, row.key) | {"exits_": 1})
    session.execute(sql.MOVE, moves)
    session.execute(sql.FINISH, ends)
    if holder.also_store is not None and dead:
        holder.also_store(session, dead)
    changes.store(now)
    return len(rows)


def release(session: Session, holder: Holder, claims: Iterable[Claim]) -> None:
    """Put claimed targets back into their queues. Targets that the worker no longer holds are not changed."""
    status = _statuses(session, holder, list(claims))
    held = [target for target, each in status.items() if each == "held"]
    if held:
        changes = Changes(session, lock_jobs(session, (job for job, _ in held)))
        session.execute(sql.MOVE, [_requeue(changes, *target) for target in held])
        changes.store(session.now())


def _statuses(session: Session, holder: Holder, claims: Sequence[Claim]) -> dict[Key, Status]:
    """Lock claimed targets. Return the state of each claim. Targets that were deleted are left out."""
    wanted = {each.target: each for each in claims}
    return {
        (row.job, row.key): _status(row, holder, wanted[row.job, row.key])
        for job, keys in by_job(wanted).items()
        for row in session.execute(sql.HELD, {"job_": job, "keys": keys}).fetchall()
    }


def _status(row: Any, holder: Holder, claimed: Claim) -> Status:
    """Return the state of a claim. ``already stored``: an earlier commit succeeded, but its response was lost."""
    if row.worker == holder.worker and row.tries == claimed.tries:
        if row.state == "running":
            return "held"
        if row.state in {"done", "failed", "paused"}:
            return "already stored"
    return "lost"


def _requeue(changes: Changes, job: int, key: bytes) -> dict[str, Any]:
    to = "cancelled" if changes.jobs[job].state == "cancelled" else "waiting"
    changes.move(job, out="running", to=to)
    return {"job_": job, "key_": key, "to": to, "exits_": 0}


def _end(changes: Changes, stored: Stored, state: str) -> dict[str, Any]:
    finished, (job, key) = stored.finished, stored.finished.claim.target
    changes.move(job, out="running", to=state)
    changes.tallies.update({(job, *tally): n for tally, n in finished.tallies.items()})
    values = {"job_": job, "key_": key, "to": state, "code_": finished.code, "outcome_": stored.outcome}
    return values | {"note_": stored.note, "exits_": 0, "seq_": changes.end(job, finished.code)}


def finish(session: Session, holder: Holder, batch: Sequence[Stored]) -> tuple[list[Result], list[Claim]]:
    """Store the outcomes, records and follow-ups of those targets of a batch that the worker still holds.

    ``holder.also_store`` is called with these targets. Return the result for each target of the batch, and the
    follow-ups that the worker now holds, because they belong to its roots.
    """
    status = _statuses(session, holder, [each.finished.claim for each in batch])
    mine = [each for each in batch if status.get(each.finished.claim.target) == "held"]
    jobs = lock_jobs(session, (each.finished.claim.job for each in mine))
    changes = Changes(session, jobs)
    ends, pauses, data = [], [], []
    for each in mine:
        finished, (job, key) = each.finished, each.finished.claim.target
        if finished.state == "paused":
            changes.move(job, out="running", to="paused")
            pauses.append({"job_": job, "key_": key, "to": "paused", "exits_": 0})
            continue
        ends.append(_end(changes, each, finished.state))
        if finished.state == "done":
            data.append({"job": job, "seq": ends[-1]["seq_"], "data": each.record})
    for statement, values in ((sql.FINISH, ends), (sql.MOVE, pauses), (sql.ADD_RECORDS, data)):
        session.execute(statement, values)
    now = session.now()
    own = _add_followups(changes, holder, mine, now + holder.lease)
    if holder.also_store is not None:
        holder.also_store(session, mine)
    changes.store(now)
    found: dict[Key, Result] = {target: "stored" if each == "held" else each for target, each in status.items()}
    return [found.get(each.finished.claim.target, "lost") for each in batch], own


def _add_followups(changes: Changes, holder: Holder, mine: Sequence[Stored], until: float) -> list[Claim]:
    """Add the follow-ups of finished targets that are not stored yet. Return those that the worker now holds."""
    rows: list[dict[str, Any]] = []
    for each in mine:
        claimed = each.finished.claim
        job = changes.jobs[claimed.job]
        state = "cancelled" if job.state == "cancelled" else "running" if job.whole_roots else "waiting"
        held = {"worker": holder.worker, "tries": 1, "lease_until": until} if state == "running" else NOT_HELD
        shared = {"job": claimed.job, "root": claimed.root, "parent": claimed.key, "row": claimed.row, "state": state}
        for followup, work in zip(each.finished.followups, each.works, strict=True):
            own = {"key": followup.key, "platform": followup.platform, "work": work}
            rows.append(shared | held | own)
    return [
        Claim(
            *(row["job"], row["key"], 1, row["platform"], orjson.loads(row["work"]), row["row"], row["root"]),
            changes.jobs[row["job"]].owner,
        )
        for row in changes.add(rows)
        if row["state"] == "running"
    ]
