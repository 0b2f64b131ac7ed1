"""Cursors: valid ones are decoded, and all other text is rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.platforms.requests import decode_cursor, encode_cursor

PAYLOADS = st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.lists(st.text()))


@given(PAYLOADS)
def test_a_decoded_cursor_has_its_payload(payload: dict[str, object]) -> None:
    assert decode_cursor("videos-1", encode_cursor("videos-1", payload)) == payload


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor("videos-1", text)


@given(PAYLOADS, st.data())
def test_changed_cursors_are_refused(payload: dict[str, object], data: st.DataObject) -> None:
    text = encode_cursor("videos-1", payload)
    at = data.draw(st.integers(0, len(text) - 2))  # not the last character, which may have unused bits
    other = data.draw(st.sampled_from("ABCxyz019-_").filter(lambda letter: letter != text[at]))
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor("videos-1", text[:at] + other + text[at + 1 :])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "AAAA",
        "é" * 10,
        "A" * 100_000,
        encode_cursor("videos-1", {"tab": "live"})[:-3],
        encode_cursor("posts-1", {"tab": "live"}),
    ],
)
def test_malformed_cursors_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor("videos-1", text)
