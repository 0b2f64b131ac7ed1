"""Parts that the operations of the OpenAPI document have in common."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

import orjson

from crawler.errors import AuthError, InvalidRequest, ScrapeError
from crawler.service.calls.envelope import Call, failure
from crawler.service.description.contract import Failure
from crawler.service.description.headers import COMMON_HEADERS, FAILURE_HEADERS
from crawler.service.description.schemas import Json, Refs, markdown

JSON = "application/json"


def get(name: str, summary: str, description: str, answer: Json) -> Json:
    """Return an operation without parameters that needs no API key. Status 400: the request is not valid HTTP."""
    return {
        "operationId": name,
        "tags": ["service"],
        "summary": summary,
        "description": description,
        "security": [],
        "responses": {
            "200": response("Success.", answer, COMMON_HEADERS),
            **failure_references([InvalidRequest.http_status]),
        },
    }


def keyed(operation: Json, errors: Iterable[type[ScrapeError]], *parameters: Json) -> Json:
    """Return an operation that needs an API key, and may fail with these errors."""
    references = failure_references(error.http_status for error in errors)
    own = {"security": [{"ApiKeyAuth": []}], "responses": operation["responses"] | references}
    return operation | own | ({"parameters": [*parameters]} if parameters else {})


def query(name: str, description: str, schema: Json) -> Json:
    """Return a query parameter."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def failure_references(statuses: Iterable[int]) -> Json:
    """Return references to the responses of failures, by status."""
    return {str(status): {"$ref": f"#/components/responses/{failure_name(status)}"} for status in sorted(set(statuses))}


def response(description: str, schema: Json, headers: tuple[str, ...]) -> Json:
    """Return a response with a JSON body."""
    return {
        "description": description,
        "headers": header_references(headers),
        "content": {JSON: {"schema": schema}},
    }


def header_references(headers: tuple[str, ...]) -> Json:
    """Return references to headers, by name."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in headers}


def failure_name(status: int) -> str:
    """Return the name of the response of the failures with a status."""
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
