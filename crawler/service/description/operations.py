"""Functions that make the parts which the operations of the OpenAPI document have in common."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import orjson

from crawler.errors import AuthError, InvalidRequest, RateLimited, ScrapeError, ServiceError, StoreUnavailable
from crawler.service.calls.envelope import Call, failure
from crawler.service.description.contract import Failure
from crawler.service.description.headers import FAILURE_HEADERS, NUMBER, TEXT, parameter
from crawler.service.description.schemas import Json, Refs, markdown

JSON = "application/json"
ERRORS = (InvalidRequest, AuthError, RateLimited, ServiceError, StoreUnavailable)
"""The errors of all routes that need an API key."""


def operation(
    name: str,
    text: str,
    responses: Json,
    *parameters: Json,
    errors: Iterable[type[ScrapeError]] = ERRORS,
) -> Json:
    """Return an operation that needs an API key, with the tag ``service``.

    ``text``: the operation's summary on the first line, and then its description. ``responses``: status -> response, in
    addition to the responses of the ``errors``.
    """
    summary, _, description = text.partition("\n")
    statuses = sorted({error.http_status for error in errors})
    failed = {str(status): {"$ref": f"#/components/responses/{failure_name(status)}"} for status in statuses}
    return {
        "operationId": name,
        "tags": ["service"],
        "summary": summary,
        "description": description,
        "parameters": [*parameters],
        "responses": dict(sorted((failed | responses).items())),
    }


def public(name: str, text: str, responses: Json) -> Json:
    """Return an operation that needs no API key. Its only typed error is that of a request that is not valid HTTP."""
    return operation(name, text, responses, errors=[InvalidRequest]) | {"security": []}


def query(name: str, description: str, schema: Json) -> Json:
    """Return the description of a query parameter."""
    return parameter("query", name, description, schema)


def limit(what: str) -> Json:
    """Return the query parameter that limits the entries of a page. ``what``: a noun for the entries."""
    return query("limit", f"Maximum number of {what}.", NUMBER | {"minimum": 1, "maximum": 100})


def in_path(name: str, description: str, pattern: str) -> Json:
    """Return the description of a parameter in the path."""
    return parameter("path", name, description, TEXT | {"pattern": pattern}, required=True)


def body(schema: Json, **more: Any) -> Json:
    """Return the part of an operation that describes its JSON request body. ``more``: other keys, such as `example`."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema, **more}}}}


def success(schema: Json) -> Json:
    """Return the responses of an operation that succeeds with status 200."""
    return {"200": response("Success.", schema)}


def response(description: str, schema: Json, headers: Iterable[str] = ()) -> Json:
    """Return a response with a JSON body. ``headers``: the headers that only this response has."""
    return empty(description, headers) | {"content": {JSON: {"schema": schema}}}


def empty(description: str, headers: Iterable[str] = ()) -> Json:
    """Return a response without a body. ``headers``: as for ``response()``."""
    references = {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *headers)}
    return {"description": description, "headers": references}


def failure_name(status: int) -> str:
    """Return the name of the OpenAPI response for failures with this HTTP status."""
    return HTTPStatus(status).phrase.replace(" ", "")


def failures(status: int, kinds: list[type[ScrapeError]], ref: Refs) -> Json:
    """Return the OpenAPI response for one HTTP status, whose body is the envelope with one of these errors."""
    codes = ", ".join(f"`{kind.code}`" for kind in kinds)
    headers = (*FAILURE_HEADERS, "WWW-Authenticate") if status == AuthError.http_status else FAILURE_HEADERS
    found = response(codes, ref[Failure], headers)
    found["content"][JSON]["examples"] = {
        kind.code: {"summary": describe_error(kind), "value": _example(kind)} for kind in kinds
    }
    return found


def _example(kind: type[ScrapeError]) -> Json:
    """Return an example of the envelope of an error, with constant values."""
    call = Call("req_01ARZ3NDEKTSV4RRFFQ69G5FAV", client_id="my-client")
    example: Json = orjson.loads(failure(call, kind(describe_error(kind))).body)
    example["meta"]["duration_ms"] = 240
    return example


def describe_error(kind: type[ScrapeError]) -> str:
    """Describe in Markdown when an error occurs: the docstring of its class without the word "Raised"."""
    text = markdown(" ".join((kind.__doc__ or "").split()).removeprefix("Raised "))
    return text[:1].upper() + text[1:]
