"""The contracts of all platforms, on captures where they are present."""

from __future__ import annotations

import orjson
import pytest

from crawler.platforms import platforms
from crawler.reading import careful, strict
from scripts.captures import CAPTURES
from tests.contracts.counts import contradictions, count, distinct, load
from tests.contracts.recorded import FOLDER, clean, no_longer_clean, recorded
from tests.reading.test_contract import plain

needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_clean_responses_have_no_warning(platform: str) -> None:
    """The list of clean responses exists on this machine as a whole: a capture that is gone proves nothing."""
    assert len(clean(platform)) == len((FOLDER / platform / "clean.txt").read_text().splitlines()) > 0
    assert list(no_longer_clean(platform)) == []


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_both_passes_read_the_same(platform: str) -> None:
    for _, kind, data in distinct(recorded(platform)):
        value, unread = careful.read_plain(kind, data)
        exact = strict.decoded(kind, orjson.dumps(data))
        assert (exact is None) == bool(unread)
        if exact is not None:
            assert plain(exact) == plain(value)


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_counts_have_not_changed_and_support_the_declarations(platform: str) -> None:
    """After a change of a contract or of the captures, run ``python -m tests.contracts count PLATFORM``."""
    payloads = list(distinct(recorded(platform)))
    counts = count(payloads)
    assert counts == load(platform)
    assert contradictions({root for _, root, _ in payloads}, counts) == []
