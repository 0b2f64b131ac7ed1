"""The transcribed fixtures: how much of the captures' structure they show, and that they have none of their content."""

from __future__ import annotations

import re

import pytest

from tests import transcribe
from tests.transcription import leaves, words

needs_captures = pytest.mark.skipif(not transcribe.CAPTURES.is_dir(), reason="the captures (../shared) are missing")
ENTRIES = {f"{entry.platform}-{entry.name}": entry for entry in transcribe.entries()}
MIN_COVERAGE = 0.95


@needs_captures
@pytest.mark.parametrize("name", ENTRIES)
def test_fixture_has_no_content_of_a_capture(name: str) -> None:
    entry, captured = ENTRIES[name], transcribe.captured()
    kept, body = words.kept_words(entry.platform), transcribe.fixture_body(entry)
    plain = re.sub(r"%(?:25)*[0-9A-Fa-f]{2}", " ", body)
    assert {part for part in leaves.parts_of(plain) if part.isdecimal()} & captured.parts == set()
    for key, text in leaves.of_body(body):
        if words.is_identity(key) and not words.is_word_of_platform(entry.platform, text):
            assert " ".join(text.split()) not in captured.texts, (key, text)
        if words.is_enumerated(entry.platform, key, text):
            continue
        assert (leaves.parts_of(text) & captured.parts) - kept == set(), (key, text)
        if {word for word in re.findall(r"[^\W\d_]{3,}", text.lower()) if word not in kept}:
            assert " ".join(text.split()) not in captured.texts, (key, text)


@needs_captures
def test_fixtures_cover_the_structure_of_the_captures() -> None:
    figures = {platform: covered / captured for platform, _, captured, covered in transcribe.coverage()}
    assert len(figures) == 6
    assert {platform: share for platform, share in figures.items() if share < MIN_COVERAGE} == {}
