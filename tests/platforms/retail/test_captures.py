"""Recorded pages of the retail platform give the noted numbers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.platforms.retail.schema import Listing, SearchListing
from scripts.captures import CAPTURES, body_of
from tests import saved_parts

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)

TRIMMED = "f009e37326fe"
"""A recorded page from which keys were removed. All others give no warnings."""
URL = "https://www.walmart.com/search?q=x"


def read(name: str | bytes, **params: Any) -> dict[str, Any]:
    """Return the validated data of a recorded page."""
    body = name if isinstance(name, bytes) else saved_parts.whole("retail", body_of(name))
    page_class, model = (ListingPage, Listing) if "cat_id" in params else (SearchPage, SearchListing)
    response = HttpResponse(URL, body, status=200, headers={"Content-Type": "text/html; charset=utf-8"})
    page = page_class(response=response, page_params=PageParams(params))
    data = asyncio.run(page.to_item())
    assert validated(model, data) == data
    assert not page.unread or name == TRIMMED, page.unread
    return data


def counts(data: dict[str, Any]) -> dict[str, int]:
    products = data["products"]
    return {
        "rows": len(products),
        "sponsored": sum(p["is_sponsored"] for p in products),
        "out of stock": sum(p["availability"]["status"] == "OUT_OF_STOCK" for p in products),
        "no price": sum(p["price"]["current_price"] is None for p in products),
    }


@pytest.mark.parametrize(
    ("name", "page", "expected"),
    [
        ("6096432e837b", 1, {"rows": 50, "sponsored": 10, "out of stock": 4, "no price": 2}),
        ("b88e6b81d797", 2, {"rows": 50, "sponsored": 10, "out of stock": 0, "no price": 9}),
        ("9a8f449799f3", 1, {"rows": 50, "sponsored": 10, "out of stock": 4, "no price": 2}),
        ("bce2928b7a49", 2, {"rows": 50, "sponsored": 10, "out of stock": 0, "no price": 9}),
    ],
)
def test_rendered_pages(name: str, page: int, expected: dict[str, int]) -> None:
    data = read(name, query="mustard", page=page, sort="best_match")
    assert counts(data) == expected
    assert (data["total_results"], data["max_page"], data["page"], data["has_more"]) == (4772, 25, page, True)
    assert (data["cat_id"], data["category_name"], data["sort"]) == ("0", "", "best_match")
    assert (data["heading"], data["title"]) == ('Results for "mustard"', "mustard - Walmart.com")
    assert all(p["url"].startswith("https://www.walmart.com/ip/") and "?" not in p["url"] for p in data["products"])
