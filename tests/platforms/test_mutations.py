"""Pages that a platform has changed: a name renamed, a part removed, in one row or everywhere (``tests.mutations``)."""

from __future__ import annotations

import re

import pytest

from crawler.errors import ExtractionFailed
from crawler.monitoring.compare import compare
from crawler.monitoring.run import Run
from crawler.registry import scrapers
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Target
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

MAX_FAST_BYTES = 30_000


def is_fast(fixture: PageFixture) -> bool:
    """Whether the fixture is the largest of its page object that is small enough for the fast tests.

    Changing every name of a larger page takes minutes.
    """
    sizes = sorted(len(each.body) for each in fixtures(fixture.platform) if each.kind is fixture.kind)
    return len(fixture.body) == max((size for size in sizes if size <= MAX_FAST_BYTES), default=sizes[0])


ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "microblog": (
        r"caption$",  # without its list of links, a text has the shortened links; without the reposted post, its copy
        r"video_url",  # without bit rates, the order of the files decides
        r"thumbnail_url$",  # the next photo
        r"upload_timestamp$",  # a post's id has its time, too
        r"next_cursor$",  # the cursor to the page before
        r"profile\.",  # a page has the profile in three places
        r"posts\[\d+\]\.(?:is_|in_reply)",  # marks that other keys of a post imply
    ),
    "photoapp": (
        r"display_url$",  # the other picture of the post
        r"video_url$",  # another version of the same file
        r"thumbnail_src$",  # the smallest picture
    ),
    "professional": (
        r"description$|activity\[\d+\]\.(?:text|action)$",  # a shortened version of the same text
        r"note$|_count$|total_experiences$|_found$|positions_|withheld",  # computed from the other fields
        r"company_name_source$|\.source$",
        r"caption$",  # a shortened version of the same text
        r"content_type$|author_name$|author_username$",  # a card without words about what the member did is a post
        r"about|biography$",  # the linked data and the page's description have it, too
        r"followers$|country$|location$|photo$|profile_url$|Name$",  # likewise
        r"profile_image$|profile_link$|display_name$|username$|subscriber_count_text$|published_date$",  # likewise
        r"image$|link$|url$",  # another link or picture of the row
    ),
    "retail": (
        r"min_price$|is_price_range$",  # without its range, a product has its price
        r"badges$",  # without its type, an icon's badge has a text
        r"image$",  # a thumbnail
        r"returned$",  # the number of the rows
        r"title$|heading$|category_name$",  # the page has its name in several places
        r"total_results$|url$|page$|sort$",  # likewise
        r"breadcrumbs\[\d+\]\.id$",  # the id is in the link, too
        r"has_more$",
        r"flag$|is_sponsored$|variant_count$",  # other keys of the row imply them
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
"""Regular expressions for the paths of values that a page has in two places, by platform."""

EXEMPT: dict[str, str] = {
    # An advertisement without its mark is a post, which cannot be noticed. An instruction contains many rows.
    "microblog": r"promotedMetadata|promoted_metadata|instructions\.\d+:",
    # A section contains many rows.
    "professional": r"^section\.|^$",
    # A grid contains many rows. A carousel without its mark repeats products.
    "retail": r"itemStacks\.\d+:|layoutEnum|subType",
}
"""Regular expressions for changes to which the rules do not apply, by platform."""

REQUESTED_ROWS = r"carouselHeaderRenderer"
"""Matches rows that are what was asked for: one of them is the channel's name in the header of a generated channel."""

HIDING = {Name("key", name) for name in ("privateItem", "privateAccount", "liveRoomInfo")}
"""Names that only hide rows: without them, rows are added."""

each_fixture = pytest.mark.parametrize(
    "fixture",
    [pytest.param(each, id=each.name, marks=[] if is_fast(each) else pytest.mark.soak) for each in fixtures()],
)


def problems(fixture: PageFixture, changed: dict[str, bytes], **rules: bool) -> dict[str, list[str]]:
    alternatives, exempt = ALTERNATIVES.get(fixture.platform, ()), EXEMPT.get(fixture.platform)
    found = {
        label: violations(fixture, body, alternatives=alternatives, **rules)
        for label, body in changed.items()
        if exempt is None or not re.search(exempt, label)
    }
    return {label: each for label, each in found.items() if each}


def shown(fixture: PageFixture) -> list[Name]:
    """The names whose change must not add rows."""
    return [name for name in field_map(fixture) if name not in HIDING]


@each_fixture
def test_a_renamed_name_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, {str(name): renamed(fixture.body, name) for name in shown(fixture)}) == {}


@each_fixture
def test_all_names_renamed_at_once_are_an_error_with_a_path(fixture: PageFixture) -> None:
    sets = [names(fixture.body), field_map(fixture), mandatory_names(fixture)]
    for changed in filter(None, sets):  # a page that has all data in two places has no mandatory name
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
