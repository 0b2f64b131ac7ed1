"""The headers of responses, as OpenAPI headers."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}

HEADERS: dict[str, Any] = {
    "Preference-Applied": {"description": "The preferences of `Prefer` that were applied.", "schema": TEXT},
    "Retry-After": {"description": "Seconds to wait before a retry.", "schema": TEXT},
    "Location": {"description": "The URL of the job.", "schema": TEXT},
    "X-Next-Cursor": {"description": "The value of `after` that selects later outcomes.", "schema": TEXT},
    "ETag": {"description": "Identifies the response. Sent only for jobs that have ended.", "schema": TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": TEXT},
    "RateLimit-Policy": {"description": "The key's rate limit, in the format of the IETF's draft.", "schema": TEXT},
    "RateLimit": {
        "description": "The remaining calls, and the seconds until the key may make all calls of a period again; after"
        " a refused call, until the next call is allowed. `X-RateLimit-Limit`, `X-RateLimit-Remaining` and"
        " `X-RateLimit-Reset` have the same numbers, one each.",
        "schema": TEXT,
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
