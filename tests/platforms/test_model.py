"""Validation errors in the form that callers get."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from crawler.errors import InvalidRequest
from crawler.jobs.extension import argument_problems
from crawler.platforms.model import VALUE_ERROR_PREFIX, first_problem, max_details, validation_details
from crawler.platforms.professional.schema import ProfileParams
from crawler.platforms.retail.schema import CategoryParams
from crawler.registry import scrapers
from crawler.spiders.retail import RetailSpider
from crawler.targets.parser import check_params


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (CategoryParams, {}, "give exactly one of cat_id and url, not neither"),
        (
            CategoryParams,
            {"cat_id": "1", "min_price": 9.5, "max_price": 9},
            "min_price must not be above max_price: 9.5 > 9",
        ),
        (ProfileParams, {"url": "jane"}, "'jane' is not a link to a platform: "),
    ],
)
def test_details_omit_the_prefix_of_pydantic(model: type[BaseModel], params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        model.model_validate(params)
    assert invalid.value.errors()[0]["msg"].startswith(VALUE_ERROR_PREFIX), "pydantic has changed its prefix"
    (detail,) = validation_details(invalid.value)
    assert detail["msg"].startswith(message)


@pytest.mark.parametrize(
    ("params", "options", "text"),
    [
        ({}, {}, "give exactly one of cat_id and url, not neither"),
        ({}, {"whole": "params"}, "params: give exactly one of cat_id and url, not neither"),
        ({"cat_id": "1", "page": 0}, {"whole": "params"}, "page: Input should be greater than or equal to 1"),
        (
            {"cat_id": "1", "page": 0},
            {"joint": " is wrong: "},
            "page is wrong: Input should be greater than or equal to 1",
        ),
        (
            {"cat_id": "1", "pge": 1},
            {"known": ["cat_id", "page"]},
            "pge: unknown param; did you mean page?",
        ),
    ],
)
def test_the_first_problem_has_its_place(params: dict[str, Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        CategoryParams.model_validate(params)
    assert first_problem(invalid.value, **options) == text


def test_a_value_that_fits_no_member_of_a_union_has_one_problem_that_names_all_members() -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_params(scrapers()["videosite-profile-v3"], {"username": "@a", "details": "some"})
    assert [(each["loc"], each["msg"]) for each in refused.value.details] == [
        (["details"], "Input should be 'auto', 'all' or 'none', or a valid integer")
    ]


def test_invalid_spider_arguments_omit_the_prefix_of_pydantic() -> None:
    problems = argument_problems(RetailSpider, {"query": "mustard", "exhaustive": "true"})
    assert problems == {"": "only a category can be collected exhaustively: leave out exhaustive, or give cat_id"}


@pytest.mark.parametrize(("details", "most"), [("none", 0), ("auto", math.inf), ("all", math.inf), (3, 3)])
def test_the_maximum_of_details(details: Any, most: float) -> None:
    assert max_details(details) == most
