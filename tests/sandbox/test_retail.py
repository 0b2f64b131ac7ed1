"""The simulated shop: reproducible by its seed, with realistic numbers and pages, and correct expected records."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from crawler.sandbox.retail.site import Site
from crawler.sandbox.retail.trees import world_id

SORTS = ("best_match", "best_seller", "price_low", "price_high", "rating_high", "new")

# Keys copied from specification 2.7, so that the records are compared with it and not with the project's own schemas.
LISTING_KEYS = {
    *("breadcrumbs", "cat_id", "category_id", "category_name", "has_more", "heading", "max_page", "page", "products"),
    *("returned", "sort", "title", "total_results", "url"),
}
OPTIONAL_KEYS = {"badges", "flag"}
PRODUCT_KEYS = {
    *("availability", "category_path", "condition", "fulfillment_type", "image", "is_preowned", "is_sponsored"),
    *("item_id", "name", "offer_id", "price", "product_id", "rating", "seller", "short_description", "url"),
    "variant_count",
}


@cache
def site() -> Site:
    return Site()


def expected_record(**params: Any) -> dict[str, Any]:
    return site().expected_record(params)


def is_foreign(product: dict[str, Any], cat_id: str) -> bool:
    """Whether a product is of another department than a category."""
    return bool(product["category_path"].partition("/")[0] != cat_id.partition("_")[0])


def big() -> str:
    return site().big_category


# The products


def test_every_kind_of_row_exists() -> None:
    products = site().products
    kinds = {
        "out of stock": [p for p in products if p.status == "OUT_OF_STOCK"],
        "unknown": [p for p in products if p.status == "UNKNOWN"],
        "offer gone": [p for p in products if p.status == "IN_STOCK" and p.cents is None and not p.offer_id],
        "range": [p for p in products if p.low == p.cents is not None and p.high is not None],
        "open range": [p for p in products if p.low is not None and p.high is None],
        "restored": [p for p in products if p.preowned and p.condition in {4, 5}],
        "pre-owned": [p for p in products if p.preowned and p.condition == 11],
        "unrated": [p for p in products if p.stars is None and p.reviews is None],
        "unlisted variants": [p for p in products if p.variants is None],
        "variants": [p for p in products if p.variants],
        "no description": [p for p in products if not p.description],
    }
    assert [kind for kind, found in kinds.items() if len(found) < 20] == []


# Paging


@pytest.mark.parametrize(("number", "rows"), [(5, 49), (10, 36), (11, 12), (12, 0), (13, 0), (25, 0), (26, 0)])
@pytest.mark.parametrize("sort", SORTS)
def test_the_ceiling(number: int, rows: int, sort: str) -> None:
    record = expected_record(cat_id=big(), page=number, sort=sort)
    assert (record["returned"], record["total_results"], record["max_page"]) == (rows, 6_446, 25)
    assert record["has_more"] is (rows > 0)


@pytest.mark.parametrize("cat_id", ["976759", "976759_6837314", "4044", "880002", world_id("4044", "none", 1)])
@pytest.mark.parametrize("page", [1, 2])
def test_a_full_page_advertises_products_of_other_departments(cat_id: str, page: int) -> None:
    shown = expected_record(cat_id=cat_id, page=page)["products"]
    foreign = [product for product in shown if is_foreign(product, cat_id)]
    assert len(foreign) == 2
    assert all(product["is_sponsored"] for product in foreign)


# Expected records


@pytest.mark.parametrize("params", [{"cat_id": "976759"}, {"cat_id": "4044", "page": 12}, {"query": "lamp"}])
def test_expected_records_have_the_contract_s_keys(params: dict[str, Any]) -> None:
    record = expected_record(**params)
    assert set(record) == LISTING_KEYS | ({"query"} if "query" in params else set())
    assert record["returned"] == len(record["products"])
    assert record["cat_id"] == record["category_id"] == params.get("cat_id", "0")
    for product in record["products"]:
        assert PRODUCT_KEYS <= set(product) <= PRODUCT_KEYS | OPTIONAL_KEYS
        price = product["price"]
        assert set(price) - {"max_price"} == {"currency", "current_price", "is_price_range", "min_price"}
        assert 0 not in price.values() or price["is_price_range"] is False
        if price["current_price"] is None:
            assert price == {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
        else:
            current = price["current_price"]
            spread = price.get("max_price", current) > price["min_price"] or price["min_price"] < current
            assert (price["is_price_range"], price["currency"]) == (spread, "USD")
        assert product["url"].startswith("https://www.walmart.com/ip/")
        assert "?" not in product["url"]
        assert not product["category_path"].startswith("0/")
