"""Calls in the OpenAPI document: scrapers, asynchronous calls, and the models of the latter."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crawler.errors import CallNotFound, JobNotFound, MethodNotAllowed, ScraperNotFound, TargetNotFound, documented
from crawler.platforms.model import Model
from crawler.registry import scrapers
from crawler.service.calls.stored import STATES
from crawler.service.description.contract import REQUEST_ID, Accepted, Completed, Success
from crawler.service.description.headers import (
    ACCEPTED_HEADERS,
    RESULT_HEADERS,
    SCRAPER_PARAMETERS,
    SUCCESS_HEADERS,
    TEXT,
    WAITING_HEADERS,
)
from crawler.service.description.operations import (
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
from crawler.service.description.schemas import Json, Refs, markdown
from crawler.targets.target import Scraper

NOT_FROM_SCRAPERS = {ScraperNotFound, MethodNotAllowed, CallNotFound, JobNotFound}
"""Errors for unknown routes, methods, call ids and job ids, which calls of a documented scraper cannot cause."""
ERRORS = tuple(error for error in documented() if error not in NOT_FROM_SCRAPERS)


class CallCounts(Model):
    """The numbers of a client's asynchronous calls by state."""

    waiting: int
    """Calls that have not started."""
    running: int
    """Calls that have started and have no response."""
    done: int
    """Calls with a stored response."""


class CallEntry(Model):
    """An asynchronous call of the client."""

    request_id: str = Field(pattern=REQUEST_ID)
    """The id of the call. `/v1/calls/<request_id>` is its URL."""
    scraper: str
    """The scraper's primary name."""
    params: dict[str, Any]
    """The params of the call, including defaults, without params that are null."""
    state: Literal["waiting", "running", "done"]
    """`done`: the call has a response."""
    accepted_at: str = Field(json_schema_extra={"format": "date-time"})
    """When the call was accepted."""
    completed_at: str | None = Field(json_schema_extra={"format": "date-time"})
    """When the call got its response; null if it has none."""
    code: str | None
    """`OK` or the code of the call's error; null if it has no response."""
    http_status: int | None
    """The HTTP status of the response; null if there is none."""
    billable: bool
    """Whether the call is billed."""
    expires_at: str = Field(json_schema_extra={"format": "date-time"})
    """When the stored response is deleted, or when a waiting call ends with the error `OVERLOADED`."""


class CallList(Model):
    """A page of the client's asynchronous calls, the newest first."""

    client_id: str
    """The client that owns the API key of this request."""
    counts: CallCounts
    """The numbers of all calls of the client."""
    calls: list[CallEntry]
    """The calls of this page."""
    next_cursor: str | None
    """The value of `cursor` for the next page; null on the last page."""


def paths(ref: Refs) -> Json:
    """Return the routes of scrapers and of asynchronous calls."""
    listed = "The asynchronous calls of the key's client.\nThe newest call is first."
    filters = (
        query("state", "Only calls in this state.", TEXT | {"enum": [*STATES]}),
        limit("calls"),
        query("cursor", "The `next_cursor` of the previous page.", TEXT | {"pattern": REQUEST_ID}),
    )
    call_id = in_path("request_id", "The id of the call.", REQUEST_ID)
    result = (
        "The response of an asynchronous call.\n"
        "While the call waits or runs, the status is 202. After that, the response is that of a synchronous call."
    )
    results = {
        "200": response("The scrape is complete.", ref[Completed], RESULT_HEADERS),
        "202": response("The call waits or runs.", ref[Accepted], WAITING_HEADERS),
        "404": failures(404, [TargetNotFound, CallNotFound], ref),
    }
    deleted = (
        "Cancel an asynchronous call, or delete its response.\nA call that waits or runs is cancelled and not billed."
    )
    deletions = {"204": empty("The call is deleted."), "404": failures(404, [CallNotFound], ref)}
    return {
        **{f"/v1/scrapers/{name}": {"post": _scrape(name, each, ref)} for name, each in scrapers().items()},
        "/v1/calls": {"get": operation("calls", listed, success(ref[CallList]), *filters)},
        "/v1/calls/{request_id}": {
            "get": operation("call", result, results, call_id, *map(_shared, ("Fields", "Wait")), errors=ERRORS),
            "delete": operation("delete-call", deleted, deletions, call_id),
        },
    }


def _scrape(name: str, scraper: Scraper, ref: Refs) -> Json:
    alias = "" if name == scraper.name else f"An alias of `{scraper.name}`. "
    text = f"{scraper.summary}\n{alias}{markdown(scraper.params.__doc__ or '')}"
    succeeded = ref[Success[scraper.data]]  # type: ignore[name-defined]  # a type that is made at run time
    responses = {
        "200": response("The scrape is complete.", succeeded, SUCCESS_HEADERS),
        "202": response("The call is accepted (`Prefer: respond-async`).", ref[Accepted], ACCEPTED_HEADERS),
    }
    described = operation(name, text, responses, *map(_shared, SCRAPER_PARAMETERS), errors=ERRORS)
    return described | {"tags": [scraper.platform]} | body(ref[scraper.params], example=scraper.example)


def _shared(parameter: str) -> Json:
    return {"$ref": f"#/components/parameters/{parameter}"}
