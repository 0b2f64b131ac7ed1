"""Pages of the platform that the platform has changed (``tests.mutations``)."""

from __future__ import annotations

import re

import pytest

from crawler.errors import ExtractionFailed
from tests.mutations import (
    PageFixture,
    field_map,
    fixtures,
    mandatory_names,
    names,
    nulls,
    removals,
    renamed,
    row_changes,
    violations,
)

FIXTURES = fixtures("professional")
ALTERNATIVES = (
    r"description$|activity\[\d+\]\.(?:text|action)$",  # a shortened version of the same text
    r"note$|_count$|total_experiences$|_found$|positions_|withheld",  # computed from the other fields
    r"company_name_source$|\.source$",
    r"about",  # the linked data and the page's description have it, too
    r"followers$|country$|location$|photo$|profile_url$|Name$",  # likewise
    r"image$|link$|url$",  # another link or picture of the row
)
"""Paths of values that a response has in two places."""
UNTOLD = re.compile(r"^section\.|^$^")
"""Sections are no rows of a list."""

each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)


def problems(fixture: PageFixture, changed: dict[str, bytes], **rules: bool) -> dict[str, list[str]]:
    found = {
        label: violations(fixture, body, alternatives=ALTERNATIVES, **rules)
        for label, body in changed.items()
        if not UNTOLD.search(label)
    }
    return {label: each for label, each in found.items() if each}


@each_fixture
def test_a_renamed_name_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, {str(name): renamed(fixture.body, name) for name in field_map(fixture)}) == {}


@each_fixture
def test_all_names_renamed_at_once_are_an_error_with_a_path(fixture: PageFixture) -> None:
    sets = (names(fixture.body), field_map(fixture), mandatory_names(fixture))
    for changed in filter(None, sets):  # a page that has all data in two places has no mandatory name
        error = fixture.read(renamed(fixture.body, *changed)).error
        assert isinstance(error, ExtractionFailed), error
        assert error.details


@each_fixture
def test_a_removed_part_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, dict(removals(fixture, field_map(fixture)))) == {}
    assert problems(fixture, dict(nulls(fixture, field_map(fixture))), stated=True) == {}


@each_fixture
def test_a_row_that_is_not_understood_costs_only_that_row_and_a_warning(fixture: PageFixture) -> None:
    assert problems(fixture, dict(row_changes(fixture, field_map(fixture))), one_row=True) == {}
