"""``/openapi.json``: describes the endpoint in OpenAPI 3.1, generated from the registry, the models and the errors.

This module names no scrapers: the document describes each scraper in the registry with the scraper's own models.
"""

from __future__ import annotations

from functools import cache

import orjson
from pydantic import BaseModel

from crawler.errors import (
    CallNotFound,
    JobNotFound,
    MethodNotAllowed,
    ScrapeError,
    ScraperNotFound,
    TargetNotFound,
    documented,
)
from crawler.registry import scrapers, spider
from crawler.service.calls.stored import STATES
from crawler.service.description import job_paths, webhooks
from crawler.service.description.contract import (
    DAY,
    REQUEST_ID,
    Accepted,
    CallList,
    Catalogue,
    Completed,
    Failure,
    Health,
    Readiness,
    Success,
    UsageReport,
)
from crawler.service.description.headers import (
    ACCEPTED_HEADERS,
    HEADERS,
    PARAMETERS,
    RESULT_HEADERS,
    SCRAPER_PARAMETERS,
    SUCCESS_HEADERS,
    WAITING_HEADERS,
)
from crawler.service.description.operations import (
    JSON,
    body,
    empty,
    failure_name,
    failures,
    in_path,
    limit,
    operation,
    public,
    query,
    response,
    success,
)
from crawler.service.description.schemas import Json, Refs, component_schemas, markdown
from crawler.service.description.status_contract import ServiceStatus
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
CALL_ERRORS = tuple(error for error in documented() if error not in NOT_FROM_SCRAPERS)


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
        models += [scraper.params, Success[scraper.data]]  # type: ignore[name-defined]  # a type that is made at run time
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
        "paths": paths | _service_paths(ref) | _call_paths(ref) | job_paths.paths(ref) | webhooks.paths(ref),
        "webhooks": webhooks.events(ref),
        "components": {
            "securitySchemes": {"ApiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": _failures(ref),
            "schemas": schemas | job_paths.SCHEMAS,
        },
    }


def _operation(name: str, scraper: Scraper, ref: Refs) -> Json:
    alias = "" if name == scraper.name else f"An alias of `{scraper.name}`. "
    text = f"{scraper.summary}\n{alias}{markdown(scraper.params.__doc__ or '')}"
    succeeded = ref[Success[scraper.data]]  # type: ignore[name-defined]  # a type that is made at run time
    responses = {
        "200": response("The scrape is complete.", succeeded, SUCCESS_HEADERS),
        "202": response("The call is accepted (`Prefer: respond-async`).", ref[Accepted], ACCEPTED_HEADERS),
    }
    described = operation(name, text, responses, *map(_shared, SCRAPER_PARAMETERS), errors=CALL_ERRORS)
    return described | {"tags": [scraper.platform]} | body(ref[scraper.params], example=scraper.example)


def _shared(parameter: str) -> Json:
    return {"$ref": f"#/components/parameters/{parameter}"}


def _service_paths(ref: Refs) -> Json:
    catalogue = (
        "All scrapers, with their params and an example.\n"
        "For programs that choose a scraper at run time. An alias is listed in the entry of its scraper."
    )
    usage = (
        "The calls of the key's client, by day and scraper.\n"
        "Days are in UTC. Calls with all keys of the client are counted. A call is counted at most a second after its"
        " response."
    )
    day = {"type": "string", "format": "date", "pattern": DAY}
    days = (
        query("from", "The first day; by default 30 days before the last one.", day),
        query("to", "The last day; by default today.", day),
    )
    status = (
        "The state of each platform and egress, and the outcomes of the last hour.\n"
        "For dashboards: throttles, circuit breakers, waiting calls, and completed targets by minute and code, as sums"
        " over all processes of the service."
    )
    healthz = "Whether the process is running.\nFor liveness checks: a process that does not respond must be restarted."
    readyz = (
        "Whether the service accepts calls.\nFor load balancers: send calls only to processes that respond with 200."
    )
    refuses = "The service accepts no calls: it is shutting down, or all its crawlers fail to start."
    ready = success(ref[Readiness]) | {"503": response(refuses, ref[Readiness])}
    return {
        "/v1/scrapers": {"get": public("catalogue", catalogue, success(ref[Catalogue]))},
        "/v1/usage": {"get": operation("usage", usage, success(ref[UsageReport]), *days)},
        "/v1/status": {"get": operation("status", status, success(ref[ServiceStatus]))},
        "/healthz": {"get": public("healthz", healthz, success(ref[Health]))},
        "/readyz": {"get": public("readyz", readyz, ready)},
    }


def _call_paths(ref: Refs) -> Json:
    """Return the routes of asynchronous calls."""
    listed = "The asynchronous calls of the key's client.\nThe newest call is first."
    filters = (
        query("state", "Only calls in this state.", {"type": "string", "enum": [*STATES]}),
        limit("calls"),
        query("cursor", "The `next_cursor` of the previous page.", {"type": "string", "pattern": REQUEST_ID}),
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
        "/v1/calls": {"get": operation("calls", listed, success(ref[CallList]), *filters)},
        "/v1/calls/{request_id}": {
            "get": operation("call", result, results, call_id, *map(_shared, ("Fields", "Wait")), errors=CALL_ERRORS),
            "delete": operation("delete-call", deleted, deletions, call_id),
        },
    }


def _failures(ref: Refs) -> Json:
    """Return the error responses of calls by name: one for each HTTP status."""
    by_status: dict[int, list[type[ScrapeError]]] = {}
    for error in CALL_ERRORS:
        by_status.setdefault(error.http_status, []).append(error)
    return {failure_name(status): failures(status, kinds, ref) for status, kinds in sorted(by_status.items())}
