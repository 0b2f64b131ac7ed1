"""Changed pages give the data, warnings and errors of the platforms' tables (``tables.py``)."""

from __future__ import annotations

import pytest

from tests.platforms.tables import PLATFORMS, Behaviour, Page, behaviours, pages, same

BEHAVIOURS = [each for platform in PLATFORMS for each in behaviours(platform)]
PAGES = [each for platform in PLATFORMS for each in pages(platform).values()]


@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda each: f"{each.page.platform}-{each.page.name}: {each.name}"
)
def test_a_changed_page(behaviour: Behaviour) -> None:
    assert behaviour.found == behaviour.expected
    assert same(behaviour.found, behaviour.expected), "values of other types"


@pytest.mark.parametrize("page", PAGES, ids=lambda each: f"{each.platform}-{each.name}")
def test_an_unchanged_page(page: Page) -> None:
    found = page.read({})
    error = f"{found.error.code} {found.error.reason}" if found.error else None
    assert error == page.of.get("error")
    expected = page.of.get("item", {})
    assert {key: found.item[key] for key in expected} == expected
    assert found.warns == [] or page.of.get("partial")
