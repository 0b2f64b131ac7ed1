"""Makes runs from the stored targets of an earlier run: from all of them, or from those with unread parts.

The earlier run is not changed: its targets keep their records, their sequence numbers and their bills.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import orjson

from crawler.jobs import statements as sql
from crawler.jobs.job import InputLine, Job, JobError
from crawler.jobs.lifecycle import DEFAULT, ROWS_PER_TRANSACTION, Jobs, Rules


def fingerprint(job: Job) -> str:
    """Return the fingerprint of a run with the targets of an earlier run."""
    return f"run {job.id}"


async def rerun(jobs: Jobs, job: Job, name: str, keys: set[bytes] | None = None, rules: Rules = DEFAULT) -> Job:
    """Begin a run with the same options as an earlier run, and with its targets. A killed call can be repeated.

    ``name``: the name of the job to which the new run belongs. ``keys``: the targets to repeat; None: those of all
    input lines. If a run of this job is continued and already has its targets, return it unchanged.

    Raises:
        JobError: as for ``Jobs.begin()``.
    """
    options = job.options.model_copy(update={"fingerprint": fingerprint(job)})
    new = await jobs.begin(name, job.owner, options=options, whole_roots=job.whole_roots, rules=rules)
    if new.state == "loading":
        await jobs.push(new, _lines(jobs, job, keys))
        await jobs.describe(new, *await jobs.described(job))
        await jobs.open(new)
    return await jobs.get(new.id) or new


async def unread(jobs: Jobs, job: Job) -> set[bytes]:
    """Return the keys of the done targets with an unread part, or of their roots in a job of whole roots.

    Raises:
        JobError: the job has ``since=last``, so that the entries of its targets already count as seen.
    """
    if job.options.since == "last":
        raise JobError(f"The entries of {job.name!r} count as seen: collect its listings with since=DATE instead.")
    after, found = 0, set()
    while rows := await jobs.read(sql.DONE, job=job.id, after=after, limit=ROWS_PER_TRANSACTION):
        found |= {root or key for key, root, outcome, _ in rows if b'"unread"' in outcome and _is_unread(outcome)}
        after = rows[-1][-1]
    return found


def _is_unread(outcome: bytes) -> bool:
    return any(each["reason"] == "unread" for each in orjson.loads(outcome)["warnings"])


async def _lines(jobs: Jobs, job: Job, keys: set[bytes] | None) -> AsyncIterator[InputLine]:
    """Yield the input lines of targets. A follow-up of ``keys`` gets a line of its own."""
    numbers, after, left = count(), -1, set(keys or ())
    while rows := await jobs.read(sql.LINES, job=job.id, after=after, limit=ROWS_PER_TRANSACTION):
        for _, key, platform, work, own_id, columns, line, note in rows:
            if keys is None or key in keys:
                left.discard(key)
                own = (orjson.loads(columns or b"{}"), line, None if note is None else note.decode())
                yield InputLine(next(numbers), own_id.decode(), key, platform, orjson.loads(work), *own)
        after = rows[-1][0]
    followups = sorted(left)
    for begin in range(0, len(followups), ROWS_PER_TRANSACTION):
        piece = followups[begin : begin + ROWS_PER_TRANSACTION]
        for key, platform, work in await jobs.read(sql.TARGETS_OF, job_=job.id, keys=piece):
            data = orjson.loads(work)
            yield InputLine(next(numbers), data["id"], key, platform, data, line=data.get("line"), note=None)
