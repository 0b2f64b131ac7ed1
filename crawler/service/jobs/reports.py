"""The descriptions of jobs in the endpoint's responses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from crawler.jobs.clock import utc_text
from crawler.jobs.export import Cursor
from crawler.jobs.report import failures_by_code

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

DAY_SECONDS = 86_400.0


def describe(job: Job, keep_days: float) -> dict[str, Any]:
    """Return the description of a job in a list. ``keep_days``: the setting ``JOBS_KEEP``."""
    counts: dict[str, int] = {state: n for state, n in job.counts.items() if state != "paused"}  # only of commands
    left = counts["waiting"] + counts["running"]
    rate, estimate = None, None
    if job.state == "open" and job.seq:
        seconds = max(1e-3, time.time() - job.created)
        rate = round(job.seq / seconds * 60, 1)
        estimate = utc_text(time.time() + left * seconds / job.seq)
    expires = None if job.ended is None or left else utc_text(job.ended + keep_days * DAY_SECONDS)
    return {
        "job_id": str(job.id),
        "name": job.name,
        "run": job.run,
        "revision": job.revision,
        "state": job.state,
        "idempotency_key": job.key,
        "targets": {"total": sum(counts.values()), **counts},
        "created_at": utc_text(job.created),
        "ended_at": None if job.ended is None else utc_text(job.ended),
        "expires_at": expires,
        "targets_per_minute": rate,
        "estimated_end": estimate,
        "cursor": str(Cursor(job.id, job.seq)),
    }


def previous(earlier: list[Job]) -> str | None:
    """Return the id of the last run before a run, from the runs with which it can be compared."""
    return str(earlier[0].id) if earlier else None


async def detail(jobs: Jobs, job: Job, keep_days: float) -> dict[str, Any]:
    """Return the description of a job, with its tallies, and with examples of its failures."""
    tallies = await jobs.tallies(job.id)
    earlier = await jobs.earlier(job)

    def of(kind: str) -> dict[str, int]:
        return {name: n for (each, name), n in sorted(tallies.items()) if each == kind and n}

    coverage = {"listings": 0, "expected": 0, "collected": 0} | of("coverage")
    return {
        **describe(job, keep_days),
        "previous": previous(earlier),
        "arguments": job.options.arguments,
        "scrapers": [*of("scraper")],
        "codes": of("code"),
        "failures": await failures_by_code(jobs, job, tallies),
        "repeated": tallies.get(("repeated", "lines"), 0),
        "partial": tallies.get(("partial", "records"), 0),
        "unread": of("unread"),
        "unread_rows": of("unread rows"),
        "warnings": [_warning(name, n) for name, n in of("warning").items()],
        "coverage": coverage if coverage["listings"] else None,
    }


def _warning(name: str, count: int) -> dict[str, Any]:
    source, code, reason = name.rsplit("/", 2)
    return {"source": source, "code": code, "reason": reason, "count": count}
