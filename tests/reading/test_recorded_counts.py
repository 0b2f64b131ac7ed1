"""Every text of the recordings that states a number of views, subscribers, followers or connections is read."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.platforms.professional.document import shown_count
from crawler.reading.values import stated_count
from scripts.captures import CAPTURES, body_of, captures

needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures (../shared) are missing")
_TEXT = re.compile(
    rb'[">]\s*((?:[\d.,]+\s?[A-Za-z]{0,8}|No) (views?|subscribers?|videos?|followers?|connections?))\s*["<]'
)
UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "lakh": 10**5, "crore": 10**7, "thousand": 10**3, "million": 10**6}


@cache
def recorded() -> frozenset[tuple[str, str]]:
    """Return the distinct texts of all captures, each with its name of the things."""
    found = (each for name in captures() for each in _TEXT.findall(body_of(name)))
    return frozenset((text.decode(), things.decode()) for text, things in found)


def stated(text: str) -> int | None:
    """Return the number in a text by a reader of its own: digits, and a unit of the English language.

    Return None for a unit of another language: "32 N video" is 32 thousand in Vietnamese.
    """
    if text.startswith("No "):
        return 0
    found = re.fullmatch(r"([\d.,]+)\s?([A-Za-z]*) \w+", text, re.ASCII)
    assert found is not None
    number, unit = found.groups()
    return round(float(number.replace(",", "")) * UNITS[unit.lower()]) if unit.lower() in UNITS else None


@needs_captures
def test_every_recorded_count_is_read() -> None:
    texts = recorded()
    assert len(texts) > 1_000
    wrong = [text for text, things in texts if stated_count(text, things) != stated(text)]
    assert wrong == []


@needs_captures
def test_every_recorded_number_of_followers_is_read() -> None:
    texts = [text for text, things in recorded() if things.startswith(("follower", "connection"))]
    assert len(texts) > 3
    read = {text: shown_count(text) for text in texts}
    assert {text: each and each.value for text, each in read.items()} == {text: stated(text) for text in texts}


@pytest.mark.parametrize(
    ("text", "things", "expected"),
    [
        # One row for each recorded shape
        ("417 views", "views", 417),
        ("1,417 views", "views", 1_417),
        ("3,993,451 views", "views", 3_993_451),
        ("4.1K views", "views", 4_100),
        ("41K views", "views", 41_000),
        ("4.1M subscribers", "subscribers", 4_100_000),
        ("8.84k subscribers", "subscribers", 8_840),
        ("1.7B views", "views", 1_700_000_000),
        ("2.5 lakh views", "views", 250_000),
        ("1.2 crore views", "views", 12_000_000),
        ("1.7bn views", "views", 1_700_000_000),
        ("12,34,567 views", "views", 1_234_567),
        ("No views", "views", 0),
        # Another language, or another number
        ("12 B takipçi", "followers", None),
        ("12 B", "", None),
        ("4,1 K views", "views", None),
        ("1,2 mil views", "views", None),
        ("1.234 views", "views", None),
        ("٣ views", "views", None),
        ("4.1K of views", "views", None),
    ],
)
def test_a_count_is_read_if_its_unit_is_beside_an_english_name(text: str, things: str, expected: int | None) -> None:
    assert stated_count(text, things) == expected


@pytest.mark.parametrize("text", ["12 B takipçi", "3 M pengikut", "3M seguidores", "12 K Abonnenten"])
def test_a_unit_beside_another_word_is_not_read(text: str) -> None:
    shown = shown_count(text)
    assert shown is not None
    assert (shown.value, shown.is_shortened) == (None, True)


@given(st.integers(0, 10**15))
def test_an_exact_count_is_read_as_it_is_written(number: int) -> None:
    assert stated_count(f"{number:,} views", "views") == stated_count(f"{number:,}") == number


@given(st.integers(0, 999), st.integers(0, 9), st.sampled_from(["K", "M", "B", "k", "bn"]))
def test_a_rounded_count_is_its_number_times_its_unit(whole: int, tenth: int, unit: str) -> None:
    scale = {"k": 10**3, "m": 10**6, "b": 10**9, "bn": 10**9}[unit.lower()]
    assert stated_count(f"{whole}.{tenth}{unit} views", "views") == whole * scale + tenth * scale // 10


@given(st.text(max_size=30))
def test_any_text_gives_a_count_of_its_own_digits_or_none(text: str) -> None:
    found = stated_count(text)
    assert found is None or str(found) == text.strip().replace(",", "").lstrip("0").rjust(1, "0")
