"""Variants of the video site's responses: other wrapper objects, paths and texts."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crawler.errors import ScrapeError
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import VideoPage
from crawler.platforms.videosite.item import post
from crawler.platforms.videosite.lists import PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.sandbox.videosite import extra
from tests.platforms.videosite.test_pages import BODIES, HARBOR, call, error_of, read
from tests.videosite import SCRAPER


def channel_with(change: Any) -> dict[str, Any]:
    data = orjson.loads(call("browse", browseId=HARBOR.id, params="EgZ2aWRlb3PyBgQKAjoA"))
    change(data)
    return read(ChannelPage, orjson.dumps(data), tab="videos")


@pytest.mark.parametrize(
    ("rows", "subscribers", "videos"),
    [
        ([["@a"], ["8.84k subscribers", "258 videos"]], "8.84k subscribers", 258),
        ([["@a", "she/her"], ["8.84k subscribers", "18k videos"]], "8.84k subscribers", 18_000),
        ([["@a", "8.84k subscribers", "258 videos"]], "8.84k subscribers", 258),
        ([["8.84k subscribers"]], "8.84k subscribers", None),
        ([["@a", "they/them"], ["258 videos"]], "", 258),
        ([["Official artist"], ["@a"], ["258 videos"]], "", 258),
        ([["@a"], ["20 Tr người đăng ký", "32 N video"]], "20 Tr người đăng ký", None),
        ([], "", None),
    ],
)
def test_parts_of_a_header_are_recognised_by_their_text(
    rows: list[list[str]], subscribers: str, videos: int | None
) -> None:
    def change(data: Any) -> None:
        header = data["header"]["pageHeaderRenderer"]["content"]["pageHeaderViewModel"]
        parts = [{"metadataParts": [{"text": {"content": part}} for part in row]} for row in rows]
        header["metadata"] = {"contentMetadataViewModel": {"metadataRows": parts}}

    profile = channel_with(change)["profile"]
    assert (profile["subscriber_count_text"], profile["content_count"]) == (subscribers, videos)
    assert profile["follower_count"] == (8_840 if subscribers.startswith("8.84k") else None)


def test_token_of_a_list_has_precedence_over_that_of_its_container() -> None:
    def end(token: str) -> dict[str, Any]:
        return {"continuationItemRenderer": {"continuationEndpoint": {"continuationCommand": {"token": token}}}}

    row = {"playlistVideoRenderer": {"videoId": "aaaaaaaaaaa"}}

    def around(*rows: Any) -> Any:
        def change(data: Any) -> None:
            tab = data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"][1]["tabRenderer"]
            section = {"itemSectionRenderer": {"contents": [{"playlistVideoListRenderer": {"contents": [*rows]}}]}}
            tab["content"] = {"sectionListRenderer": {"contents": [section, end("OTHERS")]}}

        return change

    assert channel_with(around(row, end("NEXT")))["continuation"] == "NEXT"
    assert channel_with(around(row))["continuation"] == "OTHERS", "the only token"


def test_continuation_page_of_a_playlist() -> None:
    action = {"continuationItems": [{"playlistVideoRenderer": {"videoId": "aaaaaaaaaaa", "playlistId": "UULFx"}}]}
    data = {
        "responseContext": {"serviceTrackingParams": [{"params": [{"key": "browse_id", "value": "VLUULFx"}]}]},
        "onResponseReceivedActions": [{"reloadContinuationItemsCommand": action}],
    }
    body = orjson.dumps(data)
    kind = next(page for page in SCRAPER.pages if page.recognise(body.decode()))
    assert [post["content_id"] for post in read(kind, body)["posts"]] == ["aaaaaaaaaaa"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        (
            {"alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": "Unknown error."}}}]},
            ChannelPage,
            "reported_error",
        ),
        ({"onResponseReceivedActions": [{"navigateAction": {}}]}, ChannelPage, "no_contents"),
        ({}, ChannelPage, "no_contents"),
        ({"playabilityStatus": {"reason": "Sign in to confirm you’re not a bot"}}, VideoPage, "bot_check"),
        ({"playabilityStatus": {"status": "OK"}}, VideoPage, "no_metadata"),
    ],
)
def test_responses_without_data(data: dict[str, Any], kind: type[VideositePage], expected: str) -> None:
    body = orjson.dumps({"responseContext": {"serviceTrackingParams": []}, **data})
    assert next(page for page in SCRAPER.pages if page.recognise(body.decode())) is kind
    assert error_of(kind, body)[1] == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("This channel is not available in your country.", ("TARGET_RESTRICTED", "region")),
        ("This content isn't available in your country.", ("TARGET_RESTRICTED", "region")),
        ("This channel isn't available.", ("TARGET_NOT_FOUND", "not_found")),
        ("An unknown error has occurred.", ("UPSTREAM_ERROR", "reported_error")),
        ("This account has been terminated.", ("TARGET_NOT_FOUND", "terminated")),
        ("This page isn't available. Sorry about that.", ("TARGET_NOT_FOUND", "not_found")),
        ("This YouTube account has been closed.", ("TARGET_NOT_FOUND", "removed")),
        ("This channel isn’t available.", ("TARGET_NOT_FOUND", "not_found")),
        ("This content isn't available, try again later.", ("UPSTREAM_ERROR", "reported_error")),
        ("We are closed.", ("EXTRACTION_FAILED", "unknown_alert")),
        ("Comments are closed.", ("EXTRACTION_FAILED", "unknown_alert")),
        ("Your account has been suspended.", ("EXTRACTION_FAILED", "unknown_alert")),
        ("Server not available", ("EXTRACTION_FAILED", "unknown_alert")),
        ("What a pity.", ("EXTRACTION_FAILED", "unknown_alert")),
        ("Dieser Kanal existiert nicht.", ("EXTRACTION_FAILED", "unknown_alert")),
    ],
)
def test_alerts(message: str, expected: tuple[str, str]) -> None:
    body = orjson.dumps(extra.alert(HARBOR.id, message))
    with pytest.raises(ScrapeError) as raised:
        read(ChannelPage, body)
    assert (raised.value.code, raised.value.reason) == expected
    assert [each["msg"] for each in raised.value.details] == [message]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("The playlist does not exist.", None),
        ("An unknown error has occurred.", ("UPSTREAM_ERROR", "reported_error")),
        ("What a pity.", ("EXTRACTION_FAILED", "unknown_alert")),
    ],
)
def test_only_a_missing_playlist_is_an_empty_list(message: str, expected: tuple[str, str] | None) -> None:
    body = orjson.dumps({"alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": message}}}]})
    if expected is None:
        assert read(PlaylistPage, body)["posts"] == []
    else:
        assert error_of(PlaylistPage, body) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (404, ("TARGET_NOT_FOUND", "not_found")),
        (400, ("EXTRACTION_FAILED", "bad_request")),
        (403, ("UPSTREAM_BLOCKED", "refused")),
        (429, ("UPSTREAM_RATE_LIMITED", "rate_limited")),
        (503, ("UPSTREAM_ERROR", "reported_error")),
        (None, ("EXTRACTION_FAILED", "no_contents")),
    ],
)
def test_errors_saved_without_their_status(code: int | None, expected: tuple[str, str]) -> None:
    body = orjson.dumps(extra.refused(code, "No.", "NO"))  # type: ignore[arg-type]
    assert error_of(ChannelPage, b"\n " + body, status=None) == expected


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


def test_picture_url_without_a_scheme() -> None:
    assert post("aaaaaaaaaaa", kind="video", thumbnail_image="//i.ytimg.com/a.jpg")["thumbnail_image"] == (
        "https://i.ytimg.com/a.jpg"
    )
