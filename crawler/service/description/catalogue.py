"""``/v1/scrapers``: the catalogue of all scrapers, with their params and an example."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from crawler.registry import scrapers
from crawler.service.description.schemas import params_schema


@cache
def as_json() -> bytes:
    """Return the catalogue as encoded JSON. ``description.status.Catalogue`` is its model."""
    return orjson.dumps({"scrapers": entries()})


def entries() -> list[dict[str, Any]]:
    """Return one entry for each scraper. An alias is part of its scraper's entry."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    return [
        {
            "name": scraper.name,
            "aliases": list(scraper.aliases),
            "platform": scraper.platform,
            "summary": scraper.summary,
            "params_schema": params_schema(scraper.params),
            "example": scraper.example,
        }
        for scraper in distinct.values()
    ]
