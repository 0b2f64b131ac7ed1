"""Retail: pages of a category, searches with and without results, and the pages of ``CATEGORY_FAULTS``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crawler.errors import ExtractionFailed, TargetNotFound, UpstreamBlocked, UpstreamError
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.make_fixtures import Case, Failure

ORIGIN = "https://www.walmart.com"

CATEGORY_FAULTS: dict[str, Failure] = {
    "blind": (ExtractionFailed, "blind"),
    "broken-json": (ExtractionFailed, "broken_data_block"),
    "challenge": (UpstreamBlocked, "challenge"),
    "challenge-412": (UpstreamBlocked, "challenge"),
    "deep-json": (ExtractionFailed, "broken_data_block"),
    "editorial": (TargetNotFound, "wrong_page_kind"),
    "no-data": (ExtractionFailed, "no_data_block"),
    "no-listing": (ExtractionFailed, "no_listing"),
    "product-page": (TargetNotFound, "wrong_page_kind"),
    "reported-error": (UpstreamError, "reported_error"),
    "soft-gone": (TargetNotFound, "not_found"),
    "teapot": (UpstreamBlocked, "refused"),
    "wrong-category": (ExtractionFailed, "wrong_echo"),
    "wrong-page": (ExtractionFailed, "wrong_echo"),
}


def cases() -> Iterator[Case]:
    """Yield the cases of the shop."""
    site = Site(light=True)
    for page in (1, 2, 3):
        yield _category(site, f"category-page-{page}", page)
    beyond = site.expected_record({"cat_id": "976759", "page": 40})
    yield _category(site, "category-page-40", 40, beyond)
    yield _category(site, "category-unknown", 1, (TargetNotFound, "not_found"), cat_id="1_2_3")
    for cat_id, fault in site.faults.items():
        if fault in CATEGORY_FAULTS:
            status, _, body = site.damaged(fault, FakeRequest(f"/browse/{cat_id}"))
            url, params = f"{ORIGIN}/browse/{cat_id}", {"cat_id": cat_id, "page": 1}
            yield Case(ListingPage, fault, url, status, body, params, CATEGORY_FAULTS[fault])
    for name, query in (("search", "mustard"), ("search-without-results", "nothing like this")):
        status, _, body = site.page(FakeRequest("/search", {"q": query}))
        params = {"query": query, "page": 1}
        truth = site.expected_record({"query": query})
        yield Case(SearchPage, name, f"{ORIGIN}/search?q={query}", status, body, params, truth)


def _category(
    site: Site, name: str, page: int, expected: Failure | dict[str, Any] | None = None, *, cat_id: str = "976759"
) -> Case:
    path = f"/browse/{cat_id}"
    status, _, body = site.page(FakeRequest(path, {"page": str(page)}))
    params = {"cat_id": cat_id, "page": page, "sort": "best_match"}
    return Case(ListingPage, name, ORIGIN + path, status, body, params, expected)
