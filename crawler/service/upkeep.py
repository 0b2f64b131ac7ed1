"""Work that the endpoint repeats until it shuts down, such as the deletion of expired jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs.job import JobError
from crawler.jobs.lifecycle import is_interrupted
from crawler.jobs.store import STORE_TIME, store_time

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

logger = structlog.get_logger(__name__)

Periodic = tuple[Callable[[], Awaitable[object]], float, str]
"""The arguments of ``repeat()``: the work, the interval in seconds, and the event to log for an exception."""


@contextmanager
def logged(failed: str, **facts: Any) -> Iterator[None]:
    """Log an exception of the ``with`` block, and continue after the block.

    ``failed``: the event to log, with ``facts``. ``StoreUnavailable`` is not logged here, because the store itself logs
    that it is unavailable. A ``JobError``, such as for a job that was removed meanwhile, is logged as its sentence.
    """
    try:
        yield
    except StoreUnavailable:
        pass
    except JobError as error:
        logger.warning(failed, error=str(error), **facts)
    except Exception:
        logger.exception(failed, **facts)


async def repeat(work: Callable[[], Awaitable[object]], seconds: float, failed: str) -> None:
    """Repeat work, with pauses of ``seconds``, until cancelled. An exception of the work does not end this.

    ``failed``: the event to log for an exception.
    """
    while True:
        with logged(failed):
            await work()
        await asyncio.sleep(seconds)


UPKEEP_SECONDS = 60.0
DAY_SECONDS = 86_400.0
JOBS_PER_PAGE = 500


async def tend(jobs: Jobs, keep_days: float) -> None:
    """Delete expired jobs, and complete interrupted changes.

    ``keep_days``: the setting ``JOBS_KEEP``. An error of one job is logged, and does not stop the round.
    """
    after = 0
    while page := await jobs.page(after, JOBS_PER_PAGE):
        after = page[-1].id
        for job in page:
            with logged("job_upkeep_failed", job=job.id):
                await _tend(jobs, keep_days, job)


async def _tend(jobs: Jobs, keep_days: float, job: Job) -> None:
    """Do the upkeep of a job. Jobs do not expire just after a jump of the clock."""
    is_over = job.owner and STORE_TIME.is_steady and _is_over(job, store_time(), keep_days)
    if is_over and await jobs.get(job.id) != job:
        return  # it was loaded or retried since it was listed: the removal of other jobs may take minutes
    if job.kind == "removed" or (is_over and await jobs.mark_removed(job, of=(job.state,))):
        await jobs.remove(job)
    elif job.owner and job.state == "cancelled" and job.counts["waiting"] + job.counts["paused"]:
        await jobs.cancel(job)
    elif job.run > 1 and job.state == "done":
        await jobs.remove_earlier(job.name, job.owner)


def _is_over(job: Job, now: float, keep_days: float) -> bool:
    return is_interrupted(job) or (job.ended is not None and job.ended < now - keep_days * DAY_SECONDS)
