"""Texts of the video site: hashtags, mentions and numbers of views, and the cursors of its records."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from crawler.platforms.requests import MAX_USED, is_used
from crawler.platforms.videosite.payload import Short
from crawler.platforms.videosite.record import (
    cursor_after,
    item_of,
    joined_record,
    post,
    record,
)
from crawler.platforms.videosite.schema import continuation_of
from crawler.reading.careful import read_plain
from tests.platforms.videosite.test_pages import HARBOR

WORDS = {
    "Hindi": "हिन्दी",
    "Thai": "ภาษาไทยน้ำ",
    "Tamil": "தமிழ்",
    "Bengali": "বাংলা",
    "Arabic": "العَرَبِيَّة",
    "decomposed Latin": "cafe\u0301",
    "Japanese": "日本語ガイド",
    "Japanese, decomposed": "カ\u3099イト",
    "Persian with a joiner": "می\u200cخواهم",
}
EMOJI = {"plain": "🔥fire🔥", "family": "👨\u200d👩\u200d👧", "skin tone": "👍🏽", "heart": "❤\ufe0flove", "flag": "🇯🇵"}


@pytest.mark.parametrize("word", [*WORDS.values(), *EMOJI.values()], ids=[*WORDS, *EMOJI])
def test_hashtags_are_whole(word: str) -> None:
    title = f"#{word}, {word}#no and (#{word}2)! #{word}"
    assert post("aaaaaaaaaaa", kind="video", caption=title)["hashtags"] == [word, f"{word}2"][: 2 if word else 0] or [
        word
    ]


@pytest.mark.parametrize("word", WORDS.values(), ids=list(WORDS))
def test_mentions_are_whole(word: str) -> None:
    title = f"@{word}. and {word}@{word} and @{word}·2"
    found = post("aaaaaaaaaaa", kind="video", caption=title)["mentions"]
    assert found == [each for each in (word, f"{word}·2") if len(each) >= 3]


@pytest.mark.parametrize(
    ("title", "tags"),
    [
        ("#a™ #b… #c، #d。 #e\ufffd #f—g", ["a", "b", "c", "d", "e", "f"]),
        ("# #! ##a &#39; /#b x#c हि#d ❤\ufe0f#e", ["e"]),
        ("#1 #_ #a_1", ["_", "a_1"]),
    ],
)
def test_ends_of_hashtags(title: str, tags: list[str]) -> None:
    assert post("aaaaaaaaaaa", kind="video", caption=title)["hashtags"] == tags


@pytest.mark.parametrize(
    ("title", "handles"),
    [
        ("@ab @abc @a.b- @-abc @abc-", ["abc", "a.b"]),
        (f"@{'a' * 30} @{'b' * 31}", ["a" * 30]),
        ("a@bcd.example /@abc .@abc -@abc @@abc", []),
    ],
)
def test_ends_of_mentions(title: str, handles: list[str]) -> None:
    assert post("aaaaaaaaaaa", kind="video", caption=title)["mentions"] == handles


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("My first 100 views - play Short", None),
        ("My first 100 views, 2.4 thousand views – play Short", 2_400),
        ("Lantern, no views - play Short", 0),
        ("Lantern - play Short", None),
    ],
)
def test_a_number_of_views_in_a_title_is_not_the_number_of_views(text: str, views: int | None) -> None:
    short = {
        "accessibilityText": text,
        "onTap": {"innertubeCommand": {"reelWatchEndpoint": {"videoId": "aaaaaaaaaaa"}}},
        "overlayMetadata": {"primaryText": {"content": text.partition(",")[0]}},
        "thumbnailViewModel": {"thumbnailViewModel": {"image": {"sources": [{"url": "https://i.example/a.jpg"}]}}},
    }
    shape, _ = read_plain(Short, short)
    assert shape is not None
    assert item_of(shape, "shorts")["view_count"] == views


def test_picture_url_without_a_scheme() -> None:
    assert post("aaaaaaaaaaa", kind="video", thumbnail_image="//i.ytimg.com/a.jpg")["thumbnail_image"] == (
        "https://i.ytimg.com/a.jpg"
    )


ID = HARBOR.id


OWN = {"profile_id": ID, "display_name": HARBOR.name, "username": "HarborLights"}


def test_hashtags_and_mentions_are_also_from_the_description_that_the_enrichment_has() -> None:
    listed, fed = (post("aaaaaaaaaaa", kind="video", caption="One #a", description=text) for text in ("", "@who #b #a"))
    (found,) = record(OWN, [listed], [fed])["posts"]
    assert (found["hashtags"], found["mentions"]) == (["a", "b"], ["who"])
    (found,) = record(OWN, [post("aaaaaaaaaaa", kind="video")], [fed])["posts"]
    assert found["caption"] == "One #a", "the list lacks the title"


def test_a_cursor_keeps_the_tokens_that_were_used_last() -> None:
    seen = list(range(MAX_USED))
    cursor = cursor_after(OWN, username="@HarborTV", kind="video", tabs=["videos"], token="new", seen=seen)
    kept = continuation_of(cursor).seen
    assert continuation_of(cursor).names == ["harborlights", "harbortv", ID.lower()], "also without capitals"
    assert (kept[:-1], is_used("new", kept)) == (seen[1:], True)


@pytest.mark.parametrize(("token", "tabs"), [("new", ["videos", "shorts"]), ("used", ["shorts"]), ("", ["shorts"])])
def test_a_cursor_leads_to_the_next_page_or_to_the_next_tab(token: str, tabs: list[str]) -> None:
    seen = [zlib.crc32(b"used")]
    cursor = cursor_after(OWN, username="@harborlights", kind="all", tabs=["videos", "shorts"], token=token, seen=seen)
    found = continuation_of(cursor)
    assert (found.tabs, found.token) == (tabs, token if token == "new" else "")
    assert len(found.seen) == (2 if token == "new" else 0)
    assert cursor_after(OWN, username="@harborlights", kind="all", tabs=["shorts"], token="", seen=seen) == ""


@pytest.mark.parametrize(
    ("tab", "kinds", "token", "params", "expected"),
    [
        ("videos", ["video"], "T", {}, ("video", ["videos"], "T")),
        ("videos", ["video"], "", {}, None),
        ("streams", ["video"], "T", {}, ("live", ["streams"], "T")),
        ("", ["short"], "T", {}, ("short", ["shorts"], "T")),  # the items state the tab
        ("", ["short", "video"], "T", {}, ("video", ["videos"], "T")),
        ("videos", ["video"], "T", {"tab": "shorts"}, ("short", ["shorts"], "T")),
        ("featured", ["video"], "T", {}, None),
        ("shorts", ["short"], "T", {"type": "all"}, ("all", ["shorts", "streams"], "T")),
        ("videos", ["video"], "", {"type": "all"}, ("all", ["streams"], "")),  # the channel has no tab with shorts
        ("streams", ["live"], "", {"type": "all"}, None),
    ],
)
def test_the_cursor_of_saved_responses(
    tab: str, kinds: list[str], token: str, params: dict[str, Any], expected: tuple[str, list[str], str] | None
) -> None:
    posts = [post(f"{number:011}", kind=kind) for number, kind in enumerate(kinds)]
    page = {
        "profile": OWN | {"external_links": []},
        "posts": posts,
        "continuation": token,
        "more": bool(token),
        "tab": tab,
    }
    found = joined_record({"channel": page | {"channel": ID, "tabs": ["videos", "streams"]}}, params)
    cursor = found["pagination"]["cursor"]
    continued = continuation_of(cursor) if cursor else None
    assert (continued and (continued.type, continued.tabs, continued.token)) == expected
    assert {each["content_type"] for each in found["posts"]} == ({"live"} if tab == "streams" else set(kinds))


def test_saved_responses_about_one_video_are_one_item() -> None:
    own = {"profile": OWN | {"external_links": []}, "channel": ID}
    video, fed = post("aaaaaaaaaaa", kind="video", caption="One"), post("aaaaaaaaaaa", kind="video", like_count=7)
    found = joined_record({"video": own | {"posts": [video]}, "feed": own | {"posts": [fed]}}, {})
    assert [(each["caption"], each["like_count"], each["author_id"]) for each in found["posts"]] == [("One", 7, ID)]
