"""Makes a new job from the targets of an earlier job in whose payloads a part was unread.

The earlier job is not changed: its targets keep their record, their sequence number and their bill.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import orjson

from crawler.jobs import statements as sql
from crawler.jobs.job import InputLine, Job, JobError
from crawler.jobs.lifecycle import ROWS_PER_TRANSACTION, Jobs


async def rerun_unread(jobs: Jobs, job: Job) -> tuple[Job, int] | None:
    """Make a new job from a job's done targets with an unread part. Return the new job, and the number of its lines.

    The new job has the same options. Its name is ``<job>-unread-1``, or has the next free number. In a job of whole
    roots, the targets are scraped again with their whole root. A call that was killed can be repeated. Return None if
    no target has an unread part.

    Raises:
        JobError: the job has ``since=last``, so that the entries of its targets already count as seen, or the name of
            the new job would be too long.
    """
    if job.options.since == "last":
        raise JobError(f"The entries of {job.name!r} count as seen: collect its listings with since=DATE instead.")
    keys = [key async for key in _unread(jobs, job)]
    if not keys:
        return None
    new = await _new_job(jobs, job)
    rows = count()
    for begin in range(0, len(keys), ROWS_PER_TRANSACTION):
        await jobs.push(new, await _lines(jobs, job, keys[begin : begin + ROWS_PER_TRANSACTION], rows))
    await jobs.describe(new, *await jobs.described(job))
    await jobs.open(new)
    return new, next(rows)


async def _unread(jobs: Jobs, job: Job) -> AsyncIterator[bytes]:
    """Yield the keys of the targets with an unread part, or of their roots in a job of whole roots, each once."""
    after, known = 0, set()
    while rows := await jobs.read(sql.DONE, job=job.id, after=after, limit=ROWS_PER_TRANSACTION):
        for own_key, root, outcome, _ in rows:
            key = root or own_key
            if key not in known and b'"unread"' in outcome and _is_unread(orjson.loads(outcome)):
                known.add(key)
                yield key
        after = rows[-1][-1]


def _is_unread(outcome: dict[str, Any]) -> bool:
    return any(each["reason"] == "unread" for each in outcome["warnings"])


async def _new_job(jobs: Jobs, job: Job) -> Job:
    for number in count(1):
        name = f"{job.name}-unread-{number}"
        found = await jobs.create(name, job.owner, options=job.options, whole_roots=job.whole_roots)
        if found.state == "loading":
            return found
    raise AssertionError


async def _lines(jobs: Jobs, job: Job, keys: list[bytes], rows: count[int]) -> list[InputLine]:
    """Return the input lines of targets. A follow-up gets a line of its own."""
    inputs: dict[bytes, list[tuple[str, Any, int | None]]] = {}
    for key, _, own_id, columns, line in await jobs.read(sql.INPUTS_OF, job=job.id, keys=keys):
        inputs.setdefault(key, []).append((own_id.decode(), orjson.loads(columns or b"{}"), line))
    lines = []
    for key, platform, work in await jobs.read(sql.TARGETS_OF, job_=job.id, keys=keys):
        data = orjson.loads(work)
        for own_id, columns, line in inputs.get(key) or [(data["id"], {}, data.get("line"))]:
            lines.append(InputLine(next(rows), own_id, key, platform, data, columns, line))
    return lines
