"""Whether a page proves the requested params: its prices, its echoes, and the filters that it states.

All pages are made up. The platform is known to ignore a price filter at times.
"""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from crawler.errors import ScrapeError
from crawler.platforms.retail.pages import ListingPage
from crawler.reading.contract import Unread
from tests.platforms.retail.test_blocks import FULL, LISTING, PRICE, ROW_PATH, html, page_of

ASKED: dict[str, Any] = {"cat_id": "1_2", "page": 2, "sort": "new", "min_price": 20.0, "max_price": 30.0}
FREE: dict[str, Any] = {**ASKED, "min_price": None, "max_price": None}
PROVEN: tuple[list[str], str] = ([], "")
IGNORED: tuple[list[str], str] = ([], "filter_ignored")
UNPROVEN = (["min_price", "max_price"], "")


def row(price: float | None, *, advertised: bool = False, options: str = "") -> dict[str, Any]:
    text = "" if price is None else f"${price:.2f}"
    offer = {"offerId": None, "fulfillmentType": None} if price is None else {}
    info = {**PRICE, "linePrice": text, "priceRangeString": options}
    return {**FULL, **offer, "usItemId": "1", "isSponsoredFlag": advertised, "priceInfo": info}


def facet(kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": kind, "min": None, "max": None, "selectedMin": None, "selectedMax": None, "values": [], **keys}


def page(rows: list[dict[str, Any]], *facets: dict[str, Any], asked: Any = ASKED, **echoes: Any) -> ListingPage:
    listing = copy.deepcopy(LISTING)
    listing["itemStacks"][0]["items"] = rows
    listing["aggregatedCount"] = len(rows)
    listing["paginationV2"]["pageProperties"] |= echoes
    layout = {"modules": [{"configs": {"allSortAndFilterFacets": list(facets)}}]}
    return page_of(html({"searchResult": listing, "contentLayout": layout}), **asked)


def result(shown: ListingPage) -> tuple[list[str], str]:
    """Return the params that a page does not prove, and the reason of its error, "" if it has data."""
    try:
        asyncio.run(shown.to_item())
    except ScrapeError as error:
        return [], error.reason if error.details else "no details"
    assert {each.cause for each in shown.unread} <= {"unproven"}
    return shown.unproven, ""


INSIDE, OUTSIDE = row(25), row(99)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([INSIDE], PROVEN),
        ([row(20), row(30)], PROVEN),
        ([row(19.01), row(30.99)], PROVEN),  # the platform's own filter has whole dollars
        ([row(18.99)], IGNORED),
        ([row(31.01)], IGNORED),
        ([INSIDE] * 5 + [OUTSIDE] * 45, IGNORED),
        ([INSIDE] * 9 + [OUTSIDE], UNPROVEN),  # some products are outside: not ignored, and not proven
        ([row(40, options="Options from $22.00")], PROVEN),
        ([row(40, options="Options from $33.00 – $60.00")], IGNORED),
        ([row(12, options="Options from $12.00 – $28.00")], PROVEN),
        ([INSIDE, row(99, advertised=True)], PROVEN),
        ([row(25, advertised=True)], UNPROVEN),
        ([row(None)], UNPROVEN),
        ([INSIDE, row(None)], PROVEN),
        ([], UNPROVEN),
    ],
)
def test_the_prices_of_organic_products_prove_the_filter(rows: list[dict[str, Any]], expected: Any) -> None:
    assert result(page(rows)) == expected
    assert result(page(rows, asked=FREE)) == PROVEN


@pytest.mark.parametrize(
    ("low", "high", "asked", "expected"),
    [
        (20, 30, ASKED, PROVEN),
        (20.5, 29.5, ASKED, PROVEN),
        (None, None, ASKED, PROVEN),  # as on all recorded pages
        (20, None, ASKED, IGNORED),
        (40, 60, ASKED, IGNORED),
        (20, None, {**ASKED, "max_price": None}, PROVEN),
        (0, 30, {**ASKED, "min_price": None}, PROVEN),
        (None, None, FREE, PROVEN),
        (20, 30, FREE, ([], "wrong_echo")),
    ],
)
def test_the_price_filter_that_a_page_states_is_the_requested_one(
    low: Any, high: Any, asked: Any, expected: Any
) -> None:
    assert result(page([INSIDE], facet("price", selectedMin=low, selectedMax=high), asked=asked)) == expected


def test_a_saved_page_is_compared_with_a_single_limit_given_as_text() -> None:
    assert result(page([OUTSIDE], asked={"max_price": "30"})) == IGNORED
    assert result(page([OUTSIDE], asked={"min_price": "30"})) == PROVEN


def test_rows_prove_a_filter_that_the_page_states() -> None:
    stated = facet("price", selectedMin=20, selectedMax=30)
    assert result(page([OUTSIDE], stated)) == IGNORED
    assert result(page([row(None)], stated)) == UNPROVEN


CHOSEN = [{"id": "Acme", "name": "Acme", "isSelected": True}, {"id": "Other", "name": "Other", "isSelected": None}]


def test_a_filter_that_nobody_asked_for_is_a_mismatch() -> None:
    assert result(page([INSIDE], facet("brand", values=CHOSEN))) == ([], "wrong_echo")
    assert result(page([INSIDE], facet("sort", values=CHOSEN), facet("cat_id", values=CHOSEN))) == PROVEN
    assert result(page([INSIDE], facet="brand:Acme")) == ([], "wrong_echo")
    assert result(page([INSIDE], facet="")) == PROVEN


def test_a_saved_page_is_read_without_the_params_of_its_request() -> None:
    assert result(page([OUTSIDE], facet("price", selectedMin=5), asked={}, facet="brand:Acme")) == PROVEN


@pytest.mark.parametrize("name", ["cat_id", "page", "sort"])
@pytest.mark.parametrize("echo", [None, ""])
def test_a_param_that_the_page_does_not_repeat_is_unproven(name: str, echo: Any) -> None:
    assert result(page([INSIDE], **{name: echo})) == ([name], "")


def test_the_words_of_a_search_that_the_page_does_not_repeat_are_unproven() -> None:
    shown = page_of(html({"searchResult": LISTING}), search=True, query="mustard")
    asyncio.run(shown.to_item())
    assert shown.unproven == ["query"]


def test_a_page_without_its_params_proves_none_of_them() -> None:
    listing = {**LISTING, "paginationV2": None}
    shown = page_of(html({"searchResult": listing}), **FREE)
    asyncio.run(shown.to_item())
    assert shown.unproven == ["cat_id", "page", "sort"]


def test_the_warning_names_the_params_and_counts_the_rows() -> None:
    shown = page([INSIDE] * 9 + [OUTSIDE])
    asyncio.run(shown.to_item())
    names = ("min_price", "max_price")
    assert shown.unread == [Unread(f"{ROW_PATH}.priceInfo", "unproven", 1, 10, names=names)]


# Pages that are not the results of the search


def test_a_search_that_leads_to_another_page_is_not_an_empty_result() -> None:
    listing = {**LISTING, "aggregatedCount": 0, "itemStacks": [], "searchRedirect": {"redirectUrl": "/cp/returns/123"}}
    with pytest.raises(ScrapeError) as refused:
        asyncio.run(page_of(html({"searchResult": listing}, route="/search"), search=True).to_item())
    assert (refused.value.code, refused.value.reason) == ("TARGET_NOT_FOUND", "redirected")
    assert refused.value.details[0]["msg"] == "/cp/returns/123"


def test_substitutes_beside_a_total_of_0_are_not_results() -> None:
    shown = page_of(html({"searchResult": {**LISTING, "aggregatedCount": 0}}))
    data = asyncio.run(shown.to_item())
    assert (data["products"], data["total_results"], data["has_more"]) == ([], 0, False)
    assert shown.unread == [Unread(ROW_PATH, "contradiction", 3, 3, loses_rows=True)]


@pytest.mark.parametrize(
    ("sponsored", "path", "is_own"),
    [
        (False, "0:9", True),
        (True, "0:1:2", True),
        (True, "0:1:2:3", True),
        (True, "0:1:21", False),
        (True, "0:9", False),
    ],
)
def test_an_advertisement_for_another_category_is_not_part_of_the_listing(
    sponsored: bool,  # noqa: FBT001  # a table
    path: str,
    is_own: bool,  # noqa: FBT001  # a table
) -> None:
    rows = [{**INSIDE, "isSponsoredFlag": sponsored, "category": {"categoryPathId": path}}]
    assert page(rows, asked={"cat_id": "1_2"}).own_ids == (["1"] if is_own else [])
