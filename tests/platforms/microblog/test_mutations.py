"""Responses of the microblog that the platform has changed (``tests.mutations``)."""

from __future__ import annotations

import re

import pytest

from crawler.errors import ExtractionFailed
from crawler.platforms.microblog.pages import ProfilePage
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

FIXTURES = fixtures("microblog")
ALTERNATIVES = (
    r"caption$",  # without its list of links, a text has the shortened links; without the reposted post, its copy
    r"video_url",  # without bit rates, the order of the files decides
    r"thumbnail_url$",  # the next photo
    r"upload_timestamp$",  # a post's id has its time, too
    r"next_cursor$",  # the cursor to the page before
    r"profile\.",  # a page has the profile in three places
    r"posts\[\d+\]\.(?:is_|in_reply)",  # marks that other keys of a post imply
)
"""Paths of values that a response has in two places."""
UNTOLD = re.compile(r"promotedMetadata|promoted_metadata|instructions\.\d+:")
"""An advertisement without its mark is a post, which cannot be noticed. An instruction has many rows."""

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
    sets = [names(fixture.body), field_map(fixture)]
    if fixture.kind is not ProfilePage:  # its linked data has the profile, too: then only the posts are missing
        sets.append(mandatory_names(fixture))
    for changed in sets:
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
