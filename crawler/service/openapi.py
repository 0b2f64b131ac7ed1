"""``/openapi.json``: the contract as OpenAPI 3.1, generated from the registry and from the models.

Nothing here knows a scraper: one that the registry finds is described by its own models and the tree of errors.
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
    ScrapeError,
    ScraperNotFound,
    ServiceError,
    documented,
)
from crawler.registry import scrapers
from crawler.service.contract import Catalogue, Failure, Health, Readiness, Success, UsageReport
from crawler.service.envelope import Call, failure
from crawler.targets.target import Scraper

VERSION = "1.0.0"
"""Of the contract, not of the code behind it. A scraper's version is in its name."""

SCHEMAS = "#/components/schemas/"
JSON = "application/json"

ABOUT = """\
Each scraper takes one target (a URL, a handle, a category, a search) and answers with one structured record about it,
or with one typed error, in the same envelope.

* Every call carries an API key in the header `X-API-Key`.
* A call has 60 seconds; `Prefer: wait=N` asks for another time, from 1 to 120.
* With an `Idempotency-Key`, a call that is sent twice is made once and billed once.
* What a platform does not show is `null`, `""` or `[]`, never 0 and never a guess.
"""

Json = dict[str, Any]
Refs = Mapping[Any, Json]
"""A model -> the reference to its schema."""

PARAMETERS: Json = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Any text of your own that is unique to this call. The same key with the same params gives the"
        " first success again, not billed; with other params it is refused. Failures are not kept.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "maxLength": 255},
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "description": "`wait=N`: the seconds that the call may take, 1 to 120 (RFC 7240).",
        "schema": {"type": "string"},
        "example": "wait=30",
    },
    "CacheControl": {
        "name": "Cache-Control",
        "in": "header",
        "description": "`no-cache`: a fresh record, also where a kept one would do. `no-store`: it is not kept either.",
        "schema": {"type": "string"},
    },
}

TEXT = {"type": "string"}

HEADERS: Json = {
    "X-Request-Id": {"description": "The answer's `request_id`.", "required": True, "schema": TEXT},
    "Preference-Applied": {"description": "The wait that holds, where one was asked.", "schema": TEXT},
    "Retry-After": {"description": "Seconds to wait before a repeat.", "schema": TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": TEXT},
    "RateLimit-Policy": {"description": "The key's window of calls, as the IETF's draft has it.", "schema": TEXT},
    "RateLimit": {"description": "What is left of it, and the seconds until more is.", "schema": TEXT},
    "X-Cache": {
        "description": "`HIT`: an earlier record. Only where the scraper is cached.",
        "schema": {"enum": ["HIT", "MISS"]},
    },
    "Age": {"description": "Seconds since a kept record was fetched.", "schema": TEXT},
    "Idempotent-Replayed": {"description": "The first success of this key, again.", "schema": {"const": "true"}},
}
ALWAYS = ("X-Request-Id",)
ON_CALLS = (*ALWAYS, "Preference-Applied", "RateLimit-Policy", "RateLimit")
ON_SUCCESS = (*ON_CALLS, "X-Cache", "Age", "Idempotent-Replayed")
ON_FAILURE = (*ON_CALLS, "Retry-After")

NEVER = {ScraperNotFound, MethodNotAllowed}
"""What no call to a documented operation ends with."""


@cache
def as_json() -> bytes:
    """The document as it is served."""
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2)


def document() -> Json:
    """The whole document."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    models: list[type[BaseModel]] = [Failure, Catalogue, UsageReport, Health, Readiness]
    for scraper in distinct.values():
        models += [scraper.params, Success[scraper.data]]  # type: ignore[name-defined]  # made at run time
    # In validation mode a field with a default is one that may be left out, which is what the contract says.
    refs, defined = models_json_schema([(model, "validation") for model in models], ref_template=SCHEMAS + "{model}")
    ref = {model: schema for (model, _), schema in refs.items()}
    paths = {f"/v1/scrapers/{name}": {"post": _operation(name, one, ref)} for name, one in scrapers().items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Social and retail data",
            "summary": "Public social and retail pages as structured records.",
            "description": ABOUT,
            "version": VERSION,
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": "/"}],
        "security": [{"ApiKeyAuth": []}],
        "tags": [
            *({"name": platform} for platform in sorted({scraper.platform for scraper in distinct.values()})),
            {"name": "service", "description": "About the service itself."},
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
    alias = "" if name == scraper.name else f"Another name of `{scraper.name}`. "
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
            "200": _response("The scrape is complete.", succeeded, ON_SUCCESS),
            **{str(status): {"$ref": f"#/components/responses/{_failure_name(status)}"} for status in _by_status()},
        },
    }


def _service_paths(ref: Refs) -> Json:
    def get(name: str, summary: str, shape: type[BaseModel], **further: Any) -> Json:
        return {
            "get": {
                "operationId": name,
                "tags": ["service"],
                "summary": summary,
                "security": [],
                "responses": {"200": _response("As asked.", ref[shape], ALWAYS)},
                **further,
            }
        }

    day = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    usage = get("usage", "What the key's client has called, by day and scraper.", UsageReport)
    usage["get"] |= {
        "security": [{"ApiKeyAuth": []}],
        "parameters": [
            {"name": "from", "in": "query", "description": "The first day; by default the last 31.", "schema": day},
            {"name": "to", "in": "query", "description": "The last day; today by default.", "schema": day},
        ],
        "responses": {
            "200": _response("As asked.", ref[UsageReport], ALWAYS),
            **{
                str(status): {"$ref": f"#/components/responses/{_failure_name(status)}"}
                for status in (InvalidRequest.http_status, AuthError.http_status, ServiceError.http_status)
            },
        },
    }
    readyz = get("readyz", "Whether calls are taken.", Readiness)
    readyz["get"]["responses"]["503"] = _response(
        "No calls are taken: the service drains, or no crawler can be opened.", ref[Readiness], ALWAYS
    )
    return {
        "/v1/scrapers": get("catalogue", "Every scraper, with its params and an example.", Catalogue),
        "/v1/usage": usage,
        "/healthz": get("healthz", "Whether the process lives.", Health),
        "/readyz": readyz,
    }


def _response(about: str, schema: Json, headers: tuple[str, ...]) -> Json:
    return {
        "description": about,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {JSON: {"schema": schema}},
    }


@cache
def _by_status() -> dict[int, list[type[ScrapeError]]]:
    """The errors of a scraper's call by their HTTP status, in order."""
    found: dict[int, list[type[ScrapeError]]] = {}
    for error in documented():
        if error not in NEVER:
            found.setdefault(error.http_status, []).append(error)
    return dict(sorted(found.items()))


def _failure_name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")


def _failures(status: int, kinds: list[type[ScrapeError]], ref: Refs) -> Json:
    """All failures of one HTTP status: the failure's envelope, with one of these codes."""
    codes = [kind.code for kind in kinds]
    one_of = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    headers = (*ON_FAILURE, "WWW-Authenticate") if status == AuthError.http_status else ON_FAILURE
    response = _response(", ".join(f"`{code}`" for code in codes), {"allOf": [ref[Failure], one_of]}, headers)
    response["content"][JSON]["examples"] = {
        kind.code: {"summary": about(kind), "value": _example(kind)} for kind in kinds
    }
    return response


def _example(kind: type[ScrapeError]) -> Json:
    """A failure's envelope, the same each time that it is made."""
    call = Call("req_01ARZ3NDEKTSV4RRFFQ69G5FAV", client_id="my-client")
    example: Json = orjson.loads(failure(call, kind(about(kind))).body)
    example["meta"]["duration_ms"] = 240
    return example


def about(kind: type[ScrapeError]) -> str:
    """When an error comes, in a sentence: its class's docstring, from its second word on."""
    text = " ".join((kind.__doc__ or "").split()).removeprefix("Raised ")
    return text[:1].upper() + text[1:]
