"""Calls of scrapers in the OpenAPI document."""

from __future__ import annotations

from crawler.errors import (
    IdempotencyInProgress,
    IdempotencyMismatch,
    JobNotFound,
    MethodNotAllowed,
    ScraperNotFound,
    documented,
)
from crawler.registry import scrapers
from crawler.service.description.contract import Success
from crawler.service.description.headers import SCRAPER_PARAMETERS, SUCCESS_HEADERS
from crawler.service.description.operations import body, operation, response
from crawler.service.description.schemas import Json, Refs, markdown
from crawler.targets.target import Scraper

NOT_FROM_SCRAPERS = {ScraperNotFound, MethodNotAllowed, JobNotFound, IdempotencyInProgress, IdempotencyMismatch}
"""Errors of unknown routes, of methods and of jobs, which calls of a documented scraper cannot cause."""
ERRORS = tuple(error for error in documented() if error not in NOT_FROM_SCRAPERS)


def paths(ref: Refs) -> Json:
    """Return the routes of scrapers."""
    return {f"/v1/scrapers/{name}": {"post": _scrape(name, each, ref)} for name, each in scrapers().items()}


def _scrape(name: str, scraper: Scraper, ref: Refs) -> Json:
    alias = "" if name == scraper.name else f"An alias of `{scraper.name}`. "
    text = f"{scraper.summary}\n{alias}{markdown(scraper.params.__doc__ or '')}"
    succeeded = ref[Success[scraper.data]]  # type: ignore[name-defined]  # a type that is made at run time
    responses = {"200": response("The scrape is complete.", succeeded, SUCCESS_HEADERS)}
    described = operation(name, text, responses, *map(_shared, SCRAPER_PARAMETERS), errors=ERRORS)
    return described | {"tags": [scraper.platform]} | body(ref[scraper.params], example=scraper.example)


def _shared(parameter: str) -> Json:
    return {"$ref": f"#/components/parameters/{parameter}"}
