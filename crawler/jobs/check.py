"""Checks that the counters of a job agree with its targets, records and sequence numbers."""

from __future__ import annotations

from crawler.jobs import statements as sql
from crawler.jobs.job import STATES, Job
from crawler.jobs.store import Session


def check(session: Session, job: Job) -> list[str]:
    """Return a sentence for each difference between the counters of a job and its rows."""
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
