"""Chooses the next job for a worker that takes one job after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawler.jobs import statements as sql
from crawler.jobs.job import Job

if TYPE_CHECKING:
    from crawler.jobs.lifecycle import Jobs


async def open_jobs_of(jobs: Jobs, platform: str, is_wanted: Callable[[Job], bool]) -> list[Job]:
    """Return the open jobs for which ``is_wanted`` returns True.

    The jobs of the owner with the fewest running targets on the platform are first.

    Raises:
        StoreUnavailable: the store cannot be read.
    """
    found = [job for job in map(Job.of, await jobs.read(sql.OPEN_JOBS)) if is_wanted(job)]
    numbers: dict[int, int] = dict(await jobs.read(sql.RUNNING_ON, platform=platform))
    running: Counter[str] = Counter()
    for job in found:
        running[job.owner] += numbers.get(job.id, 0)
    return sorted(found, key=lambda job: running[job.owner])


async def first_waiting(jobs: Jobs, found: list[Job], platform: str) -> Job | None:
    """Return the first job of a list that has waiting targets of a platform, or None."""
    for job in found:
        if job.counts["waiting"] and await jobs.has_waiting(job.id, platform):
            return job
    return None
