"""The retail scrapers' params and data models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator
from pydantic import ValidationError

from crawler.platforms.retail import urls
from crawler.platforms.retail.schema import (
    CategoryParams,
    Listing,
    Product,
    SearchListing,
    SearchParams,
)
from crawler.sandbox.retail.site import Site

WWW = "https://www.walmart.com"

# The table ../links.tsv has more URLs.
GOOD_URLS = {
    "//www.walmart.com/browse//food/976759\u202e ": "976759",
    f"{WWW}/browse/food/condiments/976759_976783_1?povid=x#top": "976759_976783_1",
    f"{WWW}/cp/1001469": "1001469",
}
HOSTILE_URLS = [
    "",
    "976759",
    "/browse/976759",
    f"{WWW}/",
    f"{WWW}/browse/976759\r\nHost: evil.example",
    f"{WWW}/browse/\n976759",
    f"{WWW}\\browse\\976759",
    # The filter is not supported: without it, the listing would have other products than the page of this URL.
    f"{WWW}/browse/food/976759?facet=brand:Red+Barn",
]


@pytest.mark.parametrize(("url", "cat_id"), GOOD_URLS.items())
def test_category_urls_give_the_id(url: str, cat_id: str) -> None:
    assert CategoryParams(url=url).category == cat_id


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_other_urls_are_refused_with_the_expected_form(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CategoryParams(url=url)
    (error,) = refused.value.errors()
    assert error["loc"] == ("url",)
    assert "/browse/<names>/<id>" in error["msg"]


@given(st.text() | st.text().map(f"{WWW}/browse/".__add__) | st.text().map("https://".__add__))
def test_any_text_gives_a_category_id_or_value_error(url: str) -> None:
    try:
        cat_id = CategoryParams(url=url).category
    except ValidationError:
        return
    assert CategoryParams(cat_id=cat_id).category == cat_id


@pytest.mark.parametrize(
    ("params", "loc"),
    [
        ({}, ()),
        ({"cat_id": "1", "url": f"{WWW}/browse/1"}, ()),
        ({"cat_id": 976759}, ("cat_id",)),
        ({"cat_id": ""}, ("cat_id",)),
        ({"cat_id": "1__2"}, ("cat_id",)),
        ({"cat_id": "1\n"}, ("cat_id",)),
        ({"cat_id": "../1"}, ("cat_id",)),
        ({"cat_id": "١"}, ("cat_id",)),
        ({"cat_id": "1", "page": 0}, ("page",)),
        ({"cat_id": "1", "page": "2"}, ("page",)),
        ({"cat_id": "1", "page": 2.0}, ("page",)),
        ({"cat_id": "1", "page": True}, ("page",)),
        ({"cat_id": "1", "sort": "cheapest"}, ("sort",)),
        ({"cat_id": "1", "min_price": -1}, ("min_price",)),
        ({"cat_id": "1", "min_price": "1"}, ("min_price",)),
        ({"cat_id": "1", "min_price": 19.999}, ("min_price",)),
        ({"cat_id": "1", "max_price": float("inf")}, ("max_price",)),
        ({"cat_id": "1", "max_price": float("nan")}, ("max_price",)),
        ({"cat_id": "1", "min_price": 2, "max_price": 1}, ()),
        ({"cat_id": "1", "query": "mustard"}, ("query",)),
        ({"cat_id": "1", "sorted": True}, ("sorted",)),
    ],
)
def test_invalid_category_params_are_refused(params: dict[str, Any], loc: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        CategoryParams.model_validate(params)
    assert [error["loc"] for error in refused.value.errors()] == [loc]


@pytest.mark.parametrize("query", ["", " ", "\t\n", "q" * 201, 7, f"{WWW}/search?q=mustard"])
def test_invalid_search_params_are_refused(query: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        SearchParams.model_validate({"query": query})
    assert [error["loc"] for error in refused.value.errors()] == [("query",)]


def test_params_with_all_keys() -> None:
    params = {"cat_id": "1_2", "page": 2, "sort": "price_low", "min_price": 0, "max_price": 19.99}
    assert CategoryParams.model_validate(params).model_dump(exclude_none=True) == params
    assert SearchParams(query="q" * 200).model_dump(exclude_none=True) == {
        "query": "q" * 200,
        "page": 1,
        "sort": "best_match",
    }


def test_the_json_schema_states_the_constraints() -> None:
    schema = CategoryParams.model_json_schema()
    one_of = {"cat_id": "976759", "url": f"{WWW}/browse/976759"}
    accepted = [{key: one_of[key] for key in keys} for keys in ([], ["cat_id"], ["url"], ["cat_id", "url"])]
    assert [OAS31Validator(schema).is_valid(params) for params in accepted] == [False, True, True, False]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["cat_id"]["pattern"] == f"^{urls.CATEGORY_ID.expression}$"
    assert (schema["properties"]["page"]["minimum"], schema["properties"]["min_price"]["minimum"]) == (1, 0)


def test_keys_match_the_contract_in_order() -> None:
    """``tests/sandbox/test_retail.py`` compares the keys of the expected record with the specification."""
    record = Site(light=True).expected_record({"query": "mustard"})
    assert list(Listing.model_fields) == sorted(record.keys() - {"query"})
    assert list(SearchListing.model_fields) == [*Listing.model_fields, "query"]
    assert list(Product.model_fields) == sorted({"badges", "flag"} | record["products"][0].keys())
