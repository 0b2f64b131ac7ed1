"""Continues jobs that wait for quota, deletes expired jobs, and completes interrupted changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from crawler.jobs.clock import STORE_TIME, store_time
from crawler.service.clients import quotas
from crawler.service.periodic import logged

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.clients.keys import Keys

UPKEEP_SECONDS = 60.0
DAY_SECONDS = 86_400.0
UPLOAD_SECONDS = 3_600.0
"""Seconds after which a loading job counts as interrupted, because its process was killed."""
JOBS_PER_PAGE = 500


async def tend(jobs: Jobs, keys: Keys, keep_days: float) -> None:
    """Continue paused targets of clients whose quota has room, delete expired jobs, and complete interrupted changes.

    ``keep_days``: the setting ``JOBS_KEEP``. An error of one job is logged, and does not stop the round.
    """
    after = 0
    while page := await jobs.page(after, JOBS_PER_PAGE):
        after = page[-1].id
        for job in page:
            with logged("job_upkeep_failed", job=job.id):
                await _tend(jobs, keys, keep_days, job)


async def _tend(jobs: Jobs, keys: Keys, keep_days: float, job: Job) -> None:
    """Do the upkeep of a job. Jobs do not expire just after a jump of the clock (AT-10)."""
    if job.kind == "removed" or (job.owner and STORE_TIME.is_steady and _is_over(job, store_time(), keep_days)):
        await jobs.remove(job)
    elif not job.owner:
        pass
    elif job.state == "cancelled" and job.counts["waiting"] + job.counts["paused"]:
        await jobs.cancel(job)
    elif job.state in {"open", "paused"} and (job.counts["paused"] or "quota" in job.options):
        await _continue(jobs, keys, job)


async def _continue(jobs: Jobs, keys: Keys, job: Job) -> None:
    """Resume as many paused targets as the client's quota allows. Without a valid key of the client, do nothing.

    Also update the quota in the options of a job with spider arguments, because the workers of such a job read it
    there.
    """
    holder = await keys.find(job.owner)
    if holder is None:
        return
    if job.options.get("quota", holder.quota) != holder.quota:
        await jobs.set_options(job, job.options | {"quota": holder.quota})
    if not job.counts["paused"]:
        return
    if holder.quota is not None:
        count = partial(quotas.left, client=holder.client, quota=holder.quota)
        if not await jobs.reads.transact(count, write=False):
            return
    await jobs.resume(job, quotas.room_of(holder))


def _is_over(job: Job, now: float, keep_days: float) -> bool:
    if job.state == "loading":
        return job.created < now - UPLOAD_SECONDS
    return job.ended is not None and job.ended < now - keep_days * DAY_SECONDS
