"""Pages that a platform has changed: a name renamed, a part removed, in one row or everywhere (``tests.mutations``)."""

from __future__ import annotations

import re

import pytest

from crawler.errors import ExtractionFailed
from crawler.monitoring.compare import compare
from crawler.monitoring.run import Run
from crawler.registry import scrapers
from crawler.targets.target import Outcome, Target, check_params
from tests.mutations import (
    Name,
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
    "shortvideo": (
        r"cover\.(display_image\.)?\w+$",  # the first picture
        r"statistics\.\w+_count$",  # the rounded figures
        r"anchors\[|organic_log_extra$",  # objects that are passed on as they are
        r"^\.cursor$",  # "0" with a note that it is missing
    ),
    "videosite": (
        r"view_count$",  # a rounded number is in another text
        r"profile_link$",  # without a handle, it has the channel's id
    ),
}
"""Paths of values that a page has in two places, with regular expressions."""

REQUESTED_ROWS = r"carouselHeaderRenderer"
"""Matches rows that are what was asked for: one of them is the channel's name in the header of a generated channel."""

HIDING = {Name("key", name) for name in ("privateItem", "privateAccount", "liveRoomInfo")}
"""Names that only hide rows: without them, rows are added."""

each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)


def problems(fixture: PageFixture, changed: dict[str, bytes], **rules: bool) -> dict[str, list[str]]:
    alternatives = ALTERNATIVES[fixture.platform]
    found = {label: violations(fixture, body, alternatives=alternatives, **rules) for label, body in changed.items()}
    return {label: each for label, each in found.items() if each}


def shown(fixture: PageFixture) -> list[Name]:
    """The names whose change must not add rows."""
    return [name for name in field_map(fixture) if name not in HIDING]


@each_fixture
def test_a_renamed_name_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, {str(name): renamed(fixture.body, name) for name in shown(fixture)}) == {}


@each_fixture
def test_all_names_renamed_at_once_are_an_error_with_a_path(fixture: PageFixture) -> None:
    for changed in filter(None, (names(fixture.body), field_map(fixture), mandatory_names(fixture))):
        error = fixture.read(renamed(fixture.body, *changed)).error
        assert isinstance(error, ExtractionFailed), error
        assert error.details


@each_fixture
def test_a_removed_part_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, dict(removals(fixture, shown(fixture)))) == {}
    assert problems(fixture, dict(nulls(fixture, shown(fixture))), stated=True) == {}


@each_fixture
def test_a_row_that_is_not_understood_costs_only_that_row_and_a_warning(fixture: PageFixture) -> None:
    rows = {label: body for label, body in row_changes(fixture, shown(fixture)) if not re.search(REQUESTED_ROWS, label)}
    assert problems(fixture, rows, one_row=True) == {}


@each_fixture
def test_the_monitor_names_the_platform_as_changed(fixture: PageFixture) -> None:
    roots = mandatory_names(fixture)
    errors = [fixture.read(renamed(fixture.body, *changed)).error for changed in ([each] for each in roots)]
    errors += [fixture.read(renamed(fixture.body, *roots)).error] if roots else []
    scraper = next(each for each in scrapers().values() if each.platform == fixture.platform)
    for error in errors:
        run = Run(spider=fixture.platform, reason="finished")
        for number in range(10):
            target = Target(id=str(number), scraper=scraper, params=check_params(scraper, scraper.example))
            run.add_outcome(Outcome(target, None, error, 0))
        headline = compare(run, [], max_failed=0.1).headline
        assert re.match(r"The platform changed its page\. Missing: \S+", headline), (error, headline)
