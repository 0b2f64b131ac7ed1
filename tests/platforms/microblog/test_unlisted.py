"""Missing values of posts and users that other values prove to exist. ``table.yaml`` has more of them."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import answer, page_of, timeline_with
from tests.platforms.microblog.test_variants import POST, WEB_POST, literals

SHORT = "https://t.co/abc123"
LINK = {"url": SHORT, "expanded_url": "https://harbor.example/a", "indices": [7, 26]}


def unread(body: bytes) -> list[str]:
    """The unread paths with the cause ``contradiction`` in a timeline's posts."""
    page = page_of("timeline", body)
    asyncio.run(page.to_item())
    return [each.path for each in page.unread if each.cause == "contradiction" and not each.path.startswith("user.")]


def api(text: str, *, note: dict[str, Any] | None = None, **legacy: Any) -> bytes:
    return timeline_with(
        POST
        | {"legacy": POST["legacy"] | {"full_text": text, **legacy}}  # type: ignore[operator]  # a dict
        | ({"note_tweet": {"note_tweet_results": {"result": note}}} if note else {})
    )


COUNTS = {"favorite_count": 5, "reply_count": 1, "retweet_count": 0}


@pytest.mark.parametrize(
    ("text", "links", "lost"),
    [(f"{'word ' * 54}…", [], "note"), (SHORT, [LINK | {"expanded_url": "http://x.com/i/article/12"}], "article")],
)
def test_the_embed_has_neither_notes_nor_articles(text: str, links: list[Any], lost: str) -> None:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(each) for each in value]
        if not isinstance(value, dict):
            return value
        changed = {key: change(each) for key, each in value.items()}
        return changed | {"full_text": text, "entities": {"urls": links}} if "full_text" in changed else changed

    body = answer(Site(), "embed", "quiet_harbor")[2].decode()
    start, end = body.index("{", body.index("__NEXT_DATA__")), body.index("</script>", body.index("__NEXT_DATA__"))
    changed = body[:start] + orjson.dumps(change(orjson.loads(body[start:end]))).decode() + body[end:]
    page = page_of("embed", changed.encode(), username="quiet_harbor")
    assert asyncio.run(page.to_item())["posts"]
    assert f"tweet_results.result.{lost}" in [each.path for each in page.unread]


def test_the_cut_text_of_a_repost_lists_nothing() -> None:
    legacy = {"retweeted_status_result": {"result": POST}}
    assert unread(api(f"RT @other: #tides {SHORT}", **legacy)) == []


@pytest.mark.parametrize(
    ("shape", "kind", "expected"), [("Square", None, 1), ("Square", "Business", 0), ("Circle", None, 0)]
)
@pytest.mark.parametrize("handle", ["quiet_harbor"])
def test_a_user_with_a_square_picture_is_a_business(shape: str, kind: str | None, expected: int, handle: str) -> None:
    response = orjson.loads(answer(Site(), "user", handle)[2])
    user = response["data"]["user"]["result"]
    user["profile_image_shape"] = shape
    for holder in ("verification", "legacy"):
        user.get(holder, {}).pop("verified_type", None)
    if kind is not None:
        user["verification"]["verified_type"] = kind
    page = page_of("user", orjson.dumps(response))
    profile = asyncio.run(page.to_item())["profile"]
    assert profile["verified_type"] == (None if expected else kind or "")
    assert len([each for each in page.unread if each.path.endswith("verified_type")]) == expected


HEADER = {
    "__typename": "User",
    "rest_id": "7",
    "core": {"screen_name": "quiet_harbor", "name": "Harbor", "created_at_ms": 1_386_995_755_000},
    "avatar": {"image_url": "a"},
    "profile_bio": {"description": ""},
    "location": {"location": "Isle"},
    "relationship_counts": {"followers": 5, "following": 6},
    "tweet_counts": {"tweets": 7},
    "verification": {"is_blue_verified": False},
}


WEB_RECORD = WEB_POST | {"core": {"user_results": {"result": HEADER}}, "counts": COUNTS}


def test_a_record_of_a_post_has_all_keys_of_its_query() -> None:
    keys = ("article", "media_entities2", "note_tweet", "quoted_tweet_results", "reply_to_results")
    record = {
        "__id": "VHdlZXQ6MQ==",
        **dict.fromkeys((*keys, "reply_to_user_results", "url_entities", "views")),
        **WEB_RECORD,
    }
    entry = {"content": {"__typename": "TimelineTweet", "tweet_results": {"result": {"__ref": record["__id"]}}}}
    entries = [{"entry_id": "tweet-1", "content": {"__typename": "TimelineTimelineItem", **entry}}]
    timeline = {"instructions": [{"__typename": "TimelineAddEntries", "entries": entries}]}
    for key in ("note_tweet", "quoted_tweet_results"):
        for renamed in (record, {name: value for name, value in record.items() if name != key}):
            page = page_of("page", literals(HEADER, renamed, timeline).encode(), username="quiet_harbor")
            assert len(asyncio.run(page.to_item())["posts"]) == 1
            expected = [] if renamed is record else [f"Tweet.{key}: missing"]
            assert [str(each) for each in page.unread] == expected
    quoted = {"__id": "VHdlZXQ6Mg==", **WEB_RECORD, "rest_id": "2"}  # its query selects fewer keys
    page = page_of("page", literals(HEADER, record, quoted, timeline).encode(), username="quiet_harbor")
    assert len(asyncio.run(page.to_item())["posts"]) == 1
    assert page.unread == []


def embed_renamed(key: str) -> tuple[dict[str, Any], set[str]]:
    body = answer(Site(), "embed", "quiet_harbor")[2]
    page = page_of("embed", body.replace(b'"%b":' % key.encode(), b'"new_key":'), username="quiet_harbor")
    return asyncio.run(page.to_item())["profile"], {str(each) for each in page.unread}


@pytest.mark.parametrize(
    "key",
    [
        *("favorite_count", "reply_count", "retweet_count"),
        *("in_reply_to_status_id_str", "in_reply_to_screen_name", "quoted_status_id_str"),
    ],
)
def test_a_value_of_the_embed_s_posts_that_is_renamed_is_a_warning(key: str) -> None:
    found = embed_renamed(key)[1]
    assert any(each.startswith(f"tweet_results.result.{key}: contradiction") for each in found)
