"""Embeds of another profile, and unread parts of a page's timeline. ``table.yaml`` has the marks of each statement."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crawler.errors import ScrapeError
from crawler.platforms.microblog.base import MicroblogPage
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import answer, page_of
from tests.platforms.microblog.test_variants import WEB_POST, literals


def error_of(page: MicroblogPage) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    return raised.value


def test_an_embed_of_another_profile_is_refused_even_if_it_has_a_post_of_the_requested_one() -> None:
    body = answer(Site(), "embed", "quiet_harbor")[2]
    assert body.count(b'"screenName":"quiet_harbor"') == 1
    other = body.replace(b'"screenName":"quiet_harbor"', b'"screenName":"another"')
    error = error_of(page_of("embed", other, username="quiet_harbor"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


@pytest.mark.parametrize("source", ["page", "embed", "user", "timeline"])
def test_an_answer_for_another_profile_is_refused(source: str) -> None:
    body = answer(Site(), source, "quiet_harbor")[2]
    assert asyncio.run(page_of(source, body, username="Quiet_Harbor").to_item())
    error = error_of(page_of(source, body, username="lone_wolf"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


def test_an_embed_without_a_handle_is_refused_if_it_has_posts_of_others_only() -> None:
    body = answer(Site(), "embed", "quiet_harbor")[2].replace(b'"screenName":', b'"renamed":')
    assert asyncio.run(page_of("embed", body, username="quiet_harbor").to_item())["posts"]
    error = error_of(page_of("embed", body, username="lone_wolf"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


@pytest.mark.parametrize(
    ("instruction", "path"),
    [
        ({"__typename": "TimelineSing"}, "instructions[].…unknown"),
        ({"__typename": "TimelinePinEntry"}, "instructions[].entry"),
    ],
)
def test_unread_parts_of_a_page_s_timeline_are_warnings(instruction: dict[str, Any], path: str) -> None:
    entry = {"__typename": "TimelineTweet", "tweet_results": {"result": WEB_POST}}
    entries = [{"entry_id": "tweet-1", "content": {"__typename": "TimelineTimelineItem", "content": entry}}]
    added = {"__typename": "TimelineAddEntries", "entries": entries}
    for instructions, expected in (([added], []), ([added, instruction], [path])):
        page = page_of("page", literals({"instructions": instructions}).encode())
        assert len(asyncio.run(page.to_item())["posts"]) == 1
        assert [each.path for each in page.unread if each.path.startswith("instructions")] == expected
