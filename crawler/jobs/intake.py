"""Adds the targets in files to jobs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from crawler.jobs.job import Claim, Finished, InputLine, Job, JobError
from crawler.jobs.leases import Holder
from crawler.jobs.worker import BATCH, Worker
from crawler.targets.files.find import READ_ERRORS, find_files
from crawler.targets.target import InvalidTarget, Target, target_key

if TYPE_CHECKING:
    from crawler.jobs.lifecycle import Jobs
    from crawler.targets.files.source import FileSource

READ_BYTES = 1 << 20
NO_PLATFORM = ""
"""The platform of invalid lines, whose outcome is an error without a request."""


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
    count: Callable[[Target | InvalidTarget], None] = lambda _: None,
    paced: Callable[[AsyncGenerator[InputLine]], AsyncGenerator[InputLine]] = lambda lines: lines,
) -> int:
    """Add the targets in files to a job. Return the number of lines.

    ``count`` is called with the target of each line. ``paced`` returns the lines one by one, when this process may
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
                count(each)
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
    work = {**target.as_dict(), "line": target.line, "error": error}
    try:
        key = target_key(NO_PLATFORM, work)
    except TypeError as error:  # an integer of more than 64 bits
        raise JobError(f"Line {row + 1} cannot be stored: {error}.") from error
    return InputLine(row, target.id, key, NO_PLATFORM, work, target.columns, target.line)


def failed(claim: Claim) -> Finished:
    """Return the outcome of a line that is not a target."""
    error = claim.work["error"]
    return Finished(claim, "failed", error["code"], {"error": error})


async def fail_invalid(jobs: Jobs, job: Job) -> None:
    """Store the outcomes of the invalid lines. While the store is unavailable, lines are left for the next call.

    Raises:
        WorkerStoppedError: the data of the store was lost.
    """
    worker = Worker(jobs.writes, lambda _: None, lambda _: None, lambda _: None, Holder(job=job.id))
    async with worker:
        while claims := await worker.claim(NO_PLATFORM, BATCH):
            for claim in claims:
                worker.finish(failed(claim))
