"""``/openapi.json``: describes the endpoint in OpenAPI 3.1, generated from the registry, the models and the errors.

This module names no scrapers: the document describes each scraper in the registry with the scraper's own models.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from crawler.errors import (
    AuthError,
    InvalidRequest,
    MethodNotAllowed,
    RateLimited,
    ScrapeError,
    ScraperNotFound,
    ServiceError,
    StoreUnavailable,
    documented,
)
from crawler.registry import scrapers
from crawler.service.contract import Catalogue, Failure, Health, Readiness, Success, UsageReport
from crawler.service.envelope import Call, failure
from crawler.service.static import StaticContent
from crawler.targets.target import Scraper

VERSION = "0.2.0"
"""The project's version, as in ``pyproject.toml``. Scrapers have their own versions, in their names."""

SCHEMAS = "#/components/schemas/"
JSON = "application/json"

DESCRIPTION = """\
Each scraper takes one target (a URL, a handle, a category, a search) and returns one structured record or one typed
error. Both have the same envelope.

* Every call carries an API key in the header `X-API-Key`.
* A call times out after 60 seconds; `Prefer: wait=N` sets another limit, from 1 to 120.
* With an `Idempotency-Key`, a call that is sent twice runs once and is billed once.
* A record that lacks the data of an optional source has the header `X-Partial`.
* Values that the platform does not show are `null`, `""` or `[]`, never 0 and never a guess.
"""

Json = dict[str, Any]
Refs = Mapping[Any, Json]
"""Model class -> the reference to the model's schema."""

PARAMETERS: Json = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A text that is unique to this call. A second call with the same key and params returns the"
        " first call's record and is not billed. A call with the same key and other params is refused. Failures are not"
        " stored.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "maxLength": 255},
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "description": "`wait=N`: the timeout of the call in seconds, 1 to 120 (RFC 7240).",
        "schema": {"type": "string"},
        "example": "wait=30",
    },
    "CacheControl": {
        "name": "Cache-Control",
        "in": "header",
        "description": "`no-cache`: fetch the record again, even if it is cached. `no-store`: also do not cache it.",
        "schema": {"type": "string"},
    },
}

TEXT = {"type": "string"}

HEADERS: Json = {
    "X-Request-Id": {"description": "The `request_id` of the response.", "required": True, "schema": TEXT},
    "Preference-Applied": {"description": "The timeout of the call, if `Prefer` set it.", "schema": TEXT},
    "Retry-After": {"description": "Seconds to wait before a retry.", "schema": TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": TEXT},
    "RateLimit-Policy": {"description": "The key's rate limit, in the format of the IETF's draft.", "schema": TEXT},
    "RateLimit": {"description": "The remaining calls, and the seconds until the next reset.", "schema": TEXT},
    "X-Cache": {
        "description": "`HIT`: the record was cached. Only responses of cached scrapers have this header.",
        "schema": {"enum": ["HIT", "MISS"]},
    },
    "Age": {"description": "Seconds since the cached record was fetched.", "schema": TEXT},
    "X-Partial": {
        "description": "The optional sources that failed, if any: an RFC 9651 list of their names, each with the"
        " parameters `reason` and `code`. The record is valid, but lacks their data.",
        "schema": TEXT,
        "example": "timeline; reason=stale_query_id; code=EXTRACTION_FAILED",
    },
    "Idempotent-Replayed": {
        "description": "`true`: the record was stored by an earlier call with this `Idempotency-Key`.",
        "schema": {"const": "true"},
    },
}
COMMON_HEADERS = ("X-Request-Id",)
CALL_HEADERS = (*COMMON_HEADERS, "Preference-Applied", "RateLimit-Policy", "RateLimit")
SUCCESS_HEADERS = (*CALL_HEADERS, "X-Cache", "Age", "X-Partial", "Idempotent-Replayed")
FAILURE_HEADERS = (*CALL_HEADERS, "Retry-After")

NOT_FROM_SCRAPERS = {ScraperNotFound, MethodNotAllowed}
"""Errors for wrong routes or methods, which calls of a documented scraper cannot cause."""


@cache
def as_json() -> StaticContent:
    """Return the OpenAPI document as encoded JSON."""
    return StaticContent(JSON, orjson.dumps(document(), option=orjson.OPT_INDENT_2))


def document() -> Json:
    """Build the OpenAPI document."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    models: list[type[BaseModel]] = [Failure, Catalogue, UsageReport, Health, Readiness]
    for scraper in distinct.values():
        models += [scraper.params, Success[scraper.data]]  # type: ignore[name-defined]  # made at run time
    # In validation mode, a field with a default is optional in the schema, as in the specification.
    refs, defined = models_json_schema([(model, "validation") for model in models], ref_template=SCHEMAS + "{model}")
    ref = {model: schema for (model, _), schema in refs.items()}
    paths = {f"/v1/scrapers/{name}": {"post": _operation(name, scraper, ref)} for name, scraper in scrapers().items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Social and retail data",
            "summary": "Public social and retail pages as structured records.",
            "description": DESCRIPTION,
            "version": VERSION,
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": "/"}],
        "security": [{"ApiKeyAuth": []}],
        "tags": [
            *({"name": platform} for platform in sorted({scraper.platform for scraper in distinct.values()})),
            {"name": "service", "description": "The service itself."},
        ],
        "paths": paths | _service_paths(ref),
        "components": {
            "securitySchemes": {"ApiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": {
                _failure_name(status): _failures(status, kinds, ref) for status, kinds in _by_status().items()
            },
            "schemas": defined["$defs"],
        },
    }


def _operation(name: str, scraper: Scraper, ref: Refs) -> Json:
    alias = "" if name == scraper.name else f"An alias of `{scraper.name}`. "
    succeeded = ref[Success[scraper.data]]  # type: ignore[name-defined]  # made at run time
    return {
        "operationId": name,
        "tags": [scraper.platform],
        "summary": scraper.summary,
        "description": alias + (scraper.params.__doc__ or ""),
        "parameters": [{"$ref": f"#/components/parameters/{each}"} for each in PARAMETERS],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": ref[scraper.params], "example": scraper.example}},
        },
        "responses": {
            "200": _response("The scrape is complete.", succeeded, SUCCESS_HEADERS),
            **{str(status): {"$ref": f"#/components/responses/{_failure_name(status)}"} for status in _by_status()},
        },
    }


USAGE_ERRORS = (InvalidRequest, AuthError, RateLimited, ServiceError, StoreUnavailable)
"""The errors of ``/v1/usage``."""


def _service_paths(ref: Refs) -> Json:
    def get(name: str, summary: str, model: type[BaseModel], **overrides: Any) -> Json:
        return {
            "get": {
                "operationId": name,
                "tags": ["service"],
                "summary": summary,
                "security": [],
                "responses": {"200": _response("Success.", ref[model], COMMON_HEADERS)},
                **overrides,
            }
        }

    day = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    usage = get("usage", "The calls of the key's client, by day and scraper.", UsageReport)
    usage["get"] |= {
        "security": [{"ApiKeyAuth": []}],
        "parameters": [
            {
                "name": "from",
                "in": "query",
                "description": "The first day; by default 30 days before the last one.",
                "schema": day,
            },
            {"name": "to", "in": "query", "description": "The last day; by default today.", "schema": day},
        ],
        "responses": {
            "200": _response("Success.", ref[UsageReport], COMMON_HEADERS),
            **{
                str(status): {"$ref": f"#/components/responses/{_failure_name(status)}"}
                for status in sorted({error.http_status for error in USAGE_ERRORS})
            },
        },
    }
    readyz = get("readyz", "Whether the service accepts calls.", Readiness)
    readyz["get"]["responses"]["503"] = _response(
        "The service accepts no calls: it is shutting down, or all its crawlers fail to start.",
        ref[Readiness],
        COMMON_HEADERS,
    )
    return {
        "/v1/scrapers": get("catalogue", "All scrapers, with their params and an example.", Catalogue),
        "/v1/usage": usage,
        "/healthz": get("healthz", "Whether the process is running.", Health),
        "/readyz": readyz,
    }


def _response(description: str, schema: Json, headers: tuple[str, ...]) -> Json:
    return {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {JSON: {"schema": schema}},
    }


@cache
def _by_status() -> dict[int, list[type[ScrapeError]]]:
    """HTTP status -> the errors with this status that a scraper's calls can cause. Sorted by status."""
    by_status: dict[int, list[type[ScrapeError]]] = {}
    for error in documented():
        if error not in NOT_FROM_SCRAPERS:
            by_status.setdefault(error.http_status, []).append(error)
    return dict(sorted(by_status.items()))


def _failure_name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")


def _failures(status: int, kinds: list[type[ScrapeError]], ref: Refs) -> Json:
    """Return the OpenAPI response for one HTTP status, whose body is the envelope with one of these errors."""
    codes = [kind.code for kind in kinds]
    one_of = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    headers = (*FAILURE_HEADERS, "WWW-Authenticate") if status == AuthError.http_status else FAILURE_HEADERS
    response = _response(", ".join(f"`{code}`" for code in codes), {"allOf": [ref[Failure], one_of]}, headers)
    response["content"][JSON]["examples"] = {
        kind.code: {"summary": describe_error(kind), "value": _example(kind)} for kind in kinds
    }
    return response


def _example(kind: type[ScrapeError]) -> Json:
    """Return an example of the envelope of an error, with constant values."""
    call = Call("req_01ARZ3NDEKTSV4RRFFQ69G5FAV", client_id="my-client")
    example: Json = orjson.loads(failure(call, kind(describe_error(kind))).body)
    example["meta"]["duration_ms"] = 240
    return example


def describe_error(kind: type[ScrapeError]) -> str:
    """Describe when an error occurs: the docstring of its class without the word "Raised"."""
    text = " ".join((kind.__doc__ or "").split()).removeprefix("Raised ")
    return text[:1].upper() + text[1:]
