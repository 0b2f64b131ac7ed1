"""A row of a listing in both formats that the platform uses. The rows are made up."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.pipelines import validated
from crawler.platforms.retail.payload import Row
from crawler.platforms.retail.product import product
from crawler.platforms.retail.schema import Product
from crawler.reading.careful import read_plain
from tests.platforms.retail.test_blocks import BARE, PRICE

ROW: dict[str, Any] = {**BARE, "usItemId": "0071", "name": 'Red Barn™ Mustard, 8" & more'}

BADGES = BARE["badges"]

EN_DASH = "–"


def read(**keys: Any) -> dict[str, Any]:
    """Return the product that is read from a row of a page. Nothing may remain unread but a null of the test itself."""
    row, unread = read_plain(Row, {**ROW, **keys})
    assert {(each.path.partition(".")[0], each.cause) for each in unread} <= {(key, "null") for key in keys}
    assert row is not None
    return validated(Product, product(row))


def line(kind: str, **values: str) -> dict[str, Any]:
    return {"lineType": kind, "values": [{"key": key, "value": value} for key, value in values.items()]}


def lines(*found: dict[str, Any], currency: str = "USD") -> dict[str, Any]:
    """Return price data in the format since July 2026, in which all older fields are empty."""
    return {**PRICE, "minPrice": 0, "priceDetails": {"currency": currency, "priceLines": list(found)}}


CURRENT = line("CURRENT_PRICE", PRICE="69.99")


@pytest.mark.parametrize(
    ("info", "current", "low", "high", "ranged"),
    [
        # Price lines with types
        (lines(CURRENT), 69.99, 69.99, None, False),
        (lines(line("DISCOUNTED_PRICE", PRICE="9.50"), CURRENT), 9.5, 9.5, None, False),
        (lines(CURRENT, line("UNIT_PRICE", UNIT_PRICE="13.7 ¢/count")), 69.99, 69.99, None, False),
        (lines(CURRENT, line("COMPARISON", WAS_PRICE="99.00")), 69.99, 69.99, None, False),
        (lines(CURRENT, line("OPTIONS", LOW_PRICE="59.99")), 69.99, 59.99, None, True),
        (lines(line("OPTIONS", LOW_PRICE="59.99")), None, 59.99, None, True),
        (lines(CURRENT, line("OPTIONS_RANGE", LOW_PRICE="69.99", HIGH_PRICE="279.99")), 69.99, 69.99, 279.99, True),
        (lines(CURRENT, line("OPTIONS_RANGE", LOW_PRICE="69.99", HIGH_PRICE="69.99")), 69.99, 69.99, 69.99, False),
        (lines(), None, None, None, False),
        (lines(line("CURRENT_PRICE", PRICE="0")), None, None, None, False),
        # Prices as plain text
        ({**PRICE, "linePrice": "$1,119.00", "itemPrice": "$1,300.00", "minPrice": 0}, 1119.0, 1119.0, None, False),
        ({**PRICE, "linePrice": "", "linePriceDisplay": "Now $159.00", "itemPrice": "$200"}, 159.0, 159.0, None, False),
        (
            {**PRICE, "linePrice": "$9.91", "priceRangeString": f"Options from $9.91 {EN_DASH} $22.64"},
            9.91,
            9.91,
            22.64,
            True,
        ),
        ({**PRICE, "linePrice": "$13.00", "priceRangeString": "More options from $11.69"}, 13.0, 11.69, None, True),
        ({**PRICE, "linePrice": "$159.00", "priceRangeString": "From $159.00"}, 159.0, 159.0, None, True),
        # Offers that have ended
        ({**PRICE, "linePrice": "", "minPrice": 0, "priceRangeString": "", "shipPrice": "$5"}, None, None, None, False),
        (None, None, None, None, False),
    ],
)
def test_prices(info: Any, current: float | None, low: float | None, high: float | None, ranged: bool) -> None:  # noqa: FBT001
    # The key ``price`` of a row is 0 or lacks the cents, so it is never read.
    assert read(priceInfo=info, price=69)["price"] == price_of(current, low, high, ranged=ranged)


def price_of(current: float | None, low: float | None, high: float | None, *, ranged: bool) -> dict[str, Any]:
    currency = "USD" if low is not None else ""
    price = {"currency": currency, "current_price": current, "is_price_range": ranged, "min_price": low}
    return price if high is None else {**price, "max_price": high}


@pytest.mark.parametrize("info", [[], "$5", 5])
def test_a_price_of_another_type_is_unread(info: Any) -> None:
    row, unread = read_plain(Row, {**ROW, "priceInfo": info})
    assert row is not None
    assert product(row)["price"] == price_of(None, None, None, ranged=False)
    assert [(each.path, each.cause) for each in unread] == [("priceInfo", "type")]


@pytest.mark.parametrize(
    ("keys", "currency"),
    [
        ({"priceInfo": lines(CURRENT, currency="CAD")}, "CAD"),
        ({"priceInfo": {**PRICE, "linePrice": "$1.00"}}, "USD"),
        ({"priceInfo": lines(currency="CAD")}, ""),
    ],
)
def test_currency_requires_a_price(keys: dict[str, Any], currency: str) -> None:
    assert read(**keys)["price"]["currency"] == currency


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ({}, "item_id", "0071"),
        ({}, "name", 'Red Barn™ Mustard, 8" & more'),
        ({"usItemId": 17265721605}, "item_id", "17265721605"),
        ({"averageRating": 4.5, "numberOfReviews": 12}, "rating", {"average": 4.5, "review_count": 12}),
        ({"averageRating": 4, "numberOfReviews": None}, "rating", {"average": 4.0, "review_count": None}),
        ({"averageRating": 0, "numberOfReviews": 0}, "rating", {"average": None, "review_count": None}),
        (
            {"averageRating": None, "rating": {"averageRating": 0, "numberOfReviews": 0}},
            "rating",
            {"average": None, "review_count": None},
        ),
        ({"averageRating": -1, "numberOfReviews": -1}, "rating", {"average": None, "review_count": None}),
        ({"isSponsoredFlag": True}, "is_sponsored", True),
        ({"isSponsoredFlag": False, "sponsoredProduct": {}}, "is_sponsored", False),
        ({"isSponsoredFlag": None, "sponsoredProduct": {"clickBeacon": "x"}}, "is_sponsored", True),
        ({"conditionV2": {"code": 5, "groupCode": 2}}, "condition", 5),
        ({"conditionV2": None}, "condition", None),
        ({"isPreowned": True}, "is_preowned", True),
        ({"category": {"categoryPathId": "0:3944:1089430:3951"}}, "category_path", "3944/1089430/3951"),
        ({"category": {"categoryPathId": "0"}}, "category_path", ""),
        ({"category": {"categoryPathId": None}}, "category_path", ""),
        ({"canonicalUrl": "/ip/a/71?classType=X&athbdg=L1"}, "url", "https://www.walmart.com/ip/a/71"),
        ({"canonicalUrl": ""}, "url", ""),
        ({"image": None, "imageInfo": {"thumbnailUrl": "https://i.example/t.jpg"}}, "image", "https://i.example/t.jpg"),
        ({"image": "https://i.example/i.jpg", "imageInfo": {"thumbnailUrl": "t"}}, "image", "https://i.example/i.jpg"),
        ({"image": "https://i.example/i.jpg?odnHeight=180&odnBg=FFFFFF"}, "image", "https://i.example/i.jpg"),
        ({"shortDescription": None, "description": ""}, "short_description", ""),
        ({"shortDescription": " <li>Hot</li>\n"}, "short_description", "<li>Hot</li>"),
        ({"shortDescription": "None"}, "short_description", ""),
        ({"sellerId": "S", "sellerName": "Shop \n"}, "seller", {"id": "S", "name": "Shop"}),
        ({"variantCount": 3, "variantList": [{}]}, "variant_count", 3),
        ({"variantList": [{}, {}]}, "variant_count", 2),
        ({"variantCriteria": [{"variantList": [{}, {}]}, {"variantList": [{}]}]}, "variant_count", 3),
        ({"type": "REGULAR", "variantList": []}, "variant_count", 0),
        ({"type": "VARIANT", "variantList": []}, "variant_count", None),
        ({"type": None}, "variant_count", None),
        ({"flag": "Best seller"}, "flag", "Best seller"),
        ({"flag": "", "badges": {**BADGES, "flags": [{"key": "", "text": "Deal"}]}}, "flag", "Deal"),
        (
            {
                "badges": {
                    **BADGES,
                    "flags": [{"key": "", "text": "Deal"}, {"key": "", "text": ""}],
                    "tags": [
                        {"type": "ICON", "key": "SAVE", "text": "Save with"},
                        {"type": "ICON", "key": "SAVE_WITH_W_PLUS", "text": "Save with"},
                        {"type": "LABEL", "key": "PICKUP", "text": "Pickup"},
                        {"type": "LABEL", "key": "TWO_DAY_SHIPPING", "text": "2-day shipping"},
                        {"type": "TEXT", "key": "", "text": "New"},
                    ],
                    "groups": [{"name": "fulfillment"}],
                }
            },
            "badges",
            ["Deal", "SAVE", "Save with Walmart plus", "New"],
        ),
        (
            {"availabilityStatusV2": {"value": "OUT_OF_STOCK", "display": "Out of stock"}},
            "availability",
            {"display": "Out of stock", "in_stock": False, "status": "OUT_OF_STOCK"},
        ),
        (
            {"availabilityStatusV2": {"value": "UNKNOWN", "display": None}},
            "availability",
            {"display": "", "in_stock": None, "status": "UNKNOWN"},
        ),
        ({"sellerId": None, "sellerName": None}, "seller", {"id": "", "name": ""}),
        ({"offerId": None}, "offer_id", ""),
        ({"fulfillmentType": None}, "fulfillment_type", ""),
    ],
)
def test_fields(keys: dict[str, Any], field: str, value: Any) -> None:
    assert read(**keys)[field] == value


@pytest.mark.parametrize(
    "keys", [{}, {"flag": None, "badges": {"flags": [], "tags": [], "groupsV2": []}}, {"badges": None}]
)
def test_missing_labels_are_absent(keys: dict[str, Any]) -> None:
    assert not {"badges", "flag"} & read(**keys).keys()


def test_re3_7_renamed_lines_of_a_price_are_reported() -> None:
    price = lines(CURRENT)
    price["priceDetails"]["linesV9"] = price["priceDetails"].pop("priceLines")
    row, unread = read_plain(Row, {**ROW, "priceInfo": price})
    assert row is not None
    assert [(each.path, each.cause) for each in unread] == [("priceInfo.priceDetails.priceLines[]", "missing")]


@pytest.mark.parametrize("key", ["key", "text"])
def test_re3_7_a_renamed_key_of_badges_is_reported(key: str) -> None:
    tags = [{("renamed" if each == key else each): "x" for each in ("type", "key", "text")}] * 3
    row, unread = read_plain(Row, {**ROW, "badges": {**BADGES, "tags": tags}})
    assert row is not None
    assert [(each.path, each.rows) for each in unread] == [(f"badges.tags[].{key}", 3)]
