"""Recorded responses of the microblog are compared with noted values. They are other people's data, and not shipped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms import cursors
from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.microblog.text import id_seconds
from crawler.registry import scrapers
from scripts.captures import CAPTURES, body_of, captures
from tests.microblog_pages import page_of, timeline_with

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")

SCRAPER = scrapers()["microblog-profile"]
PAGE = "15e277c749c3"


def read(*names: str, **params: Any) -> dict[str, Any]:
    """The data of a target's saved responses."""
    return asyncio.run(extract(SCRAPER, [body_of(name) for name in names], params, url="https://x.com/"))


def posts_of(*names: str, **params: Any) -> list[dict[str, Any]]:
    posts: list[dict[str, Any]] = read(*names, **params)["data"]["main"]
    return posts


def profile_of(*names: str, **params: Any) -> dict[str, Any]:
    profile: dict[str, Any] = read(*names, **params)["data"]["additional"]["profile_demographics"]
    return profile


def raw_posts() -> Iterator[dict[str, Any]]:
    """Every post in an older format in the captures that are neither trimmed nor derived, at any depth."""
    for name, path in captures().items():
        if (
            path.parent.name != "microblog"
            or path.suffix not in {".json", ".gz"}
            or "DERIVED" in path.name
            or "TRIMMED" in path.name
        ):
            continue
        waiting: list[Any] = [orjson.loads(body_of(name))]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                if isinstance(value.get("legacy"), dict) and "full_text" in value["legacy"]:
                    yield value
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


def test_every_post_of_every_capture_is_complete() -> None:
    total = wrappers = 0
    for raw in raw_posts():
        page = page_of("timeline", timeline_with({"__typename": "Tweet"} | raw))
        (record,) = asyncio.run(page.to_item())["posts"]
        assert [str(each) for each in page.unread if "bookmark" not in each.path] == []
        stamped = id_seconds(record["post_id"])
        assert stamped in {record["upload_timestamp"], None}, "the id has the time stamp of created_at"
        assert not record["caption"].startswith("RT @")
        assert "&amp;" not in record["caption"] or "note_tweet" in raw
        if record["is_repost"]:
            wrappers += 1
            assert (record["like_count"], record["comment_count"], record["save_count"]) == (None, None, None)
            assert record["share_count"] == raw["legacy"]["retweet_count"]
            assert not record["is_quote"]
            assert "retweeted_status_result" in raw["legacy"]
            assert record["reposted_post"]["post_id"] != record["post_id"]
        else:
            assert record["like_count"] == raw["legacy"]["favorite_count"]
            assert record["view_count"] == (int(raw["views"]["count"]) if "count" in raw["views"] else None)
        total += 1
    assert (total, wrappers) == (789, 168)


OLD = {
    "created_at": "Sat Dec 14 04:35:55 +0000 2013",
    "description": (
        "The voice of the X Dev team and your official source for updates, news, and events, related to the X API."
    ),
    "is_blue_verified": True,
    "protected": False,
    "verified": False,
    "location": "127.0.0.1",
    "name": "Developers",
    "profile_banner_url": "https://pbs.twimg.com/profile_banners/2244994945/1690213128",
    "profile_image_url_https": "https://pbs.twimg.com/profile_images/1683501992314798080/xl1POYLw_normal.jpg",
    "screen_name": "XDevelopers",
    "url": "https://t.co/NIwHVIVyrN",
    "verified_type": "Business",
}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("251bd89a84fc", (2167, 700242, 746, 2682, 821, 4079)),  # layout A
        ("ef88cf9f1b4d", (2621, 694648, 762, 2981, 829, 4307)),  # layout B
        ("be9dfa1b596b", (2642, 695695, 762, None, 829, 4319)),  # layout C
    ],
)
def test_a_user_is_the_same_in_three_generations(name: str, counts: tuple[int | None, ...]) -> None:
    names = ("favourites", "followers", "friends", "listed", "media", "statuses")
    assert profile_of(name) == OLD | {f"{n}_count": value for n, value in zip(names, counts, strict=True)}
    assert read(name, username="xdevelopers")["data"]["main"] == []


@pytest.mark.parametrize(
    ("name", "total", "kinds"),
    [
        ("e992000b9ff4", 21, {"is_repost": 16, "is_reply": 1}),  # layout C
        (
            "c367f8c5ac7c",  # layout A
            20,
            {"is_repost": 12, "is_quote": 4, "is_reply": 2},
        ),
        ("62d44ffe2538", 21, {"is_repost": 16, "is_quote": 3}),  # layout A
        ("8bf3576c7485", 37, {"is_reply": 4}),  # layout C, media
        (
            "341926ad1a2f",  # layout C, a list
            98,
            {"is_repost": 66, "is_quote": 7, "is_reply": 3},
        ),
        ("d8fcad0db39f", 20, {"is_quote": 5}),  # layout C, a search
    ],
)
def test_timelines_have_the_expected_posts(name: str, total: int, kinds: dict[str, int]) -> None:
    data = read(name)
    posts = data["data"]["main"]
    assert len(posts) == len({post["post_id"] for post in posts}) == total
    assert Counter(kind for post in posts for kind in ("is_repost", "is_quote", "is_reply") if post[kind]) == kinds
    assert data["hasMore"] is True
    assert data["nextCursor"]


def test_a_pinned_post_comes_first_and_once() -> None:
    for name in ("e992000b9ff4", "c367f8c5ac7c"):
        posts = posts_of(name, username="XDevelopers")
        assert posts[0]["upload_timestamp"] < posts[1]["upload_timestamp"]
        assert [p["post_id"] for p in posts].count(posts[0]["post_id"]) == 1


def test_video_files_are_sorted_by_bitrate() -> None:
    (post,) = posts_of("9731ea66218b")
    files = post["video_urls_by_quality"]
    assert post["video_url"] == files["high"]
    assert len({files["high"], files["medium"], files["low"]}) == 3
    assert files["watermarked"] is None
    animations = [
        p for p in posts_of("8bf3576c7485")
        if p["video_url"] and "tweet_video" in p["video_url"]
    ]  # fmt: skip
    assert len(animations) == 4
    assert all(p["video_urls_by_quality"]["low"] is None for p in animations)


def test_the_rendered_page_gives_profile_and_posts() -> None:
    profile, posts = profile_of(PAGE, username="geekbb"), posts_of(PAGE, username="GeekBB")
    assert {name: profile[name] for name in ("screen_name", "name", "followers_count", "friends_count")} == {
        "screen_name": "geekbb",
        "name": "Geek",
        "followers_count": 115955,
        "friends_count": 548,
    }
    assert (profile["statuses_count"], profile["listed_count"], profile["verified"]) == (29094, None, None)
    assert [post["post_id"] for post in posts] == [
        "2098678373753225483",
        "2098629676495159496",
        "2098604072572162341",
        "2098581405253189796",
        "2098310980103200951",
    ]
    names = ("view_count", "like_count", "save_count", "comment_count", "share_count")
    assert [tuple(p[name] for name in names) for p in posts] == [
        (3789, 17, 16, 12, 1),
        (2900, 10, 26, 12, 3),
        (12909, 64, 105, 18, 5),
        (6954, 16, 16, 36, 3),
        (7391, 8, 1, 55, 0),
    ]  # fmt: skip
    assert posts[0]["caption"].endswith("Gemini / OpenAI"), "the long text, not the truncated one"
    assert posts[1]["caption"].endswith("https://github.com/obsidianmd/knap"), "expanded, without the photo's link"
    assert posts[3]["video_url"].endswith("1920x1080/nSlgRXL2a3DiUB9m.mp4?tag=29")
    assert [p["is_quote"] for p in posts] == [False, False, False, False, True]
    quoted = posts[4]["quoted_post"]
    assert (quoted["creator_handle"], quoted["creator_name"], quoted["like_count"]) == ("synthwavedd", "leo 🐾", 6124)
    assert all(p["upload_timestamp"] == id_seconds(p["post_id"]) for p in posts)
    continuation = cursors.decode(CURSOR, read(PAGE)["nextCursor"])
    assert read(PAGE)["hasMore"], "the profile has more posts, and the timeline was not fetched"
    assert (continuation["cursor"], continuation["seen"]) == ("", [p["post_id"] for p in posts])


def test_decoded_records_give_the_same_data_as_the_page() -> None:
    assert read("cdb29a19e6be") == read(PAGE)


def test_sources_are_joined() -> None:
    user, timeline = "ef88cf9f1b4d", "e992000b9ff4"
    data = read(user, timeline, username="XDevelopers")
    assert data["data"]["additional"]["profile_demographics"]["listed_count"] == 2981
    assert data["data"]["main"] == posts_of(timeline, username="XDevelopers")


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("2acca9b60ff2", "TARGET_NOT_FOUND", "not_found"),
        ("a3df32ba89cc", "EXTRACTION_FAILED", "bad_request"),
        ("c07869c29f19", "TARGET_RESTRICTED", "suspended"),  # reduced
        ("efc952aa7550", "TARGET_RESTRICTED", "suspended"),  # synthetic
        ("587514c21c49", "TARGET_RESTRICTED", "tombstone"),  # synthetic
    ],
)
def test_failures_have_their_code_and_reason(name: str, code: str, reason: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(name)
    assert (raised.value.code, raised.value.reason) == (code, reason)
    assert code != "EXTRACTION_FAILED" or raised.value.details


@pytest.mark.parametrize("name", [PAGE, "7feb52efce1d"])
def test_another_profile_is_refused(name: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(name, username="someone_else")
    assert raised.value.code == "EXTRACTION_FAILED"
