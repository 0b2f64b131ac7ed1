"""``/openapi.json``: describes the endpoint in OpenAPI 3.1, generated from the registry, the models and the errors.

This module names no scrapers: the document describes each scraper in the registry with the scraper's own models.
"""

from __future__ import annotations

from functools import cache

import orjson
from pydantic import BaseModel

from crawler.errors import (
    AuthError,
    CallNotFound,
    InvalidRequest,
    JobNotFound,
    MethodNotAllowed,
    RateLimited,
    ScrapeError,
    ScraperNotFound,
    ServiceError,
    StoreUnavailable,
    TargetNotFound,
    documented,
)
from crawler.registry import scrapers, spider
from crawler.service.calls.stored import STATES
from crawler.service.description import job_paths, webhooks
from crawler.service.description.contract import (
    REQUEST_ID,
    Accepted,
    CallList,
    Catalogue,
    Completed,
    Failure,
    Health,
    Readiness,
    ServiceStatus,
    Success,
    UsageReport,
)
from crawler.service.description.headers import (
    ACCEPTED_HEADERS,
    COMMON_HEADERS,
    HEADERS,
    PARAMETERS,
    RESULT_HEADERS,
    SCRAPER_PARAMETERS,
    SUCCESS_HEADERS,
    WAITING_HEADERS,
)
from crawler.service.description.operations import (
    JSON,
    failure_name,
    failure_references,
    failures,
    get,
    header_references,
    query,
    response,
)
from crawler.service.description.schemas import Json, Refs, component_schemas, markdown
from crawler.service.http.static import StaticContent
from crawler.targets.target import Scraper

VERSION = "0.2.0"
"""The project's version, as in ``pyproject.toml``. Scrapers have their own versions, in their names."""

TITLE = "Social and retail data"
SUMMARY = "Public social and retail pages as structured records."
DESCRIPTION = """\
Each scraper takes one target (a URL, a handle, a category, a search) and returns one structured record or one typed
error. Both have the same envelope.

* Every call carries an API key in the header `X-API-Key`.
* A call times out after 60 seconds; `Prefer: wait=N` sets another limit, from 1 to 120.
* With `Prefer: respond-async`, a call is accepted with status 202. `GET` the URL in `Location` until it returns the
  response.
* With an `Idempotency-Key`, a call that is sent twice runs once and is billed once.
* A record that lacks the data of an optional source, or a value that could not be read, has the header `X-Partial`.
* Values that the platform does not show are `null`, `""` or `[]`, never 0 and never a guess.
"""

NOT_FROM_SCRAPERS = {ScraperNotFound, MethodNotAllowed, CallNotFound, JobNotFound}
"""Errors for unknown routes, methods or call ids, which calls of a documented scraper cannot cause."""


@cache
def as_json(service_url: str) -> StaticContent:
    """Return the OpenAPI document as encoded JSON."""
    return StaticContent(JSON, orjson.dumps(document(service_url), option=orjson.OPT_INDENT_2))


def document(service_url: str = "") -> Json:
    """Build the OpenAPI document. ``service_url``: the setting ``SERVICE_URL``, "" if it is not set."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    models: list[type[BaseModel]] = [
        *(Failure, Accepted, Completed, CallList),
        *(Catalogue, UsageReport, ServiceStatus, Health, Readiness),
        *job_paths.MODELS,
        *webhooks.MODELS,
    ]
    for scraper in distinct.values():
        models += [scraper.params, Success[scraper.data]]  # type: ignore[name-defined]  # made at run time
    ref, schemas = component_schemas(models)
    paths = {f"/v1/scrapers/{name}": {"post": _operation(name, scraper, ref)} for name, scraper in scrapers().items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "summary": SUMMARY,
            "description": DESCRIPTION,
            "version": VERSION,
            "contact": {"name": "The operator of this service"},
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": service_url or "/"}],
        "security": [{"ApiKeyAuth": []}],
        "tags": [
            *(
                {"name": platform, "description": spider(platform).metadata["description"]}
                for platform in sorted({scraper.platform for scraper in distinct.values()})
            ),
            {"name": "service", "description": "The service itself."},
        ],
        "paths": paths | _service_paths(ref) | job_paths.paths(ref) | webhooks.paths(ref),
        "webhooks": webhooks.events(ref),
        "components": {
            "securitySchemes": {"ApiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": {failure_name(status): failures(status, kinds, ref) for status, kinds in _by_status().items()},
            "schemas": schemas | job_paths.SCHEMAS,
        },
    }


def _operation(name: str, scraper: Scraper, ref: Refs) -> Json:
    alias = "" if name == scraper.name else f"An alias of `{scraper.name}`. "
    succeeded = ref[Success[scraper.data]]  # type: ignore[name-defined]  # made at run time
    return {
        "operationId": name,
        "tags": [scraper.platform],
        "summary": scraper.summary,
        "description": alias + markdown(scraper.params.__doc__ or ""),
        "parameters": [{"$ref": f"#/components/parameters/{each}"} for each in SCRAPER_PARAMETERS],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": ref[scraper.params], "example": scraper.example}},
        },
        "responses": {
            "200": response("The scrape is complete.", succeeded, SUCCESS_HEADERS),
            "202": response("The call is accepted (`Prefer: respond-async`).", ref[Accepted], ACCEPTED_HEADERS),
            **failure_references(_by_status()),
        },
    }


USAGE_ERRORS = (InvalidRequest, AuthError, RateLimited, ServiceError, StoreUnavailable)
"""The errors of ``/v1/usage``."""
STATUS_ERRORS = (InvalidRequest, AuthError, RateLimited, ServiceError, StoreUnavailable)
"""The errors of ``/v1/status``."""


def _service_paths(ref: Refs) -> Json:
    catalogue = get(
        "catalogue",
        "All scrapers, with their params and an example.",
        "For programs that choose a scraper at run time. An alias is listed with its scraper, and has no own entry.",
        ref[Catalogue],
    )
    usage = get(
        "usage",
        "The calls of the key's client, by day and scraper.",
        "Days are in UTC. Calls with all keys of the client are counted. A call is counted at most a second after its"
        " response.",
        ref[UsageReport],
    )
    day = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    usage |= {
        "security": [{"ApiKeyAuth": []}],
        "parameters": [
            query("from", "The first day; by default 30 days before the last one.", day),
            query("to", "The last day; by default today.", day),
        ],
    }
    usage["responses"] |= failure_references(error.http_status for error in USAGE_ERRORS)
    status = get(
        "status",
        "The state of each platform and egress, and the outcomes of the last hour.",
        "For dashboards: throttles, circuit breakers, waiting calls, and completed targets by minute and code, as sums"
        " over all processes of the service.",
        ref[ServiceStatus],
    )
    status["security"] = [{"ApiKeyAuth": []}]
    status["responses"] |= failure_references(error.http_status for error in STATUS_ERRORS)
    healthz = get(
        "healthz",
        "Whether the process is running.",
        "For liveness checks: a process that does not respond must be restarted.",
        ref[Health],
    )
    readyz = get(
        "readyz",
        "Whether the service accepts calls.",
        "For load balancers: send calls only to processes that respond with 200.",
        ref[Readiness],
    )
    readyz["responses"]["503"] = response(
        "The service accepts no calls: it is shutting down, or all its crawlers fail to start.",
        ref[Readiness],
        COMMON_HEADERS,
    )
    operations = {
        "/v1/scrapers": catalogue,
        "/v1/usage": usage,
        "/v1/status": status,
        "/healthz": healthz,
        "/readyz": readyz,
    }
    return {path: {"get": operation} for path, operation in operations.items()} | _call_paths(ref)


def _call_paths(ref: Refs) -> Json:
    """Return the routes of asynchronous calls."""
    listed = get("calls", "The asynchronous calls of the key's client.", "The newest call is first.", ref[CallList])
    listed |= {
        "security": [{"ApiKeyAuth": []}],
        "parameters": [
            query("state", "Only calls in this state.", {"type": "string", "enum": [*STATES]}),
            query("limit", "Maximum number of calls.", {"type": "integer", "minimum": 1, "maximum": 100}),
            query("cursor", "The `next_cursor` of the previous page.", {"type": "string", "pattern": REQUEST_ID}),
        ],
    }
    listed["responses"] |= failure_references(error.http_status for error in USAGE_ERRORS)
    name = {"name": "request_id", "in": "path", "required": True, "description": "The id of the call."}
    call_id = name | {"schema": {"type": "string", "pattern": REQUEST_ID}}
    result = get(
        "call",
        "The response of an asynchronous call.",
        "While the call waits or runs, the status is 202. After that, the response is that of a synchronous call.",
        ref[Completed],
    )
    result |= {
        "security": [{"ApiKeyAuth": []}],
        "parameters": [call_id, *({"$ref": f"#/components/parameters/{each}"} for each in ("Fields", "Wait"))],
        "responses": {
            "200": response("The scrape is complete.", ref[Completed], RESULT_HEADERS),
            "202": response("The call waits or runs.", ref[Accepted], WAITING_HEADERS),
            **failure_references(_by_status()),
            "404": failures(404, [TargetNotFound, CallNotFound], ref),
        },
    }
    deleted = {
        "operationId": "delete-call",
        "tags": ["service"],
        "summary": "Cancel an asynchronous call, or delete its response.",
        "description": "A call that waits or runs is cancelled and not billed.",
        "parameters": [call_id],
        "responses": {
            "204": {"description": "The call is deleted.", "headers": header_references(COMMON_HEADERS)},
            **failure_references(error.http_status for error in USAGE_ERRORS),
            "404": failures(404, [CallNotFound], ref),
        },
    }
    return {"/v1/calls": {"get": listed}, "/v1/calls/{request_id}": {"get": result, "delete": deleted}}


@cache
def _by_status() -> dict[int, list[type[ScrapeError]]]:
    """HTTP status -> the errors with this status that a scraper's calls can cause. Sorted by status."""
    by_status: dict[int, list[type[ScrapeError]]] = {}
    for error in documented():
        if error not in NOT_FROM_SCRAPERS:
            by_status.setdefault(error.http_status, []).append(error)
    return dict(sorted(by_status.items()))
