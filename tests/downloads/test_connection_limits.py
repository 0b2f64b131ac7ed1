"""The limits of a proxy's response to ``CONNECT``. In ``test_egresses_hostile.py``, real proxies exceed them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.downloads.connections import MAX_CONNECT_BYTES, limited_head

HEAD = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"


def received(*pieces: bytes) -> tuple[list[bytes], list[str]]:
    """Return the data that is passed on, and the failures."""
    passed: list[bytes] = []
    failures: list[str] = []
    receive = limited_head(passed.append, failures.append)
    for piece in pieces:
        receive(piece)
        if passed or failures:
            break
    return passed, failures


@given(st.lists(st.integers(1, len(HEAD) - 1), max_size=len(HEAD)))
def test_a_head_in_pieces_is_passed_on_once_and_whole(cuts: list[int]) -> None:
    ends = sorted({*cuts, len(HEAD)})
    pieces = [HEAD[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert received(*pieces) == ([HEAD], [])


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"x" * 1_000] * 1_000, id="never ends"),
        pytest.param([b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_CONNECT_BYTES + b"\r\n\r\n"], id="ends too late"),
        pytest.param([b"\r" * (MAX_CONNECT_BYTES + 1)], id="one piece without an end"),
    ],
)
def test_a_head_is_at_most_64_kb(pieces: list[bytes]) -> None:
    passed, (failure,) = received(*pieces)
    assert passed == []
    assert "larger than 65536 bytes" in failure
