"""Channel pages composed of header, metadata and tabs of different kinds, and what each row of a list must have."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from crawler.errors import ExtractionFailed
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import VideoPage
from crawler.platforms.videosite.item import post
from crawler.platforms.videosite.lists import PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.record import MAX_SEEN_TOKENS, cursor_after, is_used, record
from crawler.platforms.videosite.schema import continuation_of
from tests.platforms.videosite.test_findings import Change, lockups, page_of, rename, rows_of
from tests.platforms.videosite.test_pages import BODIES, HARBOR, error_of
from tests.videosite import page_with

ID = HARBOR.id
TITLE_ONLY = {
    "pageHeaderRenderer": {
        "content": {"pageHeaderViewModel": {"title": {"dynamicTextViewModel": {"text": {"content": "News"}}}}}
    }
}
TOPIC = {
    "title": {"simpleText": "Songs"},
    "avatar": {"thumbnails": [{"url": "//yt3.example/a=s88"}, {"url": "//yt3.example/a=s176"}]},
    "subtitle": {"simpleText": "125m subscribers"},
    "subscribeButton": {"subscribeButtonRenderer": {"channelId": ID}},
}
CAROUSEL = {
    "carouselHeaderRenderer": {"contents": [{"carouselItemRenderer": {}}, {"topicChannelDetailsRenderer": TOPIC}]}
}
SPORTS = {**CAROUSEL}
"""The same header on a page without metadata and without a canonical URL."""
GAME = {
    "interactiveTabbedHeaderRenderer": {
        "title": {"simpleText": "Chess"},
        "description": {"simpleText": " A game.\n"},
        "boxArt": {"thumbnails": [{"url": "//yt3.example/box"}]},
        "banner": {"thumbnails": [{"url": "//yt3.example/banner"}]},
    }
}


def read(body: bytes, kind: type[VideositePage] = ChannelPage, **params: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the item that is read from a response, and its problems."""
    page = page_of(kind, body, **params)
    return asyncio.run(page.to_item()), page.problems()


# The header's contract is chosen by the header, the metadata's by the metadata


def composed(shown: dict[str, Any] | None, *, has_metadata: bool, has_tab_urls: bool = True) -> Change:
    """Return a change of a channel's page: another header (``{}``: none; None: the channel's own), and no metadata."""

    def change(data: Any) -> None:
        if shown is not None:
            data["header"] = shown
        if not data["header"]:
            del data["header"]
        if not has_metadata:
            del data["metadata"]
        if shown is SPORTS:
            del data["microformat"]
        if not has_tab_urls:
            (tab,) = (each for each in data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"] if is_open(each))
            del tab["tabRenderer"]["endpoint"]
            tab["tabRenderer"]["content"]["richGridRenderer"]["contents"] = [{"richSectionRenderer": {}}, {"new": {}}]
            data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"] = [tab]

    return change


def is_open(entry: Any) -> bool:
    return bool(entry.get("tabRenderer", {}).get("content"))


@pytest.mark.parametrize(
    ("shown", "has_metadata", "fields", "missing"),
    [
        (None, True, {"display_name": HARBOR.name, "verification_status": bool(HARBOR.badge)}, []),
        (CAROUSEL, True, {"display_name": HARBOR.name, "follower_count": 125_000_000, "verification_status": None}, []),
        (GAME, True, {"display_name": HARBOR.name, "banner_image": "https://yt3.example/banner"}, []),
        (TITLE_ONLY, False, {"display_name": "News", "verification_status": None, "follower_count": None}, []),
        (SPORTS, False, {"display_name": "Songs", "profile_image": "https://yt3.example/a=s176"}, []),
        (CAROUSEL, False, {"display_name": "Songs"}, ["metadata.channelMetadataRenderer: missing"]),
        (GAME, False, {"display_name": "Chess", "biography": "A game.", "verification_status": None}, []),
        ({}, True, {"display_name": HARBOR.name, "follower_count": None}, ["header: missing"]),
        ({"newHeader": {}}, True, {"display_name": HARBOR.name}, ["header.…unknown: unknown (newHeader)"]),
        ({"c4TabbedHeaderRenderer": {}}, True, {"display_name": HARBOR.name}, ["header: missing"]),
        (None, False, {"display_name": HARBOR.name}, ["metadata.channelMetadataRenderer: missing"]),
    ],
)
def test_header_and_metadata_are_composed(
    shown: dict[str, Any] | None, *, has_metadata: bool, fields: dict[str, Any], missing: list[str]
) -> None:
    item, problems = read(page_with(change=composed(shown, has_metadata=has_metadata)), tab="videos")
    assert {key: item["profile"][key] for key in fields} == fields
    assert (item["profile"]["profile_id"], len(item["posts"]), problems) == (ID, 30, missing)


PICTURE, MICROFORMAT = "header.….avatar: missing", "microformat.microformatDataRenderer"
COUNTRIES, FAMILY = f"{MICROFORMAT}.availableCountries: missing", f"{MICROFORMAT}.familySafe: missing"


def microformat_of(data: Any) -> Any:
    return data["microformat"]["microformatDataRenderer"]


@pytest.mark.parametrize(
    ("shown", "change", "missing"),
    [
        (GAME, lambda data: rename(data["header"]["interactiveTabbedHeaderRenderer"], "boxArt"), [PICTURE]),
        (SPORTS, lambda data: rename(topic_of(data), "avatar"), [PICTURE]),
        (SPORTS, lambda data: rename(topic_of(data)["avatar"]["thumbnails"][-1], "url"), [PICTURE]),
        (GAME, lambda data: data.pop("microformat"), [f"{MICROFORMAT}.urlCanonical: missing", COUNTRIES, FAMILY]),
        (GAME, lambda data: rename(microformat_of(data), "familySafe"), [FAMILY]),
        (GAME, lambda data: rename(microformat_of(data), "availableCountries"), [COUNTRIES]),
        (TITLE_ONLY, lambda data: data.pop("microformat"), []),
    ],
)
def test_a_picture_or_microformat_that_a_generated_channel_has_lost_is_reported(
    shown: dict[str, Any], change: Change, missing: list[str]
) -> None:
    def changed(data: Any) -> None:
        composed(shown, has_metadata=False)(data)
        data["header"] = copy.deepcopy(data["header"])
        change(data)

    assert read(page_with(change=changed), tab="videos")[1] == missing


def topic_of(data: Any) -> Any:
    return data["header"]["carouselHeaderRenderer"]["contents"][1]["topicChannelDetailsRenderer"]


@pytest.mark.parametrize("tab", ["", "videos"])
@pytest.mark.parametrize("shown", [TITLE_ONLY, SPORTS, {}], ids=["title", "carousel", "none"])
def test_a_generated_destination_is_not_blind(shown: dict[str, Any], tab: str) -> None:
    change = composed(shown, has_metadata=False, has_tab_urls=False)
    body = page_with(change=change)
    if not shown:  # neither a header nor an age gate: nothing names the channel
        assert error_of(ChannelPage, body, tab=tab) == ("EXTRACTION_FAILED", "no_channel")
        return
    item, problems = read(body, tab=tab)
    assert (item["tab"], item["tabs"], item["posts"], problems) == ("", [], [], [])


def test_an_ordinary_channel_without_the_url_of_its_open_tab_is_blind() -> None:
    change = composed(None, has_metadata=True, has_tab_urls=False)
    assert error_of(ChannelPage, page_with(change=change), tab="videos") == ("EXTRACTION_FAILED", "blind")


def without_tabs(data: Any) -> None:
    data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"] = []


def of_search(data: Any) -> None:
    for part in ("header", "metadata", "microformat", "responseContext"):
        del data[part]
    data["contents"] = {"twoColumnSearchResultsRenderer": {}}


@pytest.mark.parametrize("tab", ["", "videos"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without_tabs, "no_contents"),
        (lambda data: data.update(contents={}), "no_contents"),
        (lambda data: data.pop("contents"), "no_contents"),
        (of_search, "no_channel"),
    ],
)
def test_a_page_without_tabs_is_not_a_channel_without_videos(change: Change, reason: str, tab: str) -> None:
    assert error_of(ChannelPage, page_with(change=change), tab=tab) == ("EXTRACTION_FAILED", reason)


def test_two_ids_of_one_page_contradict_each_other() -> None:
    def change(data: Any) -> None:
        data["metadata"]["channelMetadataRenderer"]["externalId"] = "UC" + "b" * 22

    item, problems = read(page_with(change=change), tab="videos")
    assert item["profile"]["profile_id"] == "UC" + "b" * 22
    assert problems == ["metadata.channelMetadataRenderer.externalId: contradiction"]


# Each row has a picture, a length or a label in its place, and a number of views


def first_rows(number: int, change: Callable[[Any], None], at: int = 0) -> Change:
    """Return a change of a channel's page: only the first rows stay, and one of their items is changed."""

    def changed(data: Any) -> None:
        rows = [each for each in rows_of(data) if is_plain(each)][:number]
        rows_of(data)[:] = rows
        change(lockups(data)[at])

    return changed


def is_plain(row: Any) -> bool:
    """Whether a row states a length and a number of views, and has no badge."""
    text = orjson.dumps(row)
    return (
        b" views" in text
        and b'"badges":[{"thumbnailBadgeViewModel"' in text
        and b'badgeViewModel":{"badgeText' not in text
    )


def texts_of(lockup: Any) -> Any:
    return lockup["metadata"]["lockupMetadataViewModel"]["metadata"]["contentMetadataViewModel"]["metadataRows"]


def label_of(lockup: Any) -> Any:
    return lockup["contentImage"]["thumbnailViewModel"]["overlays"][0]["thumbnailBottomOverlayViewModel"]


def without_views(lockup: Any) -> None:
    for row in texts_of(lockup):
        row["metadataParts"] = [part for part in row["metadataParts"] if "view" not in part["text"]["content"]]


def with_badge(style: str) -> Callable[[Any], None]:
    def change(lockup: Any) -> None:
        without_views(lockup)
        texts_of(lockup).append({"badges": [{"badgeViewModel": {"badgeStyle": style}}]})

    return change


def labelled(text: str) -> Callable[[Any], None]:
    return lambda lockup: label_of(lockup).update(badges=[{"thumbnailBadgeViewModel": {"text": text}}])


def live(lockup: Any) -> None:
    labelled("LIVE")(lockup)
    texts_of(lockup)[0]["metadataParts"] = []


def without_picture(lockup: Any) -> None:
    lockup["contentImage"]["thumbnailViewModel"]["image"]["sources"] = []


LENGTH, VIEWS, PICTURE = "thumbnailBadgeViewModel.text", "metadataParts[].text.content", "image.sources[-1].url"


@pytest.mark.parametrize("number", [1, 5, 9, 20])
@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda lockup: rename(lockup["contentImage"]["thumbnailViewModel"], "overlays"), LENGTH),
        (lambda lockup: label_of(lockup).update(badges=[]), LENGTH),
        (labelled("12 minutes"), f"{LENGTH}.…unknown"),
        (labelled("LIVE"), ""),
        (labelled("Upcoming"), ""),
        (without_views, VIEWS),
        (with_badge("BADGE_COMMERCE"), VIEWS),
        (with_badge("BADGE_MEMBERS_ONLY"), ""),
        (with_badge("BADGE_PREMIUM"), ""),
        (live, ""),
        (without_picture, PICTURE),
    ],
)
def test_what_one_row_has_lost_is_reported(change: Callable[[Any], None], path: str, number: int) -> None:
    for at in {0, number - 1}:
        _, problems = read(page_with(change=first_rows(number, change, at)), tab="videos")
        assert len(problems) == bool(path)
    assert path in "".join(problems)


def older(**parts: Any) -> dict[str, Any]:
    """Return a row in the older format; a part that is None is left out."""
    status = {"style": "DEFAULT", "text": {"simpleText": "1:02"}}
    row = {
        "videoId": "aaaaaaaaaaa",
        "title": {"simpleText": "One"},
        "thumbnail": {"thumbnails": [{"url": "https://i.example/a.jpg"}]},
        "navigationEndpoint": {"commandMetadata": {"webCommandMetadata": {"url": "/watch?v=aaaaaaaaaaa"}}},
        "viewCountText": {"simpleText": "1,234 views"},
        "shortViewCountText": {"simpleText": "1.2K views"},
        "thumbnailOverlays": [{"thumbnailOverlayTimeStatusRenderer": status}],
        **parts,
    }
    return {"videoRenderer": {key: value for key, value in row.items() if value is not None}}


def status(style: str, text: str) -> list[Any]:
    return [{"thumbnailOverlayTimeStatusRenderer": {"style": style, "text": {"simpleText": text}}}]


def badges(style: str) -> list[Any]:
    return [{"metadataBadgeRenderer": {"style": f"BADGE_STYLE_TYPE_{style}"}}]


@pytest.mark.parametrize(
    ("parts", "values", "path"),
    [
        ({}, (1_234, 62), ""),
        ({"thumbnailOverlays": None}, (1_234, None), "thumbnailOverlayTimeStatusRenderer"),
        ({"thumbnailOverlays": None, "lengthText": {"simpleText": "1:03"}}, (1_234, 63), ""),
        ({"thumbnailOverlays": None, "badges": badges("LIVE_NOW")}, (1_234, None), ""),
        ({"thumbnailOverlays": status("LIVE", "LIVE")}, (1_234, None), ""),
        ({"thumbnailOverlays": status("UPCOMING", "UPCOMING"), "viewCountText": None}, (1_200, None), "viewCountText"),
        ({"viewCountText": None}, (1_200, 62), "viewCountText"),
        ({"viewCountText": None, "shortViewCountText": None}, (None, 62), "viewCountText"),
        ({"viewCountText": None, "shortViewCountText": None, "badges": badges("PREMIUM")}, (None, 62), ""),
        ({"thumbnail": {"thumbnails": []}}, (1_234, 62), "thumbnail.thumbnails[-1].url"),
    ],
)
def test_what_one_row_in_the_older_format_has_lost_is_reported(
    parts: dict[str, Any], values: tuple[int | None, int | None], path: str
) -> None:
    item, problems = read(page_with(older(**parts)), tab="videos")
    (post,) = item["posts"]
    assert (post["view_count"], post["video_duration_seconds"]) == values
    assert len(problems) == bool(path)
    assert path in "".join(problems)


def short(**parts: Any) -> dict[str, Any]:
    """Return a short with the picture at its place of 2025. ``parts``: replace parts of it."""
    return {
        "shortsLockupViewModel": {
            "accessibilityText": "One, 1 thousand views - play Short",
            "onTap": {
                "innertubeCommand": {
                    "reelWatchEndpoint": {"videoId": "aaaaaaaaaaa"},
                    "commandMetadata": {"webCommandMetadata": {"url": "/shorts/aaaaaaaaaaa"}},
                }
            },
            "overlayMetadata": {"primaryText": {"content": "One"}, "secondaryText": {"content": "1K views"}},
            "thumbnail": {"sources": [{"url": "https://i.example/old.jpg"}]},
            **parts,
        }
    }


NEW_PICTURE = {"thumbnailViewModel": {"image": {"sources": [{"url": "https://i.example/new.jpg"}]}}}


@pytest.mark.parametrize(
    ("parts", "picture", "path"),
    [
        ({}, "old", ""),
        ({"thumbnailViewModel": NEW_PICTURE}, "new", ""),
        ({"overlayMetadata": {"primaryText": {"content": "One"}}}, "old", ""),
        ({"thumbnail": {}}, "", ".sources[0].url"),
        (
            {"accessibilityText": "One", "overlayMetadata": {"primaryText": {"content": "One"}}},
            "old",
            "secondaryText.content",
        ),
    ],
)
def test_shorts_of_2025_have_their_picture_in_another_place(parts: dict[str, Any], picture: str, path: str) -> None:
    item, problems = read(page_with(short(**parts), tab="shorts"), tab="shorts")
    assert [each["thumbnail_image"] for each in item["posts"]] == [picture and f"https://i.example/{picture}.jpg"]
    assert len(problems) == bool(path)
    assert path in "".join(problems)


# A row's owner is its author


OTHER = "UC" + "z" * 22
OWN = {"profile_id": ID, "display_name": HARBOR.name, "username": "harborlights"}


def owned(channel: str, name: str = "Someone", url: str = "/@someone") -> Change:
    """Return a change of the playlist's rows: they state their owner, in both formats."""
    endpoint = {"browseEndpoint": {"browseId": channel, "canonicalBaseUrl": url}}
    run = {"startIndex": 0, "onTap": {"innertubeCommand": endpoint}}

    def change(data: Any) -> None:
        for lockup in lockups(data):
            texts_of(lockup).insert(0, {"metadataParts": [{"text": {"content": name, "commandRuns": [run]}}]})

    return change


@pytest.mark.parametrize(
    ("channel", "author"),
    [(OTHER, (OTHER, "Someone", "someone")), (ID, (ID, HARBOR.name, "harborlights"))],
    ids=["another channel", "the channel"],
)
def test_the_owner_of_a_row_is_its_author(channel: str, author: tuple[str, str, str]) -> None:
    byline = {
        "text": "Someone",
        "navigationEndpoint": {"browseEndpoint": {"browseId": channel, "canonicalBaseUrl": "/@someone"}},
    }
    for body in (page_with(change=owned(channel)), page_with(older(shortBylineText={"runs": [byline]}))):
        item, problems = read(body, tab="videos")
        posts = record(OWN, item["posts"], [])["posts"]
        assert {(each["author_id"], each["author_name"], each["author_username"]) for each in posts} == {author}
        assert problems == []


def test_an_owner_without_a_readable_name_is_still_the_author() -> None:
    def change(data: Any) -> None:
        owned(OTHER)(data)
        for lockup in lockups(data):
            for row in texts_of(lockup):
                for part in row.get("metadataParts", []):
                    rename(part["text"], "content")

    item, problems = read(page_with(change=change), tab="videos")
    assert {(each["author_id"], each["author_name"]) for each in item["posts"]} == {(OTHER, "")}
    assert problems


def test_a_row_of_several_owners_has_the_channel_as_its_author() -> None:
    byline = {"text": "Someone and 2 more", "navigationEndpoint": {"showDialogCommand": {}}}
    item, problems = read(page_with(older(shortBylineText={"runs": [byline]})), tab="videos")
    (post,) = record(OWN, item["posts"], [])["posts"]
    assert (post["author_id"], post["author_name"], problems) == (ID, HARBOR.name, [])


START = "2026-08-01T10:00:00+00:00"
BROADCAST = "microformat.playerMicroformatRenderer.liveBroadcastDetails"


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ({}, []),
        ({"lengthSeconds": None}, ["microformat.playerMicroformatRenderer.lengthSeconds: missing"]),
        ({"lengthSeconds": "0"}, ["microformat.playerMicroformatRenderer.lengthSeconds: missing"]),
        ({"lengthSeconds": "0", "liveBroadcastDetails": {"isLiveNow": True, "startTimestamp": START}}, []),
        ({"lengthSeconds": None, "liveBroadcastDetails": {"isLiveNow": False, "startTimestamp": START}}, []),
        ({"liveBroadcastDetails": {"startTimestamp": START}}, [f"{BROADCAST}.isLiveNow: missing"]),
        ({"liveBroadcastDetails": {"isLiveNow": False}}, [f"{BROADCAST}.startTimestamp: missing"]),
        ({"description": None}, ["microformat.playerMicroformatRenderer.description: missing"]),
    ],
)
def test_a_video_states_its_length_or_its_broadcast(parts: dict[str, Any], problems: list[str]) -> None:
    data = orjson.loads(BODIES[VideoPage])
    metadata = data["microformat"]["playerMicroformatRenderer"] | parts
    kept = {key: value for key, value in metadata.items() if value is not None}
    data["microformat"]["playerMicroformatRenderer"] = kept
    assert read(orjson.dumps(data), VideoPage)[1] == problems


def test_hashtags_and_mentions_are_also_from_the_description_that_the_enrichment_has() -> None:
    listed, fed = (post("aaaaaaaaaaa", kind="video", caption="One #a", description=text) for text in ("", "@who #b #a"))
    (found,) = record(OWN, [listed], [fed])["posts"]
    assert (found["hashtags"], found["mentions"]) == (["a", "b"], ["who"])


def test_a_playlist_with_an_unknown_alert_is_not_empty() -> None:
    data = {"alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": "Not now."}}}]}
    with pytest.raises(ExtractionFailed, match=r"unknown alert: Not now\."):
        read(orjson.dumps(data), PlaylistPage)


def test_a_cursor_keeps_the_tokens_that_were_used_last() -> None:
    seen = list(range(MAX_SEEN_TOKENS))
    cursor = cursor_after(OWN, username="@harborlights", kind="video", tabs=["videos"], token="new", seen=seen)
    kept = continuation_of(cursor).seen
    assert (kept[:-1], is_used("new", kept)) == (seen[1:], True)
