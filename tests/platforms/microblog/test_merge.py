"""Records without a timeline: ``hasMore``, and a cursor for the start of the timeline without the returned posts."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.errors import ExtractionFailed
from crawler.platforms.microblog.convert import FIELDS
from crawler.platforms.microblog.merge import Part, record
from crawler.platforms.microblog.schema import CURSOR, MAX_SEEN, ProfileParams
from crawler.platforms.requests import MAX_CURSOR, decode_cursor, encode_cursor

LONG_ID = "1" * 20


def part(posts: list[str], **profile: Any) -> Part:
    """A source's item."""
    known = dict.fromkeys(FIELDS) | {"screen_name": "quiet_harbor"} | profile
    return {
        "profile": known,
        "user_id": "7",
        "posts": [{"post_id": post_id, "caption": ""} for post_id in posts],
        "pinned": "",
        "next_cursor": "",
    }


@pytest.mark.parametrize(
    ("posts", "profile", "has_more"),
    [
        (["1", "2"], {"statuses_count": 3}, True),
        (["1", "2"], {"statuses_count": None}, True),
        (["1", "2"], {"statuses_count": 2}, False),
        (["1", "2"], {"statuses_count": 1}, False),
        ([], {"statuses_count": 0}, False),
        ([], {"statuses_count": 3, "protected": True}, False),
        (["1"], {"statuses_count": None, "protected": False}, True),
    ],
)
def test_a_record_without_a_timeline_has_more_unless_it_is_complete(
    posts: list[str],
    profile: dict[str, Any],
    has_more: bool,  # noqa: FBT001  # a parameter of the table
) -> None:
    data = record({"page": part(posts, **profile)}, "Quiet_Harbor")
    assert (data["hasMore"], bool(data["nextCursor"])) == (has_more, has_more)
    if has_more:
        found = decode_cursor(CURSOR, data["nextCursor"])
        expected = {"handle": "quiet_harbor", "user_id": "7", "cursor": "", "seen": posts, "posts": len(posts)}
        assert found == expected | {"used": []}


def test_posts_of_two_sources_count_once() -> None:
    parts = {"page": part(["1", "2"], statuses_count=3), "embed": part(["2", "3"])}
    assert record(parts, "quiet_harbor")["hasMore"] is False


@pytest.mark.parametrize(("following", "ids"), [("", ["4", "3", "2", "1"]), ("c", ["4", "3"]), (None, ["4", "3"])])
def test_posts_of_the_embed_are_in_the_record_unless_a_later_page_of_the_timeline_has_them(
    following: str | None, ids: list[str]
) -> None:
    parts = {"timeline": part(["3"]) | {"next_cursor": following}, "page": part(["4"]), "embed": part(["3", "2", "1"])}
    assert [post["post_id"] for post in record(parts, "quiet_harbor")["data"]["main"]] == ids


def test_an_ended_timeline_ends_the_record() -> None:
    parts = {"page": part(["1"], statuses_count=90), "timeline": part(["1", "2"])}
    assert record(parts, "quiet_harbor")["hasMore"] is False


def test_cursors_are_bounded() -> None:
    posts = [f"{LONG_ID}{number:04}" for number in range(2 * MAX_SEEN)]
    cursor = record({"embed": part(posts)}, "x" * 15)["nextCursor"]
    assert len(cursor) < MAX_CURSOR
    assert ProfileParams(username="x" * 15, cursor=cursor).continuation["seen"] == posts[:MAX_SEEN]
    timeline = {**part([LONG_ID]), "next_cursor": "D" * 500, "pinned": LONG_ID}
    again = record({"timeline": timeline}, "x" * 15, posts[:MAX_SEEN])["nextCursor"]
    assert ProfileParams(username="x" * 15, cursor=again).continuation["seen"] == posts[:MAX_SEEN]


def test_a_cursor_that_could_not_be_read_does_not_end_the_record() -> None:
    timeline = {**part(["1", "2"], statuses_count=90), "next_cursor": None}
    data = record({"timeline": timeline}, "quiet_harbor", ["3"], 40)
    found = decode_cursor(CURSOR, data["nextCursor"])
    assert (data["hasMore"], found["cursor"], found["seen"], found["posts"]) == (True, "", ["3", "1", "2"], 42)


def test_a_text_that_another_source_continues_is_completed() -> None:
    whole = "word " * 60 + "end"
    cut, page = part(["1"]), part(["1"])
    cut["posts"][0]["caption"], page["posts"][0]["caption"] = whole[:270] + "…", whole
    (post,) = record({"timeline": cut, "page": page}, "quiet_harbor")["data"]["main"]
    assert post["caption"] == whole


def test_a_cursor_of_an_earlier_version_is_accepted() -> None:
    payload = {"handle": "x", "user_id": "7", "cursor": "D", "seen": []}
    cursor = encode_cursor(CURSOR, payload)
    assert ProfileParams(username="x", cursor=cursor).continuation == payload | {"posts": None, "used": []}


def test_sources_without_the_profile_are_an_error() -> None:
    with pytest.raises(ExtractionFailed) as raised:
        record({"timeline": part(["1"], screen_name=None)}, "quiet_harbor")
    assert raised.value.reason == "no_user"
