"""Pages with simulated platform changes: keys renamed or parts removed, in one row or all (``tests.mutations``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from crawler.errors import ExtractionFailed, TargetError
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
    """Return whether the fixture is the largest one of its page object with at most ``MAX_FAST_BYTES``.

    If none is that small, this is the smallest one. Changing every name of a larger page takes minutes.
    """
    sizes = sorted(len(each.body) for each in fixtures(fixture.platform) if each.case.page is fixture.case.page)
    return len(fixture.body) == max((size for size in sizes if size <= MAX_FAST_BYTES), default=sizes[0])


ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "microblog": (
        r"caption$",  # fallbacks: the shortened links in the text, and the copy of a reposted post
        r"video_url",  # fallback: the order of the files
        r"thumbnail_url$",  # fallback: the next photo
        r"upload_timestamp$",  # the post's id contains the time, too
        r"next_cursor$",  # fallback: the cursor of the previous page
        r"profile\.",  # the page contains the profile three times
        r"posts\[\d+\]\.(?:is_|in_reply)",  # other keys of the post imply these flags
    ),
    "photoapp": (
        r"display_url$",  # fallback: another picture of the post
        r"video_url$",  # fallback: another version of the same file
        r"thumbnail_src$",  # fallback: the smallest picture
    ),
    "professional": (
        r"description$|activity\[\d+\]\.(?:text|action)$",  # a shortened version of the same text
        r"note$|_count$|total_experiences$|_found$|positions_|withheld",  # computed from the other fields
        r"company_name_source$|\.source$",
        r"date_range$",  # the years of the page
        r"caption$",  # a shortened version of the same text
        r"content_type$|author_name$|author_username$",  # without its caption, an activity counts as a post
        r"about|biography$",  # also in the linked data and in the page's description
        r"followers$|country$|location$|photo$|profile_url$|Name$",  # likewise
        r"profile_image$|profile_link$|display_name$|username$|subscriber_count_text$|published_date$",  # likewise
        r"image$|link$|url$",  # fallback: another link or picture of the row
    ),
    "retail": (
        r"min_price$|is_price_range$",  # fallback: the price without a range
        r"badges$",  # without its type, the badge of an icon is read as text
        r"image$",  # fallback: the thumbnail
        r"returned$",  # computed from the rows
        r"title$|heading$|category_name$",  # the page contains its name several times
        r"total_results$|url$|page$|sort$",  # likewise
        r"breadcrumbs\[\d+\]\.id$",  # the link contains the id, too
        r"has_more$",
        r"flag$|is_sponsored$|variant_count$",  # other keys of the row imply them
    ),
    "shortvideo": (
        r"cover\.(display_image\.)?\w+$",  # fallback: the first picture
        r"statistics\.\w+_count$",  # fallback: the rounded figures
        r"anchors\[|organic_log_extra$",  # objects that are copied unchanged
        r"^\.(?:cursor|has_more)$",  # "0" and true, with a warning that they are missing
    ),
    "videosite": (
        r"view_count$",  # fallback: the rounded number in another text
        r"profile_link$",  # fallback: a link with the channel's id
    ),
}
"""Regular expressions for the record paths of values that a page contains more than once, by platform."""

EXEMPT: dict[str, str] = {
    # An advertisement without its flag cannot be told from a post. An instruction contains many rows.
    "microblog": r"promotedMetadata|promoted_metadata|instructions\.\d+:",
    # A section contains many rows.
    "professional": r"^section\.|^$",
    # A grid contains many rows. Without its flag, a carousel counts as a grid and repeats products.
    "retail": r"itemStacks\.\d+:|layoutEnum|subType",
}
"""Regular expressions for changes that these tests leave out, by platform."""

OTHER_ROWS = r"carouselHeaderRenderer|primaryStacksToMatch"
"""Matches rows that are not list entries: the channel's name in the header of an auto-generated channel, and the
statement which of retail's stacks of products match the search."""

HIDING = {Name("key", name) for name in ("privateItem", "privateAccount", "liveRoomInfo")}
"""Names of keys that hide rows. If they are renamed, rows are added."""

KNOWN_ANSWERS = {"user removed", "result removed"}
"""Changes that leave the microblog's answer for an unknown handle, ``{}``."""

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


def keys(used: Iterable[Name]) -> list[str]:
    return sorted(name.text for name in used if name.sort == "key")


def shown(fixture: PageFixture) -> list[Name]:
    """Return the names that must not add rows when they are renamed."""
    return [name for name in field_map(fixture) if name not in HIDING]


@each_fixture
def test_a_renamed_name_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    assert problems(fixture, {str(name): renamed(fixture.body, name) for name in shown(fixture)}) == {}


@each_fixture
def test_all_names_renamed_at_once_are_an_error_with_a_path(fixture: PageFixture) -> None:
    sets = [names(fixture.body), field_map(fixture), mandatory_names(fixture)]
    for changed in filter(None, sets):  # a page that contains all data twice has no mandatory name
        error = fixture.read(renamed(fixture.body, *changed)).error
        assert isinstance(error, ExtractionFailed), error
        assert error.details


@each_fixture
def test_a_removed_part_is_an_error_or_costs_only_its_part(fixture: PageFixture) -> None:
    optional = keys(set(shown(fixture)) - set(mandatory_names(fixture)))
    assert problems(fixture, dict(removals(fixture, optional))) == {}
    assert problems(fixture, dict(nulls(fixture, optional)), stated=True) == {}


@each_fixture
def test_an_absent_or_null_key_says_nothing_about_the_target(fixture: PageFixture) -> None:
    """Such a statement needs a mark."""
    used = keys(field_map(fixture))
    changed = (*removals(fixture, used), *nulls(fixture, used))
    found = {each.label for each in changed if isinstance(fixture.read(each.body).error, TargetError)}
    assert found <= KNOWN_ANSWERS


@each_fixture
def test_a_row_that_is_not_understood_costs_only_that_row_and_a_warning(fixture: PageFixture) -> None:
    rows = {label: body for label, body in row_changes(fixture, shown(fixture)) if not re.search(OTHER_ROWS, label)}
    assert problems(fixture, rows, one_row=True) == {}
