"""Retail: listings in each price format, a search, an empty page, and every failure of a page."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.make_fixtures import Case

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


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    for page in (1, 2, 3, 40):
        yield _category(site, f"category-page-{page}", "976759", page)
    yield _category(site, "category-unknown", "1_2_3", 1)
    for cat_id, fault in site.faults.items():
        if fault in CATEGORY_FAULTS:
            status, _, body = site.damaged(fault, FakeRequest(f"/browse/{cat_id}"))
            url = f"{ORIGIN}/browse/{cat_id}"
            yield Case(ListingPage, fault, url, status, body, {"cat_id": cat_id, "page": 1})
    params = {"cat_id": "976759", "page": 1}
    yield Case(ListingPage, "empty-body", f"{ORIGIN}/browse/976759", 200, b"", params)
    yield Case(ListingPage, "rate-limited", f"{ORIGIN}/browse/976759", 429, b"slow down", params)
    for name, query in (("search", "mustard"), ("search-without-results", "nothing like this")):
        status, _, body = site.page(FakeRequest("/search", {"q": query}))
        yield Case(SearchPage, name, f"{ORIGIN}/search?q={query}", status, body, {"query": query, "page": 1})
    yield Case(SearchPage, "server-error", f"{ORIGIN}/search?q=x", 500, b"<h1>Sorry</h1>", {"query": "x", "page": 1})


def _category(site: Site, name: str, cat_id: str, page: int) -> Case:
    path = f"/browse/{cat_id}"
    status, _, body = site.page(FakeRequest(path, {"page": str(page)}))
    params = {"cat_id": cat_id, "page": page, "sort": "best_match"}
    return Case(ListingPage, name, ORIGIN + path, status, body, params)
