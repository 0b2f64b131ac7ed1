"""The transcribed fixtures show most of the structure of the recorded responses, but contain none of their content."""

from __future__ import annotations

import re
from functools import cache

import pytest

from scripts.captures import CAPTURES
from tests import transcribe
from tests.transcription import leaves, words

pytestmark = pytest.mark.meta

needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures (../shared) are missing")
ENTRIES = {f"{entry.platform}-{entry.name}": entry for entry in transcribe.entries()}
MIN_COVERAGE = 0.95


@cache
def long_parts() -> frozenset[str]:
    """Return the words and numbers in all recorded responses, except five-digit numbers, which can match by chance.

    A fixture is compared only with the five-digit numbers of its own recording.
    """
    return frozenset(part for part in transcribe.captured().parts if not (part.isdecimal() and len(part) == 5))


@needs_captures
@pytest.mark.parametrize("name", ENTRIES)
def test_fixture_has_no_content_of_a_capture(name: str) -> None:
    entry, captured = ENTRIES[name], transcribe.captured()
    parts = long_parts() | leaves.content([transcribe.body_of(entry)]).parts
    kept, body = words.kept_words(entry.platform), transcribe.fixture_body(entry)
    plain = re.sub(r"%(?:25)*[0-9A-Fa-f]{2}", " ", body)
    assert {part for part in leaves.parts_of(plain) if part.isdecimal()} & parts == set()
    for key, text in leaves.of_body(body):
        if words.is_identity(key) and not words.is_word_of_platform(entry.platform, text):
            assert " ".join(text.split()) not in captured.texts, (key, text)
        if words.is_enumerated(entry.platform, key, text):
            continue
        assert (leaves.parts_of(text) & parts) - kept == set(), (key, text)
        if {word for word in re.findall(r"[^\W\d_]{3,}", text.lower()) if word not in kept}:
            assert " ".join(text.split()) not in captured.texts, (key, text)


@needs_captures
def test_fixtures_cover_the_structure_of_the_captures() -> None:
    figures = {platform: covered / captured for platform, _, captured, covered in transcribe.coverage()}
    assert figures
    assert {platform: share for platform, share in figures.items() if share < MIN_COVERAGE} == {}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("id 123456, sha 0a597bb475bb361151f992567b8b089f", {"123456", "0a597bb475bb361151f992567b8b089f"}),
        ("/obj/0a597bb475bb361151f992567b8b089f_123456.jpeg", {"0a597bb475bb361151f992567b8b089f", "123456"}),
        ("u0a597bb475bb361151f992567b8b089f", {"361151", "992567"}),  # no hash: other letters
    ],
)
def test_a_hash_is_one_part_without_numbers(text: str, parts: set[str]) -> None:
    assert leaves.parts_of(text) == parts
