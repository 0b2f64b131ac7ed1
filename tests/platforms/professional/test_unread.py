"""Pages of which a part is empty or hostile, and rows of a masked list."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from urllib.parse import quote

import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from scripts import captures

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
    "150 nested sections": (b"<section>" * 150, None),
    "7,000 nested elements": (b"<div>" * 7_000, "too_large"),
    "1 MB of one attribute": (b'<div title="' + b"x" * 1_000_000 + b'">', None),
    "1 MB of an attribute without an end": (b'<div title="' + b"x" * 1_000_000, None),
    "500,000 classes": (b'<div class="' + b"x " * 500_000 + b'">', None),
    "100,000 attributes": (b"<div " + b" ".join(b"a%d" % each for each in range(100_000)) + b">", "too_large"),
    "30,000 attributes in a script of a picture": (
        b"<svg><script><a " + b" ".join(b"a%d" % each for each in range(30_000)) + b"></a></script></svg>",
        "too_large",
    ),
}
"""Hostile HTML, and the error reason of a page that contains it (None: the page gives data).

Without limits, some of this HTML takes 20 s to parse. ``tests/reading/test_markup.py`` counts attributes in tags that
are written in other ways.
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


@pytest.mark.parametrize(
    ("pattern", "unread"),
    [
        (rb"(?<=top-card-layout__headline)([^>]*>)[^<]*", "headline: null"),
        (rb"(?<=show-more-less-text__text--less)([^>]*>)[^<]*", "volunteer_experience[].description: missing"),
        (rb'(class="face-pile__url"[^>]*)title="[^"]*"', "projects[].contributors: missing"),
        (rb'(class="see-more-text[^>]*>)[^<]*', "activity[].text: missing in 13 of 13"),
    ],
)
def test_emptied_elements_are_reported(pattern: bytes, unread: str) -> None:
    body = re.sub(pattern, rb"\1", body_of("mara-lindqvist"))
    page = page_of(body)
    asyncio.run(page.to_item())
    assert any(str(each).startswith(unread) for each in page.unread), page.unread
