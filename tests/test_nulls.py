"""``docs/nulls.md`` matches the models, and its shares match the sandbox."""

from __future__ import annotations

import doctest

import pytest

from crawler.registry import find_scraper, scrapers
from scripts import nulls
from scripts.golden import listed

NAMES = sorted({scraper.name for scraper in scrapers().values()})


def test_co_7_the_page_is_up_to_date() -> None:
    assert nulls.PAGE.read_text() == nulls.page(nulls.read()), "run: python -m scripts.nulls write"


@pytest.mark.parametrize("name", NAMES)
def test_co_7_every_field_that_may_be_null_says_when(name: str) -> None:
    """The reason is in the docstring of the field or of its model, so that callers find it in OpenAPI, too."""
    without = [f"{each.path}: {each.kind}" for each in nulls.nullable(find_scraper(name).data) if not each.when]
    assert without == []


@pytest.mark.parametrize("source", nulls.SOURCES)
def test_co_7_the_counts_have_the_fields_of_the_models(source: str) -> None:
    counts = nulls.read()[source]
    assert set(counts) == {find_scraper(target["scraper"]).name for target in listed() if "scraper" in target}
    for name, fields in counts.items():
        assert fields.keys() <= {each.path for each in nulls.nullable(find_scraper(name).data)}
        assert all(0 <= missing <= total for total, missing in fields.values())


def test_the_examples_of_the_script_are_right() -> None:
    results = doctest.testmod(nulls)
    assert results.attempted
    assert not results.failed


@pytest.mark.soak
def test_co_7_the_shares_are_those_of_the_sandbox() -> None:
    counts = nulls.count(nulls.records_of_sandbox())
    assert counts == nulls.read()[nulls.SANDBOX], (
        "run: python -m scripts.nulls measure && python -m scripts.nulls write"
    )
