"""The records in a profile's page, which refer to each other by their ids, and of which some are missing."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from crawler.errors import ExtractionFailed
from crawler.platforms.microblog.pages import MAX_OBJECTS, Records
from tests.microblog_pages import page_of
from tests.platforms.microblog.test_variants import AUTHOR, FULL, WEB_POST, item, literals, rendered, timeline


def encoded(record_id: str) -> str:
    return b64encode(record_id.encode()).decode()


USER, RESULTS = encoded("User:7"), encoded("UserResults:7")
ITEM = {"__typename": "TimelineTimelineItem", "content": {"__typename": "TimelineTweet"}}


def posts_of(result: dict[str, Any], *records: dict[str, Any]) -> list[dict[str, Any]]:
    """The posts of a page with one entry, whose post is in the object ``result``."""
    content = ITEM | {"content": {"__typename": "TimelineTweet", "tweet_results": result}}
    entry = {
        "__id": "client:entries:1",
        "__typename": "TimelineTimelineEntry",
        "entry_id": "tweet-1",
        "content": content,
    }
    page = page_of("page", literals(FULL, *records, entry, timeline(1)).encode(), username="quiet_harbor")
    posts: list[dict[str, Any]] = asyncio.run(page.to_item())["posts"]
    return posts


@pytest.mark.parametrize(
    "records",
    [
        ({"__id": RESULTS, "__typename": "UserResults", "result": {"__ref": USER}}, {"__id": USER, **AUTHOR}),
        ({"__id": USER, **AUTHOR},),
        (
            {"__id": f"client:{USER}:core", **AUTHOR["core"]},  # type: ignore[dict-item]  # an object
            {"__id": f"client:{USER}:avatar", **AUTHOR["avatar"]},  # type: ignore[dict-item]  # an object
        ),
    ],
    ids=["all records", "no record of the result", "only the records of the user's fields"],
)
def test_the_author_of_a_post_is_found_without_some_of_its_records(records: tuple[dict[str, Any], ...]) -> None:
    (post,) = posts_of({"result": WEB_POST | {"core": {"user_results": {"__ref": RESULTS}}}}, *records)
    assert (post["creator_handle"], post["profile_picture_url"]) == ("quiet_harbor", "a")


def test_records_with_one_id_complete_each_other() -> None:
    first, second = {"__id": "T", **WEB_POST}, {"__id": "T", "counts": {"favorite_count": 4, "reply_count": 3}}
    (post,) = posts_of({"result": {"__ref": "T"}}, first, {"__id": "client:later", "record": second})
    assert (post["caption"], post["like_count"], post["comment_count"]) == ("words", 4, 3)


def test_more_objects_than_any_page_has_are_refused() -> None:
    assert Records([], frozenset()).nested([{}] * (MAX_OBJECTS - 1)) is not None  # and the list
    with pytest.raises(ExtractionFailed):
        Records([], frozenset()).nested([{}] * MAX_OBJECTS)


def test_a_quoted_post_that_the_page_lacks_is_still_a_quote() -> None:
    quoted = {"quoted_tweet_results": {"__ref": encoded("TweetResults:5")}}
    (post,) = posts_of({"result": WEB_POST | quoted})
    assert (post["is_quote"], post["quoted_post"]) == (True, None)


def test_the_profile_s_own_timeline_is_read_if_the_page_has_several() -> None:
    other = timeline(3, id="WhoToFollow-Timeline", __id="client:other")
    assert rendered(other, timeline(2, 1)) == ["2", "1"]


def test_an_entry_without_content_leads_to_the_post_with_its_number() -> None:
    post = {"__id": "TweetResults:7", "__typename": "TweetResults", "result": WEB_POST}
    entry = {"__id": "client:entries:1", "__typename": "TimelineTimelineEntry", "entry_id": "tweet-7"}
    page = page_of("page", literals(FULL, post, entry, timeline(1)).encode(), username="quiet_harbor")
    assert [each["caption"] for each in asyncio.run(page.to_item())["posts"]] == ["words"]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_entries_with_one_id_the_one_with_content_is_read(order: int) -> None:
    empty: dict[str, Any] = {"__id": "client:entries:1", "__typename": "TimelineTimelineEntry", "entry_id": "tweet-1"}
    entries = [empty, empty | {"__id": "client:entries:2", "content": item(WEB_POST)}][::order]
    page = page_of("page", literals(FULL, *entries, timeline(1)).encode(), username="quiet_harbor")
    assert [each["caption"] for each in asyncio.run(page.to_item())["posts"]] == ["words"]
