"""The video site's page objects: valid responses, typed errors for all others, and damaged data."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.pages import ChannelPage, ContinuationPage, PlaylistPage
from crawler.platforms.videosite.payload import Lockup, Row, Text, flat
from crawler.platforms.videosite.record import item_of, joined_record, unwrapped
from crawler.reading.careful import read_plain
from crawler.reading.values import stated_day
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.lists import token
from crawler.sandbox.videosite.site import Site
from tests.videosite import ORIGIN, SCRAPER


@cache
def site() -> Site:
    return Site(light=True)


def get(path: str, **args: str) -> bytes:
    return site().page(FakeRequest(path, args))[2]


def call(endpoint: str, **body: Any) -> bytes:
    return site().page(FakeRequest(f"/youtubei/v1/{endpoint}", {}, "POST", {}, orjson.dumps(body)))[2]


def read(kind: type[VideositePage], body: bytes | str, *, status: int | None = 200, **params: Any) -> dict[str, Any]:
    raw = body.encode() if isinstance(body, str) else body
    page = kind(response=HttpResponse(ORIGIN, raw, status=status, encoding="utf-8"), page_params=PageParams(params))
    return dict(asyncio.run(page.to_item()))


def error_of(
    kind: type[VideositePage], body: bytes | str, *, status: int | None = 200, **params: Any
) -> tuple[str, str]:
    with pytest.raises(ScrapeError) as raised:
        read(kind, body, status=status, **params)
    return raised.value.code, raised.value.reason


HARBOR = site().named("harborlights")
FIRST = HARBOR.items["videos"][0]
SECOND = token(HARBOR, "videos", 1, heavy=False)
BODIES: dict[type[VideositePage], bytes] = {
    ChannelPage: get("/@harborlights/videos"),
    ContinuationPage: call("browse", continuation=SECOND),
    PlaylistPage: call("browse", browseId=f"VLUULF{site().named('no-playlist').id[2:]}"),
    AboutPage: call("browse", continuation=f"about-{HARBOR.id}"),
    FeedPage: get("/feeds/videos.xml", channel_id=HARBOR.id),
    VideoPage: call("player", videoId=FIRST.id),
    ResolvePage: call("navigation/resolve_url", url=f"{ORIGIN}/@harborlights"),
}


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: str(kind.source))
def test_every_response_is_recognised(kind: type[VideositePage]) -> None:
    candidates = [page for page in SCRAPER.pages if page.recognise(BODIES[kind].decode())]
    assert candidates[0] is kind


# All kinds of responses that raise an error


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (ChannelPage, {"channel": site().named("saltmill").id}),
        (ChannelPage, {"handle": "saltmill"}),
        (ContinuationPage, {"channel": site().named("saltmill").id}),
        (PlaylistPage, {"channel": HARBOR.id}),
        (AboutPage, {"channel": site().named("saltmill").id}),
        (FeedPage, {"channel": site().named("saltmill").id}),
        (VideoPage, {"video": "aaaaaaaaaaa"}),
    ],
    ids=lambda value: str(getattr(value, "source", "")),
)
def test_data_of_another_channel_or_video_is_never_returned(kind: type[VideositePage], params: dict[str, Any]) -> None:
    assert error_of(kind, BODIES[kind], **params) == ("EXTRACTION_FAILED", "wrong_echo")


@pytest.mark.parametrize("handle", ["harborlights", "HarborLights", "HARBORLIGHTS"])
def test_handles_ignore_case(handle: str) -> None:
    assert read(ChannelPage, BODIES[ChannelPage], handle=handle)["profile"]["username"] == "harborlights"


# Texts


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"runs": [{"text": "a"}, {}, {"text": None}]}, "a"),
        ({"runs": [{"text": "a"}, {"text": "b"}]}, "ab"),
        ({"simpleText": "a"}, "a"),
        ({"content": "a"}, "a"),
        ({"content": ""}, ""),
    ],
)
def test_text_of_a_node(node: Any, text: str) -> None:
    assert str(read_plain(Text, node).value) == text


def row_of(data: Any) -> Row:
    row, unread = read_plain(Row, data)
    assert row is not None
    assert unread == []
    return row


@pytest.mark.parametrize(
    ("parts", "badge", "views", "seconds"),
    [
        (["43k views", "13 days ago"], "1:07:34", 43_000, 4_054),
        (["1.2M views", "1 year ago"], "0:09", 1_200_000, 9),
        (["1 view"], "0:59", 1, 59),
        (["No views"], "1:00", 0, 60),
        (["8 watching"], "LIVE", None, None),
        (["8 waiting", "Scheduled for tomorrow"], "Upcoming", None, None),
        (["20 Tr lượt xem"], "12:00", None, 720),
        (["Book reviews", "5 reviews"], "12:00", None, 720),
        (["1.2M", "3 years ago"], "12:00", None, 720),
        (["1,204", "3 years ago"], "12:00", 1204, 720),
        (["1.2M plays", "3 years ago"], "12:00", 1_200_000, 720),
        ([], "", None, None),
    ],
)
def test_parts_of_a_row_are_recognised_by_their_text(
    parts: list[str], badge: str, views: int | None, seconds: int | None
) -> None:
    rows = [{"metadataParts": [{"text": {"content": part}} for part in parts]}, {"badges": [{"badgeViewModel": {}}]}]
    about = {"title": {"content": "t"}, "metadata": {"contentMetadataViewModel": {"metadataRows": rows}}}
    overlay = {"thumbnailBottomOverlayViewModel": {"badges": [{"thumbnailBadgeViewModel": {"text": badge}}]}}
    command = {"commandMetadata": {"webCommandMetadata": {"url": "/watch?v=aaaaaaaaaaa"}}}
    image = {"image": {"sources": [{"url": "https://i.example/a.jpg"}]}, "overlays": [overlay]}
    shape = {
        "contentId": "aaaaaaaaaaa",
        "contentType": "LOCKUP_CONTENT_TYPE_VIDEO",
        "metadata": {"lockupMetadataViewModel": about},
        "contentImage": {"thumbnailViewModel": image},
        "rendererContext": {"commandContext": {"onTap": {"innertubeCommand": command}}},
    }
    row = row_of({"richItemRenderer": {"content": {"lockupViewModel": shape}}})
    assert row.wrapped is not None
    assert isinstance(row.wrapped.item, Lockup)
    found = item_of(row.wrapped.item, "videos")
    assert (found["view_count"], found["video_duration_seconds"], found["content_type"]) == (views, seconds, "video")


COMMAND = {"continuationCommand": {"token": "T"}}


@pytest.mark.parametrize(
    "row",
    [
        {"continuationItemRenderer": {"continuationEndpoint": COMMAND}},
        {"continuationItemViewModel": {"continuationCommand": {"innertubeCommand": COMMAND}}},
        {"continuationItemRenderer": {"button": {"buttonRenderer": {"command": COMMAND}}}},
    ],
)
def test_tokens_of_all_formats(row: dict[str, Any]) -> None:
    (placed,) = flat(row_of({"richGridRenderer": {"contents": [row]}}))
    assert placed.row.token == "T"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://www.youtube.com/redirect?q=https%3A%2F%2Fa.example", "https://a.example"),
        ("https://www.youtube.com/redirect?event=x", ""),
        ("javascript:alert(1)", ""),
        ("http://[broken", ""),
    ],
)
def test_links_are_unwrapped(url: str, target: str) -> None:
    assert unwrapped(url) == target


@pytest.mark.parametrize("label", ["", "Joined", "Joined Foo 1, 2015", "Joined Feb 31, 2015", "1 февр. 2015 г."])
def test_malformed_days_are_none(label: str) -> None:
    assert stated_day(label) is None


def test_files_of_two_channels_are_not_mixed() -> None:
    other = read(AboutPage, call("browse", continuation=f"about-{site().named('saltmill').id}"))
    with pytest.raises(ExtractionFailed, match="different channels"):
        joined_record({"channel": read(ChannelPage, BODIES[ChannelPage]), "about": other}, {})


@pytest.mark.parametrize(
    "opening", [b'window["ytInitialData"] = ', b"window['ytInitialData'] = ", b"var ytInitialData="]
)
def test_pages_assign_their_data_in_several_ways(opening: bytes) -> None:
    bio = b"unusual traffic"  # a channel's description can contain this phrase, too
    body = BODIES[ChannelPage].replace(b"var ytInitialData = ", opening).replace(b"All about", bio)
    assert next(page for page in SCRAPER.pages if page.recognise(body.decode())) is ChannelPage
    assert len(read(ChannelPage, body)["posts"]) == 30


def test_page_with_the_data_of_a_player() -> None:
    player = b"<script>var ytInitialPlayerResponse = %b;</script></head>" % BODIES[VideoPage]
    body = BODIES[ChannelPage].replace(b"</head>", player)
    assert next(page for page in SCRAPER.pages if page.recognise(body.decode())) is ChannelPage
    assert read(ChannelPage, body) == read(ChannelPage, BODIES[ChannelPage])
