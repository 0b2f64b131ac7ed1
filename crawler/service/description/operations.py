"""Operations, parameters and responses of the OpenAPI document."""

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


def get_operation(name: str, summary: str, description: str, answer: Json) -> Json:
    """Return an operation without parameters that needs no API key. Status 400: the request is not valid HTTP."""
    return {
        "operationId": name,
        "tags": ["service"],
        "summary": summary,
        "description": description,
        "security": [],
        "responses": {
            "200": response_of("Success.", answer, COMMON_HEADERS),
            **failure_references([InvalidRequest.http_status]),
        },
    }


def query_parameter(name: str, description: str, schema: Json) -> Json:
    """Return a query parameter."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def failure_references(statuses: Iterable[int]) -> Json:
    """Return the responses of errors with these statuses."""
    return {str(status): {"$ref": f"#/components/responses/{failure_name(status)}"} for status in sorted(set(statuses))}


def response_of(description: str, schema: Json, headers: tuple[str, ...]) -> Json:
    """Return a response with a JSON body."""
    return {
        "description": description,
        "headers": header_references(headers),
        "content": {JSON: {"schema": schema}},
    }


def header_references(headers: tuple[str, ...]) -> Json:
    """Return references to headers."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in headers}


def failure_name(status: int) -> str:
    """Return the name of the response of errors with this status."""
    return HTTPStatus(status).phrase.replace(" ", "")


def failures_of(status: int, kinds: list[type[ScrapeError]], ref: Refs) -> Json:
    """Return the OpenAPI response for one HTTP status, whose body is the envelope with one of these errors."""
    codes = ", ".join(f"`{kind.code}`" for kind in kinds)
    headers = (*FAILURE_HEADERS, "WWW-Authenticate") if status == AuthError.http_status else FAILURE_HEADERS
    response = response_of(codes, ref[Failure], headers)
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
    """Describe in Markdown when an error occurs: the docstring of its class without the word "Raised"."""
    text = markdown(" ".join((kind.__doc__ or "").split()).removeprefix("Raised "))
    return text[:1].upper() + text[1:]
