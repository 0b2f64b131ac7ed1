"""No page becomes a statement about its target because a key is null or absent: such a statement needs a mark."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import pytest

from crawler.errors import TargetError
from crawler.platforms import platforms
from crawler.reading.contract import contracts, steps, values
from crawler.registry import find_scraper, scraper_names
from tests.contracts.recorded import Recorded, clean
from tests.contracts.responses import of_fixtures
from tests.mutations import fixtures

PLATFORMS = sorted(platforms())
Operation = Literal["null", "remove"]
OPERATIONS: tuple[Operation, ...] = ("null", "remove")
OUTER = 4
"""Keys at most this deep in a document are changed, too, even if no contract declares them."""
PAGES = 40
"""Number of pages that are changed for each scraper: the smallest ones."""
FAST_CHANGES = 60
KNOWN = {("microblog", key, "remove") for key in ("result", "user", "user_results")}
"""Platform, key and operation: what is left is the platform's known answer for an unknown handle, ``{}``."""
DECODER = json.JSONDecoder(strict=False)
"""Accepts line breaks in texts, which recorded responses of the short-video search have."""
START = re.compile(r"[{\[]")
SCRIPT = re.compile(r"<script[^>]*>(?P<code>.*?)</script>", re.DOTALL)


class Document(NamedTuple):
    """A JSON value in a body, and its place."""

    start: int
    end: int
    value: Any


def documents(body: str) -> list[Document]:
    """Return the JSON values of a body: the body itself, or the first value in each script of a page."""
    if START.match(body.lstrip()):
        value, end = DECODER.raw_decode(body, len(body) - len(body.lstrip()))
        return [Document(0, end, value)]
    found = ((script.start("code"), START.search(script["code"])) for script in SCRIPT.finditer(body))
    return [each for offset, start in found if start for each in _value(body, offset + start.start())]


def _value(body: str, start: int) -> Iterator[Document]:
    try:
        value, end = DECODER.raw_decode(body, start)
    except ValueError:
        return  # program code
    yield Document(start, end, value)


def structural_keys(listed: list[Document], declared: frozenset[str]) -> list[str]:
    """Return the keys of objects and lists: those that contracts declare, and those near the root of a document."""
    found: dict[str, None] = {}
    waiting = [(document.value, 0) for document in listed]
    for value, depth in waiting:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inside:
            if isinstance(each, dict | list) and each:
                waiting.append((each, depth + 1))
                if isinstance(key, str) and (key in declared or depth <= OUTER):
                    found[key] = None
    return list(found)


@cache
def declared_keys(platform: str) -> frozenset[str]:
    """Return the keys in the paths of a platform's contracts."""
    roots = {payload.kind for response in of_fixtures(platform) for payload in response.original.payloads}
    every = {kind for root in roots for kind in contracts(root)}
    paths = (path for kind in every for value in values(kind) for path in value.paths)
    return frozenset(step for path in paths for step in steps(path) if isinstance(step, str))


def changed(body: str, listed: list[Document], key: str, operation: Operation) -> str:
    """Return a body in which a key is null or removed, wherever it has an object or a list."""
    parts, at = [], 0
    for document in listed:
        parts += [body[at : document.start], json.dumps(without(document.value, key, operation), ensure_ascii=False)]
        at = document.end
    return "".join([*parts, body[at:]])


def without(value: Any, key: str, operation: Operation) -> Any:
    """Return a copy of a JSON value in which a key is null or removed."""
    if isinstance(value, list):
        return [without(each, key, operation) for each in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for name, each in value.items():
        if name == key and isinstance(each, dict | list):
            kept |= {name: None} if operation == "null" else {}
        else:
            kept[name] = without(each, key, operation)
    return kept


@cache
def pages(platform: str) -> tuple[Recorded, ...]:
    """Return recorded and simulated pages that are read without a warning, the smallest ones of each scraper."""
    names = [name for name in scraper_names() if find_scraper(name).platform == platform]
    bodies = {each.name: each.body for each in fixtures(platform)}
    made = (Recorded(fixture, name, body) for fixture, body in bodies.items() for name in names)
    found = sorted(
        (*clean(platform), *(each for each in made if each.read().is_clean)), key=lambda each: len(each.body)
    )
    return tuple(each for name in names for each in [one for one in found if one.scraper == name][:PAGES])


def changes(platform: str) -> Iterator[tuple[Recorded, list[Document], str]]:
    """Yield the pages of a platform with each key to change."""
    for page in pages(platform):
        listed = documents(page.body.decode(errors="replace"))
        yield from ((page, listed, key) for key in structural_keys(listed, declared_keys(platform)))


def statements(chosen: list[tuple[Recorded, list[Document], str]]) -> Iterator[str]:
    """Yield the changes after which a page is read as a statement about its target."""
    for page, listed, key in chosen:
        for operation in OPERATIONS:
            body = changed(page.body.decode(errors="replace"), listed, key, operation)
            error = page.read(body.encode()).error
            if isinstance(error, TargetError) and (page.platform, key, operation) not in KNOWN:
                yield f"{page.name} {page.scraper}: {key} {operation}: {error.code} {error.reason}"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_null_or_absent_key_says_nothing_about_the_target(platform: str) -> None:
    every = list(changes(platform))
    assert len(every) > FAST_CHANGES
    assert list(statements(random.Random(1).sample(every, FAST_CHANGES))) == []  # noqa: S311  # a fixed sample


@pytest.mark.soak
@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_null_or_absent_key_says_anything_about_the_target(platform: str) -> None:
    assert list(statements(list(changes(platform)))) == []


def test_a_change_is_made_in_each_document_of_a_page() -> None:
    body = '<script>var a = {"b": {"c": {"d": 1}}};</script><script>go({})</script><script>[{"c": []}, 1]</script>'
    listed = documents(body)
    assert structural_keys(listed, frozenset({"c"})) == ["b", "c"]
    nulled = '<script>var a = {"b": {"c": null}};</script><script>go({})</script><script>[{"c": null}, 1]</script>'
    assert changed(body, listed, "c", "null") == nulled
    assert changed(body, listed, "b", "remove") == body.replace('{"b": {"c": {"d": 1}}}', "{}")
