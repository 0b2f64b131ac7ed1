"""Converters accept any input, and never return a value that is not in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.reading.values import absolute_url, amount, amounts, count, number, text

ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
)
CONVERTERS: dict[Callable[[Any], Any], type] = {amount: float, count: int, number: float, text: str}


@given(ANYTHING)
def test_any_value_gives_the_type_or_none(value: Any) -> None:
    for convert, expected in CONVERTERS.items():
        converted = convert(value)
        assert converted is None or type(converted) is expected
        assert not isinstance(converted, float) or math.isfinite(converted)


@pytest.mark.parametrize("convert", CONVERTERS, ids=lambda convert: convert.__name__)
@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_empty_values_stay_empty(convert: Callable[[Any], Any], empty: Any) -> None:
    assert convert(empty) in (None, "")


@given(ANYTHING)
def test_amounts_are_positive(value: Any) -> None:
    converted = amount(value)
    assert converted is None or converted > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,119.00", [1119.0]),
        ("Now $159.00", [159.0]),
        ("Options from $9.91 – $22.64", [9.91, 22.64]),
        ("More options from $11.69", [11.69]),
        ("From $1,159", [1159.0]),
        ("13.7 ¢/count", [13.7]),
        ("free", []),
        (None, []),
    ],
)
def test_amounts_in_the_platform_s_formats(text: str | None, expected: list[float]) -> None:
    assert amounts(text) == expected


@given(st.text())
def test_urls_are_absolute_or_empty(value: str) -> None:
    url = absolute_url("https://shop.example", value, query=False)
    assert url == "" or urlsplit(url).scheme in {"http", "https"}


URLS = st.tuples(
    st.sampled_from(["https://", "http://", "https://a.b", "https://a.b:80", "http://x.", "HTTPS://a.b"]),
    st.text("/a.?=&;%:~-#@!+,2[]\\<\"' é\t\n", max_size=10),
)


@given(URLS.map("".join))
def test_a_url_that_is_returned_at_once_is_the_same_after_it_was_resolved(value: str) -> None:
    try:
        resolved = urlsplit(urljoin("https://shop.example", value))
    except ValueError:
        assert absolute_url("https://shop.example", value) == ""
    else:
        expected = urlunsplit((resolved.scheme, resolved.netloc, resolved.path, resolved.query, ""))
        assert absolute_url("https://shop.example", value) == expected
