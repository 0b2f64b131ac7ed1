"""Payloads of any structure and depth are decoded, or raise a typed error."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import ExtractionFailed
from crawler.reading.documents import all_dicts, decode, dicts, dig, script_block

DEPTH = 1_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=2), children, max_size=4),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    value: Any = {"deepest": 1}
    for _ in range(depth):
        value = {"a": [value]}
    return value


@given(JSON)
def test_json_is_decoded_unchanged(value: Any) -> None:
    assert decode(orjson.dumps(value).decode(), what="block") == value


@pytest.mark.parametrize(
    "body",
    ["", " ", "{", '{"a": 1', "{'a': 1}", "NaN", '{"a": 1} x', "undefined", "\x00", "[" * 10_000 + "]" * 10_000],
)
def test_invalid_json_raises_a_typed_error(body: str) -> None:
    with pytest.raises(ExtractionFailed) as refused:
        decode(body, what="block")
    assert refused.value.reason == "broken_data_block"
    assert refused.value.details[0]["loc"] == ["block"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"cut \ud83d"', "cut �"),
        (r'"\ude00 cut"', "� cut"),
        (r'"\ud83d\ud83d\ude00"', "�😀"),
        (r'"\ud83d\u0041"', "�A"),
        (r'"\\ud83d \ud83d"', "\\ud83d �"),
        (r'"\"\\\ud83d\n"', '"\\�\n'),
    ],
)
def test_half_an_emoji_is_replaced(written: str, read: str) -> None:
    assert decode(written, what="block") == read


@pytest.mark.parametrize(
    "html",
    [
        '<script id="DATA">{"a":1}</script>',
        '<p>DATA</p><script id="DATA" type="application/json" nonce="x">{"a":1}</script><script>2</script>',
        "<script type='application/json' id='DATA'>{\"a\":1}</script>",
        '<script nonce="x" id=DATA>{"a":1}</script>',
        '<script\n  id="DATA"\n>{"a":1}</script>',
    ],
)
def test_a_script_block_is_found_in_any_spelling(html: str) -> None:
    assert script_block(html.encode(), "DATA") == b'{"a":1}'


@pytest.mark.parametrize("html", ["", "<p>DATA", '<div id="DATA">1</div>', '<script id="DATA2">1</script>'])
def test_a_missing_script_block_is_none(html: str) -> None:
    assert script_block(html.encode(), "DATA") is None


@given(st.text(alphabet='<>script id="DATA/', max_size=60))
def test_any_html_gives_a_block_or_none(html: str) -> None:
    assert isinstance(script_block(html.encode(), "DATA"), bytes | None)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a", 1, "b"), 2),
        (("a", -1, "b"), 2),
        (("a", 2), None),
        (("a", -3), None),
        (("a", "1"), None),
        (("a", "length"), None),
        ((0,), None),
        (("a", 0, "b"), None),
        (("text", 0), None),
        (("zero",), 0),
        ((), {"a": [None, {"b": 2}], "text": "x", "zero": 0}),
    ],
)
def test_dig(path: tuple[str | int, ...], found: Any) -> None:
    assert dig({"a": [None, {"b": 2}], "text": "x", "zero": 0}, *path) == found


@given(JSON, st.lists(st.text(max_size=2) | st.integers(-5, 5), max_size=5))
def test_any_path_is_safe(value: Any, path: list[str | int]) -> None:
    dig(value, *path)


def test_deep_payloads_are_read() -> None:
    deep = nested(DEPTH)
    assert [each["deepest"] for each in all_dicts(deep) if "deepest" in each] == [1]
    path: list[str | int] = ["a", 0]
    assert dig(deep, *path * DEPTH) == {"deepest": 1}


@given(JSON)
def test_dicts_gives_only_dicts(value: Any) -> None:
    assert all(isinstance(each, dict) for each in dicts(value))
