"""The retail page objects on the sandbox's pages: expected records, and a typed error for each damaged page."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.retail.pages import ListingPage, PriceFilter
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
        page = ListingPage(response=response, page_params=PageParams(params))
        assert validated(Listing, asyncio.run(page.to_item())) == site.expected_record(params)
        assert page.problems() == []


def test_subcategories() -> None:
    page = page_of(PAYLOAD)
    assert [cat_id for cat_id, _ in page.subcategories] == list(SITE.categories["976759"].children)


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


@pytest.mark.parametrize(
    ("stated", "requested", "differs"),
    [
        ((None, None), (20.0, 30.0), False),
        ((20.0, 30.0), (20.0, 30.0), False),
        ((20.0, 30.0), (20.5, 29.5), False),
        ((21.0, 30.0), (20.0, 30.0), False),
        ((20.0, 30.0), (22.0, 30.0), True),
        ((22.0, 30.0), (20.0, 30.0), True),
        ((20.0, 30.0), (20.0, 32.0), True),
        ((20.0, 32.0), (20.0, 30.0), True),
        ((0.0, 30.0), (None, 30.0), False),
        ((20.0, None), (20.0, 30.0), True),
        ((20.0, 30.0), (20.0, None), True),
        ((20.0, None), (20.0, None), False),
    ],
)
def test_a_stated_price_filter_is_compared_but_for_the_part_of_a_dollar(
    stated: tuple[float | None, float | None], requested: tuple[float | None, float | None], *, differs: bool
) -> None:
    assert PriceFilter(*stated).differs(PriceFilter(*requested)) is differs
