"""Hooks for Schemathesis: checks that are specific to this service."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, Response

from crawler.errors import documented

CODES = {
    error.http_status: {kind.code for kind in documented() if kind.http_status == error.http_status}
    - {"SCRAPER_NOT_FOUND"}
    for error in documented()
}
"""HTTP status -> the error codes with which a documented route can respond."""

BEYOND_SCHEMA = {"value_error", "string_too_short"}
"""The error types (in ``details``) of validation rules that JSON Schema cannot express. A text is too short if it has
only whitespace, which is removed first."""


@schemathesis.check
def schema_valid_calls_fail_only_rules_beyond_the_schema(
    _ctx: CheckContext, response: Response, case: Case[Any]
) -> bool | None:
    """A call that is valid by the OpenAPI document gets 400 only for a rule that JSON Schema cannot express."""
    meta = case.meta
    if meta is None or meta.generation.mode is not GenerationMode.POSITIVE or response.status_code != 400:
        return None
    error = response.json()["error"]
    assert error["code"] == "INVALID_REQUEST", error
    assert {detail["type"] for detail in error["details"]} <= BEYOND_SCHEMA, error
    return None


@schemathesis.check
def the_code_of_an_error_belongs_to_its_status(_ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """An error of ``/v1/`` has one of the codes documented for its status. The schema is the same for all statuses.

    Responses with status 405 are left out.
    """
    if response.status_code >= 400 and case.path.startswith("/v1/") and response.status_code != 405:
        assert response.json()["error"]["code"] in CODES[response.status_code]
    return None


@schemathesis.check
def every_response_has_its_request_id(_ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Each response has one header ``X-Request-Id``. The response to a call has the same id in its body."""
    (header,) = response.headers["x-request-id"]
    assert header.startswith("req_")
    if case.method == "POST" and case.path.startswith("/v1/scrapers/"):
        assert response.json()["request_id"] == header
    return None
