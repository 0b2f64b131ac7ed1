"""Listings that are rare among the recordings: misspelt searches, price lines of unknown types, emptied texts."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from crawler.reading.contract import Unread
from tests.platforms.retail.test_blocks import (
    BARE,
    FULL,
    LISTING,
    PRICE,
    ROW_PATH,
    changed,
    html,
    page_of,
    read,
    refusal,
)
from tests.platforms.retail.test_rows import CURRENT, line, lines


def searched(query: str, corrected: str | None) -> str:
    """Return a page with the results of a search."""
    listing = copy.deepcopy(LISTING) | {"spelling": {"correctedTerm": corrected}, "title": "Results"}
    listing["paginationV2"]["pageProperties"] |= {"query": query, "cat_id": "0"}
    return html({"searchResult": listing}, route="/search")


def test_a_search_may_repeat_the_corrected_words() -> None:
    assert read(searched("mustard", "Mustard"), search=True, query="musturd")["query"] == "musturd"
    for corrected in (None, "custard"):
        assert refusal(searched("mustard", corrected), search=True, query="musturd").reason == "wrong_echo"


PRICED = {**FULL, "usItemId": "7", "priceInfo": {**PRICE, "linePrice": "$5.00"}}
PROPERTIES = {"pageProperties": LISTING["paginationV2"]["pageProperties"]}
NO_PROPERTIES = {"pageProperties": {"page": None, "sort": None, "cat_id": None}}
NO_OFFER = {"offerId": None, "fulfillmentType": None}


def unread_of(rows: list[dict[str, Any]]) -> list[Unread]:
    """Return the unread parts of a page with these rows."""
    page = page_of(changed("itemStacks", 0, "items", value=rows))
    assert len(asyncio.run(page.to_item())["products"]) == len(rows)
    return page.unread


def test_a_price_in_a_line_of_an_unknown_type_is_reported() -> None:
    known = [line("UNIT_PRICE", UNIT_PRICE="13.7 ¢/count"), line("COMPARISON", WAS_PRICE="9.00")]
    clearance = lines(*known, line("CLEARANCE_PRICE", PRICE="3.00"))
    rows = [PRICED, {**PRICED, "priceInfo": clearance}, {**PRICED, **NO_OFFER, "priceInfo": lines(*known)}]
    path = f"{ROW_PATH}.priceInfo.priceDetails.priceLines[].…unknown"
    assert unread_of(rows) == [Unread(path, "unknown", 1, 3, names=("CLEARANCE_PRICE",))]
    assert unread_of([{**PRICED, "priceInfo": lines(CURRENT, line("NEW_LINE", PRICE="1.00"))}]) == []


def test_a_line_without_an_amount_is_a_notice() -> None:
    notice = lines(line("SEE_PRICE_IN_CART", TEXT="See price in cart"), line("UNAVAILABLE"))
    assert unread_of([PRICED, {**PRICED, "priceInfo": notice}]) == []


def test_a_line_of_an_unknown_type_next_to_a_price_in_the_older_keys_is_not_reported() -> None:
    both = lines(line("SAVINGS", AMOUNT="2.00")) | {"linePrice": "$8.00"}
    assert unread_of([PRICED, {**PRICED, "priceInfo": both}]) == []


def test_a_condition_that_all_pre_owned_products_lack_is_reported() -> None:
    used = {**PRICED, "isPreowned": True}
    renamed = {**used, "conditionNew": {"code": 5}}
    assert unread_of([PRICED, renamed, renamed]) == [Unread(f"{ROW_PATH}.conditionV2", "contradiction", 2, 2)]
    assert unread_of([PRICED, PRICED]) == []


def test_an_offer_without_a_condition_is_reported_on_a_page_with_conditions() -> None:
    new = {**PRICED, "conditionV2": {"code": 1}}
    assert unread_of([new, new, PRICED]) == [Unread(f"{ROW_PATH}.conditionV2", "contradiction", 1, 3)]
    assert unread_of([new, new, {**PRICED, **NO_OFFER}]) == []


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({"canonicalUrl": ""}, "canonicalUrl"),
        ({"fulfillmentType": None}, "fulfillmentType"),
        ({"offerId": None}, "offerId"),
        ({"category": {"categoryPathId": None}}, "category.categoryPathId"),
        ({"numberOfReviews": None}, "numberOfReviews"),
        ({"averageRating": None}, "averageRating"),
        ({"availabilityStatusV2": None, "availabilityStatusDisplayValue": "In stock"}, "availabilityStatusV2"),
        ({"shortDescription": None, "description": "<li>Hot</li>"}, "shortDescription"),
        ({"flag": "Rollback"}, "badges"),
        ({"badges": {**BARE["badges"], "flags": [{"key": "A", "text": "Rollback", "type": "LABEL"}]}}, "flag"),
    ],
)
def test_a_value_that_another_value_of_the_row_states_is_reported(keys: dict[str, Any], missing: str) -> None:
    (found,) = unread_of([PRICED, {**PRICED, **keys}])
    assert (found.path, found.cause, found.rows) == (f"{ROW_PATH}.{missing}", "contradiction", 1)


def test_a_product_of_another_seller_may_have_no_category() -> None:
    assert unread_of([PRICED, {**PRICED, "fulfillmentType": "MARKETPLACE", "category": {"categoryPathId": None}}]) == []


@pytest.mark.parametrize(
    ("properties", "keys", "search", "missing"),
    [
        ({"sort": None}, {}, False, ["paginationV2.pageProperties.sort"]),
        ({"page": None}, {}, False, ["paginationV2.pageProperties.page"]),
        ({"query": None}, {}, False, []),
        ({"query": None}, {}, True, ["paginationV2.pageProperties.query"]),
        ({"query": "red shoes"}, {}, True, ["title"]),
        ({"query": "red shoes"}, {"title": "Results"}, True, []),
        ({}, {"paginationV2": {"maxPage": None, **PROPERTIES}}, False, ["paginationV2.maxPage"]),
        ({}, {"paginationV2": {"maxPage": None, **PROPERTIES}, "aggregatedCount": 1}, False, []),
        (
            {},
            {"paginationV2": {"maxPage": 1, **NO_PROPERTIES}, "aggregatedCount": 1},
            False,
            ["cat_id", "page", "sort"],
        ),
        ({}, {"paginationV2": None, "aggregatedCount": 1}, False, ["cat_id", "page", "sort"]),
        ({}, {"paginationV2": {"maxPage": None, **NO_PROPERTIES}, "aggregatedCount": None}, False, []),
    ],
)
def test_a_value_that_every_listing_states_is_reported(
    properties: dict[str, Any],
    keys: dict[str, Any],
    search: bool,  # noqa: FBT001  # a column of the table
    missing: list[str],
) -> None:
    # The request is unknown, as when a saved page is read. The last listing is one of which only the rows were saved.
    listing = copy.deepcopy(LISTING)
    listing["paginationV2"]["pageProperties"] |= properties
    page = page_of(html({"searchResult": listing | keys}), search=search)
    asyncio.run(page.to_item())
    assert {each.cause for each in page.unread} <= {"contradiction"}
    found = [each.path.removeprefix("props.pageProps.initialData.searchResult.") for each in page.unread]
    of_params = "paginationV2.pageProperties."
    assert found == [each if "." in each or each == "title" else f"{of_params}{each}" for each in missing]


@pytest.mark.parametrize("key", ["id", "offerId", "canonicalUrl", "image", "sellerId", "sellerName"])
def test_a_text_that_is_empty_in_all_rows_is_reported(key: str) -> None:
    rows = [{**PRICED, key: ""}] * 10
    assert [each for each in unread_of(rows) if each.path.endswith(key)] == [
        Unread(f"{ROW_PATH}.{key}", "null", 10, 10)
    ]
    assert [each for each in unread_of([*rows, PRICED]) if each.cause != "contradiction"] == []


@pytest.mark.parametrize(
    ("missing", "other"), [("averageRating", "numberOfReviews"), ("numberOfReviews", "averageRating")]
)
def test_a_rating_without_reviews_and_reviews_without_a_rating_are_reported(missing: str, other: str) -> None:
    row = {**PRICED, missing: None}
    assert unread_of([row, row]) == [Unread(f"{ROW_PATH}.{missing}", "contradiction", 2, 2)]
    assert unread_of([{**PRICED, missing: None, other: None}] * 12) == []
