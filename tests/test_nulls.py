"""``docs/nulls.md`` matches the models, and its percentages match the sandbox."""

from __future__ import annotations

import doctest

import pytest

from crawler.registry import find_scraper, scrapers
from scripts import nulls
from scripts.golden.crawls import listed

pytestmark = pytest.mark.meta

NAMES = sorted({scraper.name for scraper in scrapers().values()})


def test_the_page_is_up_to_date() -> None:
    assert nulls.PAGE.read_text() == nulls.page(nulls.read()), "run: python -m scripts.nulls write"


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_may_be_null_says_when(name: str) -> None:
    """The description of the field or its model must say when, so that callers also find it in the OpenAPI document."""
    without = [f"{each.path}: {each.kind}" for each in nulls.listed_fields(name, nulls.read()) if not each.when]
    assert without == []


def test_the_page_lists_the_fields_that_are_always_empty() -> None:
    """The page claims to list everything that may be missing, but used to leave out fields that are empty texts."""
    listed_there = {each.path: each.kind for each in nulls.listed_fields("professional-profile-v4", nulls.read())}
    assert listed_there["posts[].mentions"] == nulls.EMPTY
    assert "profile.display_name" not in listed_there, "it has a value"


def test_the_counts_have_the_fields_of_the_models() -> None:
    counts = nulls.read()
    measured = {find_scraper(target["scraper"]).name for target in listed() if "scraper" in target}
    assert (set(counts[nulls.SANDBOX]), set(counts[nulls.SAVED])) == (measured, measured & set(counts[nulls.SAVED]))
    for name, fields in ((name, fields) for source in counts.values() for name, fields in source.items()):
        assert fields.keys() <= {each.path for each in nulls.missing(find_scraper(name).data)}
        assert all(0 <= missing <= total for total, missing in fields.values())


def test_the_examples_of_the_script_are_right() -> None:
    results = doctest.testmod(nulls)
    assert results.attempted
    assert not results.failed


@pytest.mark.soak
def test_the_shares_are_those_of_the_sandbox() -> None:
    counts = nulls.count(nulls.records_of_sandbox(NAMES))
    assert counts == nulls.read()[nulls.SANDBOX], (
        "run: python -m scripts.nulls measure && python -m scripts.nulls write"
    )
