"""The contracts of all platforms, on captures where they are present."""

from __future__ import annotations

import orjson
import pytest

from crawler.platforms import platforms
from crawler.reading import careful, strict
from scripts.captures import CAPTURES
from tests.contracts.counts import distinct
from tests.contracts.recorded import recorded
from tests.reading.test_contract import plain


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available")
@pytest.mark.parametrize("platform", platforms())
def test_both_passes_read_the_same(platform: str) -> None:
    for _, kind, data in distinct(recorded(platform)):
        value, unread = careful.read_plain(kind, data)
        exact = strict.decoded(kind, orjson.dumps(data))
        assert (exact is None) == bool(unread)
        if exact is not None:
            assert plain(exact) == plain(value)
