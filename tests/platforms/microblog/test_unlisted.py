"""Missing values of posts and users that other values prove to exist. They were once lost without a warning."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from crawler.errors import TargetRestricted
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import answer, page_of, timeline_of, timeline_with, web_timeline_with
from tests.platforms.microblog.test_variants import POST, WEB_POST, literals

SHORT, OTHER = "https://t.co/abc123", "https://t.co/def456"
LINK = {"url": SHORT, "expanded_url": "https://harbor.example/a", "indices": [7, 26]}
PHOTO = {"media_url_https": "https://pbs.twimg.com/media/a.jpg", "type": "photo"}
HASHTAG = {"text": "tides", "indices": [0, 6]}


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


def web(text: str, **parts: Any) -> bytes:
    details = {"full_text": text, "created_at_ms": 1_790_579_739_000}
    return web_timeline_with(WEB_POST | {"counts": COUNTS, "views": {"count": "7"}, "details": details} | parts)


LINKS, HASHTAGS = "legacy.entities.urls[]", "legacy.entities.hashtags[].text"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (api(f"A boat {SHORT} sails"), LINKS),
        (api(f"A boat {SHORT} sails", entities={"urls": [LINK]}), None),
        (api(f"A boat {SHORT}", extended_entities={"media": [PHOTO]}), None),
        (api(f"A boat {SHORT} {OTHER}", extended_entities={"media": [PHOTO]}), LINKS),
        (api("An unfinished link https://t.co/"), None),
        (
            api("A boat", note={"text": f"A boat {SHORT} sails", "entity_set": {"urls": [], "hashtags": []}}),
            "note_tweet.note_tweet_results.result.entity_set.urls[]",
        ),
        (api(f"A boat {SHORT}", entities={"urls": [{"url": SHORT, "indices": [7, 26]}]}), f"{LINKS}.expanded_url"),
        (api("A boat https://t.co/", entities={"urls": [{"url": "https://t.co/", "indices": [7, 20]}]}), None),
        (api(f"A boat {SHORT}", display_text_range=[0, 6]), "legacy.extended_entities"),
        (api("#tides rise"), HASHTAGS),
        (api("#tides rise", entities={"hashtags": [HASHTAG]}), None),
        (api("#tides", note={"text": "#tides", "entity_set": {"urls": [], "hashtags": [HASHTAG]}}), None),
        (api("The #1 boat in C#7, R&amp;#D and #a#b"), None),
        (web(f"A boat {SHORT} sails"), "url_entities[]"),
        (web(f"A boat {SHORT}", media_entities2=[PHOTO]), None),
        (web("#tides rise"), "details.hashtag_entities[].text"),
    ],
)
def test_links_and_hashtags_of_the_text_are_listed(body: bytes, expected: str | None) -> None:
    found = unread(body)
    assert found == [] if expected is None else found[0].endswith(expected)


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
    ("page", "is_article"),
    [("http://x.com/i/article/2075490569867161600", True), ("https://x.com/other/article/12", False)],
)
def test_an_article_that_the_post_links_to_is_in_the_post(page: str, *, is_article: bool) -> None:
    found = unread(api(SHORT, entities={"urls": [LINK | {"expanded_url": page}]}))
    assert [path.endswith("article.article_results.result") for path in found] == [True] * is_article


@pytest.mark.parametrize(
    ("parts", "paths"),
    [
        ({}, []),
        ({"counts": COUNTS | {"favorite_count": None}}, ["counts.favorite_count"]),
        ({"counts": {}}, ["counts.favorite_count", "counts.reply_count", "counts.retweet_count"]),
        ({"views": {}}, []),
    ],
)
def test_posts_of_the_web_client_have_counts(parts: dict[str, Any], paths: list[str]) -> None:
    assert [path.rpartition("result.")[2] for path in unread(web("A boat", **parts))] == paths


@pytest.mark.parametrize(
    ("views", "year", "likes", "expected"),
    [({}, 2026, 10, 1), ({"count": "7"}, 2026, 10, 0), ({}, 2026, 9, 0), ({}, 2022, 10, 0), (None, 2026, 10, 1)],
)
def test_a_post_of_the_web_client_that_people_like_has_views(
    views: dict[str, Any] | None, year: int, likes: int, expected: int
) -> None:
    details = {"full_text": "A boat", "created_at_ms": int(datetime(year, 9, 1, tzinfo=UTC).timestamp() * 1000)}
    found = unread(web("A boat", views=views, details=details, counts=COUNTS | {"favorite_count": likes}))
    assert [path.endswith("views.count") for path in found] == [True] * expected


@pytest.mark.parametrize(("status", "expected"), [("Available", 1), ("Unavailable", 0)])
def test_a_withheld_video_has_no_files(status: str, expected: int) -> None:
    video = PHOTO | {"type": "video", "ext_media_availability": {"status": status}}
    assert len(unread(api("A boat", extended_entities={"media": [video]}))) == expected


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


def test_a_hidden_post_is_a_placeholder_and_not_an_unknown_item() -> None:
    instructions = orjson.loads(timeline_with(POST))["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
    hidden = {"itemType": "TimelineTombstone", "tombstoneInfo": {"text": "This Post was deleted by its author."}}
    entry = {"entryId": "tombstone-1", "content": {"entryType": "TimelineTimelineItem", "itemContent": hidden}}
    instructions[0]["entries"].append(entry)
    page = page_of("timeline", timeline_of(*instructions))
    assert len(asyncio.run(page.to_item())["posts"]) == 1
    assert [each for each in page.unread if each.cause == "unknown"] == []
    only = timeline_of({"type": "TimelineAddEntries", "entries": [entry]})
    with pytest.raises(TargetRestricted) as raised:
        asyncio.run(page_of("timeline", only).to_item())
    assert raised.value.reason == "tombstone"


@pytest.mark.parametrize("key", ["note_tweet_results", "result"])
@pytest.mark.parametrize("text", ["A boat", f"{'word ' * 54}…"])
def test_a_note_under_a_renamed_key_is_missing(key: str, text: str) -> None:
    note = {"is_expandable": True, "note_tweet_results": {"result": {"text": "A boat sails", "entity_set": {}}}}
    renamed = orjson.loads(orjson.dumps(note).replace(b'"%b"' % key.encode(), b'"new_key"'))
    (found,) = unread(timeline_with(POST | {"legacy": POST["legacy"] | {"full_text": text}, "note_tweet": renamed}))  # type: ignore[operator]
    assert found.endswith("note_tweet.note_tweet_results.result")


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


def header(**changed: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the profile from a public page with changed parts of the user, and the unread parts."""
    page = page_of("page", literals(HEADER | changed, WEB_RECORD).encode(), username="quiet_harbor")
    profile = asyncio.run(page.to_item())["profile"]
    return profile, [each.path for each in page.unread]


WEB_RECORD = WEB_POST | {"core": {"user_results": {"result": HEADER}}, "counts": COUNTS}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"profile_bio": {}}, ["user.profile_bio.description"]),
        ({"verification": {}}, ["user.verification.is_blue_verified"]),
        ({"core": {"screen_name": "quiet_harbor", "name": "Harbor"}}, ["user.core.created_at_ms"]),
        ({"core": {"name": "Harbor", "created_at_ms": 1}}, ["user.core.screen_name"]),
        ({"location": {}}, []),
        ({"privacy": {"protected": False}}, ["user.verification.verified"]),
        ({"verification": {"is_blue_verified": False, "verified": False}}, ["user.privacy.protected"]),
    ],
)
def test_a_part_of_the_users_of_a_public_page_that_is_missing(changed: dict[str, Any], expected: list[str]) -> None:
    assert header(**changed)[1] == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"location": {}}, ["user.location.location"]),
        ({"location": {}, "profile_bio": {}}, ["user.profile_bio.description"]),
        ({"action_counts": {"favorites_count": 1}}, ["user.tweet_counts.media_tweets"]),
        ({"tweet_counts": {"tweets": 7, "media_tweets": 1}}, ["user.action_counts.favorites_count"]),
        ({"action_counts": {"favorites_count": 1}, "tweet_counts": {"tweets": 7, "media_tweets": 1}}, []),
    ],
)
def test_a_part_of_a_user_in_the_web_client_s_response_that_is_missing(
    changed: dict[str, Any], expected: list[str]
) -> None:
    page = page_of("user", orjson.dumps({"data": {"user_result_by_screen_name": {"result": HEADER | changed}}}))
    assert asyncio.run(page.to_item())["profile"]["followers_count"] == 5
    assert [each.path for each in page.unread] == expected


@pytest.mark.parametrize("date", [1_386_995_755_000, "1386995755000", "2013-12-14T04:35:55.000Z"])
def test_a_date_of_a_user_has_one_format(date: Any) -> None:
    profile, paths = header(core=HEADER["core"] | {"created_at_ms": date})  # type: ignore[operator]
    assert (profile["created_at"], paths) == ("Sat Dec 14 04:35:55 +0000 2013", [])


@pytest.mark.parametrize("date", ["soon", 1_386_995_755, "1386995755"])
def test_a_date_of_a_user_that_cannot_be_read_is_a_warning(date: Any) -> None:
    profile, paths = header(core=HEADER["core"] | {"created_at_ms": date})  # type: ignore[operator]
    assert profile["created_at"] == "Sat Dec 14 04:35:55 +0000 2013"  # from the linked data
    assert paths == ["user.core.created_at_ms"]


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
        *("favourites_count", "followers_count", "friends_count", "listed_count", "media_count", "statuses_count"),
        *("name", "created_at", "profile_image_url_https", "verified", "is_blue_verified"),
    ],
)
def test_a_value_of_the_embed_s_user_that_is_renamed_is_a_warning(key: str) -> None:
    assert embed_renamed("none")[1] == set()
    profile, found = embed_renamed(key)
    assert profile[key] is None
    assert f"user.{key}: contradiction" in found


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


def test_a_date_of_a_post_in_seconds_is_not_read_as_milliseconds() -> None:
    """The time of such a post is taken from the post's id."""
    bodies = [web("x"), web("x", details={"full_text": "x", "created_at_ms": 1_790_579_739}), api("x")]
    bodies.append(api("x", created_at="1790579739"))
    pages = [asyncio.run(page_of("timeline", body).to_item())["posts"][0]["upload_timestamp"] for body in bodies]
    assert all(time > 1_142_899_200 for time in pages)


@pytest.mark.parametrize(("legacy", "expected"), [({"withheld_in_countries": []}, []), ({}, ["banner", "website"])])
def test_users_of_2026_03_omit_a_missing_banner_and_website(legacy: dict[str, Any], expected: list[str]) -> None:
    counts = {"followers_count": 5, "friends_count": 6, "favourites_count": 0, "listed_count": 1, "media_count": 2}
    user = {
        "__typename": "User",
        "rest_id": "7",
        "is_blue_verified": False,
        "core": {"screen_name": "quiet_harbor", "name": "Harbor", "created_at": "Tue Dec 09 19:02:13 +0000 2014"},
        "avatar": {"image_url": "a"},
        "location": {"location": "Isle"},
        "privacy": {"protected": False},
        "verification": {"verified": False},
        "profile_bio": {"description": ""},
        "legacy": {**counts, "statuses_count": 9, "description": "", **legacy},
    }
    page = page_of("user", orjson.dumps({"data": {"user": {"result": user}}}))
    profile = asyncio.run(page.to_item())["profile"]
    assert [each.path.split(".")[1] for each in page.unread] == expected
    assert (profile["profile_banner_url"], profile["url"]) == ((None, None) if expected else ("", ""))
