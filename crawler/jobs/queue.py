"""Chooses the next job for a worker that takes one job after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawler.jobs import statements as sql
from crawler.jobs.job import Job

if TYPE_CHECKING:
    from crawler.jobs.lifecycle import Jobs


async def open_jobs_of(jobs: Jobs, is_wanted: Callable[[Job], bool]) -> list[Job]:
    """Return the open jobs that a worker can take. The jobs of the owner with the fewest running targets are first.

    Raises:
        StoreUnavailable: the store cannot be read.
    """
    rows = await jobs.reads.transact(lambda session: session.execute(sql.OPEN_JOBS, {}).fetchall(), write=False)
    found = [job for job in map(Job.of, rows) if is_wanted(job)]
    running: Counter[str] = Counter()
    for job in found:
        running[job.owner] += job.counts["running"]
    return sorted(found, key=lambda job: running[job.owner])


async def first_waiting(jobs: Jobs, found: list[Job], platform: str) -> Job | None:
    """Return the first of the jobs with waiting targets of a platform, or None."""
    for job in found:
        if job.counts["waiting"] and await jobs.has_waiting(job.id, platform):
            return job
    return None
