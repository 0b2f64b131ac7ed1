"""The headers of requests and responses, as OpenAPI parameters and headers."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def parameter(where: str, name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the description of a parameter. ``where``: ``query``, ``header`` or ``path``. ``more``: further keys."""
    return {"name": name, "in": where, "description": description, "schema": schema, **more}


PARAMETERS: dict[str, Any] = {
    "IdempotencyKey": parameter(
        "header",
        "Idempotency-Key",
        "A text that is unique to this upload. A second upload with the same key and content returns the first one's"
        " job. An upload with the same key and other content is refused.",
        TEXT | {"pattern": "^[!-~]{1,255}$", "maxLength": 255},
    ),
    "Prefer": parameter(
        "header",
        "Prefer",
        "`wait=N`: the timeout of the call in seconds, 1 to 120 (RFC 7240). The default is 60.",
        TEXT,
        example="wait=30",
    ),
    "Wait": parameter(
        "header",
        "Prefer",
        "`wait=N`: wait up to N seconds (1 to 120) until the job has ended (RFC 7240).",
        TEXT,
        example="wait=30",
    ),
    "Fields": parameter(
        "query",
        "fields",
        "The fields of the data to return, with commas between them: `name,price.current_price`. Objects in lists keep"
        " only these keys. Types in generated clients describe whole records.",
        TEXT,
    ),
}
SCRAPER_PARAMETERS = ("Fields", "Prefer")

HEADERS: dict[str, Any] = {
    "X-Request-Id": {"description": "The `request_id` of the response.", "required": True, "schema": TEXT},
    "Preference-Applied": {"description": "The preferences of `Prefer` that were applied.", "schema": TEXT},
    "Retry-After": {"description": "Seconds to wait before a retry.", "schema": TEXT},
    "Location": {"description": "The URL of the job.", "schema": TEXT},
    "X-Next-Cursor": {"description": "The value of `after` that selects later outcomes.", "schema": TEXT},
    "ETag": {"description": "Identifies the response. Sent only for jobs that have ended.", "schema": TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": TEXT},
    "RateLimit-Policy": {"description": "The key's rate limit, in the format of the IETF's draft.", "schema": TEXT},
    "RateLimit": {"description": "The remaining calls, and the seconds until the next reset.", "schema": TEXT},
    "X-RateLimit-Limit": {"description": "The calls that the key may make in a period.", "schema": NUMBER},
    "X-RateLimit-Remaining": {"description": "The remaining calls.", "schema": NUMBER},
    "X-RateLimit-Reset": {
        "description": "Seconds until the key may make all calls of a period again; after a refused call, until the"
        " next call is allowed.",
        "schema": NUMBER,
    },
    "X-Partial": {
        "description": "What the record lacks, if anything: an RFC 9651 list of sources, each with the parameters"
        " `reason` and `code`. An optional source failed; or, with the reason `unread`, a part of its payload could not"
        " be read: `path`, `cause`, `rows`, `of`, and `loses_rows` if these rows are not in the record. Or, with the"
        " reason `incomplete`, the listing lacks rows at its end: `expected`, `collected` and `why`.",
        "schema": TEXT,
        "example": "timeline; reason=stale_query_id; code=EXTRACTION_FAILED",
    },
    "Idempotent-Replayed": {
        "description": "`true`: an earlier upload with this `Idempotency-Key` made the job.",
        "schema": {"type": "string", "const": "true"},
    },
}
RATE_LIMIT_HEADERS = (
    *("RateLimit-Policy", "RateLimit"),
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
)
CALL_HEADERS = ("Preference-Applied", *RATE_LIMIT_HEADERS)
SUCCESS_HEADERS = (*CALL_HEADERS, "X-Partial")
FAILURE_HEADERS = (*CALL_HEADERS, "Retry-After")
JOB_HEADERS = ("Location", "Preference-Applied", *RATE_LIMIT_HEADERS, "Idempotent-Replayed")
