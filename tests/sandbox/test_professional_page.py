"""The pages of the simulated professional network have the structure and size of real pages."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import orjson
import pytest
from parsel import Selector

from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from scripts.captures import CAPTURES, body_of

PAGES = (
    "a48a929f0136",
    "961164b53ee7",
    "cfa3fe63800c",
    "70310b5ddb3a",
)
LINKED = "8647fd3c40d5"
SECTIONS = ("section.top-card-layout", "section.experience-education", "section.browsemap", "section[data-section]")
# The page objects find data by these names, which the platform has not changed for years.
FURNITURE = re.compile(r"modal|sign-in|google-auth|linkedin-tc|semaphore|ellipsis-menu|cta|a11y|overlay__")
PART = re.compile(
    r"[a-z0-9]+(?:-[a-z0-9]+)*__[a-z0-9-]+|experience-[a-z-]+|browsemap|slide-list__item|show-more-[a-z-]+"
)


@cache
def site() -> Site:
    return Site()


def page(slug: str) -> bytes:
    status, _, body = site().page(FakeRequest(f"/in/{slug}"))
    assert status == 200
    return body


def linked_data(body: bytes) -> Any:
    found = Selector(body.decode()).css('script[type="application/ld+json"]::text').get()
    assert found is not None
    return orjson.loads(found)


def located_parts(body: bytes) -> set[tuple[str, str]]:
    """Return pairs of a section of the profile and the name of a part in it."""
    found = set()
    page = Selector(body.decode())
    for css in SECTIONS:
        for section in page.css(css):
            classes = " ".join(section.css("::attr(class)").getall())
            name = section.attrib.get("data-section", css)
            found |= {(name, each) for each in PART.findall(classes) if not FURNITURE.search(each)}
    return found


def key_paths(tree: Any) -> set[tuple[str, ...]]:
    """Return the key paths of linked data. Each starts with the type of the node."""
    found: set[tuple[str, ...]] = set()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, dict):
            kind = (*above, str(node.get("@type", "")))
            found |= {(*kind, key) for key in node}
            waiting += [(value, (*kind, key)) for key, value in node.items()]
        elif isinstance(node, list):
            waiting += [(value, above) for value in node]
    return found


def test_parts_match_the_real_pages() -> None:
    if not CAPTURES.is_dir():
        pytest.skip(f"the captures are not available ({CAPTURES})")
    real: set[tuple[str, str]] = set()
    for capture in PAGES:
        real |= located_parts(body_of(capture))
    ours: set[tuple[str, str]] = set()
    for slug in site().members:
        ours |= located_parts(page(slug))
    missing = real - ours
    assert len(missing) <= 0.10 * len(real), sorted(missing)


def test_linked_data_matches_the_real_structure() -> None:
    if not CAPTURES.is_dir():
        pytest.skip(f"the captures are not available ({CAPTURES})")
    real = key_paths(linked_data(body_of(LINKED)))
    missing = real - key_paths(linked_data(page("mara-lindqvist")))
    assert len(missing) <= 0.10 * len(real), sorted(missing)


def test_pages_contain_the_real_distractions() -> None:
    whole = Selector(page("mara-lindqvist").decode())
    assert "Sign in to view Mara’s full profile" in (whole.css("section.top-card-layout h2::text").get() or "")
    assert len(whole.css(".contextual-sign-in-modal")) > 12
    assert whole.css('section[data-section="instructor-courses"]')
    assert whole.css('section[data-section="publications"] li li'), "contributors are rows in rows"
    masked = Selector(page("masked-linked").decode())
    assert not masked.css(".top-card-layout__headline")
    assert not masked.css('section[data-section="experience"]')
    assert masked.css(".experience-education__list li") and not masked.css(".experience-education__list h3 a")  # noqa: PT018
