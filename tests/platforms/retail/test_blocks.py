"""Responses with the requested listing are read; all others raise the right error. The pages are made up."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.platforms.retail.schema import Listing, SearchListing
from crawler.reading.contract import Unread
from crawler.reading.values import retry_after_seconds

PRICE = {"linePrice": "", "linePriceDisplay": "", "priceRangeString": ""}
BARE: dict[str, Any] = {
    "__typename": "Product",
    "id": "",
    "offerId": None,
    "canonicalUrl": "",
    "averageRating": None,
    "numberOfReviews": None,
    "availabilityStatusV2": None,
    "fulfillmentType": None,
    "image": "",
    "imageInfo": {"thumbnailUrl": ""},
    "sellerId": "",
    "sellerName": "",
    "type": "REGULAR",
    "variantCriteria": [],
    "variantList": [],
    "isSponsoredFlag": False,
    "isPreowned": False,
    "availabilityStatusDisplayValue": "",
    "shortDescription": None,
    "description": "",
    "category": None,
    "flag": "",
    "badges": {"flags": None, "tags": [], "groupsV2": None},
    "priceInfo": PRICE,
}
"""The keys that every row of a real page has, with empty values."""
ROWS = [{**BARE, "usItemId": str(n), "name": f"Thing {n}"} for n in range(3)]
FULL = {
    **BARE,
    "name": "Thing",
    "id": "A1",
    "offerId": "F",
    "fulfillmentType": "FC",
    "canonicalUrl": "/ip/thing/1",
    "averageRating": 4.5,
    "numberOfReviews": 12,
    "availabilityStatusV2": {"value": "IN_STOCK", "display": "In stock"},
    "image": "https://i.example/1.jpg",
    "sellerId": "S",
    "sellerName": "Shop",
    "category": {"categoryPathId": "0:1:2"},
}
"""A row with a non-empty value at each path that the contract declares as ``often``."""
GRID = {"layoutEnum": "GRID"}
LISTING: dict[str, Any] = {
    "aggregatedCount": 6446,
    "itemStacks": [{"meta": GRID, "items": ROWS}],
    "paginationV2": {"maxPage": 25, "pageProperties": {"page": 2, "cat_id": "1_2", "sort": "new", "query": ""}},
    "errorResponse": {"errors": [], "errorCodes": None},
    "hasMorePages": False,
}
PATH = ["props", "pageProps", "initialData", "searchResult"]
URL = "https://www.walmart.com/browse/1_2"


def html(initial: Any, *, route: str = "/browse/[...browseParams]", head: str = "") -> str:
    data = {"props": {"pageProps": {"initialData": initial}}, "page": route}
    block = orjson.dumps(data).decode()
    return f'<html><head>{head}</head><script id="__NEXT_DATA__" type="application/json">{block}</script></html>'


def page_of(body: str, *, url: str = URL, search: bool = False, **params: Any) -> ListingPage:
    kind = SearchPage if search else ListingPage
    return kind(response=HttpResponse(url, body.encode(), encoding="utf-8"), page_params=PageParams(params))


def read(body: str, *, warns: bool = False, **how: Any) -> dict[str, Any]:
    """Return the data of a page, and check whether parts of the page are unread (``warns``)."""
    page = page_of(body, **how)
    item = asyncio.run(page.to_item())
    assert bool(page.unread) is warns, page.unread
    return validated(SearchListing if isinstance(page, SearchPage) else Listing, item)


def refusal(body: str, **how: Any) -> ScrapeError:
    with pytest.raises(ScrapeError) as refused:
        read(body, **how)
    return refused.value


def changed(*path: str | int, value: Any = "<remove>") -> str:
    """Return the page with the value at a path of its listing replaced."""
    listing = copy.deepcopy(LISTING)
    holder: Any = listing
    for key in path[:-1]:
        holder = holder[key]
    if value == "<remove>":
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return html({"searchResult": listing})


PAGE = html({"searchResult": LISTING})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"cat_id": "1_2"},
        {"cat_id": "1_2", "page": 2, "sort": "new"},
        {"cat_id": "1_2", "page": "2"},
    ],
)
def test_the_requested_listing_is_read(params: dict[str, Any]) -> None:
    data = read(PAGE, **params)
    assert (data["cat_id"], data["page"], data["sort"]) == ("1_2", 2, "new")
    assert (data["returned"], data["max_page"], data["total_results"], data["has_more"]) == (3, 25, 6446, True)


@pytest.mark.parametrize(
    ("params", "key"),
    [({"cat_id": "1"}, "cat_id"), ({"page": 1}, "page"), ({"sort": "best_match"}, "sort")],
)
def test_another_listing_is_never_returned(params: dict[str, Any], key: str) -> None:
    error = refusal(PAGE, **params)
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")
    assert error.details[0]["loc"] == [*PATH, "paginationV2", "pageProperties", key]


@pytest.mark.parametrize(
    ("query", "echo", "same"),
    [
        ("red shoes", "red shoes", True),
        ("Red  Shoes ", "red shoes", True),
        ("re\u0301sume\u0301", "r\u00e9sum\u00e9", True),
        ("red shoes", "blue shoes", False),
    ],
)
def test_a_search_must_echo_its_words(query: str, echo: str | None, same: bool) -> None:  # noqa: FBT001
    properties = {"query": echo, "cat_id": "0", "page": 1, "sort": "new"}
    listing = LISTING | {"paginationV2": {"maxPage": 25, "pageProperties": properties}, "title": "Results"}
    body = html({"searchResult": listing})
    if same:
        data = read(body, search=True, query=query)
        assert (data["query"], data["cat_id"], data["category_id"]) == (query, "0", "0")
    else:
        assert refusal(body, search=True, query=query).reason == "wrong_echo"


@pytest.mark.parametrize(
    ("body", "how", "code", "reason"),
    [
        ('<title>Robot or human?</title><div id="px-captcha">', {}, "UPSTREAM_BLOCKED", "challenge"),
        ("<p>hello</p>", {"url": "https://www.walmart.com/blocked?url=x"}, "UPSTREAM_BLOCKED", "challenge"),
        ('{"redirectUrl":"/blocked?url=x","appId":"y"}', {}, "UPSTREAM_BLOCKED", "challenge"),
        ('{"redirectUrl": "/blocked?url=x"}', {}, "UPSTREAM_BLOCKED", "challenge"),
        ("", {}, "UPSTREAM_BLOCKED", "empty_body"),
        (" \n", {}, "UPSTREAM_BLOCKED", "empty_body"),
        ("<html><p>Sorry</p></html>", {}, "EXTRACTION_FAILED", "no_data_block"),
        ('<script id="__NEXT_DATA__">{"props"', {}, "EXTRACTION_FAILED", "broken_data_block"),
        ('<script id="__NEXT_DATA__">{"props"</script>', {}, "EXTRACTION_FAILED", "broken_data_block"),
        (html({}, route="/404"), {}, "TARGET_NOT_FOUND", "not_found"),
        (html({"searchResult": None}), {}, "EXTRACTION_FAILED", "no_listing"),
        (html({"searchResult": None}, route="/search"), {}, "EXTRACTION_FAILED", "no_listing"),
        (html({"searchResult": None}, route="/of/tomorrow"), {}, "EXTRACTION_FAILED", "no_listing"),
        (html({"searchResult": None}, route="/"), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"searchResult": None, "data": {"product": {}}}), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        ('{"data": {"search": {"searchResult": {}}}}', {}, "EXTRACTION_FAILED", "unknown_form"),
        ("[]", {}, "EXTRACTION_FAILED", "unreadable"),
        (html({"data": {"product": {}}}, route="/ip/[...itemParams]"), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"contentLayout": {}}, route="/cp/[...x]"), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"contentLayout": {}}), {}, "EXTRACTION_FAILED", "no_listing"),
        (html({"found": {}}, route="/search"), {}, "EXTRACTION_FAILED", "no_listing"),
        (html(None), {}, "EXTRACTION_FAILED", "no_listing"),
        (changed("errorResponse", "errors", value=[{"errorType": "X"}]), {}, "UPSTREAM_ERROR", "reported_error"),
        (changed("errorResponse", "errorCodes", value=["500"]), {}, "UPSTREAM_ERROR", "reported_error"),
        (changed("itemStacks"), {}, "EXTRACTION_FAILED", "blind"),
        (changed("itemStacks", value={"0": LISTING["itemStacks"]}), {}, "EXTRACTION_FAILED", "blind"),
        (changed("itemStacks", value=[]), {}, "EXTRACTION_FAILED", "blind"),
        (changed("itemStacks", 0, "items"), {}, "EXTRACTION_FAILED", "blind"),
        (changed("itemStacks", 0, "items", value=[]), {}, "EXTRACTION_FAILED", "blind"),
        (changed("itemStacks", 0, "meta", "layoutEnum", value="LIST"), {}, "EXTRACTION_FAILED", "blind"),
    ],
)
def test_other_pages_than_listings_are_refused(body: str, how: dict[str, Any], code: str, reason: str) -> None:
    error = refusal(body, **how)
    assert (error.code, error.reason) == (code, reason)


def test_the_script_of_the_bot_protection_is_not_a_challenge() -> None:
    vendor = '<script src="/px/PXu6b0qd2S/init.js">captcha perimeterx px-captcha</script>'
    assert read(html({"searchResult": LISTING}, head=vendor))["returned"] == 3


CAUSES = [("<remove>", "missing"), (None, "null"), ("", "type")]
ROW_PATH = ".".join([*PATH, "itemStacks[]", "items[]"])


@pytest.mark.parametrize("key", ["usItemId", "name"])
@pytest.mark.parametrize(("value", "cause"), CAUSES)
def test_a_product_without_a_mandatory_key_is_left_out_with_its_path(key: str, value: Any, cause: Any) -> None:
    page = page_of(changed("itemStacks", 0, "items", 1, key, value=value))
    assert [row["item_id"] for row in asyncio.run(page.to_item())["products"]] == ["0", "2"]
    assert page.unread == [Unread(f"{ROW_PATH}.{key}", cause, 1, 3, loses_rows=True)]


@pytest.mark.parametrize("key", ["usItemId", "name"])
@pytest.mark.parametrize(("value", "cause"), CAUSES)
def test_products_that_all_lack_a_mandatory_key_fail_with_its_path(key: str, value: Any, cause: Any) -> None:
    rows = [{**row, key: value} for row in ROWS]
    for row in rows if value == "<remove>" else ():
        del row[key]
    error = refusal(changed("itemStacks", 0, "items", value=rows))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "blind")
    assert [(detail["loc"], detail["type"]) for detail in error.details] == [(f"{ROW_PATH}.{key}".split("."), cause)]


@pytest.mark.parametrize("kind", ["ProductV2", "<remove>"])
def test_unknown_rows_fail_without_other_products(kind: str) -> None:
    rows = [{**row, "__typename": kind} for row in ROWS]
    if kind == "<remove>":
        rows = [{"usItemId": row["usItemId"], "title": row["name"]} for row in ROWS]
    assert refusal(changed("itemStacks", 0, "items", value=rows)).reason == "blind"


SECOND = {**GRID, "subType": "SECONDARY_STACK"}
CAROUSEL = {"layoutEnum": "CAROUSEL"}
AD = {"__typename": "AdPlaceholder"}


@pytest.mark.parametrize(
    ("stacks", "ids"),
    [
        ([], []),
        ([{"meta": GRID, "items": []}], []),
        ([{"meta": GRID, "items": [AD]}], []),
        ([{"meta": GRID, "items": ROWS[:1]}, {"meta": CAROUSEL, "items": ROWS[1:]}], ["0"]),
        ([{"meta": GRID, "items": ROWS[:1]}, {"meta": GRID, "items": ROWS[2:]}], ["0", "2"]),
        ([{"meta": GRID, "items": ROWS[:1]}, {"meta": SECOND, "items": ROWS}], ["0"]),
        ([{"meta": GRID, "items": [AD, ROWS[0], {"__typename": "MarqueePlaceholder"}, ROWS[0]]}], ["0", "0"]),
    ],
)
def test_which_rows_are_products(stacks: list[Any], ids: list[str]) -> None:
    listing = {**LISTING, "itemStacks": stacks, "aggregatedCount": 3 if ids else 0}
    data = read(html({"searchResult": listing}))
    assert [product["item_id"] for product in data["products"]] == ids
    assert data["returned"] == len(ids)
    assert data["has_more"] is bool(ids)


def test_rows_of_an_unknown_type_are_left_out_with_a_warning() -> None:
    page = page_of(changed("itemStacks", 0, "items", value=[*ROWS, {"__typename": "TileOfTomorrow"}]))
    assert len(asyncio.run(page.to_item())["products"]) == 3
    assert page.unread == [Unread(f"{ROW_PATH}.…unknown", "unknown", 1, 4, loses_rows=True, names=("TileOfTomorrow",))]


# RE3-4: the groups of rows that belong to the listing, and pages without products


@pytest.mark.parametrize(
    ("matched", "ids"),
    [
        ([(True, 0)], ["0"]),
        ([(True, 0), (True, 2)], ["0", "2"]),
        ([(True, 0), (False, 2)], ["0"]),
        ([(True, 1)], ["1"]),
        ([(True, 9)], ["0", "2"]),
        ([], ["0", "2"]),
    ],
)
def test_re3_4_the_payload_names_the_groups_of_the_listing(matched: list[tuple[bool, int]], ids: list[str]) -> None:
    kinds = [GRID, CAROUSEL, GRID]
    listing = copy.deepcopy(LISTING)
    listing["itemStacks"] = [{"meta": kind, "items": [row]} for kind, row in zip(kinds, ROWS, strict=True)]
    named = [{"isPrimaryStack": is_primary, "matchIndex": index} for is_primary, index in matched]
    listing["paginationV2"]["pageProperties"]["primaryStacksToMatch"] = named
    assert [row["item_id"] for row in read(html({"searchResult": listing}))["products"]] == ids


@pytest.mark.parametrize(
    ("total", "page", "max_page", "is_refused"),
    [
        (53, 1, 3, True),
        (1, 1, 1, True),
        (1, 1, None, True),
        (0, 1, 1, False),
        (None, 1, 1, False),
        (53, 2, 3, False),  # the first page may have shown all of them
        (54, 2, 3, True),
        (6446, 9, 25, True),
        (6446, 10, 25, False),  # the shop shows only about 500 products of a listing
        (6446, 12, 25, False),
        (6446, 26, 25, False),
    ],
)
def test_re3_4_a_page_that_must_have_products_is_never_an_empty_success(
    total: int | None, page: int, max_page: int | None, *, is_refused: bool
) -> None:
    listing = copy.deepcopy(LISTING)
    listing |= {"aggregatedCount": total, "itemStacks": []}
    listing["paginationV2"]["maxPage"] = max_page
    listing["paginationV2"]["pageProperties"]["page"] = page
    body = html({"searchResult": listing})
    if is_refused:
        error = refusal(body)
        assert (error.code, error.reason) == ("EXTRACTION_FAILED", "blind")
        assert error.details[0]["loc"] == [*PATH, "itemStacks"]
    else:
        assert read(body)["products"] == []


# No row has a price


@pytest.mark.parametrize(
    ("rows", "offers", "priced", "warns"),
    [(10, 10, 0, 10), (10, 10, 9, 1), (3, 3, 3, 0), (12, 0, 0, 0), (12, 3, 1, 2)],
)
def test_offers_without_a_price_are_unread(rows: int, offers: int, priced: int, warns: int) -> None:
    price = {"priceInfo": {**PRICE, "linePrice": "$5.00"}}
    found = [
        {**FULL, "usItemId": str(n), "offerId": "F" if n < offers else None, **(price if n < priced else {})}
        for n in range(rows)
    ]
    page = page_of(changed("itemStacks", 0, "items", value=found))
    assert len(asyncio.run(page.to_item())["products"]) == rows
    assert [each for each in page.unread if "offerId" not in each.path] == (
        [Unread(f"{ROW_PATH}.priceInfo", "contradiction", warns, rows)] if warns else []
    )


@pytest.mark.parametrize(("max_page", "has_more"), [(25, True), (3, True), (2, False), (0, False), (None, True)])
def test_has_more_ignores_the_flag_of_the_page(max_page: int | None, has_more: bool) -> None:  # noqa: FBT001
    body = changed("paginationV2", "maxPage", value=max_page)
    assert read(body, warns=max_page is None)["has_more"] is has_more


SEO = {"metaTitle": "Things | Shop", "h1": "All things", "metaCanon": "/browse/things/1_2?page=2"}


@pytest.mark.parametrize("initial", [{"seoBrowseMetaData": SEO}, {"contentLayout": {"seoBrowseMetaData": SEO}}])
def test_title_heading_and_url_of_a_category(initial: dict[str, Any]) -> None:
    data = read(html({**initial, "searchResult": LISTING}))
    assert (data["title"], data["heading"]) == ("Things | Shop", "All things")
    assert data["url"] == "https://www.walmart.com/browse/things/1_2"


def test_title_heading_and_url_without_data() -> None:
    head = "<title>Things &amp; more</title></head><body><h1 class='x'>Things</h1>"
    data = read(html({"searchResult": LISTING}, head=head))
    assert (data["title"], data["heading"], data["url"]) == ("Things & more", "Things", URL)


def test_breadcrumbs_are_the_levels_above() -> None:
    crumbs = [
        {"id": "1", "name": "Food", "url": "/cp/food/1"},
        {"name": "Sauces", "url": "/browse/sauces/1_9?povid=x"},
        {"id": "1_2", "name": "Mustard", "url": "/browse/mustard/1_2"},
    ]
    data = read(html({"searchResult": {**LISTING, "breadCrumb": crumbs}}))
    assert data["breadcrumbs"] == [
        {"id": "1", "name": "Food", "url": "https://www.walmart.com/cp/food/1"},
        {"id": "1_9", "name": "Sauces", "url": "https://www.walmart.com/browse/sauces/1_9"},
    ]
    assert data["category_name"] == "Mustard"


def test_a_data_block_saved_without_its_page() -> None:
    body = orjson.dumps({"props": {"pageProps": {"initialData": {"searchResult": LISTING}}}}).decode()
    assert ListingPage.recognise(body)
    assert {**read(body), "title": ""} == {**read(PAGE), "title": ""}


@pytest.mark.parametrize("body", ["[]", "[1]", '[{"id": 1}]', "{}", "1", "null", "<p>hello</p>"])
def test_other_saved_files_are_not_recognised(body: str) -> None:
    assert not ListingPage.recognise(body)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("999999999", 86_400),
        pytest.param("9" * 5_000, None, id="more digits than Python converts"),
        ("-1", None),
        ("x", None),
        ("Thu, 01 Jan 2015 00:00:00 GMT", 0),
    ],
)
def test_retry_after(header: str, seconds: int | None) -> None:
    assert retry_after_seconds(header) == seconds
