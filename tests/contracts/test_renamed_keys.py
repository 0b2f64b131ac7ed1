"""Keys in captures whose renaming must be reported, although some payloads of the same kind lack them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crawler.reading.contract import Contract
from scripts.captures import CAPTURES
from tests.contracts.responses import captured

USER = "data.user_results.result"
TABS = "contents.twoColumnBrowseResultsRenderer.tabs"

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)


def _rename(data: Any, path: list[str]) -> None:
    key, _, _ = path[0].partition("[")
    if len(path) == 1:
        if key in data:
            data[f"{key}Renamed"] = data.pop(key)
        return
    inner = data.get(key)
    for each in inner if isinstance(inner, list) else [inner] * (inner is not None):
        _rename(each, path[1:])


@pytest.mark.parametrize(
    ("platform", "capture", "path"),
    [
        *(
            pytest.param("microblog", "8fb2f652431b", f"{USER}.{key}", id=f"user-{key}")
            for key in (
                "core.name",
                "avatar",
                "rest_id",
                "relationship_counts",
                "relationship_counts.followers",
                "tweet_counts.tweets",
            )
        ),
        pytest.param("videosite", "73bd293953f7", TABS, id="tabs-of-a-game"),
        pytest.param("videosite", "6d109af6a980", TABS, id="tabs-behind-an-age-gate"),
    ],
)
def test_a_renamed_key_is_reported(platform: str, capture: str, path: str) -> None:
    response = next(each for each in captured(platform) if each.name == capture)

    def change(_kind: type[Contract], data: Any) -> Any:
        changed = orjson.loads(orjson.dumps(data))
        _rename(changed, path.split("."))
        return changed

    result = response.read(change)
    assert result.error is not None or result.unread
    assert response.original.error is None
    assert response.original.unread == []
