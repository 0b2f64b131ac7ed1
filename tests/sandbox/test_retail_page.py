"""The simulated shop's pages match the expected records, and have the structure and size of real pages."""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

import orjson
import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site


@cache
def site() -> Site:
    return Site()


def big() -> str:
    return site().big_category


def ids(record: dict[str, Any]) -> list[str]:
    return [product["item_id"] for product in record["products"]]


def page(cat_id: str, **args: str) -> bytes:
    status, _, body = site().page(FakeRequest(f"/browse/any/slugs/{cat_id}", args))
    assert status == 200
    return body


def block(body: bytes) -> dict[str, Any]:
    found = re.search(rb'<script id="__NEXT_DATA__" type="application/json"[^>]*>(.*?)</script>', body, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = orjson.loads(found[1])
    return data


def listing(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = block(body)["props"]["pageProps"]["initialData"]["searchResult"]
    return found


def grid_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the listing's grids, without carousels (the platform notes define both)."""
    return [
        row for stack in found["itemStacks"] if stack["meta"]["subType"] != "SECONDARY_STACK" for row in stack["items"]
    ]


@pytest.mark.parametrize("number", [1, 2, 3, 10, 11])
def test_pages_match_the_expected_records(number: int) -> None:
    cat_id = big()
    body, record = (
        page(cat_id, page=str(number), sort="best_seller"),
        site().expected_record({"cat_id": cat_id, "page": number, "sort": "best_seller"}),
    )
    found = listing(body)
    rows = [row for row in grid_rows(found) if row["__typename"] == "Product"]
    assert [row["usItemId"] for row in rows] == ids(record)
    assert [bool(row["isSponsoredFlag"]) for row in rows] == [p["is_sponsored"] for p in record["products"]]
    echo = found["paginationV2"]["pageProperties"]
    assert (echo["cat_id"], echo["page"], echo["sort"]) == (cat_id, number, "best_seller")
    assert found["aggregatedCount"] == record["total_results"]
    title = re.search(r"<title>(.*?)</title>", body.decode())
    assert title is not None
    assert html.unescape(title[1]) == record["title"]


def test_slugs_are_ignored() -> None:
    assert site().page(FakeRequest("/browse/976759")) == site().page(FakeRequest("/browse/food/and/more/976759"))


def test_past_the_end_is_an_empty_page_and_unknown_is_404() -> None:
    assert grid_rows(listing(page(big(), page="12"))) == []
    assert site().page(FakeRequest("/browse/food/1"))[0] == 404
    assert site().page(FakeRequest("/elsewhere"))[0] == 404


def test_pages_contain_the_real_distractions() -> None:
    found = listing(page(big()))
    subtypes = [stack["meta"]["subType"] for stack in found["itemStacks"]]
    assert {"EXACT_MATCH", "SECONDARY_STACK"} <= set(subtypes)
    typenames = {row["__typename"] for row in grid_rows(found)}
    assert {"Product", "AdPlaceholder", "TileTakeOverProductPlaceholder"} < typenames
    assert found["hasMorePages"] is False
    unrated = [row for row in grid_rows(found) if row.get("averageRating", 0) is None]
    assert all(row["rating"] == {"averageRating": 0, "numberOfReviews": 0} for row in unrated)
    assert unrated


def test_all_price_layouts_are_served() -> None:
    layouts = set()
    for number in range(1, 7):
        rows = [row for row in grid_rows(listing(page(big(), page=str(number)))) if row["__typename"] == "Product"]
        prices = [row["priceInfo"] for row in rows]
        layouts |= {"lines" for price in prices if price.get("priceDetails")}
        layouts |= {"flat" for price in prices if price.get("linePrice")}
    assert layouts == {"lines", "flat"}


def test_pages_contain_subcategories_and_price_bounds() -> None:
    body = page("976759")
    (facets,) = [
        module["configs"]["allSortAndFilterFacets"]
        for module in block(body)["props"]["pageProps"]["initialData"]["contentLayout"]["modules"]
        if "allSortAndFilterFacets" in module["configs"]
    ]
    by_type = {facet["type"]: facet for facet in facets}
    assert [value["id"] for value in by_type["cat_id"]["values"]] == list(site().categories["976759"].children)
    assert by_type["price"]["min"] == 0 < by_type["price"]["max"]


def test_light_pages_are_small_and_match_their_records() -> None:
    light = Site(light=True)
    body = light.page(FakeRequest("/browse/976759"))[2]
    record = light.expected_record({"cat_id": "976759"})
    assert len(body) < 100_000
    assert [r["usItemId"] for r in grid_rows(listing(body)) if r["__typename"] == "Product"] == ids(record)
    assert record["returned"] > 0
