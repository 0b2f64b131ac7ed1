"""Schemathesis' hooks: what it cannot know of this service."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, Response

UNSAYABLE = "value_error"
"""The kind of those rules of the params that JSON Schema cannot say."""


@schemathesis.check
def what_the_schema_allows_is_refused_by_unsayable_rules_only(
    _ctx: CheckContext, response: Response, case: Case[Any]
) -> bool | None:
    """A call that fits the document is answered 400 only where a model has a rule beyond it."""
    meta = case.meta
    if meta is None or meta.generation.mode is not GenerationMode.POSITIVE or response.status_code != 400:
        return None
    error = response.json()["error"]
    assert error["code"] == "INVALID_REQUEST", error
    assert {detail["type"] for detail in error["details"]} == {UNSAYABLE}, error
    return None


@schemathesis.check
def every_answer_carries_its_request_id(_ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """In the header, and the same in the envelope."""
    (header,) = response.headers["x-request-id"]
    assert header.startswith("req_")
    if case.method == "POST":
        assert response.json()["request_id"] == header
    return None
