"""Makes jobs from the targets that clients upload."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from crawler.configuration.names import hint
from crawler.errors import (
    ConcurrencyLimited,
    Detail,
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidRequest,
    JobNotDone,
    UnsupportedMediaType,
)
from crawler.jobs import intake
from crawler.jobs.extension import problem_of
from crawler.jobs.job import JobError, logged
from crawler.jobs.lifecycle import LOADING_SECONDS, ROWS_PER_TRANSACTION, Rules, TooManyJobsError, UnfinishedRunError
from crawler.jobs.options import JobOptions
from crawler.registry import find_scraper, scrapers, spiders
from crawler.service.limits import Turns
from crawler.targets.files.rows import Words
from crawler.targets.files.source import FileSource
from crawler.targets.files.tables import has_limits
from crawler.targets.files.text import check_encoding
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.keys import Holder

SUFFIXES = {
    "application/json": ".json",
    "application/x-ndjson": ".ndjson",
    "application/jsonl": ".ndjson",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/plain": ".txt",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
"""Media type of an upload -> the suffix that selects the reader of a targets file."""
NAME = "upload"
"""The name of an upload in messages, and in the ids of lines without an id."""
WORDS = Words("charset=", "Send it without compression.", "Send an Excel workbook with its media type", NAME)
"""The words of clients in messages about their uploads."""
MAX_READING = 2
"""Maximum number of clients whose uploads a process reads at once. The others take turns with them."""
MAX_LISTED = 100
"""Maximum number of invalid lines that a response lists."""


def all_targets(default: str | None = None, *, sliced: bool = False) -> TargetParser:
    """Return the parser of the targets of all platforms. ``default``: the scraper of targets that do not name one.

    ``sliced``: whether targets may be split into slices.
    """
    return TargetParser(tuple(each for spider in spiders().values() for each in spider.scrapers), default, sliced)


@dataclass
class Contents:
    """The lines of an upload."""

    options: JobOptions = field(default_factory=JobOptions)
    valid: Counter[str] = field(default_factory=Counter)
    """Scraper -> the number of its targets."""
    invalid: int = 0
    listed: list[dict[str, Any]] = field(default_factory=list)
    """The first invalid lines, at most ``MAX_LISTED``."""

    def count(self, line: Target | InvalidTarget) -> None:
        """Count a line."""
        if isinstance(line, Target):
            self.valid[line.scraper.name] += 1
            return
        self.invalid += 1
        if len(self.listed) < MAX_LISTED:
            error = line.error
            self.listed.append(
                {"line": line.line, "code": error.code, "message": error.message, "details": error.details}
            )

    def check(self) -> None:
        """Check that the upload has a target, and that its arguments are valid for all of its scrapers.

        Raises:
            InvalidRequest: the upload has no target, or an argument is not valid for a scraper. The details are the
                first invalid lines.
        """
        if not self.valid:
            first = f" {self.listed[0]['message']}" if self.listed else ""
            details: list[Detail] = [
                {"loc": ["body", each["line"] or 0], "msg": each["message"], "type": "value_error"}
                for each in self.listed
            ]
            nothing: Detail = {"loc": ["body"], "msg": "it has no line", "type": "value_error"}
            raise InvalidRequest(f"The upload has no valid target.{first}", details=details or [nothing])
        if problem := problem_of(self.options, self.valid):
            raise InvalidRequest.of(*problem)

    def as_json(self) -> dict[str, Any]:
        """Return the part of a response about the lines and their maximum cost."""
        pages = self.options.max_pages
        records: int | None = pages * self.valid.total()
        requests: int | None = 0
        reason = None
        for name, n in self.valid.items():
            of_target = find_scraper(name).requests
            if requests is not None and of_target is not None:
                requests += pages * n * of_target
            else:
                requests, reason = None, f"The number of requests of {name} depends on its pages."
        if self.options.exhaustive:
            records, requests, reason = None, None, "An exhaustive listing has as many pages as the platform states."
        lines = {"valid": self.valid.total(), "invalid": self.invalid, "invalid_lines": self.listed}
        return {**lines, "records_at_most": records, "requests_at_most": requests, "no_limit_because": reason}


@dataclass(frozen=True)
class Upload:
    """A request body with targets."""

    content: IO[bytes]
    media_type: str
    """The value of the header Content-Type, which names one of ``SUFFIXES``."""
    scraper: str | None = None
    """The scraper of targets that do not name one."""
    key: str | None = None
    """The value of the header Idempotency-Key."""
    options: JobOptions = field(default_factory=JobOptions)
    name: str | None = None
    """The name of the job. None: it has no other run, and gets the id of the request as its name."""

    def check(self) -> None:
        """Check what the route does not check of the header ``Content-Type`` and of ``scraper``.

        Raises:
            UnsupportedMediaType: workbooks are not read on this system.
            InvalidRequest: the encoding is not valid, or the scraper is unknown.
        """
        if self.scraper is not None and self.scraper not in scrapers():
            raise InvalidRequest.of("scraper", f"unknown; {hint(self.scraper, scrapers(), 'GET /v1/scrapers has all')}")
        if SUFFIXES[self._type] == ".xlsx" and not has_limits():
            raise UnsupportedMediaType(
                "This system cannot limit the memory of a process, so workbooks are not read: send the sheet as CSV."
            )
        if self.encoding is not None:
            try:
                check_encoding(self.encoding)
            except ValueError as error:
                raise InvalidRequest.of("Content-Type", str(error)) from None

    @property
    def _type(self) -> str:
        return self.media_type.partition(";")[0].strip().lower()

    @property
    def encoding(self) -> str | None:
        """The parameter ``charset`` of the media type, or None."""
        for parameter in self.media_type.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip('"')
        return None

    def copy_to(self, folder: Path) -> tuple[Path, str]:
        """Write the content to a file. Return its path, and the fingerprint of the upload."""
        path = folder / f"upload{SUFFIXES[self._type]}"
        self.content.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(self.content, file)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        arguments = " ".join(f"{name}={value}" for name, value in sorted(self.options.arguments.items()))
        return path, f"{digest} {self._type} {self.encoding} {self.scraper} {self.name} {arguments}".rstrip()


@dataclass(frozen=True)
class Uploads:
    """Makes jobs of uploads. ``most``: the maximum number of a client's jobs that are not done (``JOBS_MAX``)."""

    jobs: Jobs
    most: int
    sandbox: bool
    turns: Turns = field(default_factory=lambda: Turns(MAX_READING, of_client=1))
    """The turns of clients. In a turn, the lines of one transaction are read and stored."""
    removals: set[asyncio.Task[None]] = field(default_factory=set)
    """The running removals of the jobs of failed uploads."""

    async def check(self, holder: Holder, upload: Upload) -> Contents:
        """Read an upload without making a job.

        Raises:
            InvalidRequest: the upload cannot be read, or has no valid target.
        """
        contents = Contents(upload.options)
        with tempfile.TemporaryDirectory(prefix="upload-") as folder:
            path, _ = await asyncio.to_thread(upload.copy_to, Path(folder))
            lines = _lines(_source(upload, path))
            async with aclosing(self.turns.each(holder.client, lines, ROWS_PER_TRANSACTION)) as pieces:
                async for each in pieces:
                    contents.count(each)
        contents.check()
        return contents

    async def check_room(self, holder: Holder) -> None:
        """Check that a client may have another job.

        Raises:
            ConcurrencyLimited: the client has too many jobs that are not done.
        """
        if await self.jobs.count_unfinished_of(holder.client) >= self.most:
            raise self._too_many()

    def _too_many(self) -> ConcurrencyLimited:
        return ConcurrencyLimited(
            f"This client has {self.most} jobs that are not done: wait for one of them, or delete one.", retry_after=60
        )

    async def repeat(self, job: Job, key: str | None) -> Job:
        """Begin the next run of a job, with the targets of one of its runs. ``key``: the ``Idempotency-Key``.

        Raises:
            JobNotDone, ConcurrencyLimited, IdempotencyMismatch: as for ``make()``.
        """
        rules = Rules("refuse", key, self.most)
        return await self._begun(intake.rerun(self.jobs, job, job.name, rules=rules), intake.rerun_fingerprint(job))

    async def _begun(self, begin: Awaitable[Job], fingerprint: str | None) -> Job:
        try:
            job = await begin
        except TooManyJobsError:
            raise self._too_many() from None
        except UnfinishedRunError as error:
            raise JobNotDone(f"{error} Wait until it is done, or delete it.", retry_after=60) from None
        if job.options.fingerprint != fingerprint:
            raise IdempotencyMismatch("This Idempotency-Key was used for another request.")
        return job

    async def make(self, holder: Holder, upload: Upload, name: str) -> tuple[Job, Contents | None]:
        """Return the open job of an upload, and the upload's lines.

        The lines are None if an earlier upload with the same ``Idempotency-Key`` made the job.

        ``name``: the name of the job if the upload names none.

        Raises:
            InvalidRequest: the upload cannot be read or has no valid target, or the name cannot be stored.
            JobNotDone: the newest run of the job is not done, or another upload has got the name of this one, which
                stored no line for ``LOADING_SECONDS``.
            ConcurrencyLimited: the client has too many jobs that are not done.
            IdempotencyMismatch: the ``Idempotency-Key`` was used for another request.
            IdempotencyInProgress: while the upload was read, another upload with the same ``Idempotency-Key`` failed,
                so that the job was removed.
        """
        with tempfile.TemporaryDirectory(prefix="upload-") as folder:
            path, fingerprint = await asyncio.to_thread(upload.copy_to, Path(folder))
            own: dict[str, Any] = {"sandbox": self.sandbox}
            if upload.key is not None:
                own["fingerprint"] = fingerprint
            options = upload.options.model_copy(update=own)
            rules = Rules("refuse", upload.key, self.most)
            own_crawl = bool(options.arguments)  # a job with arguments has its own crawl
            begin = self.jobs.begin(
                upload.name or name, holder.client, options=options, whole_roots=own_crawl, rules=rules
            )
            try:
                job = await self._begun(begin, options.fingerprint)
            except JobError as error:
                raise InvalidRequest.of("name", str(error)) from None
            if job.state != "loading":
                return job, None
            contents = Contents(upload.options)
            try:
                await self._push(job, _source(upload, path), contents)
                contents.check()
            except JobError as error:
                found = await self.jobs.get(job.id)
                if found is None or found.state == "cancelled":
                    if upload.key is None:
                        silent = f"No line was stored for {LOADING_SECONDS:.0f} s, and another upload has got the name."
                        raise JobNotDone(silent, retry_after=60) from None
                    raise IdempotencyInProgress("An upload with this Idempotency-Key ended just now.") from None
                await self._abandon(job)
                raise InvalidRequest.of("body", str(error)) from None
            except BaseException:  # also if the client has disconnected
                await asyncio.shield(self._abandon(job))
                raise
        await self.jobs.open(job)
        found = await self.jobs.get(job.id)
        return found or job, contents

    async def _abandon(self, job: Job) -> None:
        """Hide the job of a failed upload. A task deletes the job, so that the next upload need not wait.

        If another upload with the same ``Idempotency-Key`` has opened the job meanwhile, the job stays.
        """
        if await self.jobs.mark_removed(job, of=("loading",)):
            task = asyncio.ensure_future(self._remove(job))
            self.removals.add(task)
            task.add_done_callback(self.removals.discard)

    async def _remove(self, job: Job) -> None:
        """Delete a hidden job. If the store is unavailable, the upkeep of jobs deletes it later."""
        with logged("job_removal_failed", job=job.id):
            await self.jobs.remove(job)

    async def _push(self, job: Job, source: FileSource, contents: Contents) -> None:
        try:
            paced = partial(self.turns.each, job.owner, size=ROWS_PER_TRANSACTION)
            await intake.push(self.jobs, job, [source], on_line=contents.count, paced=paced)
        except TargetsUnavailableError as error:  # also raised for wrong files
            raise _unreadable(error, source) from None


def _source(upload: Upload, path: Path) -> FileSource:
    parser = all_targets(upload.scraper, sliced=upload.options.exhaustive)
    return FileSource(parser, str(path), encoding=upload.encoding, words=WORDS)


async def _lines(source: FileSource) -> AsyncIterator[Target | InvalidTarget]:
    try:
        await source.open()
        async for each in source:
            yield each
    except TargetsUnavailableError as error:
        raise _unreadable(error, source) from None


def _unreadable(error: TargetsUnavailableError, source: FileSource) -> InvalidRequest:
    text = str(error).replace(source.location, NAME)  # clients get no path of the server
    return InvalidRequest(
        f"body: {text}", details=[{"loc": ["body"], "msg": "it cannot be read", "type": "value_error"}]
    )
