"""The routes of jobs: upload, list, show, cancel and delete, retry, and return records and failures."""

from __future__ import annotations

import io
import json
import os
import re
from codecs import BOM_UTF8
from functools import partial
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import MinLen
from pydantic import Field, ValidationError, WithJsonSchema

from crawler.errors import (
    ConcurrencyLimited,
    ExpectationFailed,
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidJson,
    InvalidRequest,
    JobNotDone,
    JobNotFound,
    Overloaded,
    PayloadTooLarge,
    QuotaExceeded,
    RateLimited,
    ScrapeError,
    ShuttingDown,
    UnsupportedMediaType,
)
from crawler.jobs.changes import Comparison
from crawler.jobs.job import MAX_NAME_LENGTH
from crawler.jobs.lifecycle import MAX_ID
from crawler.jobs.options import CategoryOptions, Flag, Int, JobOptions, KeepOption
from crawler.jobs.outcomes import Cursor
from crawler.outputs.formats import DEFAULT, OF_FAILURES, SERVED
from crawler.platforms.links import Grammar
from crawler.platforms.model import validation_details
from crawler.service import usage
from crawler.service.envelope import Answer, StreamedAnswer, empty_response, json_response, raw_response
from crawler.service.jobs import client_jobs, models, records
from crawler.service.jobs.client_jobs import JOB_ID
from crawler.service.jobs.records import Selected
from crawler.service.jobs.uploads import SUFFIXES, Upload
from crawler.service.responses import has_copy
from crawler.service.route import (
    JSON,
    KEYED_ERRORS,
    MAX_BODY_BYTES,
    In,
    Reply,
    Route,
    Wait,
    read_object,
    refuse_compressed,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from crawler.jobs.job import Job
    from crawler.jobs.outcomes import Shape
    from crawler.outputs.formats import Format
    from crawler.service.envelope import Call
    from crawler.service.parts import Parts

PATH = "/v1/jobs"
MAX_PAGE = 100
"""The default and the maximum number of entries on a page of a list."""
MAX_OUTCOMES = 999_999_999
"""The default and the maximum number of outcomes in a response."""
PEEKED_BYTES = 64

VISIBLE = Grammar(r"[\x21-\x7e]{1,255}", "expected 1 to 255 visible ASCII characters, without spaces")
Key = Annotated[Annotated[str, VISIBLE] | None, In("header", "Idempotency-Key")]
JobId = Annotated[str, WithJsonSchema({"type": "string", "pattern": JOB_ID})]


class CreateJob(CategoryOptions, KeepOption, Route):
    """Make a job of many targets of any platforms, or begin the next run of a named job.

    The job runs in the background, on any number of machines. The body is an array of targets, or one listing; or a
    table or a list of links.
    """

    method = "POST"
    path = PATH
    operation = "create-job"
    is_counted = False
    takes = dict.fromkeys(SUFFIXES, str) | {JSON: Annotated[list[models.JobTarget], MinLen(1)] | models.JobListing}
    example = [{"id": "a1", "url": "https://www.walmart.com/browse/food/976759"}]
    replies = {
        200: Reply("The upload was checked (`dry_run`).", models.JobUpload),
        202: Reply("The job was created.", models.JobUpload, ("Location", "Idempotent-Replayed")),
    }
    errors = (
        *(*KEYED_ERRORS, InvalidJson, PayloadTooLarge, UnsupportedMediaType, ExpectationFailed, RateLimited),
        *(ConcurrencyLimited, QuotaExceeded, Overloaded, ShuttingDown),
        *(IdempotencyInProgress, IdempotencyMismatch, JobNotDone),
    )

    name: Annotated[str | None, Field(min_length=1, max_length=MAX_NAME_LENGTH)] = None
    """The name of the job. If it has runs, the upload is its next run. It is refused while the newest run is open."""
    scraper: Annotated[str | None, Field(min_length=1, max_length=100)] = None
    """The scraper of targets that do not name one."""
    dry_run: Flag = False
    """Only check the upload."""
    key: Key = None
    """A text that is unique to this upload. A second upload with the same key and content returns the first one's job.
    An upload with the same key and other content is refused."""
    wait: Wait = None
    """``wait=N``: wait up to N seconds (1 to 120) until the job has ended (RFC 7240)."""

    async def admit(self, call: Call, parts: Parts) -> Callable[[], None]:
        """Check an upload before its body is received.

        Raises:
            UnsupportedMediaType, InvalidRequest, ShuttingDown, StoreUnavailable: as for the upload itself.
            ConcurrencyLimited: the client has too many jobs that are not done, or too many uploads that are arriving.
            Overloaded: too many uploads are arriving.
        """
        self._upload(call, call.content, {}).check()
        parts.jobs.check_open()
        if self.key is None and not self.dry_run:  # an earlier upload with the same key may have made the job
            await parts.jobs.uploads.check_room(call.holder)
        return parts.jobs.arrive(call.holder.client)

    async def answer(self, call: Call, parts: Parts) -> Answer:
        of_client = parts.jobs
        upload = self._upload(call, *_listing(call))
        upload.check()
        of_client.check_open()
        if self.dry_run:
            contents = await of_client.uploads.check(call.holder, upload)
            return json_response(200, {"job": None, "previous": None, **contents.as_json()}, call)
        await usage.check_quota(parts.store, call.holder)
        job, made = await of_client.uploads.make(call.holder, upload, call.request_id)
        if made is None:
            call.headers["Idempotent-Replayed"] = "true"
            made = await of_client.uploads.check(call.holder, upload)
        of_client.runs.added()
        call.headers["Location"] = f"{call.service_url}{PATH}/{job.id}"
        job = await _ended(job, self.wait, call, parts)
        return json_response(202, {**await _begun(job, parts), **made.as_json()}, call)

    def _upload(self, call: Call, content: IO[bytes], in_body: Mapping[str, Any]) -> Upload:
        """Return the upload of a request. ``in_body``: the options of the job in the body.

        Raises:
            InvalidRequest: an option is not valid, or options contradict each other.
        """
        refuse_compressed(call)
        known = CategoryOptions.model_fields | KeepOption.model_fields
        in_query = {name: getattr(self, name) for name in known if name in self.model_fields_set}
        if both := in_body.keys() & in_query.keys():
            raise InvalidRequest.of(min(both), "give it in the body or as a query parameter, not both")
        given = {**in_body, **in_query}
        try:
            options = JobOptions(**given)
        except ValidationError as error:
            first = validation_details(error)[0]
            raise InvalidRequest.of(str(first["loc"][0] if first["loc"] else min(given)), first["msg"]) from None
        return Upload(content, call.request_headers.get("content-type", ""), self.scraper, self.key, options, self.name)


class ListJobs(Route):
    """The jobs of the key's client.

    The newest job is first.
    """

    path = PATH
    operation = "jobs"
    is_counted = False
    replies = {200: Reply("Success.", models.JobList)}

    after: Annotated[str | None, Field(pattern=JOB_ID)] = None
    """The ``next_after`` of the previous page."""
    name: Annotated[str, Field(max_length=MAX_NAME_LENGTH)] = ""
    """Only the runs of the job with this name."""
    limit: Int = Field(default=MAX_PAGE, ge=1, le=MAX_PAGE)
    """Maximum number of jobs."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        client, keep_days = call.holder.client, parts.jobs.keep_days
        page = await parts.jobs.jobs.newest(client, self.limit + 1, int(self.after or MAX_ID), self.name)
        listed = [client_jobs.describe(each, keep_days) for each in page[: self.limit]]
        following = str(page[self.limit - 1].id) if len(page) > self.limit else None
        return json_response(200, {"client_id": client, "jobs": listed, "next_after": following}, call)


class OfJob(Route):
    """The input of the routes of one job."""

    is_counted = False
    errors: ClassVar[tuple[type[ScrapeError], ...]] = (*KEYED_ERRORS, JobNotFound)

    job_id: JobId
    """The id of the job."""


class ReadJob(OfJob):
    """A job, and how its targets ended.

    Also while the job runs.
    """

    path = PATH + "/{job_id}"
    operation = "job"
    replies = {200: Reply("Success.", models.JobDetail)}

    wait: Wait = None
    """``wait=N``: wait up to N seconds (1 to 120) until the job has ended (RFC 7240)."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        job = await _ended(await parts.jobs.find(call.holder, self.job_id), self.wait, call, parts)
        return json_response(200, await client_jobs.detail(parts.jobs.jobs, job, parts.jobs.keep_days), call)


class DeleteJob(OfJob):
    """Cancel a job, or delete it with its records.

    A job that is open is cancelled: its targets in progress are completed, and no others start. A job that is
    done or cancelled is deleted.
    """

    method = "DELETE"
    path = PATH + "/{job_id}"
    operation = "delete-job"
    replies = {204: Reply("The job was cancelled or deleted.")}

    async def answer(self, call: Call, parts: Parts) -> Answer:
        job, jobs = await parts.jobs.find(call.holder, self.job_id), parts.jobs.jobs
        await parts.jobs.change(jobs.remove(job) if job.state in {"done", "cancelled"} else jobs.cancel(job))
        return empty_response(call)


class RetryJob(OfJob):
    """Queue failed targets again whose errors may pass.

    The targets of a cancelled job cannot be retried.
    """

    method = "POST"
    path = PATH + "/{job_id}/retry"
    operation = "retry-job"
    replies = {202: Reply("The targets were queued.", models.JobRetried)}
    errors = (*OfJob.errors, RateLimited, QuotaExceeded)

    all: Flag = False
    """Also queue targets whose errors do not pass, such as ``TARGET_NOT_FOUND``."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        of_client = parts.jobs
        job = await of_client.find(call.holder, self.job_id)
        if job.state == "cancelled":
            raise InvalidRequest.of("job_id", "the job is cancelled: make a new one")
        await usage.check_quota(parts.store, call.holder)
        retried = await of_client.change(of_client.jobs.retry(job, every=self.all))
        of_client.runs.added()
        found = await of_client.find(call.holder, self.job_id)
        return json_response(202, {"retried": retried, "job": client_jobs.describe(found, of_client.keep_days)}, call)


class RepeatJob(OfJob):
    """Begin the next run of a job, with the targets and options of this run.

    It is refused while the newest run is open.
    """

    method = "POST"
    path = PATH + "/{job_id}/runs"
    operation = "repeat-job"
    replies = {202: Reply("The run has begun.", models.JobRun, ("Location",))}
    errors = (
        *(*OfJob.errors, RateLimited, ConcurrencyLimited, QuotaExceeded, ShuttingDown),
        *(IdempotencyMismatch, JobNotDone),
    )

    key: Key = None
    """A text that is unique to this request. A second request with the same key returns the run of the first one."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        of_client = parts.jobs
        job = await of_client.find(call.holder, self.job_id)
        of_client.check_open()
        await usage.check_quota(parts.store, call.holder)
        run = await of_client.change(of_client.uploads.repeat(job, self.key))
        of_client.runs.added()
        call.headers["Location"] = f"{call.service_url}{PATH}/{run.id}"
        return json_response(202, await _begun(run, parts), call)


class Paged(OfJob):
    """The input of the routes that return a page of what a job has."""

    after: Annotated[str | None, Field(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] = None
    """The ``X-Next-Cursor`` of the previous response."""
    limit: Int = Field(default=MAX_OUTCOMES, ge=1, le=MAX_OUTCOMES)
    """Maximum number of ended targets."""

    def _cursor(self, job: Job) -> Cursor:
        """Return the position after which the page begins.

        Raises:
            InvalidRequest: the cursor belongs to a different job.
        """
        cursor = Cursor.parse(self.after or f"{job.id}.0")
        if cursor.job != job.id:
            raise InvalidRequest.of("after", f"the cursor belongs to a different job than {job.id}")
        return cursor


class Outcomes(Paged):
    """The input of the routes that return outcomes of a job."""

    scraper: Annotated[str | None, Field(min_length=1, max_length=100)] = None
    """Only targets of this scraper."""
    code: Annotated[str | None, Field(pattern="^[A-Z_]{1,60}$")] = None
    """Only targets with this outcome: ``OK`` or an error code."""

    async def _selected(self, job: Job, parts: Parts, **own: Any) -> Selected:
        """Return what the response contains. ``own``: further attributes.

        Raises:
            InvalidRequest: the cursor belongs to a different job.
        """
        cursor = self._cursor(job)
        until = await records.last_of(parts.jobs.jobs, job, cursor.seq, self.limit)
        until = max(until, cursor.seq)
        return Selected(scraper=self.scraper, code=self.code, after=cursor.seq, until=until, **own)


def _format(known: Mapping[str, Format]) -> Any:
    """Return the type of a query parameter that names one of some formats."""
    names = "; ".join(f"``{name}`` ({each.title}): {each.purpose}" for name, each in known.items())
    shown = {name: {"title": each.title, "kind": each.kind} for name, each in known.items()}
    text = f"The format of the response, instead of the header ``Accept``. {names}."
    own: Any = {"default": DEFAULT.name, "x-formats": shown}  # the console shows these formats
    return Annotated[Literal[tuple(known)] | None, Field(description=text, json_schema_extra=own)]


def _outcomes(known: Mapping[str, Format], line: Any, *headers: str) -> Mapping[int, Reply]:
    """Return the response with lines in one of some formats. ``line``: the model of a line."""
    of_kind = {"array": list[line], "book": bytes}
    texts_first = sorted(known.values(), key=lambda each: each.kind != "table")  # generated clients read the first
    media = {each.media_type.partition(";")[0]: of_kind.get(each.kind, str) for each in texts_first}
    return {200: Reply("Success.", None, ("X-Next-Cursor", *headers), media)}


class RecordsFormat(Route):
    """The format of the routes whose lines are in all formats that the endpoint sends."""

    format: _format(SERVED) = None  # type: ignore[valid-type]  # a type that is made of the table of formats


class ReadRecords(Outcomes, RecordsFormat):
    """The records of a job.

    The records that were stored when the response began, also while the job runs.
    """

    path = PATH + "/{job_id}/records"
    operation = "job-records"
    replies = _outcomes(SERVED, models.RecordLine, "ETag")

    fields: Annotated[str | None, Field(min_length=1, max_length=4_000)] = None
    """The fields of the data, with commas between them."""
    explode: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """The list whose entries are the rows."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        job = await parts.jobs.find(call.holder, self.job_id)
        name = self.format or accepted(call.request_headers.get("accept", ""), SERVED)
        selected = await self._selected(job, parts, format=name, fields=self.fields, explode=self.explode)
        return await _streamed(call, parts, job, selected, await records.shapes(parts.jobs.jobs, job, selected))


class FailuresFormat(Route):
    """The format of the routes whose lines are neither workbooks nor SQL."""

    format: _format(OF_FAILURES) = None  # type: ignore[valid-type]  # a type that is made of the table of formats


class ReadFailures(Outcomes, FailuresFormat):
    """The failures of a job.

    Targets that ended with an error, and lines that are not targets, with their line numbers.
    """

    path = PATH + "/{job_id}/failures"
    operation = "job-failures"
    replies = _outcomes(OF_FAILURES, models.FailureLine, "ETag")

    async def answer(self, call: Call, parts: Parts) -> Answer:
        job = await parts.jobs.find(call.holder, self.job_id)
        name = self.format or accepted(call.request_headers.get("accept", ""), OF_FAILURES)
        return await _streamed(call, parts, job, await self._selected(job, parts, format=name), None)


class ReadChanges(Paged, RecordsFormat):
    """What has changed in a job since its earlier runs.

    The job must be done. Its targets, rows and values are compared with those of the earlier jobs of the same name.
    """

    path = PATH + "/{job_id}/changes"
    operation = "job-changes"
    replies = _outcomes(SERVED, models.ChangeLine)

    async def answer(self, call: Call, parts: Parts) -> Answer:
        job, jobs = await parts.jobs.find(call.holder, self.job_id), parts.jobs.jobs
        if job.state != "done":
            raise InvalidRequest.of("job_id", "the job is not done: only a job that is done can be compared")
        form = SERVED[self.format or accepted(call.request_headers.get("accept", ""), SERVED)]
        first, end = self._cursor(job).seq, await jobs.next_row(job)
        until = max(first, min(first + self.limit, end))
        last = None if first < until == end else until - 1
        comparison = Comparison(job, await jobs.earlier(job), first, last)
        headers = {"X-Next-Cursor": str(Cursor(job.id, until)), "Vary": "Accept, Accept-Encoding"}
        return await _sent(call, form, headers, partial(records.changes, parts.jobs, job, comparison, form))


async def _begun(job: Job, parts: Parts) -> dict[str, Any]:
    """Return the part of a response about a run that has begun."""
    earlier = await parts.jobs.jobs.earlier(job)
    return {"job": client_jobs.describe(job, parts.jobs.keep_days), "previous": client_jobs.previous(earlier)}


async def _ended(job: Job, wait: int | None, call: Call, parts: Parts) -> Job:
    """Wait until a job has ended, for at most the seconds of ``Prefer: wait=N``. Return its last state."""
    call.wait = wait
    return await parts.jobs.ended(job, (wait or 0) - call.duration_ms / 1000)


async def _streamed(call: Call, parts: Parts, job: Job, selected: Selected, rows: dict[str, Shape] | None) -> Answer:
    etag = selected.etag(job)
    headers = {"X-Next-Cursor": str(Cursor(job.id, selected.until)), "Vary": "Accept, Accept-Encoding"}
    if job.ended is not None and not job.counts["running"]:
        headers |= {"ETag": etag, "Cache-Control": "private, no-cache"}
    media_type = selected.form.media_type
    if "ETag" in headers and has_copy(call, etag):
        return raw_response(call, media_type, b"", headers, status=304)
    return await _sent(call, selected.form, headers, partial(records.records, parts.jobs, job, selected, rows))


async def _sent(
    call: Call, form: Format, headers: dict[str, str], pieces: Callable[[], Awaitable[AsyncIterator[bytes]]]
) -> Answer:
    """Return the response whose body is made piece by piece, unless the method is HEAD."""
    whole = raw_response(call, form.media_type, b"", headers)
    return StreamedAnswer(whole.status, whole.headers, b"", pieces=None if call.method == "HEAD" else await pieces())


def accepted(accept: str, known: Mapping[str, Format]) -> str:
    """Return the name of the format that a value of ``Accept`` prefers, or else the default format.

    >>> from crawler.outputs.formats import SERVED
    >>> [accepted(value, SERVED) for value in ("text/csv", "application/json, */*", "text/*, application/json;q=0.5")]
    ['csv', 'jsonl', 'csv']
    >>> accepted("text/html", SERVED)
    'jsonl'
    """
    qualities: dict[str, float] = {}
    for each in accept.split(","):
        media_type, _, parameters = each.partition(";")
        found = re.search(r"\bq\s*=\s*([01](?:\.[0-9]*)?)", parameters)
        qualities[media_type.strip().lower()] = float(found[1]) if found else 1.0

    def quality(each: Format) -> float:
        media_type = each.media_type.partition(";")[0]
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next((qualities[name] for name in ranges if name in qualities), 0.0)

    return max((DEFAULT, *known.values()), key=quality).name


def _listing(call: Call) -> tuple[IO[bytes], dict[str, Any]]:
    """Return the targets of an upload, and the options of the job in its body.

    Only a body that is a single JSON object contains options, in addition to the params of its target.

    Raises:
        InvalidJson, InvalidRequest: the object is not valid.
    """
    content = call.content
    head, size = content.read(PEEKED_BYTES), content.seek(0, os.SEEK_END)
    content.seek(0)
    is_json = call.request_headers.get("content-type", "").partition(";")[0].strip().lower() == JSON
    if not is_json or not head.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        return content, {}
    if size > MAX_BODY_BYTES:
        raise InvalidRequest.of("body", f"an object is one target, of at most {MAX_BODY_BYTES} bytes: send an array")
    target = read_object(call)
    options = {name: target.pop(name) for name in CategoryOptions.model_fields if name in target}
    return io.BytesIO(json.dumps([target]).encode()), options


ROUTES: tuple[type[Route], ...] = (
    *(ListJobs, CreateJob, ReadJob, DeleteJob, ReadRecords, ReadFailures, ReadChanges, RetryJob, RepeatJob),
)
"""The routes of jobs."""
