"""Responses that are the requested listing, and the errors of all others. The pages are invented."""

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
from crawler.reading.values import retry_after_seconds

ROWS = [{"__typename": "Product", "usItemId": str(n), "name": f"Thing {n}"} for n in range(3)]
LISTING: dict[str, Any] = {
    "aggregatedCount": 6446,
    "itemStacks": [{"meta": {"layoutEnum": "GRID"}, "items": ROWS}],
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


def read(body: str, **how: Any) -> dict[str, Any]:
    page = page_of(body, **how)
    return validated(SearchListing if isinstance(page, SearchPage) else Listing, asyncio.run(page.to_item()))


def refusal(body: str, **how: Any) -> ScrapeError:
    with pytest.raises(ScrapeError) as refused:
        read(body, **how)
    return refused.value


def changed(*path: str | int, value: Any = "<remove>") -> str:
    """The page with another value at a path below its listing."""
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
        ("red shoes", None, True),
        ("red shoes", "", True),
        ("red shoes", "blue shoes", False),
    ],
)
def test_a_search_must_echo_its_words(query: str, echo: str | None, same: bool) -> None:  # noqa: FBT001
    body = changed("paginationV2", "pageProperties", value={"query": echo, "cat_id": "0", "page": 1})
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
        (html({"searchResult": None}), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"data": {"product": {}}}, route="/ip/[...itemParams]"), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"contentLayout": {}}, route="/cp/[...x]"), {}, "TARGET_NOT_FOUND", "wrong_page_kind"),
        (html({"contentLayout": {}}), {}, "EXTRACTION_FAILED", "no_listing"),
        (html({"found": {}}, route="/search"), {}, "EXTRACTION_FAILED", "no_listing"),
        (html(None), {}, "EXTRACTION_FAILED", "no_listing"),
        (changed("errorResponse", "errors", value=[{"errorType": "X"}]), {}, "UPSTREAM_ERROR", "reported_error"),
        (changed("errorResponse", "errorCodes", value=["500"]), {}, "UPSTREAM_ERROR", "reported_error"),
        (changed("itemStacks"), {}, "EXTRACTION_FAILED", "no_rows"),
        (changed("itemStacks", 0, "items"), {}, "EXTRACTION_FAILED", "no_rows"),
    ],
)
def test_other_pages_than_listings_are_refused(body: str, how: dict[str, Any], code: str, reason: str) -> None:
    error = refusal(body, **how)
    assert (error.code, error.reason) == (code, reason)


def test_the_script_of_the_bot_protection_is_not_a_challenge() -> None:
    vendor = '<script src="/px/PXu6b0qd2S/init.js">captcha perimeterx px-captcha</script>'
    assert read(html({"searchResult": LISTING}, head=vendor))["returned"] == 3


@pytest.mark.parametrize("key", ["usItemId", "name"])
@pytest.mark.parametrize("value", ["<remove>", None, ""])
def test_a_product_without_a_mandatory_key_is_left_out_with_its_path(key: str, value: Any) -> None:
    page = page_of(changed("itemStacks", 0, "items", 1, key, value=value))
    assert [row["item_id"] for row in asyncio.run(page.to_item())["products"]] == ["0", "2"]
    (error,) = page.skipped
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "blind")
    assert [detail["loc"] for detail in error.details] == [[*PATH, "itemStacks", 0, "items", 1, key]]


@pytest.mark.parametrize("key", ["usItemId", "name"])
@pytest.mark.parametrize("value", [None, ""])
def test_products_that_all_lack_a_mandatory_key_fail_with_its_path(key: str, value: Any) -> None:
    error = refusal(changed("itemStacks", 0, "items", value=[{**row, key: value} for row in ROWS]))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "blind")
    assert [detail["loc"] for detail in error.details] == [
        [*PATH, "itemStacks", 0, "items", number, key] for number in range(3)
    ]


@pytest.mark.parametrize("kind", ["ProductV2", "<remove>"])
def test_unknown_rows_fail_without_other_products(kind: str) -> None:
    rows = [{**row, "__typename": kind} for row in ROWS]
    if kind == "<remove>":
        rows = [{"usItemId": row["usItemId"], "title": row["name"]} for row in ROWS]
    assert refusal(changed("itemStacks", 0, "items", value=rows)).reason == "blind"


@pytest.mark.parametrize(
    ("stacks", "ids"),
    [
        ([], []),
        ([{"items": []}], []),
        ([{"items": None, "itemsV2": ROWS}], ["0", "1", "2"]),
        ([{"items": ROWS[:1]}, {"layoutEnum": "CAROUSEL", "items": ROWS[1:]}], ["0"]),
        ([{"items": ROWS[:1]}, {"meta": {"layoutEnum": "GRID"}, "items": ROWS[2:]}], ["0", "2"]),
        ([{"items": ROWS[:1]}, {"layoutEnum": "GRID", "meta": {"subType": "SECONDARY_STACK"}, "items": ROWS}], ["0"]),
        ([{"items": [{"__typename": "AdPlaceholder"}, ROWS[0], {"__typename": "New"}, None, ROWS[0]]}], ["0", "0"]),
        ([{"items": [{"__typename": "AdPlaceholder"}]}], []),
    ],
)
def test_which_rows_are_products(stacks: list[Any], ids: list[str]) -> None:
    data = read(changed("itemStacks", value=stacks))
    assert [product["item_id"] for product in data["products"]] == ids
    assert data["returned"] == len(ids)
    assert data["has_more"] is bool(ids)


@pytest.mark.parametrize(("max_page", "has_more"), [(25, True), (3, True), (2, False), (0, False), (None, True)])
def test_has_more_ignores_the_flag_of_the_page(max_page: int | None, has_more: bool) -> None:  # noqa: FBT001
    assert read(changed("paginationV2", "maxPage", value=max_page))["has_more"] is has_more


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


@pytest.mark.parametrize(
    "body",
    [
        orjson.dumps({"props": {"pageProps": {"initialData": {"searchResult": LISTING}}}}).decode(),
        orjson.dumps({"data": {"search": {"searchResult": LISTING}}}).decode(),
        orjson.dumps({"searchResult": LISTING}).decode(),
    ],
)
def test_data_saved_without_its_page(body: str) -> None:
    assert ListingPage.recognise(body)
    assert {**read(body), "title": ""} == {**read(PAGE), "title": ""}


def test_rows_saved_alone() -> None:
    body = orjson.dumps(ROWS).decode()
    assert ListingPage.recognise(body)
    data = read(body, cat_id="1_2")
    assert (data["cat_id"], data["returned"], data["total_results"], data["max_page"]) == ("1_2", 3, None, None)


@pytest.mark.parametrize("body", ["[]", "[1]", '[{"id": 1}]', "{}", "1", "null", "<p>hello</p>"])
def test_other_saved_files_are_not_recognised(body: str) -> None:
    assert not ListingPage.recognise(body)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), (" 7 ", 7), ("999999999", 86_400), ("-1", None), ("x", None), ("Thu, 01 Jan 2015 00:00:00 GMT", 0)],
)
def test_retry_after(header: str, seconds: int | None) -> None:
    assert retry_after_seconds(header) == seconds
