"""Writes the fixtures of the page objects from the sandbox's pages: ``python tests/make_fixtures.py``.

A fixture is one response and what its page object must say of it, as data or as the typed error. What is written is
replayed by web-poet's pytest plugin, one test a field. Only pages of the sandbox become fixtures: recorded pages are
other people's data. Run it after a change of the sandbox's pages or of the page objects, and read the difference.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from web_poet import HttpResponse, PageParams
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

from crawler.errors import ScrapeError
from crawler.pages.base import PlatformPage
from crawler.pages.retail import ListingPage, SearchPage
from crawler.sandbox.retail import World

FIXTURES = Path(__file__).parent / "fixtures"
ORIGIN = "https://www.walmart.com"

CATEGORY_FAULTS = (
    "blind",
    "broken-json",
    "challenge",
    "challenge-412",
    "deep-json",
    "editorial",
    "no-data",
    "no-listing",
    "product-page",
    "reported-error",
    "soft-gone",
    "teapot",
    "wrong-category",
    "wrong-page",
)


def retail() -> None:
    """Listings in each price layout, a search, an empty page, and every failure that a page can show."""
    world = World(light=True)
    for page in (1, 2, 3, 40):
        category(world, f"category-page-{page}", "976759", page=page)
    category(world, "category-unknown", "1_2_3")
    for cat_id, fault in world.faults.items():
        if fault in CATEGORY_FAULTS:
            status, _, body = world.damaged(fault, f"/browse/{cat_id}", {})
            save(ListingPage, fault, f"{ORIGIN}/browse/{cat_id}", status, body, {"cat_id": cat_id, "page": 1})
    save(ListingPage, "empty-body", f"{ORIGIN}/browse/976759", 200, b"", {"cat_id": "976759", "page": 1})
    save(ListingPage, "rate-limited", f"{ORIGIN}/browse/976759", 429, b"slow down", {"cat_id": "976759", "page": 1})
    for name, query in (("search", "mustard"), ("search-without-results", "nothing like this")):
        status, _, body = world.page("/search", {"q": query})
        save(SearchPage, name, f"{ORIGIN}/search?q={query}", status, body, {"query": query, "page": 1})
    save(SearchPage, "server-error", f"{ORIGIN}/search?q=x", 500, b"<h1>Sorry</h1>", {"query": "x", "page": 1})


def category(world: World, name: str, cat_id: str, page: int = 1) -> None:
    """A category's page, as it is served."""
    path = f"/browse/{cat_id}"
    status, _, body = world.page(path, {"page": str(page)})
    save(ListingPage, name, ORIGIN + path, status, body, {"cat_id": cat_id, "page": page, "sort": "best_match"})


def save(  # noqa: PLR0913, PLR0917  # a fixture is as much
    kind: type[PlatformPage], name: str, url: str, status: int, body: bytes, asked: dict[str, Any]
) -> None:
    """One fixture."""
    response = HttpResponse(url, body, status=status, headers={"Content-Type": "text/html; charset=utf-8"})
    params = PageParams(asked)
    item, error = None, None
    try:
        item = asyncio.run(kind(response=response, page_params=params).to_item())
    except ScrapeError as refused:
        error = refused
    folder = FIXTURES / get_fq_class_name(kind)
    Fixture.save(folder, inputs=[response, params], item=item, exception=error, meta={}, fixture_name=name)


if __name__ == "__main__":
    shutil.rmtree(FIXTURES, ignore_errors=True)
    retail()
