"""Changes of names in recorded responses: none is silent but those in the list, each with its reason."""

from __future__ import annotations

import pytest

from crawler.errors import ExtractionFailed
from crawler.platforms import platforms
from scripts.captures import CAPTURES
from tests.contracts.changes import effect, listed_names, unlisted, wrongly_listed
from tests.contracts.recorded import Answer

AT_MOST = {"microblog": 10, "photoapp": 7, "professional": 4, "retail": 23, "shortvideo": 9, "videosite": 11}
"""Platform -> length of its list. A list may only shrink."""


@pytest.mark.parametrize("platform", platforms())
def test_a_list_only_shrinks_and_names_reasons(platform: str) -> None:
    listed = listed_names(platform)
    assert len(listed) <= AT_MOST.get(platform, 0)
    assert [each for each, reason in listed.items() if not reason.endswith(".")] == []


@pytest.mark.soak
@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available")
@pytest.mark.parametrize("platform", platforms())
def test_no_change_of_a_name_is_silent(platform: str) -> None:
    """``scripts/check`` does the same for all platforms: ``python -m tests.contracts silent``."""
    assert list(unlisted(platform)) == list(wrongly_listed(platform)) == []


ORIGINAL = Answer({"a": 1}, None, ("old",))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ORIGINAL, "none"),
        (Answer({"a": 1}, None, ("old", "new")), "none"),
        (Answer({"a": None}, None, ("old",)), "silent"),
        (Answer({"a": None}, None, ()), "silent"),
        (Answer({"a": None}, None, ("old", "old")), "noticed"),
        (Answer({"a": None}, None, ("new",)), "noticed"),
        (Answer(None, ExtractionFailed("x", reason="y"), ()), "noticed"),
    ],
)
def test_whether_a_change_is_noticed(answer: Answer, expected: str) -> None:
    assert effect(ORIGINAL, answer) == expected
