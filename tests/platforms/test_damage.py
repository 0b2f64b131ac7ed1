"""Damaged responses of every platform give data or a typed error: no damage raises another exception."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms.photoapp.pages import SharePage
from crawler.registry import scrapers
from scripts.golden.extracts import SCRAPERS
from tests.mutations import PageFixture, blocks, fixtures

Damage = tuple[tuple[Any, ...], Any]
"""A path of a response's JSON, and the value that is put there."""
REMOVE = "<remove>"
SMALL = 58_000


def form(fixture: PageFixture) -> tuple[Any, ...]:
    """Return what distinguishes the forms of a page: its class, and the keys of its JSON in the first two levels."""
    documents = [block.content for block in blocks(fixture.body) if isinstance(block.content, dict)]
    return fixture.case.page, frozenset(
        (key, inner) for each in documents for key, value in each.items() if isinstance(value, dict) for inner in value
    )


def largest() -> Iterator[PageFixture]:
    """Yield the largest response of each form that is small enough to be read a hundred times."""
    found: dict[tuple[Any, ...], PageFixture] = {}
    for fixture in sorted(fixtures(), key=lambda each: len(each.body)):
        if len(fixture.body) <= SMALL:
            found[form(fixture)] = fixture
    yield from found.values()


FIXTURES = sorted(largest(), key=lambda each: each.name)
NAME = attrgetter("name")
MORE = pytest.mark.parametrize("examples", [5, pytest.param(2_000, marks=pytest.mark.soak)])
ODD_TEXTS = ["http://[broken", "https://x/a.mp4?efg=%%%", "https://x/?efg=eyJ", "PT9", "9" * 40, "***", "UC", "[["]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(ODD_TEXTS),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=6,
)


def assert_survives(fixture: PageFixture, body: bytes) -> None:
    """Read the body with the page object, and as ``scrapy extract`` does, which joins and validates the record."""
    fixture.read(body)
    for scraper in SCRAPERS[fixture.platform]:
        with suppress(ScrapeError):
            asyncio.run(extract(scrapers()[scraper], [body], {}, url=fixture.case.url))


def checked(examples: int, strategy: st.SearchStrategy[Any], check: Any) -> None:
    settings(max_examples=examples, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))(
        given(strategy)(check)
    )()


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value. Of each list, only the first two entries are included."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


@cache
def places(fixture: PageFixture) -> list[tuple[Any, ...]]:
    return [path for number, block in enumerate(blocks(fixture.body)) for path in paths(block.content, (number,))]


def rewritten(fixture: PageFixture, documents: list[Any]) -> bytes:
    """Return the response with these JSON documents in place of its own."""
    body = fixture.body
    for block, document in reversed(list(zip(blocks(body), documents, strict=True))):
        body = body[: block.start] + orjson.dumps(document).replace(b"</", b"<\\/") + body[block.end :]
    return body


@MORE
@pytest.mark.parametrize("fixture", [each for each in FIXTURES if blocks(each.body)], ids=NAME)
def test_damaged_json_gives_data_or_a_typed_error(fixture: PageFixture, examples: int) -> None:
    def check(damages: list[Damage]) -> None:
        documents = [orjson.loads(orjson.dumps(block.content)) for block in blocks(fixture.body)]
        for (*parents, key), value in damages:
            holder: Any = documents
            with suppress(KeyError, IndexError, TypeError):  # an earlier damage removed or replaced the holder
                for parent in parents:
                    holder = holder[parent]
                if value == REMOVE and parents:
                    del holder[key]
                elif isinstance(holder, dict) == isinstance(key, str):  # a list's number is no key of a JSON object
                    holder[key] = value
        assert_survives(fixture, rewritten(fixture, documents))

    damages = st.lists(st.tuples(st.sampled_from(places(fixture)), JSON | st.just(REMOVE)), min_size=1, max_size=6)
    checked(examples, damages, check)


JUNK = [
    b"",
    b"<",
    b'"',
    b"<!--",
    b"<script>",
    b"</section>",
    b"<li>",
    b"&#0;",
    b"\0",
    b"***",
    b"\xff\xfe",
    b"[" * 2_000,
]


@MORE
@pytest.mark.parametrize("fixture", FIXTURES, ids=NAME)
def test_a_damaged_body_gives_data_or_a_typed_error(fixture: PageFixture, examples: int) -> None:
    """Bytes are removed, replaced or added at a few places, or the end is missing."""

    def check(cuts: list[tuple[float, int, bytes]], end: float) -> None:
        body = fixture.body
        for place, length, put in cuts:
            at = int(place * len(body))
            body = body[:at] + put + body[at + length :]
        assert_survives(fixture, body[: int(end * len(body))])

    cut = st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(JUNK) | st.binary(max_size=6))
    drawn = st.tuples(st.lists(cut, min_size=1, max_size=5), st.just(1.0) | st.floats(0, 1))
    checked(examples, drawn, lambda drawn: check(*drawn))


@pytest.mark.parametrize("fixture", [each for each in FIXTURES if each.case.page is not SharePage], ids=NAME)
def test_other_json_and_malformed_bodies_give_a_typed_error(fixture: PageFixture) -> None:
    """The shop's page objects also read a list of rows without a page, even an empty one."""

    def check(body: bytes) -> None:
        assert fixture.read(body).error is not None or (fixture.platform == "retail" and body[:1] == b"["), body[:200]
        assert_survives(fixture, body)

    for body in (
        *(b"{", b"for (;;);", b"\xff\xfe", bytes(range(256)), b"{}", b"[]", b"null", b'{"props": NaN}', b"<script"),
        *(b"[" * 10_000 + b"]" * 10_000, b'{"props":' * 1_000 + b"1" + b"}" * 1_000, b'{"a":' + b"1" * 100_000 + b"}"),
        *(b'<script type="application/json">{"xig_polaris_media":', b'<script>$R[0]={a:"', b"<div>" * 10_000),
    ):
        check(body)
    checked(5, JSON, lambda value: check(orjson.dumps(value)))
    checked(5, st.binary(max_size=300), check)
