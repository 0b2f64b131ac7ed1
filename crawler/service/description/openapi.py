"""``/openapi.json``: describes the endpoint in OpenAPI 3.1, generated from the registry, the models and the errors.

This module names no scrapers: the document describes each scraper in the registry with the scraper's own models.
"""

from __future__ import annotations

from functools import cache

import orjson

from crawler.errors import IdempotencyInProgress, IdempotencyMismatch, ScrapeError
from crawler.registry import scrapers, spider
from crawler.service.description import calls, jobs, status, webhooks
from crawler.service.description.headers import HEADERS, PARAMETERS
from crawler.service.description.operations import JSON, failure_name, failures
from crawler.service.description.schemas import Json, Refs
from crawler.service.http.static import StaticContent

VERSION = "0.3.0"
"""The project's version, as in ``pyproject.toml``. Scrapers have their own versions, in their names."""

TITLE = "Social and retail data"
SUMMARY = "Public social and retail pages as structured records."
DESCRIPTION = """\
Each scraper takes one target (a URL, a handle, a category, a search) and returns one structured record or one typed
error. Both have the same envelope.

* Every call carries an API key in the header `X-API-Key`.
* A call times out after 60 seconds; `Prefer: wait=N` sets another limit, from 1 to 120.
* What takes longer, or has many targets, is a job: `POST /v1/jobs`.
* A record that lacks the data of an optional source, or a value that could not be read, has the header `X-Partial`.
* Values that the platform does not show are `null`, `""` or `[]`, never 0 and never a guess.
"""


@cache
def as_json(service_url: str) -> StaticContent:
    """Return the OpenAPI document as encoded JSON."""
    return StaticContent(JSON, orjson.dumps(document(service_url), option=orjson.OPT_INDENT_2))


def document(service_url: str = "") -> Json:
    """Build the OpenAPI document. ``service_url``: the setting ``SERVICE_URL``, "" if it is not set."""
    ref = Refs()
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
                for platform in sorted({scraper.platform for scraper in scrapers().values()})
            ),
            {"name": "service", "description": "The service itself."},
        ],
        "paths": calls.paths(ref) | status.paths(ref) | jobs.paths(ref),
        "webhooks": webhooks.events(ref),
        "components": {
            "securitySchemes": {"ApiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": _failures(ref),
            "schemas": ref.schemas(),  # last, because it has the models that the other parts refer to
        },
    }


def _failures(ref: Refs) -> Json:
    """Return the error responses of calls and uploads by name: one for each HTTP status."""
    by_status: dict[int, list[type[ScrapeError]]] = {}
    described: tuple[type[ScrapeError], ...] = (*calls.ERRORS, IdempotencyInProgress, IdempotencyMismatch)
    for error in described:
        by_status.setdefault(error.http_status, []).append(error)
    return {failure_name(status): failures(status, kinds, ref) for status, kinds in sorted(by_status.items())}
