"""Deletes expired jobs of clients, and repeats what was interrupted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from crawler.errors import StoreUnavailable

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

UPKEEP_SECONDS = 60.0
DAY_SECONDS = 86_400.0
UPLOAD_SECONDS = 3_600.0
"""A job that is loading for longer was interrupted: its process was killed."""
JOBS_PER_PAGE = 500


async def run_upkeep(jobs: Jobs, keep_days: float) -> None:
    """Clean the store regularly, until cancelled. ``keep_days``: the setting ``JOBS_KEEP``."""
    while True:
        with suppress(StoreUnavailable):  # the store has logged it
            await clean(jobs, keep_days)
        await asyncio.sleep(UPKEEP_SECONDS)


async def clean(jobs: Jobs, keep_days: float) -> None:
    """Delete expired jobs and interrupted uploads of clients, and repeat interrupted cancellations."""
    now = await jobs.reads.transact(lambda session: session.now(), write=False)
    after = 0
    while page := await jobs.page(after, JOBS_PER_PAGE):
        after = page[-1].id
        for job in page:
            if job.owner and _is_over(job, now, keep_days):
                await jobs.remove(job)
            elif job.owner and job.state == "cancelled" and job.counts["waiting"] + job.counts["paused"]:
                await jobs.cancel(job)


def _is_over(job: Job, now: float, keep_days: float) -> bool:
    if job.state == "loading":
        return job.created < now - UPLOAD_SECONDS
    return job.ended is not None and job.ended < now - keep_days * DAY_SECONDS
