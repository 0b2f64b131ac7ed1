"""Adds targets to runs: those in files, and the stored targets of an earlier run, which is not changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs import tables as sql
from crawler.jobs.job import InputLine, Job, JobError
from crawler.jobs.lifecycle import DEFAULT, ROWS_PER_TRANSACTION, Jobs, Rules
from crawler.targets.files.source import READ_ERRORS, find_files
from crawler.targets.target import InvalidTarget, Target, target_key

if TYPE_CHECKING:
    from crawler.targets.files.source import FileSource

READ_BYTES = 1 << 20


def job_name(locations: Sequence[str], options: dict[str, Any]) -> str:
    """Return the name of the job for the files at some paths, globs and URLs: the first one's name and a hash.

    The hash is computed from the paths and the options, not from the contents. So the same command, from any folder,
    has the same job on all days.
    """
    # Not Path.resolve(): a symbolic link such as today.csv names the job, not the file of the day.
    places = [each if "://" in each else os.path.abspath(each) for each in locations]  # noqa: PTH100
    stem = PurePosixPath(places[0].partition("?")[0]).stem  # a query may have a password
    name = "".join(char for char in stem if char.isprintable() and char not in "*[]") or "targets"
    digest = hashlib.blake2b(orjson.dumps([places, options], option=orjson.OPT_SORT_KEYS), digest_size=6)
    return f"{name[:80]}-{digest.hexdigest()}"


def fingerprint(locations: Iterable[str], *, reader: Sequence[str | None]) -> str:
    """Return a hash of the contents of files. ``reader``: how they are read, such as the encoding.

    Raises:
        TargetsUnavailableError: a file cannot be read.
    """
    digest = hashlib.blake2b(orjson.dumps(reader), digest_size=16)
    for location in locations:
        for each in find_files(location):
            try:
                with each.file as opened:
                    while block := opened.read(READ_BYTES):
                        digest.update(block)
            except READ_ERRORS as error:
                raise each.unreadable(error) from error
    return digest.hexdigest()


async def push(
    jobs: Jobs,
    job: Job,
    sources: Sequence[FileSource],
    *,
    on_line: Callable[[Target | InvalidTarget], None] = lambda _: None,
    paced: Callable[[AsyncGenerator[InputLine]], AsyncGenerator[InputLine]] = lambda lines: lines,
) -> int:
    """Add the targets in files to a job. Return the number of lines.

    ``on_line`` is called with the target of each line. ``paced`` returns the lines one by one, when this process may
    continue to read them. A push that was killed can be repeated.

    Raises:
        JobError: the job is cancelled or was removed, or a line cannot be stored.
        TargetsUnavailableError: a file cannot be read.
    """
    begin = rows = await jobs.next_row(job)
    scrapers: set[str] = set()

    async def lines() -> AsyncGenerator[InputLine]:
        nonlocal rows
        for source in sources:
            await source.open()
            async for each in source:
                if isinstance(each, Target):
                    scrapers.add(each.scraper.name)
                on_line(each)
                yield _line(each, rows)
                rows += 1

    async with aclosing(paced(lines())) as pieces:
        await jobs.push(job, pieces)
    await jobs.describe(job, scrapers, [name for each in sources for name in each.own_columns])
    return rows - begin


def _line(target: Target | InvalidTarget, row: int) -> InputLine:
    if isinstance(target, Target):
        platform = target.scraper.platform
        work = target.dump()
        return InputLine(row, target.id, target.key, platform, work, target.columns, target.line, target.note)
    error = target.error.as_dict() | {"retryable": target.error.retryable}
    work = {**target.as_dict(), "line": target.line}
    try:
        key = target_key("", work)
    except TypeError as too_large:  # an integer of more than 64 bits
        raise JobError(f"Line {row + 1} cannot be stored: {too_large}.") from too_large
    return InputLine(row, target.id, key, "", work, target.columns, target.line, error=error)


def rerun_fingerprint(job: Job) -> str:
    """Return the fingerprint of a run with the targets of an earlier run."""
    return f"run {job.id}"


async def rerun(jobs: Jobs, job: Job, name: str, keys: set[bytes] | None = None, rules: Rules = DEFAULT) -> Job:
    """Begin a run with the same options as an earlier run, and with its targets. A killed call can be repeated.

    ``name``: the name of the job to which the new run belongs. ``keys``: the targets to repeat; None: those of all
    input lines. If a run of this job is continued and already has its targets, return it unchanged.

    Raises:
        JobError: as for ``Jobs.begin()``.
    """
    options = job.options.model_copy(update={"fingerprint": rerun_fingerprint(job)})
    new = await jobs.begin(name, job.owner, options=options, whole_roots=job.whole_roots, rules=rules)
    if new.state == "loading":
        await jobs.push(new, _stored_lines(jobs, job, keys))
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


async def _stored_lines(jobs: Jobs, job: Job, keys: set[bytes] | None) -> AsyncIterator[InputLine]:
    """Yield the input lines of targets. A follow-up of ``keys`` gets a line of its own."""
    numbers, after, left = count(), -1, set(keys or ())
    while rows := await jobs.read(sql.LINES, job=job.id, after=after, limit=ROWS_PER_TRANSACTION):
        for _, key, platform, work, outcome, own_id, columns, line, note in rows:
            if keys is None or key in keys:
                left.discard(key)
                own = (orjson.loads(columns or b"{}"), line, note.decode())
                error = None if platform else orjson.loads(outcome)["error"]
                yield InputLine(next(numbers), own_id.decode(), key, platform, orjson.loads(work), *own, error)
        after = rows[-1][0]
    followups = sorted(left)
    for begin in range(0, len(followups), ROWS_PER_TRANSACTION):
        piece = followups[begin : begin + ROWS_PER_TRANSACTION]
        for key, platform, work in await jobs.read(sql.TARGETS_OF, job_=job.id, keys=piece):
            data = orjson.loads(work)
            line, note = data.get("line"), data.get("note", "")
            yield InputLine(next(numbers), data["id"], key, platform, data, line=line, note=note)
