"""The sandbox's pages have the structure of whole recorded pages, and nothing else but what a list names."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import crawler.sandbox
from scripts.captures import captures
from tests.whole_pages.forms import FORMS, LEFT, Compared, Form
from tests.whole_pages.paths import paths

MIN_SHARE = 0.95
MAX_LEFT = 162
"""The number of left parts. A smaller number may replace it, a larger one may not."""
MAX_SKELETON = 30_000
"""The largest size of a skeleton in bytes."""


@pytest.mark.skipif(not captures(), reason="the recorded pages (../shared/captures) are missing")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.replace(" ", "-"))
def test_pages_have_the_paths_of_whole_recorded_pages_and_no_others(form: Form) -> None:
    compared = Compared(form)
    for capture in form.captures:
        missing, number = compared.lacks(capture)
        assert len(missing) <= (1 - MIN_SHARE) * number, (capture, sorted(missing))
    extra, number = compared.has()
    assert len(extra) <= (1 - MIN_SHARE) * number, sorted(extra)
    assert compared.unused() == set(), "a part is left out where nothing is missing"


def test_the_list_of_parts_that_are_left_out_does_not_grow() -> None:
    assert LEFT.keys() <= {form.name for form in FORMS}
    reasons = [reason for form in LEFT.values() for side in form.values() for reason in side.values()]
    assert all(reason.endswith(".") for reason in reasons)
    assert len(reasons) <= MAX_LEFT


@pytest.mark.parametrize("file", sorted(Path(crawler.sandbox.__file__).parent.glob("*/*.json")), ids=str)
def test_the_constant_structure_of_a_page_is_small(file: Path) -> None:
    for skeleton in orjson.loads(file.read_bytes()).values():
        assert len(orjson.dumps(skeleton)) <= MAX_SKELETON


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'{"a": [{"b": 1}, {"c": "{\\"d\\": 2}"}], "12345": {"e": 0}}',
            {".a", ".a[].b", ".a[].c", ".a[].c>.d", ".*", ".*.e"},
        ),
        (
            b'<html><head><meta name="x"><script id="i" type="t">{"a": 1}</script>',
            {"<<meta x", "<<script t i", "script t i.a"},
        ),
        (b'<p><script>var x = {"a": {"b": 1}};</script></p>', {"script.a", "script.a.b"}),
        (b'<section data-section="s"><p class="p-4 card__title"></section>', {"<<section s", "<section s.card__title"}),
    ],
)
def test_paths_are_names_and_nesting(body: bytes, expected: set[str]) -> None:
    assert paths(body, elements=True) == expected
