"""The simulated shop: reproducible by its seed, with realistic numbers and pages, and correct expected records."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import FAULTS, Site
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


def ids(record: dict[str, Any]) -> list[str]:
    return [product["item_id"] for product in record["products"]]


def is_foreign(product: dict[str, Any], cat_id: str) -> bool:
    """Whether a product is of another department than a category."""
    return bool(product["category_path"].partition("/")[0] != cat_id.partition("_")[0])


def own(record: dict[str, Any], cat_id: str) -> set[str]:
    """Return the ids of a page's products without the advertisements of other departments."""
    return {each["item_id"] for each in record["products"] if not is_foreign(each, cat_id)}


def big() -> str:
    return site().big_category


def leaves() -> list[str]:
    return [c.id for c in site().categories.values() if c.id.count("_") == 2]


# The products


def test_the_tree_has_three_levels() -> None:
    shop = site().categories
    assert {c.id.count("_") for c in shop.values()} == {0, 1, 2}
    for category in shop.values():
        assert all(child.startswith(category.id + "_") for child in category.children)
        above, _, _ = category.id.rpartition("_")
        assert not above or above not in shop or category.id in shop[above].children


def test_thousands_of_products_beside_the_big_category() -> None:
    priced, unpriced = site().products_of(big())
    assert len(site().products) - len(priced | unpriced) >= 3_000
    numbers = [product.item_id for product in site().products]
    assert len(set(numbers)) == len(numbers)


def test_names_contain_the_real_special_characters() -> None:
    characters = set("".join(product.name for product in site().products))
    assert {"™", "&", '"', "’", ","} <= characters
    assert any(character.isalpha() and not character.isascii() for character in characters)


def test_the_big_category() -> None:
    priced, unpriced = site().products_of(big())
    assert len(priced | unpriced) == 6_446
    assert not priced & unpriced
    assert 0.03 <= len(unpriced) / 6_446 <= 0.05
    prices = Counter(p.cents for p in site().products if p.item_id in priced)
    ((_, most), (_, second)) = prices.most_common(2)
    assert most == 700 or (most > 700 and most - second > 600)


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


def test_pages_below_the_ceiling_have_the_usual_number_of_rows() -> None:
    assert all(47 <= expected_record(cat_id=big(), page=number)["returned"] <= 50 for number in range(1, 10))


@pytest.mark.parametrize("sort", SORTS)
def test_a_small_listing_is_served_completely(sort: str) -> None:
    small = [cat_id for cat_id in leaves() if sum(map(len, site().products_of(cat_id))) <= 400]
    assert len(small) > len(leaves()) / 2
    for cat_id in small[::7]:
        first = expected_record(cat_id=cat_id, sort=sort)
        pages = [expected_record(cat_id=cat_id, sort=sort, page=n) for n in range(1, first["max_page"] + 1)]
        priced, unpriced = site().products_of(cat_id)
        assert set().union(*(own(record, cat_id) for record in pages)) == priced | unpriced
        assert first["total_results"] == len(priced | unpriced)
        assert [record["has_more"] for record in pages] == [True] * (len(pages) - 1) + [False]
        assert ids(expected_record(cat_id=cat_id, sort=sort, page=len(pages) + 1)) == []


def test_rows_repeat_as_advertisements() -> None:
    record = expected_record(cat_id=big())
    sponsored = [product for product in record["products"] if product["is_sponsored"]]
    assert 6 <= len(sponsored) <= 14
    repeated = {item_id for item_id, times in Counter(ids(record)).items() if times > 1}
    assert repeated
    assert repeated <= {product["item_id"] for product in sponsored}


@pytest.mark.parametrize("cat_id", ["976759", "976759_6837314", "4044", "880002", world_id("4044", "none", 1)])
@pytest.mark.parametrize("page", [1, 2])
def test_a_full_page_advertises_products_of_other_departments(cat_id: str, page: int) -> None:
    shown = expected_record(cat_id=cat_id, page=page)["products"]
    foreign = [product for product in shown if is_foreign(product, cat_id)]
    assert len(foreign) == 2
    assert all(product["is_sponsored"] for product in foreign)


def test_a_search_advertises_products_that_it_does_not_find() -> None:
    shown = expected_record(query="mustard")["products"]
    others = [product for product in shown if "mustard" not in product["name"].lower()]
    assert [product["is_sponsored"] for product in others] == [True, True]


# Sort and price


def test_sort_orders_all_differ() -> None:
    assert len({tuple(ids(expected_record(cat_id=big(), sort=sort))) for sort in SORTS}) == len(SORTS)


@pytest.mark.parametrize(
    ("sort", "path", "descending"),
    [
        ("price_low", ("price", "current_price"), False),
        ("price_high", ("price", "current_price"), True),
        ("rating_high", ("rating", "average"), True),
    ],
)
def test_sort_orders_are_correct(sort: str, path: tuple[str, str], descending: bool) -> None:  # noqa: FBT001
    products = expected_record(cat_id=leaves()[0], sort=sort)["products"]
    # Advertisements have fixed positions.
    values = [p[path[0]][path[1]] for p in products if not p["is_sponsored"] and p[path[0]][path[1]] is not None]
    assert len(values) > 20
    assert values == sorted(values, reverse=descending)


@pytest.mark.parametrize(("low", "high"), [(10, 20), (None, 15), (40, None), (19.99, 19.99)])
def test_price_bounds_are_inclusive_and_omit_unpriced_products(low: float | None, high: float | None) -> None:
    cat_id = big()
    record = expected_record(cat_id=cat_id, min_price=low, max_price=high)
    expected = [
        p
        for p in site().products
        if p.category.startswith(cat_id + "_")
        and p.cents is not None
        and (low is None or p.cents >= round(low * 100))
        and (high is None or p.cents <= round(high * 100))
    ]
    assert record["total_results"] == len(expected)
    assert own(record, cat_id) <= {p.item_id for p in expected}


def test_params_may_be_text_or_numbers() -> None:
    params = {"page": 2, "min_price": 5.5, "max_price": 25, "sort": "new"}
    as_text = {key: str(value) for key, value in params.items()}
    assert expected_record(cat_id="976759", **params) == expected_record(cat_id="976759", **as_text)


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


def test_expected_records_have_breadcrumbs() -> None:
    cat_id = leaves()[0]
    department, group, _ = cat_id.split("_")
    assert [crumb["id"] for crumb in expected_record(cat_id=cat_id)["breadcrumbs"]] == [
        department,
        f"{department}_{group}",
    ]
    assert expected_record(cat_id=department)["breadcrumbs"] == []


def test_a_search_matches_words_of_names() -> None:
    found = expected_record(query="Cordless kettle")
    assert found["total_results"] > 0
    organic = [p["name"].lower() for p in found["products"] if not p["is_sponsored"]]
    assert all("kettle" in name and "cordless" in name for name in organic)
    nothing = expected_record(query="zzz qqq")
    assert (nothing["products"], nothing["total_results"], nothing["has_more"]) == ([], 0, False)


@pytest.mark.parametrize("params", [{"cat_id": "1"}, {"cat_id": "976759", "sort": "random"}])
def test_unknown_params_raise_key_error(params: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        expected_record(**params)


def test_a_url_selects_its_category() -> None:
    assert expected_record(url="https://www.walmart.com/browse/a/b/976759?x=1") == expected_record(cat_id="976759")


# The faults


def test_categories_and_searches_select_faults() -> None:
    shop = site()
    assert set(shop.faults.values()) == set(FAULTS)
    for cat_id, name in shop.faults.items():
        assert re.fullmatch(r"990000_\d+", cat_id)
        page = {"page": "2"}
        assert shop.fault(FakeRequest(f"/browse/{cat_id}", page)) == name
        assert shop.fault(FakeRequest("/search", {"q": name, **page})) == name
    assert shop.fault(FakeRequest("/browse/976759")) is None
    for name, fault in shop.catalogue()["faults"].items():
        assert shop.fault(FakeRequest("/search", {"q": fault["params"]["query"], "page": "2"})) == name


def test_a_listing_without_prices_is_otherwise_complete() -> None:
    ids_of = {name: cat_id for cat_id, name in Site.fault_ids.items()}
    whole, record = expected_record(cat_id=ids_of["slow"]), expected_record(cat_id=ids_of["no-prices"])
    assert ids(record) == ids(whole)
    assert {product["price"]["current_price"] for product in whole["products"]} != {None}
    nothing = {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    assert all(product["price"] == nothing for product in record["products"])


# The category trees for exhaustive crawls


@pytest.mark.parametrize(
    ("department", "size", "leaves", "total"),
    [("880002", 20_000, 60, 20_000), ("880004", 6_446, 24, 6_639), ("880005", 6_446, 24, 6_253)],
)
def test_trees_have_their_size(department: str, size: int, leaves: int, total: int) -> None:
    shop = site()
    record = expected_record(cat_id=department)
    assert record["total_results"] == total
    groups = shop.category(department).children
    ends = [leaf for group in groups for leaf in shop.category(group).children]
    assert len(ends) == leaves
    assert sum(len(shop.matching(leaf, None)) for leaf in ends) == size
    assert all(shop.category(leaf).children == () for leaf in ends)


def test_a_tree_may_ignore_prices() -> None:
    assert expected_record(cat_id="880006", max_price=1)["products"] == expected_record(cat_id="880006")["products"]


@pytest.mark.parametrize("cat_id", ["880006_0", "880006_3", "880006_01", "880006_1_3", "880006_1_1_1", "880006_x"])
def test_a_tree_has_no_other_categories(cat_id: str) -> None:
    with pytest.raises(KeyError):
        expected_record(cat_id=cat_id)
