"""The routes of jobs in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from crawler.errors import (
    ConcurrencyLimited,
    IdempotencyInProgress,
    IdempotencyMismatch,
    JobNotFound,
    Overloaded,
    PayloadTooLarge,
    UnsupportedMediaType,
)
from crawler.jobs.output import FORMATS
from crawler.service.description.headers import JOB_HEADERS, TEXT
from crawler.service.description.job_contract import JobDetail, JobList, JobRetried, JobUpload, RecordLine
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
from crawler.service.description.schemas import COMPONENTS, Json, Refs
from crawler.service.jobs.records import MEDIA_TYPES
from crawler.service.jobs.uploads import SUFFIXES

MODELS: tuple[type[BaseModel], ...] = (JobUpload, JobList, JobDetail, JobRetried, RecordLine)
UPLOAD_ERRORS = (
    *(*ERRORS, PayloadTooLarge, UnsupportedMediaType, ConcurrencyLimited, Overloaded),
    *(IdempotencyInProgress, IdempotencyMismatch),
)
ID = "^[1-9][0-9]{0,17}$"
_ARGUMENTS: dict[str, Any] = {
    "max_pages": {
        "type": "integer",
        "minimum": 1,
        "maximum": 999_999,
        "description": "The maximum number of pages of each listing. Each page is a record.",
    },
    "exhaustive": {
        "type": "boolean",
        "description": "Whether all products of a category are collected, each once, although a listing serves only"
        " some of them.",
    },
    "since": {
        "type": "string",
        "pattern": "^(last|[0-9]{4}-[0-9]{2}-[0-9]{2})$",
        "description": "Where to stop reading a listing: `last` for the entries that earlier jobs of the client have"
        " seen, or a day.",
    },
}
_TARGET: dict[str, Any] = {
    "id": TEXT
    | {"description": "The client's own id, which its record contains. By default, it is made from the line number."},
    "scraper": TEXT | {"description": "The name of the scraper. Not needed with a link in `url`."},
    "url": TEXT | {"description": "A link to the page, instead of the other params."},
}
SCHEMAS: Json = {
    name: {
        "title": name,
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": True,
    }
    for name, description, properties in (
        (
            "JobTarget",
            "A target: the params of its scraper, and your own keys, which are copied to its record.",
            _TARGET,
        ),
        ("JobListing", "A listing, and the number of its pages to read.", _TARGET | _ARGUMENTS),
    )
}


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
    target, listing = ({"$ref": f"{COMPONENTS}{name}"} for name in ("JobTarget", "JobListing"))
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
    parameters = (
        query("scraper", "The scraper of targets that do not name one.", TEXT),
        query("dry_run", "Only check the upload.", {"type": "boolean"}),
        *(query(name, each["description"], _without(each)) for name, each in _ARGUMENTS.items()),
        {"$ref": "#/components/parameters/IdempotencyKey"},
    )
    schema = {"oneOf": [{"type": "array", "items": target, "minItems": 1}, listing]}
    example = [{"id": "a1", "url": "https://www.walmart.com/browse/food/976759"}]
    return operation("create-job", text, responses, *parameters, errors=UPLOAD_ERRORS) | body(schema, example=example)


def _without(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "description"}


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
    records = (
        "The records of a job.\n"
        "The records that were stored when the response began, also while the job runs. `csv` and `parquet` have the"
        " columns of one scraper; `xlsx` has a sheet for each."
    )
    failed = (
        "The failures of a job.\n"
        "Targets that ended with an error, and lines that are not targets, with their line numbers."
    )
    retried = (
        "Queue failed targets again, and resume paused ones.\n"
        "As many targets as the client's quota allows. The targets of a cancelled job cannot be retried."
    )
    waiting = {"202": response("The targets were queued.", ref[JobRetried])}
    lines: Json = {"text/csv": {"schema": TEXT}, MEDIA_TYPES["jsonl"]: {"schema": TEXT}}
    contents: Json = lines | {
        JSON: {"schema": {"type": "array", "items": ref[RecordLine]}},
        **{MEDIA_TYPES[each]: {"schema": TEXT | {"format": "binary"}} for each in ("xlsx", "parquet")},
    }
    selection = (
        query("format", "The format of the response.", TEXT | {"enum": [*FORMATS], "default": "jsonl"}),
        query("fields", "The fields of the data, with commas between them.", TEXT),
        query("explode", "The list whose entries are the rows.", TEXT),
    )
    formats = query("format", "The format of the response.", TEXT | {"enum": ["jsonl", "csv"]})
    outcomes = (
        query("scraper", "Only targets of this scraper.", TEXT),
        query("code", "Only targets with this outcome: `OK` or an error code.", TEXT),
        query("after", "The `X-Next-Cursor` of the previous response.", TEXT),
        query("limit", "Maximum number of ended targets.", {"type": "integer", "minimum": 1}),
    )
    return {
        "": {
            "get": operation("job", shown, success(ref[JobDetail]) | unknown, job_id),
            "delete": operation("delete-job", deleted, cancelled | unknown, job_id),
        },
        "/records": {
            "get": operation("job-records", records, _streamed(contents) | unknown, job_id, *selection, *outcomes)
        },
        "/failures": {"get": operation("job-failures", failed, _streamed(lines) | unknown, job_id, formats, *outcomes)},
        "/retry": {"post": operation("retry-job", retried, waiting | unknown, job_id)},
    }


def _streamed(contents: Json) -> Json:
    return {"200": empty("The outcomes.", ("X-Next-Cursor", "ETag")) | {"content": contents}}
