"""Data that is lost because a page has changed is always reported: sections, containers, required cells."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed
from crawler.platforms.professional.content import ContentPage
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.sections import TABLE
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from scripts import captures
from tests.mutations import Name, renamed
from tests.platforms.professional.mutating import Marked, Reading, is_silent, reading

WHOLE = (
    "cfa3fe63800c",
    "961164b53ee7",
    "a48a929f0136",
    "70310b5ddb3a",
    "675355348e00",
    "97ae64139187",
    "2501a081162d",
    "0611a05b9ecb",
    "b84140ffd351",
)
"""The recorded pages that are complete."""
MEMBERS = (
    *("mara-lindqvist", "tomas-okafor-4a0756", "forty-positions", "shown-by-a-browser", "nobody-yet"),
    *("masked-linked", "masked-past", "counts-hidden"),
)
""""shown-by-a-browser" has a page in the layout of 2024."""
SAMPLE = 30
"""Number of changes of each page in the fast tests, which make the same changes in every run."""
needs_captures = pytest.mark.skipif(
    not captures.CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)


def page_of(body: bytes | str, kind: type[ProfilePage | ContentPage] = ProfilePage) -> ProfilePage | ContentPage:
    raw = body.encode() if isinstance(body, str) else body
    response = HttpResponse("https://www.linkedin.com", raw, headers={"Content-Type": "text/html; charset=utf-8"})
    return kind(response=response, page_params=PageParams({}))


@cache
def body_of(name: str) -> bytes:
    """Return a page by its name: a recorded page, or the page of a sandbox member."""
    if name in WHOLE:
        return captures.body_of(name)
    return Site(light=True).page(FakeRequest(f"/in/{quote(name)}"))[2]


@cache
def marked(name: str) -> tuple[Marked, Reading]:
    page = Marked(body_of(name))
    return page, reading(page.unchanged)


def silent_changes(name: str, sample: int | None) -> Iterator[str]:
    page, before = marked(name)
    chosen = page.changes
    if sample is not None:
        chosen = random.Random(name).sample(chosen, min(sample, len(chosen)))  # noqa: S311  # the same ones each time
    for change in chosen:
        if is_silent(before, reading(page.changed(change))):
            yield change.label


@pytest.mark.parametrize("name", MEMBERS)
def test_no_sampled_change_is_silent(name: str) -> None:
    assert list(silent_changes(name, SAMPLE)) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", MEMBERS)
def test_no_change_is_silent(name: str) -> None:
    assert list(silent_changes(name, None)) == []


@needs_captures
@pytest.mark.soak
@pytest.mark.parametrize("name", WHOLE)
def test_no_change_of_a_recorded_page_is_silent(name: str) -> None:
    assert list(silent_changes(name, None)) == []


def test_the_changes_cover_each_section_and_required_cell() -> None:
    labels = " ".join(change.label for name in MEMBERS for change in marked(name)[0].changes)
    for section in TABLE.sections:
        assert any(f" {name}" in f" {labels}" for name in section.names), section.field
        for layout in section.layouts:
            required = [name for name, cell in layout.cells.items() if cell.kind != "sometimes"]
            assert all(f": {name} of all removed" in labels for name in required), section.field


# No warning on good pages


@needs_captures
@pytest.mark.parametrize("kind", [ProfilePage, ContentPage])
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_page_has_no_warning(name: str, kind: type[ProfilePage | ContentPage]) -> None:
    page = page_of(body_of(name), kind)
    asyncio.run(page.to_item())
    assert (page.unread, page.skipped) == ([], [])


@pytest.mark.parametrize("name", MEMBERS)
def test_a_whole_page_of_ours_has_no_warning(name: str) -> None:
    page = page_of(body_of(name))
    asyncio.run(page.to_item())
    assert (page.unread, page.skipped) == ([], [])


@needs_captures
@pytest.mark.parametrize(
    ("name", "css_class", "path"),
    [
        ("cfa3fe63800c", "see-more-text", "activity[].text"),
    ],
)
def test_a_value_of_no_row_of_a_long_section_is_reported(name: str, css_class: str, path: str) -> None:
    page = page_of(renamed(body_of(name), Name("class", css_class)))
    asyncio.run(page.to_item())
    assert [each.path for each in page.unread] == [path]


# Masked profiles


def test_the_first_school_and_all_rows_after_it_are_schools() -> None:
    """The schools of masked pages show years. Without the years, its logo marks the first one as a school."""
    body = body_of("masked-described").decode()
    without_years = re.sub(r"<time>.*?</time>", "", body, flags=re.DOTALL)
    without_logo = re.sub(
        r'(data-section="educationsDetails">.*?)data-delayed-url="', r'\1x="', without_years, flags=re.DOTALL
    )
    pages = body, without_years, without_logo
    items = [asyncio.run(page_of(each).to_item()) for each in pages]
    assert [(len(item["experience"]), len(item["education"])) for item in items] == [(2, 4), (2, 4), (6, 0)]
    assert all(row["masked"] and not row["school_name"] and not row["school_image"] for row in items[1]["education"])


# Pages that are made to be slow to parse


HOSTILE = {
    "2 MB of unclosed tags": (b"<div>" * 400_000, "too_large"),
    "100,000 nested elements": (b"<div>" * 100_000 + b"</div>" * 100_000, "too_large"),
    "100,000 open elements": (b"<div>" * 100_000, "too_large"),
    "150 nested sections": (b"<section>" * 150, None),
    "7,000 nested elements": (b"<div>" * 7_000, "too_large"),
    "7,000 nested sections": (b'<section class="aside-section-container">' * 7_000, "too_large"),
    "1 MB of one attribute": (b'<div title="' + b"x" * 1_000_000 + b'">', None),
    "1 MB of an attribute without an end": (b'<div title="' + b"x" * 1_000_000, None),
    "500,000 classes": (b'<div class="' + b"x " * 500_000 + b'">', None),
    "100,000 attributes": (b"<div " + b" ".join(b"a%d" % each for each in range(100_000)) + b">", "too_large"),
    "100,000 attributes between slashes": (
        b"<div " + b"/".join(b"a%d" % each for each in range(100_000)) + b">",
        "too_large",
    ),
    "50,000 attributes with angle brackets": (
        b"<div " + b" ".join(b'a%d="<"' % each for each in range(50_000)) + b">",
        "too_large",
    ),
    "30,000 attributes without spaces": (
        b"<div " + b"".join(b'a%d=""' % each for each in range(30_000)) + b">",
        "too_large",
    ),
    "30,000 attributes of a script after a bracket in quotes": (
        b'<script type=">" ' + b" ".join(b"a%d" % each for each in range(30_000)) + b">1</script>",
        "too_large",
    ),
    "30,000 attributes with some angle brackets": (
        b"<div " + b" ".join((b"a%d", b"a%d <")[each % 150 == 0] % each for each in range(30_000)) + b">",
        "too_large",
    ),
}
"""Hostile HTML, and the error reason of a page that contains it (None: the page gives data).

Without limits, some of this HTML takes 20 s to parse.
"""


@pytest.mark.parametrize("kind", [ProfilePage, ContentPage])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_gives_data_or_a_typed_error(name: str, kind: type[ProfilePage | ContentPage]) -> None:
    part, reason = HOSTILE[name]
    page = page_of(body_of("mara-lindqvist").replace(b"<section", part + b"<section", 1), kind)
    if reason is None:
        assert asyncio.run(page.to_item())
        return
    with pytest.raises(ExtractionFailed) as refused:
        asyncio.run(page.to_item())
    assert refused.value.reason == reason


# Values that are read without a selector, or whose surroundings show that they are missing


@needs_captures
@pytest.mark.parametrize("css_class", ["experience-item__meta-item", "show-more-less-text"])
@pytest.mark.parametrize("name", ["961164b53ee7", "675355348e00", "2501a081162d"])
def test_locations_and_descriptions_are_read_without_their_class(name: str, css_class: str) -> None:
    assert reading(renamed(body_of(name), Name("class", css_class))) == reading(body_of(name))


@pytest.mark.parametrize("attribute", ["data-delayed-url", "src"])
def test_pictures_without_a_url_are_reported(attribute: str) -> None:
    before = reading(body_of("forty-positions"))
    after = reading(renamed(body_of("forty-positions"), Name("attribute", attribute)))
    assert after.data != before.data
    assert after.unread - before.unread


def test_counts_outside_of_their_elements_are_reported() -> None:
    body = re.sub(
        rb"(?<=not-first-middot)(.*?)</div>",
        lambda group: group[0].replace(b"<span", b"<i").replace(b"</span", b"</i"),
        body_of("mara-lindqvist"),
        flags=re.DOTALL,
    )
    found = reading(body)
    assert "connections: missing" in found.unread
    assert "followers: missing" not in found.unread  # the number above the activity fills the field


def test_a_member_may_turn_off_the_list_of_other_members() -> None:
    section = rb'<section class="aside-section-container mb-4 browsemap".*?</section>'
    page = page_of(re.sub(section, b"", body_of("mara-lindqvist"), flags=re.DOTALL))
    assert asyncio.run(page.to_item())["people_also_viewed"] == []
    assert page.unread == []


# Linked data


@pytest.mark.parametrize(
    ("pattern", "unread"),
    [
        (rb"(?<=top-card-layout__headline)([^>]*>)[^<]*", "headline: null"),
        (rb"(?<=show-more-less-text__text--less)([^>]*>)[^<]*", "volunteer_experience[].description: missing"),
        (rb'(class="face-pile__url"[^>]*)title="[^"]*"', "projects[].contributors: missing"),
    ],
)
def test_emptied_elements_are_reported(pattern: bytes, unread: str) -> None:
    body = re.sub(pattern, rb"\1", body_of("mara-lindqvist"))
    assert any(each.startswith(unread) for each in reading(body).unread), reading(body).unread


def test_a_top_section_without_links_is_reported_if_the_page_has_positions() -> None:
    node = LexborHTMLParser(body_of("mara-lindqvist"))
    container = node.css_first(".top-card__links-container")
    assert container
    for each in container.css("[data-section]"):
        each.decompose()
    assert "top_card[]: missing, not collected" in reading((node.html or "").encode()).unread


def test_an_empty_degree_is_reported() -> None:
    body = re.sub(rb'(<span class="control-transition"[^>]*>)[^<]*', rb"\1", body_of("no-photo"))
    assert any(each.startswith("education[].places: missing") for each in reading(body).unread)
