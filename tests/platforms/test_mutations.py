"""Pages that a platform has changed: a name renamed, a part removed, in one row or everywhere (``tests.mutations``)."""

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

PLATFORMS = ("photoapp", "shortvideo", "videosite")
FIXTURES = [fixture for platform in PLATFORMS for fixture in fixtures(platform)]
ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "photoapp": (
        r"display_url$",  # the other picture of the post
        r"video_url$",  # another version of the same file
        r"thumbnail_src$",  # the smallest picture
    ),
    "shortvideo": (),
    "videosite": (
        r"view_count$",  # a rounded number is in another text
        r"profile_link$",  # without a handle, it has the channel's id
    ),
}
"""Paths of values that a page has in two places, with regular expressions."""

REQUESTED_ROWS = r"carouselHeaderRenderer"
"""Matches rows that are what was asked for: one of them is the channel's name in the header of a generated channel."""

each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)


def problems(fixture: PageFixture, changed: dict[str, bytes], **rules: bool) -> dict[str, list[str]]:
    alternatives = ALTERNATIVES[fixture.platform]
    found = {label: violations(fixture, body, alternatives=alternatives, **rules) for label, body in changed.items()}
    return {label: each for label, each in found.items() if each}


@each_fixture
def test_a_renamed_name_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, {str(name): renamed(fixture.body, name) for name in field_map(fixture)}) == {}


@each_fixture
def test_all_names_renamed_at_once_are_an_error_with_a_path(fixture: PageFixture) -> None:
    for changed in (names(fixture.body), field_map(fixture), mandatory_names(fixture)):
        error = fixture.read(renamed(fixture.body, *changed)).error
        assert isinstance(error, ExtractionFailed), error
        assert error.details


@each_fixture
def test_a_removed_part_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, dict(removals(fixture))) == {}
    assert problems(fixture, dict(nulls(fixture)), stated=True) == {}


@each_fixture
def test_a_row_that_is_not_understood_costs_only_that_row_and_a_warning(fixture: PageFixture) -> None:
    rows = {label: body for label, body in row_changes(fixture) if not re.search(REQUESTED_ROWS, label)}
    assert problems(fixture, rows, one_row=True) == {}
