"""The counters of jobs, which change in the same transaction as the states of the targets, and a check of them.

The event of a client's job that is done is stored in this transaction, too, in an outbox: a row for each event that is
to be sent. So the event of each committed end is sent, even if processes are killed (``service/webhooks.py``).
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from crawler.jobs import tables as sql
from crawler.jobs.job import Job, Key
from crawler.jobs.store import Session, utc_text
from crawler.jobs.tables import STATES


def lock_jobs(session: Session, jobs: Iterable[int]) -> dict[int, Any]:
    """Lock rows of jobs until the end of the transaction. Return the rows by id. Deleted jobs are left out."""
    return {row.id: row for row in session.execute(sql.LOCK_JOBS, {"jobs": sorted(set(jobs))}).fetchall()}


def by_job(targets: Iterable[Key]) -> dict[int, list[bytes]]:
    """Group targets by their job, in ascending order. All transactions lock rows in this order."""
    found: dict[int, list[bytes]] = {}
    for job, key in sorted(targets):
        found.setdefault(job, []).append(key)
    return found


@dataclass
class Changes:
    """Collects changes of the counters of locked jobs, and assigns the sequence numbers of their outcomes.

    A job is done when none of its targets is waiting, running or paused. An open job is paused when one of its targets
    is paused, because a limit was reached.
    """

    session: Session
    jobs: dict[int, Any]
    """Id of a job -> its locked row."""
    tallies: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    """(job, kind, name) -> the number to add to the tally."""
    states: dict[int, str] = field(default_factory=dict)
    """Id of a job -> the state to set. Instead of ``open`` or ``paused``, the targets' states may make the job done."""
    _counts: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Id of a job -> the numbers to add to its counters."""

    def move(self, job: int, *, out: str | None = None, to: str | None = None, n: int = 1) -> None:
        """Count ``n`` targets that change from the state ``out`` to ``to``. ``out=None``: new. ``to=None``: deleted."""
        if out:
            self._counts[job][out] -= n
        if to:
            self._counts[job][to] += n

    def add(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add targets that are not stored yet. Return their rows. A failed target has its outcome from the start."""
        new: dict[Key, dict[str, Any]] = {}
        for row in rows:
            new.setdefault((row["job"], row["key"]), row)
        for job, keys in by_job(new).items():  # no other transaction adds targets to a job that is locked
            for (key,) in self.session.rows(sql.STORED, job_=job, keys=keys):
                del new[job, key]
        for (job, _), row in new.items():
            self.move(job, to=row["state"])
            if row["state"] == "failed":
                row["seq"] = self.end(job, row["code"])
        self.session.execute(sql.ADD_TARGETS, list(new.values()))
        return list(new.values())

    def end(self, job: int, code: str) -> int:
        """Count an outcome. Return its sequence number."""
        self.tallies[job, "code", code] += 1
        self._counts[job]["seq"] += 1
        return int(self.jobs[job].seq + self._counts[job]["seq"])

    def store(self, now: float) -> None:
        """Store the new counters, states and tallies of the jobs, and the events of jobs that are done.

        ``now``: the Unix time of the database, which becomes the end of jobs that end now.
        """
        changed = sorted(self._counts.keys() | self.states.keys())
        after = {job: self._after(self.jobs[job], self._counts[job], now) for job in changed}
        values = [{"job_": job, **{f"{name}_": value for name, value in new.items()}} for job, new in after.items()]
        self.session.execute(sql.COUNT, values)
        for job, new in after.items():
            _post_done(self.session, self.jobs[job], new, now)
        tallies = [
            {"job": job, "kind": kind, "name": name.encode(errors="backslashreplace"), "n": n}
            for (job, kind, name), n in sorted(self.tallies.items())
        ]
        self.session.execute(sql.ADD_TALLIES, tallies)

    def _after(self, row: Any, changes: Counter[str], now: float) -> dict[str, Any]:
        counts = {name: getattr(row, name) + changes[name] for name in (*STATES, "seq")}
        startable = counts["waiting"] + counts["running"]
        state, ended = self.states.get(row.id, row.state), row.ended
        if state == "cancelled":
            ended = ended or now
        elif state in {"open", "paused", "done"}:
            if not startable and not counts["paused"]:
                state = "done"
            elif state == "done":
                state = "open"
            elif changes["paused"] > 0 or not startable:
                state = "paused"
            ended = (ended or now) if state == "done" else None
        revision = row.revision + (state == "done" and row.state != "done")
        return counts | {"state": state, "ended": ended, "revision": revision}


def _post_done(session: Session, before: Any, new: dict[str, Any], now: float) -> None:
    """Store the event of a client's job that has become done, again after each retry, in the outbox.

    ``before``: the job's row. ``new``: its new values. ``now``: the Unix time of the database.
    """
    if before.owner and before.kind == "job" and new["state"] == "done" != before.state:
        data = Job.of(before._replace(**new)).described()
        body = orjson.dumps({"type": "job.done", "timestamp": utc_text(now), "data": data})
        sorted_by_time = f"msg_{round(now * 1000):012x}{secrets.token_hex(10)}"
        # A new event is due at every time, also if the clock has jumped.
        row = {"id": sorted_by_time, "client": before.owner, "body": body, "created": now, "due": 0.0}
        session.execute(sql.ADD_EVENT, row)


def check(session: Session, job: Job) -> list[str]:
    """Return a sentence for each difference between the counters of a job and the rows of its targets and records."""
    found = session.execute(sql.JOB, {"job": job.id}).fetchone()
    if found is None:
        return [f"The job {job.name!r} was removed."]
    stored = Job.of(found)
    rows = {state: (int(n), int(records)) for state, n, records in session.rows(sql.BOOKS, job=job.id)}
    problems = [
        f"{stored.counts[state]} targets are counted as {state}, but {rows.get(state, (0, 0))[0]} are {state}."
        for state in STATES
        if stored.counts[state] != rows.get(state, (0, 0))[0]
    ]
    records = {state: n for state, (_, n) in rows.items() if n and state != "done"}
    if records or rows.get("done", (0, 0)) != (stored.counts["done"], stored.counts["done"]):
        problems.append(f"{rows.get('done', (0, 0))[1]} records belong to {stored.counts['done']} done targets.")
    ended = sum(rows.get(state, (0, 0))[0] for state in ("done", "failed", "dead"))
    numbered, last, distinct = (int(each or 0) for each in session.rows(sql.NUMBERED, job=job.id)[0])
    if not numbered == distinct == ended or last > stored.seq:
        problems.append(f"{ended} targets have an outcome, with {distinct} different sequence numbers up to {last}.")
    return problems
