"""``/openapi.json``: describes the endpoint in OpenAPI 3.1, generated from the registry, the models and the errors.

This module names no scrapers: the document describes each scraper in the registry with the scraper's own models. A
part that several operations have is written once, among the components.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from inspect import cleandoc, get_annotations
from typing import Annotated, Any

import orjson
from pydantic import TypeAdapter

from crawler.errors import AuthError, ScrapeError
from crawler.registry import scrapers, spider
from crawler.service import status
from crawler.service.calls import scrape_routes
from crawler.service.envelope import Failure
from crawler.service.jobs import routes as job_routes
from crawler.service.jobs.models import JobEvent
from crawler.service.responses import StaticContent
from crawler.service.route import JSON, In, Json, Reply, Route, for_callers, markdown

ROUTES: tuple[type[Route], ...] = (*scrape_routes(), *status.ROUTES, *job_routes.ROUTES)
"""All routes of the endpoint, in the order of the document."""

TEXT = {"type": "string"}

HEADERS: dict[str, Any] = {
    "Retry-After": {"description": "Seconds to wait before a retry.", "schema": TEXT},
    "Location": {"description": "The URL of the job.", "schema": TEXT},
    "X-Next-Cursor": {"description": "The value of `after` that selects later outcomes.", "schema": TEXT},
    "ETag": {"description": "Identifies the response. Sent only for jobs that have ended.", "schema": TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": TEXT},
    "X-Partial": {
        "description": "What the record lacks, if anything: an RFC 9651 list of sources, each with the parameters"
        " `reason` and `code`. An optional source failed; or, with the reason `unread`, a part of its payload could not"
        " be read: `path`, `cause`, `rows`, `of`, and `loses_rows` if these rows are not in the record. Or, with the"
        " reason `incomplete`, the listing lacks rows at its end: `expected`, `collected` and `why`.",
        "schema": TEXT,
        "example": "timeline; reason=stale_query_id; code=EXTRACTION_FAILED",
    },
    "Idempotent-Replayed": {
        "description": "`true`: an earlier upload with this `Idempotency-Key` made the job.",
        "schema": {"type": "string", "const": "true"},
    },
}

VERSION = "0.3.0"
"""The project's version, as in ``pyproject.toml``. Scrapers have their own versions, in their names."""

TITLE = "Social and retail data"
SUMMARY = "Public social and retail pages as structured records."
DESCRIPTION = """\
Each scraper takes one target (a URL, a handle, a category, a search) and returns one structured record or one typed
error. Both have the same envelope.

* Every call carries an API key in the header `X-API-Key`, or as `Authorization: Bearer KEY`.
* Every response has the header `X-Request-Id`: the `request_id` of its envelope.
* If the key has a rate limit, responses to POST have `RateLimit` and `RateLimit-Policy` as in the IETF's draft: the
  remaining calls (`r`), and the seconds until all calls of a period are allowed again, or after a refused call the next
  one (`t`). `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` have the same numbers.
* A call times out after 60 seconds; `Prefer: wait=N` sets another limit, from 1 to 120 (`Preference-Applied`).
* What takes longer, or has many targets, is a job: `POST /v1/jobs`.
* A record that lacks the data of an optional source, or a value that could not be read, has the header `X-Partial`.
* Values that the platform does not show are `null`, `""` or `[]`, never 0 and never a guess.
"""
SECURITY = {
    "ApiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "BearerAuth": {"type": "http", "scheme": "bearer"},
}
"""The ways to send an API key, of which a request needs one."""
SCHEMAS = "#/components/schemas/"
SENTENCE = re.compile(r"[^.\n]*\.")
"""Matches a description of one sentence."""


HEADER = "#/components/headers/"


class JobDone(Route):
    """All targets of a job have an outcome.

    Sent to the URL that the operator has set for the client, again after each retry of the job. Verify the signature
    with a library of the Standard Webhooks specification.
    """

    method = "POST"
    operation = "job-done"
    is_public = True
    takes = {JSON: JobEvent}
    replies = {204: Reply("The event is delivered.")}
    errors = ()

    webhook_id: Annotated[str, In("header", "webhook-id")]
    """The id of the event, the same in every try."""
    webhook_timestamp: Annotated[str, In("header", "webhook-timestamp")]
    """The Unix time of this try."""
    webhook_signature: Annotated[str, In("header", "webhook-signature")]
    """The signature of this try."""


@cache
def as_json(service_url: str) -> StaticContent:
    """Return the OpenAPI document as encoded JSON."""
    return StaticContent(JSON, orjson.dumps(document(service_url)))


def document(service_url: str = "", routes: Iterable[type[Route]] = ROUTES) -> Json:
    """Build the OpenAPI document. ``service_url``: the setting ``SERVICE_URL``, "" if it is not set."""
    described = [each for each in routes if each.operation]
    parts = _Parts([*described, JobDone])
    paths: Json = {}
    for each in described:
        paths.setdefault(each.path, {})[each.method.lower()] = parts.operation(each)
    made: Json = {
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
        "security": [{name: []} for name in SECURITY],
        "tags": [
            *(
                {"name": platform, "description": spider(platform).metadata["description"]}
                for platform in sorted({scraper.platform for scraper in scrapers().values()})
            ),
            {"name": "service", "description": "The service itself."},
        ],
        "paths": paths,
        "webhooks": {"job.done": {"post": parts.operation(JobDone)}},
        "components": {
            "securitySchemes": SECURITY,
            "headers": HEADERS,
            **parts.components,
        },
    }
    _describe_once(made)
    return made


class _Parts:
    """The parts of the document: the operations of routes, and the components to which they refer."""

    def __init__(self, routes: Iterable[type[Route]]) -> None:
        self.routes = [*routes]
        self._types: dict[Any, Json] = {}
        """The type of a body -> its schema."""
        types = [Failure, *(kind for route in self.routes for kind in _types_of(route))]
        schemas = self._described(dict.fromkeys(types))
        self.components: dict[str, Json] = {
            "parameters": {},
            "requestBodies": {},
            "responses": self._failures(),
            "schemas": schemas,
        }

    def _described(self, types: Iterable[Any]) -> Json:
        """Describe the types of bodies. Return the schemas of all models that they need, by name.

        The name of a schema is its title, which is unique. Pydantic would add the module to names that occur twice.
        """
        keyed = {str(number): kind for number, kind in enumerate(types)}
        # In validation mode, a field with a default is optional in the schema, as in the specification.
        found, defined = TypeAdapter.json_schemas(
            [(key, "validation", TypeAdapter(kind)) for key, kind in keyed.items()], ref_template=SCHEMAS + "{model}"
        )
        schemas = defined["$defs"]
        titles = {SCHEMAS + key: SCHEMAS + schema["title"] for key, schema in schemas.items()}
        assert len(set(titles.values())) == len(titles), "two models have the same title"
        self._types = {kind: _compact(for_callers(found[key, "validation"], titles)) for key, kind in keyed.items()}
        named = {schema["title"]: _compact(for_callers(schema, titles)) for schema in schemas.values()}
        for route in self.routes:
            if route.calls:  # the operation has the description of the params
                named[self._types[route.takes[JSON]]["$ref"].removeprefix(SCHEMAS)].pop("description", None)
        return named

    def operation(self, route: type[Route]) -> Json:
        """Return the operation of a route."""
        summary, _, text = markdown(cleandoc(route.__doc__ or "")).partition("\n")
        described: Json = {
            "operationId": route.operation,
            "tags": [route.tag],
            "summary": summary,
            "description": text.strip(),
            "parameters": self._parameters(route),
        }
        if route.is_public:
            described["security"] = []
        if others := ", ".join(f"`{each}`" for each in route.takes if each != JSON):
            # Generators of clients fail at bodies that are neither JSON nor a form.
            described["description"] += f" The body may also have one of these media types: {others}."
        if route.takes:
            body = {"required": True, "content": self._content({JSON: route.takes[JSON]}, route.example)}
            described["requestBody"] = self._shared("requestBodies", route.calls, body)
        statuses = {error.http_status for error in route.errors}
        responses = {str(each): {"$ref": f"#/components/responses/{each}"} for each in statuses}
        for code, reply in route.replies.items():
            responses[str(code)] = self._shared("responses", route.calls, self._reply(route, reply))
        return described | {"responses": dict(sorted(responses.items()))}

    def _parameters(self, route: type[Route]) -> list[Json]:
        schema = for_callers(route.model_json_schema(), {})
        described = []
        for place, names in route.inputs.items():
            for public, name in names.items():
                own = _without_null(schema["properties"][name])
                if "enum" not in own:
                    own.pop("default", None)  # generated clients would send it
                parameter = {
                    "name": public,
                    "in": place,
                    "description": own.pop("description"),
                    **({"required": True} if name in schema.get("required", ()) else {}),
                    **({"example": own.pop("example")} if "example" in own else {}),
                    "schema": own,
                }
                described.append(self._shared("parameters", f"{_declaring(route, name)}-{public}", parameter))
        return described

    def _shared(self, kind: str, name: str, part: Json) -> Json:
        """Write a part among the components, and return the reference to it. ``name``: "" for a part to return."""
        if not name:
            return part
        title = "".join(each[:1].upper() + each[1:] for each in re.split(r"[^0-9A-Za-z]", name))
        assert self.components[kind].setdefault(title, part) == part, f"two {kind} have the name {title}"
        return {"$ref": f"#/components/{kind}/{title}"}

    def _content(self, types: Mapping[str, Any], example: Any = None) -> Json:
        content = {media_type: {"schema": self._types[kind]} for media_type, kind in types.items()}
        if example is not None:
            content[JSON]["example"] = example
        return content

    def _reply(self, route: type[Route], reply: Reply) -> Json:
        found = _response(reply.description, reply.headers)
        types = reply.media or ({JSON: reply.model} if reply.model is not None else {})
        example = _examples()["successes"].get(route.calls) if reply.model is not None else None
        return found | {"content": self._content(types, example)} if types else found

    def _failures(self) -> Json:
        """Return the error responses by status."""
        by_status: dict[int, dict[type[ScrapeError], None]] = {}
        for error in (each for route in self.routes for each in route.errors):
            by_status.setdefault(error.http_status, {})[error] = None
        return {str(status): self._failed(status, [*kinds]) for status, kinds in sorted(by_status.items())}

    def _failed(self, status: int, kinds: list[type[ScrapeError]]) -> Json:
        """Return the response for one HTTP status, whose body is the envelope with one of these errors."""
        own = {AuthError.http_status: ("WWW-Authenticate",)}
        known = _examples()["failures"]
        examples = {
            kind.code: {"summary": describe_error(kind).partition(". ")[0]}
            | ({"value": known[kind.code]} if kind.code in known else {})
            for kind in kinds
        }
        found = _response(", ".join(f"`{kind.code}`" for kind in kinds), ("Retry-After", *own.get(status, ())))
        return found | {"content": {JSON: {"schema": self._types[Failure], "examples": examples}}}


def _types_of(route: type[Route]) -> Iterator[Any]:
    """Return the types of a route's bodies."""
    yield from (kind for media_type, kind in route.takes.items() if media_type == JSON)
    for reply in route.replies.values():
        yield from reply.media.values() if reply.media else () if reply.model is None else (reply.model,)


def _declaring(route: type[Route], name: str) -> str:
    """Return the name of the class that declares a field."""
    return next(each.__name__ for each in reversed(route.__mro__) if name in get_annotations(each))


def _compact(part: Any) -> Any:
    """Return a schema in a shorter form: null as a further type, no title, and the description only of the reference's.

    The name of a schema among the components is its title.
    """
    if isinstance(part, list):
        return [_compact(each) for each in part]
    if not isinstance(part, dict):
        return part
    left_out = {"title"} | ({"description"} if "$ref" in part else set())
    shorter = {key: _compact(value) for key, value in part.items() if key not in left_out or isinstance(value, dict)}
    match shorter.get("anyOf"):
        case [{"type": str(kind), **own}, {"type": "null"}]:
            del shorter["anyOf"]
            shorter |= own | {"type": [kind, "null"]}
    return shorter


def _describe_once(document: Json) -> None:
    """Remove repeated descriptions.

    They are those of fields that a parameter, or a field of an earlier model, has with the same name; and the only
    sentence about a model if all fields that have this model are described.
    """
    parts = document["components"]
    known = {(each["name"], each["description"]) for each in parts["parameters"].values()}
    described: Counter[str] = Counter()
    for schema in parts["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            if (text := (name, field.get("description", ""))) in known:
                field.pop("description", None)
            known.add(text)
            described.update(_references(field) if "description" in field else ())
    everywhere = Counter(_references(document))
    for reference, number in described.items():
        schema = parts["schemas"][reference.removeprefix(SCHEMAS)]
        if everywhere[reference] == number and SENTENCE.fullmatch(schema.get("description", "")):
            del schema["description"]


def _references(part: Any) -> Iterator[str]:
    """Yield the references in a part of the document."""
    if isinstance(part, dict):
        yield from (part["$ref"],) if isinstance(part.get("$ref"), str) else ()
        part = [*part.values()]
    if isinstance(part, list):
        for each in part:
            yield from _references(each)


def _without_null(schema: Json) -> Json:
    """Return the schema of a value that may be left out, without the null for a missing one."""
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return {key: value for key, value in schema.items() if key != "anyOf"} | options[0] if options else schema


def _response(description: str, headers: Iterable[str]) -> Json:
    return {
        "description": description,
        "headers": {name: {"$ref": f"{HEADER}{name}"} for name in headers},
    }


@cache
def _examples() -> dict[str, dict[str, Json]]:
    """Return the recorded answers: ``successes`` by scraper, ``failures`` by code. Their lists have one entry."""
    found: dict[str, dict[str, Json]] = orjson.loads((files("crawler.service") / "examples.json").read_bytes())
    return found


def describe_error(kind: type[ScrapeError]) -> str:
    """Describe in Markdown when an error occurs: the docstring of its class without the word "Raised"."""
    text = markdown(" ".join((kind.__doc__ or "").split()).removeprefix("Raised "))
    return text[:1].upper() + text[1:]
