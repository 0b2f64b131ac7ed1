"""Converters accept any input, and never return a value that is not in it."""

from __future__ import annotations

import math
import re
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from crawler.reading.values import (
    PRICE_TEXT,
    absolute_url,
    amount,
    count,
    number,
    retry_after_seconds,
    stated_price,
    text,
)

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


PRICES = [
    # One row for each recorded shape
    ("$7.46", ("", 7.46, None)),
    ("$17", ("", 17.0, None)),
    ("$1,119.00", ("", 1119.0, None)),
    ("Now $159.00", ("Now", 159.0, None)),
    ("Now $1,159.00", ("Now", 1159.0, None)),
    ("Now est. $12.30", ("Now est.", 12.3, None)),
    ("From $159.00", ("From", 159.0, None)),
    ("Options from $232.99", ("Options from", 232.99, None)),
    ("More options from $11.69", ("More options from", 11.69, None)),
    ("Options from $9.91 – $22.64", ("Options from", 9.91, 22.64)),
    ("Options from $9.91 – $1,022.64", ("Options from", 9.91, 1022.64)),
    # Other words before the price
    ("Ahora $159.00", ("Ahora", 159.0, None)),
    ("À partir de $159.00", ("À partir de", 159.0, None)),
    # Texts that are not a price of one piece in US dollars
    ("98¢", None),
    ("2 for $5.00", None),
    ("Two for $5.00", None),
    ("For $5.00", None),
    ("20% off $7.46", None),
    ("7,46 $", None),
    ("$7,46", None),
    ("$7.4", None),
    ("$1,11.00", None),
    ("CA$7.46", None),
    ("CA $7.46", None),
    ("AUD $7.46", None),
    ("€7.46", None),
    ("$7.46 CAD", None),
    ("$7.46/lb", None),
    ("+$5.99 shipping", None),
    ("3 options from $9.91", None),
    ("$9.91 $12.00", None),
    ("$9.91 or more", None),
    ("-$9.91", None),
    ("7.46", None),
    ("13.7 ¢/count", None),
    ("free", None),
    ("", None),
    (None, None),
]


@pytest.mark.parametrize(("text", "expected"), PRICES)
def test_a_price_text_is_read_if_its_number_has_a_recorded_shape(text: str | None, expected: Any) -> None:
    assert stated_price(text) == expected
    assert (re.fullmatch(PRICE_TEXT, text or "") is not None) is (expected is not None)


@given(st.sampled_from([text for text, read in PRICES if read]), st.sampled_from("0123456789%¢€"), st.integers(0, 40))
def test_a_further_digit_or_sign_never_gives_another_price(text: str, sign: str, at: int) -> None:
    changed = text[:at] + sign + text[at:]
    found = stated_price(changed)
    numbers = [float(each.replace(",", "")) for each in re.findall(r"\d[\d.,]*", changed)]
    assert found is None or numbers == [each for each in (found.low, found.high) if each is not None]


@given(st.text(alphabet="aN $0.9,–¢% fori", max_size=60))
def test_any_text_gives_a_price_with_its_own_number_or_none(text: str) -> None:
    found = stated_price(text)
    assert found is None or (found.low >= 0 and text.count("$") == (1 if found.high is None else 2))


def test_no_long_text_is_kept_in_memory_as_a_price() -> None:
    tracemalloc.start()
    try:
        assert not any(stated_price(f"{number} " + "a" * 100_000) for number in range(500))
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", ["98¢", "7,46", "1.234,50", "CA$5.00", "5.00 USD", "2 for $5.00", " 5", "٣"])
def test_an_amount_is_a_number_alone(value: str) -> None:
    assert amount(value) is None


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


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("999999999", 86_400),
        pytest.param("9" * 5_000, 86_400, id="more digits than Python converts"),
        ("1.5", 2),
        ("120, 60", 120),
        ("120, soon", None),
        ("-1", None),
        ("1e3", None),
        ("x", None),
        ("Thu, 01 Jan 2015 00:00:00 GMT", 0),
        ("Sat, 28 Nov 2026 12:01:30 GMT", 90),
        ("Sat, 28 Nov 2026 13:01:30 +0100", 90),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        pytest.param("Sat, 28 Nov 2026 12:01:30", 90, id="a date without a zone is in UTC"),
        pytest.param("Sat, 28 Nov 2026 12:01:30 -0000", 90, id="a date of an unknown zone is in UTC"),
    ],
)
def test_retry_after(header: str, seconds: int | None) -> None:
    with time_machine.travel(datetime(2026, 11, 28, 21, tzinfo=ZoneInfo("Asia/Tokyo")), tick=False):
        assert retry_after_seconds(header) == seconds
