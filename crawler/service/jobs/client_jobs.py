"""The clients' jobs in one process of the endpoint, which the routes of jobs read and change."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crawler.errors import ConcurrencyLimited, InvalidRequest, JobNotFound, Overloaded, ShuttingDown, StoreUnavailable
from crawler.jobs.job import JobError, logged
from crawler.jobs.lifecycle import is_interrupted
from crawler.jobs.outcomes import Cursor, failures_by_code
from crawler.jobs.store import STORE_TIME, store_time, utc_text
from crawler.service.jobs.uploads import Uploads
from crawler.service.limits import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.settings import Settings

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.jobs.runs import Runs
    from crawler.service.keys import Holder

JOB_ID = "^[1-9][0-9]{0,17}$"
"""Matches the ids of jobs."""
MAX_ARRIVING, MAX_ARRIVING_OF_CLIENT = 16, 4
"""Maximum numbers of uploads whose bodies arrive at the same time: in a process, and of one client."""
MAX_FILES = 4
"""Maximum number of files of records that a process writes at once, one for each client. The others take turns."""
MAX_COMPARISONS = 4
"""Maximum number of comparisons with earlier runs that a process sends at once, one for each client. Each has a
connection to the store, also while its client reads slowly, so they do not share their places with files."""
POLL_SECONDS = 0.5
"""Interval in seconds at which a request that waits for a job reads its state."""
DAY_SECONDS = 86_400.0
NOT_FOUND = "This client has no job with this id: it is unknown, was deleted, or has expired."


@dataclass
class ClientJobs:
    """The jobs of authenticated clients, and the requests about them that are in progress."""

    jobs: Jobs
    runs: Runs
    settings: Settings

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.jobs, self.settings.getint("JOBS_MAX"), self.settings.getbool("SANDBOX"))
        self.keep_days = self.settings.getfloat("JOBS_KEEP")
        self.writing = Turns(MAX_FILES, of_client=1)
        self.comparing = Turns(MAX_COMPARISONS, of_client=1)
        self._arriving: Counter[str] = Counter()
        """Client -> the number of its uploads that are arriving."""
        self._changes: set[asyncio.Task[Any]] = set()
        """The running cancellations and removals of jobs, which continue if the client disconnects."""

    async def find(self, holder: Holder, job_id: str) -> Job:
        """Return a job of a client.

        Raises:
            JobNotFound: the client has no such job.
        """
        job = await self.jobs.get(int(job_id)) if re.fullmatch(JOB_ID, job_id) else None
        if job is None or (job.owner, job.kind) != (holder.client, "job") or job.state == "loading":
            raise JobNotFound(NOT_FOUND)
        return job

    async def ended(self, job: Job, seconds: float) -> Job:
        """Wait until a job has ended, for at most these seconds. Return its last state."""
        end = asyncio.get_running_loop().time() + seconds
        while job.state == "open" and asyncio.get_running_loop().time() < end:
            if self.runs.crawlers.draining:
                break
            await asyncio.sleep(POLL_SECONDS)
            job = await self.jobs.get(job.id) or job
        return job

    def check_open(self) -> None:
        """Check that the service accepts jobs.

        Raises:
            ShuttingDown: the service is shutting down.
        """
        if self.runs.crawlers.draining:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)

    def arrive(self, client: str) -> Callable[[], None]:
        """Count an upload whose body begins to arrive. Return the function that ends its arrival.

        Raises:
            ConcurrencyLimited: too many uploads of the client are arriving.
            Overloaded: too many uploads are arriving.
        """
        if self._arriving[client] >= MAX_ARRIVING_OF_CLIENT:
            raise ConcurrencyLimited(
                f"{MAX_ARRIVING_OF_CLIENT} uploads of this client are arriving: wait until one of them is complete.",
                retry_after=5,
            )
        if self._arriving.total() >= MAX_ARRIVING:
            raise Overloaded("Too many uploads are arriving.", retry_after=5)
        self._arriving[client] += 1
        return partial(self._arriving.subtract, [client])

    async def change(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Change a job. The change continues if the client disconnects.

        Raises:
            InvalidRequest: another request has cancelled or deleted the job meanwhile.
            StoreUnavailable: the store cannot be used.
        """
        task = asyncio.ensure_future(_outcome(work))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        outcome = await asyncio.shield(task)
        if isinstance(outcome, JobError):
            raise InvalidRequest.of("job_id", "the job was cancelled or deleted meanwhile")
        if isinstance(outcome, StoreUnavailable):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Wait at most 5 seconds until cancellations and removals have ended."""
        if changes := self._changes | self.uploads.removals:
            await asyncio.wait(changes, timeout=5)


def describe(job: Job, keep_days: float) -> dict[str, Any]:
    """Return the description of a job in a list. ``keep_days``: the setting ``JOBS_KEEP``."""
    left = job.counts["waiting"] + job.counts["running"]
    rate, estimate = None, None
    if job.state == "open" and job.seq:
        now = store_time()
        seconds = max(1e-3, now - job.created)
        rate = round(job.seq / seconds * 60, 1)
        estimate = utc_text(now + left * seconds / job.seq)
    expires = None if job.ended is None or left else utc_text(job.ended + keep_days * DAY_SECONDS)
    return {
        **job.described(),
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


async def _outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a change, or its expected error: the client that waited for it may be gone."""
    try:
        return await work
    except (JobError, StoreUnavailable) as error:
        return error


async def tend(jobs: Jobs, keep_days: float) -> None:
    """Delete expired jobs, and complete interrupted changes.

    ``keep_days``: the setting ``JOBS_KEEP``. An error of one job is logged, and does not stop the round.
    """
    async for job in jobs.every():
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
