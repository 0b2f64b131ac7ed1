"""The retail page objects on the sandbox's pages: expected records, and a typed error for each damaged page."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.platforms.retail.schema import Listing
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site

SITE = Site(light=True)
PATH = ("props", "pageProps", "initialData", "searchResult")


def page_of(data: Any, *, status: int = 200, **params: Any) -> ListingPage:
    block = data if isinstance(data, bytes) else orjson.dumps(data)
    body = b'<html><script id="__NEXT_DATA__" type="application/json">' + block + b"</script></html>"
    response = HttpResponse("https://www.walmart.com/browse/1", body, status=status)
    return ListingPage(response=response, page_params=PageParams({"cat_id": "976759", **params}))


def read(data: Any, **params: Any) -> dict[str, Any]:
    return read_page(page_of(data, **params))


def read_page(page: ListingPage) -> dict[str, Any]:
    return validated(Listing, asyncio.run(page.to_item()))


def payload() -> dict[str, Any]:
    body = SITE.page(FakeRequest("/browse/976759"))[2]
    block = body.split(b'nonce="k3x">')[1].split(b"</script>")[0]
    data: dict[str, Any] = orjson.loads(block)
    return data


PAYLOAD = payload()


def listing(data: Any) -> Any:
    for key in PATH:
        data = data[key]
    return data


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.soak) for n in range(6, 20))])
def test_pages_give_the_expected_records_over_seeds(seed: int) -> None:
    site = Site(seed, light=True)
    for params in (
        {"cat_id": "976759"},
        {"cat_id": "4044", "page": 3, "sort": "price_low"},
        {"cat_id": "3944", "min_price": 20},
    ):
        body = site.page(FakeRequest(f"/browse/{params['cat_id']}", {k: str(v) for k, v in params.items()}))[2]
        response = HttpResponse("http://127.0.0.1/", body, status=200, encoding="utf-8")
        data = asyncio.run(ListingPage(response=response, page_params=PageParams(params)).to_item())
        assert validated(Listing, data) == site.expected_record(params)


def test_unclosed_tags_are_read_in_linear_time() -> None:
    """If the page were read in quadratic time, it would take a minute."""
    untitled = orjson.dumps(PAYLOAD).replace(b'"metaTitle"', b'"noTitle"')
    page = page_of(untitled)
    unclosed = b"<title " * 200_000 + page.response.body
    response = HttpResponse(page.response.url, unclosed, status=200)
    assert read_page(ListingPage(response=response, page_params=page.page_params)) == read_page(page)


def test_subcategories() -> None:
    page = page_of(PAYLOAD)
    assert [cat_id for cat_id, _ in page.subcategories] == list(SITE.categories["976759"].children)


@pytest.mark.parametrize(("low", "high"), [(None, None), (5, None), (None, 9.5), (0, 20)])
def test_the_stated_prices(low: float | None, high: float | None) -> None:
    data = copy.deepcopy(PAYLOAD)
    (module,) = (
        each["configs"]
        for each in data["props"]["pageProps"]["initialData"]["contentLayout"]["modules"]
        if "allSortAndFilterFacets" in each["configs"]
    )
    (price,) = (facet for facet in module["allSortAndFilterFacets"] if facet["type"] == "price")
    price |= {"selectedMin": low, "selectedMax": high}
    assert page_of(orjson.dumps(data)).stated_prices == (low, high)


@pytest.mark.parametrize(
    ("is_sponsored", "path", "is_own"),
    [
        (False, "0:9", True),
        (True, "0:1:2", True),
        (True, "0:1:2:3", True),
        (True, "0:1:21", False),
        (True, "0:9", False),
    ],
)
def test_an_advertisement_for_another_category_is_not_part_of_the_listing(
    path: str, *, is_sponsored: bool, is_own: bool
) -> None:
    data = copy.deepcopy(PAYLOAD)
    row = next(rows_of(data))
    row |= {"isSponsoredFlag": is_sponsored, "category": {"categoryPathId": path}}
    listing(data)["itemStacks"][0]["items"] = [row]
    listing(data)["paginationV2"]["pageProperties"]["cat_id"] = "1_2"
    assert bool(page_of(data, cat_id="1_2").own_ids) is is_own


def rows_of(data: Any) -> Iterator[dict[str, Any]]:
    for stack in listing(data)["itemStacks"]:
        yield from (row for row in stack["items"] if row["__typename"] == "Product")


BODY = orjson.dumps(PAYLOAD)
ROWS = sum(1 for _ in rows_of(PAYLOAD))


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"{",
        b"not JSON",
        BODY[: len(BODY) // 2],
        b"[" * 10_000 + b"]" * 10_000,
        b'{"props":' * 1_000 + b"1" + b"}" * 1_000,
        BODY.replace(b'"itemStacks":', b'"itemStacks":' + b"[" * 1_000 + b"]" * 1_000 + b',"old":', 1),
        b"\xff\xfe",
        b'{"props": NaN}',
        b"{}",
        b"[]",
        b"null",
        b'{"a":' + b"1" * 100_000 + b"}",
    ],
    ids=lambda block: block[:20],
)
def test_invalid_data_gives_a_typed_error(block: bytes) -> None:
    with pytest.raises(ScrapeError):
        read(block)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"name":"', b'"name":"\xff\xfe'),
        (b'"name":"', b'"name":"\\ud83d'),
        (b'"name":', b'"\\ud83d":1,"name":'),
        (b'"name":"', b'"name":"two\nlines'),
        (b'"numberOfReviews":', b'"numberOfReviews":' + b"9" * 400 + b',"old":'),
        (b'"aggregatedCount":', b'"aggregatedCount":1e999,"old":'),
        (b'"averageRating":', b'"averageRating":NaN,"old":'),
        (b'"usItemId":', b'"usItemId":1,"usItemId":'),
        (b'"itemStacks":', b'"itemStacks":[],"itemStacks":'),
        (b'"page":', b'"page":"","page":'),
    ],
)
def test_odd_data_gives_data_or_a_typed_error(old: bytes, new: bytes) -> None:
    with suppress(ScrapeError):
        assert read(BODY.replace(old, new))["products"]


def test_a_value_of_another_type_costs_only_itself() -> None:
    """A value of the page and a value of each row have another type."""
    whole = read(PAYLOAD)
    data = copy.deepcopy(PAYLOAD)
    listing(data)["paginationV2"]["maxPage"] = {"of": 25}
    for row in rows_of(data):
        row["averageRating"] = [row["averageRating"]]
    page = page_of(data)
    changed = read_page(page)
    assert {(each.path.rpartition(".")[2], each.cause, each.rows) for each in page.unread} == {
        ("maxPage", "type", 1),
        ("averageRating", "type", ROWS),
    }
    assert changed["max_page"] is None
    assert [row["name"] for row in changed["products"]] == [row["name"] for row in whole["products"]]
    assert {row["rating"]["average"] for row in changed["products"]} == {None}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("light", [True, False])
def test_pages_of_the_sandbox_have_no_warnings(seed: int, *, light: bool) -> None:
    site = Site(seed, light=light)
    for path, args in (
        ("/browse/976759", {}),
        ("/browse/4044", {"page": "3", "sort": "price_low"}),
        ("/browse/4044", {"page": "12"}),
        ("/browse/880006", {"page": "2"}),
        ("/search", {"q": "mustard"}),
        ("/search", {"q": "nothing like this"}),
    ):
        kind = SearchPage if path == "/search" else ListingPage
        body = site.page(FakeRequest(path, args))[2]
        page = kind(response=HttpResponse("http://127.0.0.1/", body, status=200), page_params=PageParams({}))
        asyncio.run(page.to_item())
        assert (page.unread, page.skipped) == ([], [])
