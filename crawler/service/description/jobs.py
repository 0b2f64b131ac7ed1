"""Jobs in the OpenAPI document: the models of uploads and responses, and the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from crawler.errors import (
    ConcurrencyLimited,
    IdempotencyInProgress,
    IdempotencyMismatch,
    JobNotFound,
    Overloaded,
    PayloadTooLarge,
    UnsupportedMediaType,
)
from crawler.jobs.options import CategoryOptions
from crawler.outputs.formats import DEFAULT, OF_FAILURES, SERVED, Format, Kind
from crawler.platforms.model import Model
from crawler.service.description.contract import Detail, Time, Upstream
from crawler.service.description.headers import JOB_HEADERS, TEXT
from crawler.service.description.operations import (
    ERRORS,
    JSON,
    body,
    empty,
    failures,
    in_path,
    limit,
    operation,
    query,
    response,
    success,
)
from crawler.service.description.schemas import Json, Refs, params_schema
from crawler.service.jobs.uploads import SUFFIXES

UPLOAD_ERRORS = (
    *(*ERRORS, PayloadTooLarge, UnsupportedMediaType, ConcurrencyLimited, Overloaded),
    *(IdempotencyInProgress, IdempotencyMismatch),
)
ID = "^[1-9][0-9]{0,17}$"

WAIT: Json = {"$ref": "#/components/parameters/Wait"}


class JobTarget(Model):
    """A target: the params of its scraper, and your own keys, which are copied to its record."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    """The client's own id, which its record contains. By default, it is made from the line number."""
    scraper: str = ""
    """The name of the scraper. Not needed with a link in `url`."""
    url: str = ""
    """A link to the page, instead of the other params."""


class JobListing(CategoryOptions, JobTarget):
    """A listing, and the number of its pages to read."""


class JobTargets(Model):
    """The numbers of a job's targets by state."""

    total: int
    """All targets, and lines that are not targets. A target that occurs on several lines is counted once."""
    waiting: int
    """Targets that have not started, or that wait for another attempt."""
    running: int
    """Targets in progress."""
    paused: int
    """Targets beyond the client's quota, which continue when there is quota again."""
    done: int
    """Targets with a record, or without new data."""
    failed: int
    """Targets that ended with an error, and lines that are not targets."""
    dead: int
    """Targets whose workers exited repeatedly."""
    cancelled: int
    """Targets that were not scraped because the job was cancelled."""


class Job(Model):
    """A job of the client."""

    job_id: str
    """The id of the job. `/v1/jobs/<job_id>` is its URL."""
    state: Literal["open", "paused", "cancelled", "done"]
    """`paused`: all targets that are left are paused. `done`: all targets have an outcome."""
    idempotency_key: str | None
    """The `Idempotency-Key` of the upload; null if the upload had none."""
    targets: JobTargets
    """The numbers of targets by state."""
    created_at: Time
    """When the upload began."""
    ended_at: Time | None
    """When the last target of a done job ended, or when the job was cancelled; null if the job is open or paused."""
    expires_at: Time | None
    """When the job is deleted with its records; null if it has not ended, or still has targets in progress."""
    targets_per_minute: float | None
    """The mean rate since the upload; null if the job is not open, or no target has ended."""
    estimated_end: Time | None
    """The estimated end of the waiting and running targets at this rate; null if there is no rate."""
    cursor: str
    """The value of `after` that selects outcomes after this response."""


class JobCoverage(Model):
    """The rows of listings that are known to be incomplete."""

    listings: int
    """The number of listings that are known to be incomplete."""
    expected: int
    """The rows that these listings have, as the platforms state. Listings without a stated number add 0."""
    collected: int
    """The rows of these listings that were collected."""


class SourceWarnings(Model):
    """How often an optional source failed for one reason, or parts of a source's payload could not be read."""

    source: str
    """The name of the source, which is one page or call of the platform."""
    code: str
    """The error code of the warning."""
    reason: str
    """The cause in short, for programs. `unread`: the source responded, but parts of its payload could not be read."""
    count: int
    """The number of targets."""


class JobDetail(Job):
    """A job, with the outcomes of its targets."""

    arguments: dict[str, int | bool | str]
    """The options that the upload had, by name."""
    scrapers: list[str]
    """The scrapers of the targets."""
    codes: dict[str, int]
    """`OK` or an error code -> the number of targets that ended with this code."""
    unread: dict[str, int]
    """Parts of payloads that could not be read: source and path -> the number of targets."""
    unread_rows: dict[str, int]
    """Source and path -> the number of rows that are missing because this part could not be read."""
    warnings: list[SourceWarnings]
    """The warnings about incomplete records, without those about unread parts."""
    coverage: JobCoverage | None
    """The coverage of incomplete listings; null if no listing is known to be incomplete."""


class InvalidLine(Model):
    """A line of an upload that is not a target."""

    line: int | None
    """The line number, starting with 1; null if it is not known."""
    code: str
    """The error code."""
    message: str
    """Text for people. It may change."""
    details: list[Detail]
    """The invalid values, if they are known."""


class JobUpload(Model):
    """The job of an upload, its lines, and its maximum cost."""

    job: Job | None
    """The job; null after `dry_run=true`."""
    valid: int
    """The number of lines with a target."""
    invalid: int
    """The number of lines without a target, which are failures of the job."""
    invalid_lines: list[InvalidLine]
    """The first 100 invalid lines."""
    records_at_most: int | None
    """The maximum number of billed records; null if it is not known."""
    requests_at_most: int | None
    """The maximum number of pages requested from the platforms, without retries; null if it is not known."""
    no_limit_because: str | None
    """Why a number is not known; null if both are known."""


class JobList(Model):
    """A page of the client's jobs, the newest first."""

    client_id: str
    """The client that owns the API key of this request."""
    jobs: list[Job]
    """The jobs of this page."""
    next_after: str | None
    """The value of `after` for the next page; null on the last page."""


class JobRetried(Model):
    """A job whose failed targets wait for another attempt."""

    retried: int
    """The number of these targets."""
    job: Job
    """The job after the retry."""


class TargetLine(Model):
    """The keys that identify a target in a line."""

    id: str
    """The id of the upload's line; for a further page of a listing, an id of its own."""
    root: str = ""
    """The id of the line that requested the target; only in exhaustive listings."""
    scraper: str | None
    """The scraper's primary name; null in a failure if the line names none."""
    params: Any
    """The params of the target, including defaults; in a failure, also a text that is not a target."""
    columns: dict[str, Any] = Field({})
    """Your own keys or columns; absent if there are none."""


class RecordLine(TargetLine):
    """A record of a job, without `explode`: a line of `jsonl`, an element of `json`; in tables, `data` is columns."""

    fetched_at: Time
    """When the record was complete."""
    warnings: list[dict[str, Any]]
    """The missing parts of the record."""
    note: str
    """Sentences about params that were reduced to their limits or that no response proves; "" if there are none."""
    data: dict[str, Any]
    """The record, or its selected fields."""


class FailureLine(TargetLine):
    """A target of a job that ended with an error, or a line that is not a target."""

    parent: str | None
    """The id of the target that led to this one; null for lines of the upload."""
    line: int | None
    """The line number, starting with 1; null if it is not known."""
    code: str
    """The error code."""
    message: str
    """Text for people. It may change."""
    retryable: bool
    """Whether a retry may succeed."""
    details: list[Detail]
    """The invalid values, if they are known."""
    upstream: Upstream | None
    """How the platform responded, and the cause of the error; null if neither is known."""


def paths(ref: Refs) -> Json:
    """Return the routes of jobs."""
    listed = "The jobs of the key's client.\nThe newest job is first."
    after = query("after", "The `next_after` of the previous page.", TEXT | {"pattern": ID})
    return {
        "/v1/jobs": {
            "get": operation("jobs", listed, success(ref[JobList]), after, limit("jobs")),
            "post": _upload(ref),
        },
        **{f"/v1/jobs/{{job_id}}{part}": operations for part, operations in _of_job(ref).items()},
    }


def _upload(ref: Refs) -> Json:
    others = ", ".join(f"`{each}`" for each in SUFFIXES if each != JSON)
    text = (
        "Make a job of many targets of any platforms.\n"
        "The body is an array of targets, or one listing. It may also be a table or a list of links,"
        f" with one of these media types: {others}. The job runs in the background, on any number of machines."
    )
    responses = {
        "200": response("The upload was checked (`dry_run`).", ref[JobUpload]),
        "202": response("The job was created.", ref[JobUpload], JOB_HEADERS),
    }
    options = params_schema(CategoryOptions)["properties"]
    for field in options.values():
        del field["default"]  # generated clients would send it
    parameters = (
        query("scraper", "The scraper of targets that do not name one.", TEXT),
        query("dry_run", "Only check the upload.", {"type": "boolean"}),
        *(query(name, field.pop("description"), field) for name, field in options.items()),
        {"$ref": "#/components/parameters/IdempotencyKey"},
        WAIT,
    )
    schema = {"oneOf": [{"type": "array", "items": ref[JobTarget], "minItems": 1}, ref[JobListing]]}
    example = [{"id": "a1", "url": "https://www.walmart.com/browse/food/976759"}]
    return operation("create-job", text, responses, *parameters, errors=UPLOAD_ERRORS) | body(schema, example=example)


def _of_job(ref: Refs) -> Json:
    """Return the operations on one job by the part of their path after its id."""
    job_id = in_path("job_id", "The id of the job.", ID)
    unknown = {"404": failures(404, [JobNotFound], ref)}
    shown = "A job, and how its targets ended.\nAlso while the job runs."
    deleted = (
        "Cancel a job, or delete it with its records.\n"
        "A job that is open or paused is cancelled: its targets in progress are completed, and no others start. A"
        " job that is done or cancelled is deleted."
    )
    cancelled = {"204": empty("The job was cancelled or deleted.")}
    records = "The records of a job.\nThe records that were stored when the response began, also while the job runs."
    failed = (
        "The failures of a job.\n"
        "Targets that ended with an error, and lines that are not targets, with their line numbers."
    )
    retried = "Queue failed targets again, and resume paused ones.\nThe targets of a cancelled job cannot be retried."
    waiting = {"202": response("The targets were queued.", ref[JobRetried])}
    selection = (
        query("fields", "The fields of the data, with commas between them.", TEXT),
        query("explode", "The list whose entries are the rows.", TEXT),
    )
    outcomes = (
        query("scraper", "Only targets of this scraper.", TEXT),
        query("code", "Only targets with this outcome: `OK` or an error code.", TEXT),
        query("after", "The `X-Next-Cursor` of the previous response.", TEXT),
        query("limit", "Maximum number of ended targets.", {"type": "integer", "minimum": 1}),
    )
    return {
        "": {
            "get": operation("job", shown, success(ref[JobDetail]) | unknown, job_id, WAIT),
            "delete": operation("delete-job", deleted, cancelled | unknown, job_id),
        },
        "/records": {
            "get": operation(
                *("job-records", records, _streamed(SERVED, ref[RecordLine]) | unknown),
                *(job_id, _format(SERVED), *selection, *outcomes),
            )
        },
        "/failures": {
            "get": operation(
                *("job-failures", failed, _streamed(OF_FAILURES, ref[FailureLine]) | unknown),
                *(job_id, _format(OF_FAILURES), *outcomes),
            )
        },
        "/retry": {"post": operation("retry-job", retried, waiting | unknown, job_id)},
    }


def _format(known: Mapping[str, Format]) -> Json:
    """Return the query parameter that selects one of some formats. The console shows its ``x-formats``."""
    names = "; ".join(f"`{name}` ({each.title}): {each.purpose}" for name, each in known.items())
    own = {"x-formats": {name: {"title": each.title, "kind": each.kind} for name, each in known.items()}}
    text = f"The format of the response, instead of the header `Accept`. {names}."
    return query("format", text, TEXT | {"enum": [*known], "default": DEFAULT.name} | own)


def _streamed(known: Mapping[str, Format], line: Json) -> Json:
    """Return the response with the outcomes of a job in one of some formats. ``line``: the schema of a line."""
    schemas: dict[Kind, Json] = {"array": {"type": "array", "items": line}, "book": TEXT | {"format": "binary"}}
    texts_first = sorted(known.values(), key=lambda each: each.kind != "table")  # generated clients read the first
    contents = {each.media_type.partition(";")[0]: {"schema": schemas.get(each.kind, TEXT)} for each in texts_first}
    return {"200": empty("The outcomes.", ("X-Next-Cursor", "ETag")) | {"content": contents}}
