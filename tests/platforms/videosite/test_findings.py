"""Changed pages of the video site: renamed parts, words in other scripts, long texts."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import AboutPage, FeedPage, VideoPage
from crawler.platforms.videosite.item import item_of, post
from crawler.platforms.videosite.lists import ContinuationPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.payload import Short
from crawler.platforms.videosite.record import joined_record
from crawler.reading.careful import read_plain
from crawler.reading.contract import Unread
from tests.platforms.videosite.test_pages import BODIES, HARBOR, SECOND, call
from tests.videosite import ORIGIN

Change = Callable[[Any], None]

CHANNEL = orjson.loads(call("browse", browseId=HARBOR.id, params="EgZ2aWRlb3PyBgQKAjoA"))
CONTINUATION = orjson.loads(call("browse", continuation=SECOND))


def rows_of(data: Any) -> list[Any]:
    """Return the rows of the tab with videos, or of a continuation page."""
    if "onResponseReceivedActions" in data:
        return data["onResponseReceivedActions"][0]["appendContinuationItemsAction"]["continuationItems"]  # type: ignore[no-any-return]
    tabs = data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"]
    return tabs[1]["tabRenderer"]["content"]["richGridRenderer"]["contents"]  # type: ignore[no-any-return]


def lockups(data: Any) -> list[Any]:
    return [row["richItemRenderer"]["content"]["lockupViewModel"] for row in rows_of(data) if "richItemRenderer" in row]


def header(data: Any) -> Any:
    return data["header"]["pageHeaderRenderer"]["content"]["pageHeaderViewModel"]


def rename(holder: Any, key: str) -> None:
    holder[f"{key}New"] = holder.pop(key)


def page_of(kind: type[VideositePage], body: bytes, **params: Any) -> VideositePage:
    return kind(response=HttpResponse(ORIGIN, body, status=200, encoding="utf-8"), page_params=PageParams(params))


def read(change: Change, data: Any = CHANNEL, kind: type[VideositePage] = ChannelPage) -> tuple[Any, list[Unread]]:
    """Return the item that is read from changed data, and the unread parts."""
    changed = copy.deepcopy(data)
    change(changed)
    page = page_of(kind, orjson.dumps(changed), tab="videos")
    return asyncio.run(page.to_item()), page.unread


def test_whole_pages_have_nothing_unread() -> None:
    for data, kind in ((CHANNEL, ChannelPage), (CONTINUATION, ContinuationPage)):
        item, unread = read(lambda _: None, data, kind)
        assert (len(item["posts"]), item["more"], unread) == (30, True, [])


@pytest.mark.parametrize("data", [CHANNEL, CONTINUATION], ids=["channel", "continuation"])
@pytest.mark.parametrize("number", [1, 30])
def test_pa_2_rows_without_content_are_reported(number: int, data: Any) -> None:
    def change(changed: Any) -> None:
        for row in rows_of(changed)[:number]:
            row["richItemRenderer"]["content"] = {}

    kind = ChannelPage if data is CHANNEL else ContinuationPage
    if number == 30:
        with pytest.raises(ExtractionFailed, match="unknown in 30 of 31"):
            read(change, data, kind)
        return
    item, unread = read(change, data, kind)
    assert len(item["posts"]) == 29
    assert [(each.cause, each.rows, each.of, each.loses_rows) for each in unread] == [("unknown", 1, 31, True)]


def test_pa_2_renamed_params_of_tabs_and_tokens_of_the_about_panel_are_reported() -> None:
    def change(changed: Any) -> None:
        for entry in changed["contents"]["twoColumnBrowseResultsRenderer"]["tabs"]:
            if "tabRenderer" in entry:
                rename(entry["tabRenderer"]["endpoint"]["browseEndpoint"], "params")
        for key in {"description", "attribution"} & header(changed).keys():
            rename(header(changed), key)

    _, unread = read(change)
    ends = sorted(each.path.rpartition(".")[2] for each in unread)
    assert ends == ["params", "token"]


# PA-1


@pytest.mark.parametrize("data", [CHANNEL, CONTINUATION], ids=["channel", "continuation"])
@pytest.mark.parametrize(
    "renamed", [(), ("continuationEndpoint",), ("continuationEndpoint", "continuationCommand")], ids=["row", "a", "b"]
)
def test_pa_1_a_next_page_without_a_readable_token_is_not_the_end(renamed: tuple[str, ...], data: Any) -> None:
    def change(changed: Any) -> None:
        holder = rows_of(changed)[-1]
        for key in ("continuationItemRenderer", *renamed[:-1]) if renamed else ():
            holder = holder[key]
        rename(holder, renamed[-1] if renamed else "continuationItemRenderer")

    kind = ChannelPage if data is CHANNEL else ContinuationPage
    item, unread = read(change, data, kind)
    assert (len(item["posts"]), item["continuation"], item["more"]) == (30, "", True)
    (lost,) = unread
    assert lost.loses_rows
    assert lost.path.endswith(".token" if renamed else "contents[].…unknown" if kind is ChannelPage else "[].…unknown")
    if kind is ChannelPage:
        pagination = joined_record({"channel": item}, {"username": "harborlights"})["pagination"]
        assert pagination == {"cursor": "", "has_more": True}


@pytest.mark.parametrize("name", ["continuationItemRenderer", "continuationItemViewModel"])
@pytest.mark.parametrize("inner", ["continuationEndpoint", "innertubeCommand"])
def test_pa_1_both_inner_forms_are_read_in_both_rows(name: str, inner: str) -> None:
    def change(data: Any) -> None:
        command = {"continuationCommand": {"token": "T"}}
        whole = {"continuationCommand": {"innertubeCommand": command}}
        rows_of(data)[-1] = {name: {inner: command} if inner == "continuationEndpoint" else whole}

    item, unread = read(change)
    assert (item["continuation"], unread) == ("T", [])


# PA-2


def each_lockup(*path: str) -> Change:
    def change(data: Any) -> None:
        for lockup in lockups(data):
            holder = lockup
            for key in path[:-1]:
                holder = holder[key]
            rename(holder, path[-1])

    return change


def in_header(*path: str) -> Change:
    def change(data: Any) -> None:
        holder = header(data)
        for key in path[:-1]:
            holder = holder[key]
        rename(holder, path[-1])

    return change


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (each_lockup("metadata"), "title.content"),
        (each_lockup("metadata", "lockupMetadataViewModel"), "title.content"),
        (each_lockup("metadata", "lockupMetadataViewModel", "title"), "title.content"),
        (each_lockup("metadata", "lockupMetadataViewModel", "metadata"), "metadataParts[].text.content"),
        (each_lockup("contentImage"), "image.sources[-1].url"),
        (each_lockup("contentImage", "thumbnailViewModel", "overlays"), "thumbnailBadgeViewModel.text"),
        (each_lockup("rendererContext"), "webCommandMetadata.url"),
        (lambda data: rename(data, "header"), "header"),
        (lambda data: rename(data["header"], "pageHeaderRenderer"), "header.…unknown"),
        (
            lambda data: rename(data["header"]["pageHeaderRenderer"]["content"], "pageHeaderViewModel"),
            "header.…unknown",
        ),
        (in_header("metadata"), "metadataRows[]"),
        (in_header("title"), "text.content"),
        (in_header("banner", "imageBannerViewModel"), "banner.imageBannerViewModel.image.sources[-1].url"),
        (lambda data: rename(data, "metadata"), "metadata.channelMetadataRenderer"),
        (lambda data: rename(data["metadata"], "channelMetadataRenderer"), "metadata.channelMetadataRenderer"),
    ],
)
def test_pa_2_a_part_that_vanishes_from_the_page_is_unread(change: Change, path: str) -> None:
    _, unread = read(change)
    assert any(each.path.endswith(path) for each in unread), unread


def test_pa_2_a_badge_that_only_the_spoken_title_states_is_unread() -> None:
    def change(data: Any) -> None:
        title = header(data)["title"]["dynamicTextViewModel"]
        title["text"].pop("attachmentRuns", None)
        title["rendererContext"] = {"accessibilityContext": {"label": "Someone, verified"}}

    item, unread = read(change)
    assert item["profile"]["verification_status"] is False
    assert [(each.path.rpartition(".")[2], each.cause) for each in unread] == [("attachmentRuns[]", "contradiction")]


# PA-7, PA-8


def test_pa_7_rows_of_an_unknown_type_are_unread() -> None:
    def change(data: Any) -> None:
        for lockup in lockups(data)[1:]:
            lockup["contentType"] = "LOCKUP_CONTENT_TYPE_NEW"

    item, unread = read(change)
    assert len(item["posts"]) == 1
    ((path, cause, rows, of, lost, names),) = unread
    assert path.endswith("richItemRenderer.content.lockupViewModel.…unknown")
    assert (cause, rows, of, lost, names) == ("unknown", 29, 30, True, ("LOCKUP_CONTENT_TYPE_NEW",))


@pytest.mark.parametrize(
    ("key", "name"), [("lockupViewModel", "lockupViewModelNew"), ("richItemRenderer", "richItemRendererNew")]
)
def test_rows_in_an_unknown_format_are_named(key: str, name: str) -> None:
    def change(data: Any) -> None:
        row = rows_of(data)[4]
        rename(row if key == "richItemRenderer" else row["richItemRenderer"]["content"], key)

    item, unread = read(change)
    assert (len(item["posts"]), item["more"]) == (29, True)
    assert [(each.cause, each.rows, each.names, each.loses_rows) for each in unread] == [("unknown", 1, (name,), True)]


@pytest.mark.parametrize("kind", ["PLAYLIST", "PODCAST", "ALBUM"])
def test_pa_7_lists_of_videos_are_left_out_by_name(kind: str) -> None:
    item, unread = read(lambda data: lockups(data)[0].update(contentType=f"LOCKUP_CONTENT_TYPE_{kind}"))
    assert (len(item["posts"]), unread) == (29, [])


def in_sections(data: Any) -> None:
    rows = rows_of(data)
    rows[:-1] = [{"richSectionRenderer": {"content": row}} for row in rows[:-1]]


def renamed_contents(data: Any) -> None:
    for row in rows_of(data)[:-1]:
        rename(row["richItemRenderer"], "content")


@pytest.mark.parametrize(
    "change",
    [
        in_sections,
        lambda data: [lockup.update(contentType="LOCKUP_CONTENT_TYPE_NEW") for lockup in lockups(data)],
        each_lockup("contentId"),
        lambda data: [lockup.update(contentId="not an id") for lockup in lockups(data)],
        renamed_contents,
    ],
)
def test_pa_8_a_list_without_a_readable_row_is_not_empty(change: Change) -> None:
    for data, kind in ((CHANNEL, ChannelPage), (CONTINUATION, ContinuationPage)):
        with pytest.raises(ExtractionFailed) as raised:
            read(change, data, kind)
        assert raised.value.reason == "blind"


def test_an_invalid_id_is_an_unread_row() -> None:
    item, unread = read(lambda data: lockups(data)[3].update(contentId="not an id"))
    assert len(item["posts"]) == 29
    assert [(each.cause, each.rows, each.of, each.loses_rows) for each in unread] == [("type", 1, 30, True)]
    assert unread[0].path.endswith("lockupViewModel.contentId")


# PA-9


def with_views(text: str) -> Change:
    def change(data: Any) -> None:
        for lockup in lockups(data):
            for row in lockup["metadata"]["lockupMetadataViewModel"]["metadata"]["contentMetadataViewModel"][
                "metadataRows"
            ]:
                row.pop("badges", None)  # rows with such badges need not have a number of views
                row["metadataParts"] = [{"text": {"content": part}} for part in (text, "3 years ago")]

    return change


@pytest.mark.parametrize("text", ["1,200,000", "1.2M plays", "1.2M views"])
def test_pa_9_views_without_their_word_are_read(text: str) -> None:
    item, unread = read(with_views(text))
    assert ({each["view_count"] for each in item["posts"]}, unread) == ({1_200_000}, [])


@pytest.mark.parametrize("text", ["1.2M impressions", "1.2M"])
def test_pa_9_views_that_no_row_states_in_a_known_form_are_unread(text: str) -> None:
    item, unread = read(with_views(text))
    assert {each["view_count"] for each in item["posts"]} == {None}
    ((_, cause, rows, of, lost, names),) = unread
    assert (cause, rows, of, lost, set(names)) == ("unknown", 30, 30, False, {text})


@pytest.mark.parametrize("text", ["8 watching", "Scheduled for 1/2/30, 9:00 PM", "Premieres 1/2/30, 9:00 PM"])
def test_pa_9_announced_and_live_items_have_no_views(text: str) -> None:
    item, unread = read(with_views(text))
    assert ({each["view_count"] for each in item["posts"]}, unread) == ({None}, [])


# PA-11

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
def test_pa_11_hashtags_are_whole(word: str) -> None:
    title = f"#{word}, {word}#no and (#{word}2)! #{word}"
    assert post("aaaaaaaaaaa", kind="video", caption=title)["hashtags"] == [word, f"{word}2"][: 2 if word else 0] or [
        word
    ]


@pytest.mark.parametrize("word", WORDS.values(), ids=list(WORDS))
def test_pa_11_mentions_are_whole(word: str) -> None:
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
def test_pa_11_ends_of_hashtags(title: str, tags: list[str]) -> None:
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


# AT-5, SP3-1

LONG = ("9" * 40_000, "1," * 20_000, "#" * 40_000, "@" * 40_000, "#a" * 20_000, "@abc" * 10_000, "1 view " * 6_000)


def with_texts(data: Any, text: str) -> Any:
    """Replace every text in the data, except ids, types, URLs and tokens."""
    kept = {"contentId", "contentType", "videoId", "externalId", "channelId", "token", "url", "type", "externalVideoId"}
    if isinstance(data, dict):
        return {key: value if key in kept else with_texts(value, text) for key, value in data.items()}
    if isinstance(data, list):
        return [with_texts(each, text) for each in data]
    return text if isinstance(data, str) else data


@pytest.mark.parametrize("text", LONG, ids=["9", "1,", "#", "@", "#a", "@abc", "view"])
@pytest.mark.parametrize("kind", [ChannelPage, VideoPage, AboutPage], ids=lambda kind: str(kind.source))
def test_at_5_long_texts_in_every_field(kind: type[VideositePage], text: str) -> None:
    """Long texts are read in linear time. In quadratic time, some of these would take minutes."""
    data = copy.deepcopy(CHANNEL) if kind is ChannelPage else orjson.loads(BODIES[kind])
    if kind is ChannelPage:
        rows_of(data)[3:-1] = []
    asyncio.run(_outcome(page_of(kind, orjson.dumps(with_texts(data, text)))))


@pytest.mark.parametrize("text", ["9" * 400_000, "1," * 200_000, "1 view " * 60_000, ", 1 view" * 60_000])
def test_at_5_the_text_for_screen_readers(text: str) -> None:
    short = {
        "accessibilityText": text,
        "onTap": {"innertubeCommand": {"reelWatchEndpoint": {"videoId": "aaaaaaaaaaa"}}},
        "overlayMetadata": {"primaryText": {"content": "One"}},
        "thumbnailViewModel": {"thumbnailViewModel": {"image": {"sources": [{"url": "https://i.example/a.jpg"}]}}},
    }
    shape, unread = read_plain(Short, short)
    assert shape is not None
    assert unread == []
    assert item_of(shape, "shorts")["view_count"] == (1 if text.endswith(", 1 view") else None)


async def _outcome(page: VideositePage) -> object:
    try:
        return await page.to_item()
    except ExtractionFailed as error:
        return error


@pytest.mark.parametrize("text", LONG, ids=["9", "1,", "#", "@", "#a", "@abc", "view"])
def test_at_5_long_texts_in_a_feed(text: str) -> None:
    body = BODIES[FeedPage].replace(b"<title>", b"<title>" + text.encode(), 2)
    assert asyncio.run(page_of(FeedPage, body).to_item())["posts"]


# Feeds


def wrapped(feed: bytes) -> bytes:
    return feed.replace(b"<entry>", b"<entries><entry>").replace(b"</entry>", b"</entry></entries>")


def test_no_likes_in_a_feed_may_be_hidden_likes() -> None:
    body = re.sub(rb'(starRating [^>]*count=")\d+', rb"\g<1>0", BODIES[FeedPage])
    posts = asyncio.run(page_of(FeedPage, body).to_item())["posts"]
    assert (body == BODIES[FeedPage], {each["like_count"] for each in posts}) == (False, {None})


FEED_MARK = b"channel_id="


def test_the_date_of_a_playlist_s_feed_is_not_the_channel_s() -> None:
    for body, has_date in ((BODIES[FeedPage], True), (BODIES[FeedPage].replace(FEED_MARK, b"playlist_id="), False)):
        assert body.count(FEED_MARK) == has_date
        assert bool(asyncio.run(page_of(FeedPage, body).to_item())["created"]) is has_date


@pytest.mark.parametrize(
    ("change", "posts", "unread"),
    [
        (lambda feed: feed, 15, []),
        (lambda feed: feed.replace(b"entry>", b"item>"), None, ["…unknown"]),
        (wrapped, None, ["…unknown"]),
        (lambda feed: feed.replace(b"yt:videoId", b"yt:id"), None, ["entry[].yt:videoId"]),
        (lambda feed: feed.replace(b'rel="alternate"', b'rel="self"'), None, ["entry[].link:alternate@href"]),
        (lambda feed: feed.replace(b"<entry>", b"<item>", 1).replace(b"</entry>", b"</item>", 1), 14, ["…unknown"]),
        (lambda feed: feed.replace(b"<yt:videoId>", b"<yt:videoId>?", 1), 14, ["entry[].yt:videoId"]),
        (lambda feed: feed.replace(b"media:statistics", b"media:numbers"), 15, ["statistics@views"]),
        (
            lambda feed: feed.replace(b"<published>", b"<issued>").replace(b"</published>", b"</issued>"),
            15,
            ["published"],
        ),
    ],
)
def test_a_feed_in_a_changed_form_is_not_an_empty_list(
    change: Callable[[bytes], bytes], posts: int | None, unread: list[str]
) -> None:
    page = page_of(FeedPage, change(BODIES[FeedPage]))
    if posts is None:
        with pytest.raises(ExtractionFailed, match="No entry of the feed could be read"):
            asyncio.run(page.to_item())
    else:
        assert len(asyncio.run(page.to_item())["posts"]) == posts
    assert len(page.unread) == len(unread)
    assert all(each.path.endswith(end) for each, end in zip(page.unread, unread, strict=True)), page.unread
