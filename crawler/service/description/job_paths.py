"""The routes of jobs in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from crawler.errors import (
    AuthError,
    ConcurrencyLimited,
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidRequest,
    JobNotFound,
    Overloaded,
    PayloadTooLarge,
    RateLimited,
    ServiceError,
    StoreUnavailable,
    UnsupportedMediaType,
)
from crawler.jobs.output import FORMATS
from crawler.service.description.headers import COMMON_HEADERS, JOB_HEADERS, RECORDS_HEADERS
from crawler.service.description.job_contract import JobDetail, JobList, JobRetried, JobUpload, RecordLine
from crawler.service.description.operations import (
    JSON,
    failure_references,
    failures,
    get,
    header_references,
    query,
    response,
)
from crawler.service.description.schemas import COMPONENTS, Json, Refs
from crawler.service.jobs.records import MEDIA_TYPES
from crawler.service.jobs.uploads import SUFFIXES

MODELS: tuple[type[BaseModel], ...] = (JobUpload, JobList, JobDetail, JobRetried, RecordLine)
SECURITY: list[Json] = [{"ApiKeyAuth": []}]
ERRORS = (InvalidRequest, AuthError, RateLimited, ServiceError, StoreUnavailable)
"""The errors of all routes."""
UPLOAD_ERRORS = (
    *(*ERRORS, PayloadTooLarge, UnsupportedMediaType, ConcurrencyLimited, Overloaded),
    *(IdempotencyInProgress, IdempotencyMismatch),
)
TEXT: Json = {"type": "string"}
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
    "id": TEXT | {"description": "The client's own id, which the records have. By default, the line."},
    "scraper": TEXT | {"description": "The name of the scraper. A link in `url` needs none."},
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
            "A target: the params of its scraper, and your own keys, which the records have, too.",
            _TARGET,
        ),
        ("JobListing", "A listing, and the number of its pages to read.", _TARGET | _ARGUMENTS),
    )
}


def paths(ref: Refs) -> Json:
    """Return the routes of jobs."""
    listed = get("jobs", "The jobs of the key's client.", "The newest job is first.", ref[JobList])
    listed |= {
        "security": SECURITY,
        "parameters": [
            query("after", "The `next_after` of the previous page.", TEXT | {"pattern": "^[1-9][0-9]{0,17}$"}),
            query("limit", "Maximum number of jobs.", {"type": "integer", "minimum": 1, "maximum": 100}),
        ],
    }
    listed["responses"] |= _failures()
    return {
        "/v1/jobs": {"get": listed, "post": _upload(ref)},
        "/v1/jobs/{job_id}": {"get": _of_job("job", "A job, and how its targets ended.", ref), "delete": _deleted(ref)},
        "/v1/jobs/{job_id}/records": {"get": _records(ref)},
        "/v1/jobs/{job_id}/failures": {"get": _failed(ref)},
        "/v1/jobs/{job_id}/retry": {"post": _retried(ref)},
    }


def _upload(ref: Refs) -> Json:
    target, listing = ({"$ref": f"{COMPONENTS}{name}"} for name in ("JobTarget", "JobListing"))
    others = ", ".join(f"`{each}`" for each in SUFFIXES if each != JSON)
    return {
        "operationId": "create-job",
        "tags": ["service"],
        "summary": "Make a job of many targets of any platforms.",
        "description": "The body is an array of targets, or one listing. It may also be a table or a list of links,"
        f" with one of these media types: {others}. The job runs in the background, on any number of machines.",
        "parameters": [
            query("scraper", "The scraper of targets that do not name one.", TEXT),
            query("dry_run", "Only check the upload.", {"type": "boolean"}),
            *(query(name, each["description"], _without(each)) for name, each in _ARGUMENTS.items()),
            {"$ref": "#/components/parameters/IdempotencyKey"},
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": {"oneOf": [{"type": "array", "items": target, "minItems": 1}, listing]},
                    "example": [{"id": "a1", "url": "https://www.walmart.com/browse/food/976759"}],
                }
            },
        },
        "responses": {
            "200": response("The upload is checked (`dry_run`).", ref[JobUpload], COMMON_HEADERS),
            "202": response("The job is made.", ref[JobUpload], JOB_HEADERS),
            **failure_references(error.http_status for error in UPLOAD_ERRORS),
        },
    }


def _without(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "description"}


def _of_job(name: str, summary: str, ref: Refs) -> Json:
    operation = get(name, summary, "Also while the job runs.", ref[JobDetail])
    operation |= {"security": SECURITY, "parameters": [_job_id()]}
    operation["responses"] |= _failures() | {"404": failures(404, [JobNotFound], ref)}
    return operation


def _deleted(ref: Refs) -> Json:
    return {
        "operationId": "delete-job",
        "tags": ["service"],
        "summary": "Cancel a job, or delete it with its records.",
        "description": "A job that is open or paused is cancelled: its targets in progress end, and no others start. A"
        " job that is done or cancelled is deleted.",
        "parameters": [_job_id()],
        "responses": {
            "204": {"description": "The job is cancelled or deleted.", "headers": header_references(COMMON_HEADERS)},
            **_failures(),
            "404": failures(404, [JobNotFound], ref),
        },
    }


def _retried(ref: Refs) -> Json:
    return {
        "operationId": "retry-job",
        "tags": ["service"],
        "summary": "Let failed targets wait again, and paused ones continue.",
        "description": "As many as the client's quota allows. A cancelled job is not continued.",
        "parameters": [_job_id()],
        "responses": {
            "202": response("The targets wait.", ref[JobRetried], COMMON_HEADERS),
            **_failures(),
            "404": failures(404, [JobNotFound], ref),
        },
    }


def _records(ref: Refs) -> Json:
    contents: Json = {
        "text/csv": {"schema": TEXT},
        JSON: {"schema": {"type": "array", "items": ref[RecordLine]}},
        MEDIA_TYPES["jsonl"]: {"schema": TEXT},
        **{MEDIA_TYPES[each]: {"schema": TEXT | {"format": "binary"}} for each in ("xlsx", "parquet")},
    }
    parameters = [
        query("format", "The format of the response.", TEXT | {"enum": [*FORMATS], "default": "jsonl"}),
        query("fields", "The fields of the data, with commas between them.", TEXT),
        query("explode", "The list whose entries are the rows.", TEXT),
    ]
    description = "The outcomes up to the begin of the response, also while the job runs. `csv` and `parquet` have the"
    description += " columns of one scraper; `xlsx` has a sheet for each."
    return _streamed("job-records", "The records of a job.", description, parameters, contents, ref)


def _failed(ref: Refs) -> Json:
    contents: Json = {"text/csv": {"schema": TEXT}, MEDIA_TYPES["jsonl"]: {"schema": TEXT}}
    formats = query("format", "The format of the response.", TEXT | {"enum": ["jsonl", "csv"]})
    description = "Targets that ended with an error, and lines that are not targets, with their line numbers."
    return _streamed("job-failures", "The failures of a job.", description, [formats], contents, ref)


def _streamed(  # noqa: PLR0913, PLR0917  # the parts of an operation
    name: str, summary: str, description: str, parameters: list[Json], contents: Json, ref: Refs
) -> Json:
    return {
        "operationId": name,
        "tags": ["service"],
        "summary": summary,
        "description": description,
        "parameters": [
            _job_id(),
            *parameters,
            query("scraper", "Only targets of this scraper.", TEXT),
            query("code", "Only targets with this outcome: `OK` or an error code.", TEXT),
            query("after", "The `X-Next-Cursor` of the previous response.", TEXT),
            query("limit", "Maximum number of ended targets.", {"type": "integer", "minimum": 1}),
        ],
        "responses": {
            "200": {
                "description": "The outcomes.",
                "headers": header_references(RECORDS_HEADERS),
                "content": contents,
            },
            **_failures(),
            "404": failures(404, [JobNotFound], ref),
        },
    }


def _failures() -> Json:
    return failure_references(error.http_status for error in ERRORS)


def _job_id() -> Json:
    schema = TEXT | {"pattern": "^[1-9][0-9]{0,17}$"}
    return {"name": "job_id", "in": "path", "required": True, "description": "The id of the job.", "schema": schema}
