"""Recorded responses of the video site: the page alone, joined responses, older formats."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from web_poet import HttpResponse, PageParams

from crawler.commands.extract import extract
from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.spiders.videosite import VideositeSpider
from scripts.captures import CAPTURES, body_of, captures
from tests.videosite import ORIGIN, page_with

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")


def read(*names: str | bytes, **page_params: Any) -> dict[str, Any]:
    """Return the validated data that ``scrapy extract`` reads from recorded responses."""
    bodies = [name if isinstance(name, bytes) else body_of(name) for name in names]
    return asyncio.run(extract(scrapers()["videosite-profile-v3"], bodies, page_params, url="https://www.youtube.com"))


@cache
def bundle(name: str) -> dict[str, Any]:
    """Return the responses in a bundle file, by their labels."""
    return {each["what"]: each for each in json.loads(body_of(name))}


def entry_body(entry: dict[str, Any]) -> bytes:
    body = entry["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


# The scraper of the page alone

EVERY = [name for name, path in captures().items() if path.parent.name == "videosite"]


def bodies_of(name: str) -> list[bytes]:
    """Return the responses in a capture file. A bundle contains several."""
    if captures()[name].name.startswith("BUNDLE"):
        return [entry_body(entry) for entry in bundle(name).values()]
    return [body_of(name)]


def outcome(body: bytes, scraper: str) -> dict[str, Any] | tuple[str, str]:
    """Return the data that a scraper extracts from a response, or the code and reason of its error."""
    params = VideositeSpider.page_params(scrapers()[scraper], {})
    try:
        return asyncio.run(extract(scrapers()[scraper], [body], params, url="https://www.youtube.com"))
    except ScrapeError as error:
        return error.code, error.reason


@pytest.mark.parametrize("name", EVERY)
def test_the_page_alone_reads_every_capture_without_the_about_panel(name: str) -> None:
    """Items and channel equal those of ``videosite-profile-v3``."""
    for body in bodies_of(name):
        full, alone = outcome(body, "videosite-profile-v3"), outcome(body, "videosite-profile")
        if isinstance(full, dict) and isinstance(alone, dict):
            assert {key: alone["profile"][key] for key in ABOUT_FIELDS} == ABOUT_FIELDS
            full = {**full, "profile": full["profile"] | ABOUT_FIELDS}
        assert alone == full


def test_continuation_page_follows_the_first() -> None:
    names = ["0b05d4fd7ab0", "0bc45455dcb2"]
    first, both = read(names[0], username="c/Legacy"), read(*names)
    assert both["profile"] == first["profile"]
    assert len(both["posts"]) == 30
    assert not {post["content_id"] for post in both["posts"]} & {post["content_id"] for post in first["posts"]}
    assert both["pagination"]["has_more"]
    cursors = [continuation_of(data["pagination"]["cursor"]) for data in (first, both)]
    assert [cursor.channel for cursor in cursors] == [first["profile"]["profile_id"]] * 2
    assert cursors[0].token != cursors[1].token
    assert {*cursors[0].names} - {*cursors[1].names} == {"c/legacy"}
    assert read(names[1])["profile"]["profile_id"] == first["profile"]["profile_id"]


def test_shorts_in_a_format_that_is_no_longer_served_are_not_an_empty_list() -> None:
    with pytest.raises(ExtractionFailed, match=r"unknown in 48 of 48 \(reelItemRenderer\), not collected"):
        read("5fc57c28e525")


def test_linked_data_has_the_same_links() -> None:
    """The recorded linked data is one script of a page. The page around it is the simulated site's."""
    panel, script = "6cf4ee0e92db", body_of("546e466c2252").decode()
    links = read(panel)["profile"]["external_links"]
    page = page_with(script=script, change=of_channel(re.findall(r'"url":"[^"]*/channel/([^"/]+)', script)[0]))
    assert len(links) == 10
    assert read(page)["profile"]["external_links"] == []
    page_params = VideositeSpider.page_params(scrapers()["videosite-profile-v3"], {"include_about": "false"})
    assert read(page, **page_params)["profile"]["external_links"] == []
    assert read(page, include_about=True)["profile"]["external_links"] == links


def of_channel(channel: str) -> Callable[[Any], None]:
    """Return a change of a channel's page: all of its parts state another id."""

    def change(data: Any) -> None:
        known = data["metadata"]["channelMetadataRenderer"]["externalId"]
        data |= json.loads(json.dumps(data).replace(known, channel))

    return change


# Parts of responses


def parts_of(name: str, key: str) -> list[Any]:
    """Return all objects under a key of a capture, at any depth, in the order of the document."""
    found: list[Any] = []
    waiting = [json.loads(body_of(name))]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found += [{key: each[key]}] if key in each else []
            waiting += reversed(list(each.values()))
        elif isinstance(each, list):
            waiting += reversed(each)
    return found


def titled(row: Any) -> Any:
    """Return a short with a title. Shorts among recommendations, unlike those of a channel, have no title."""
    row["shortsLockupViewModel"]["overlayMetadata"].setdefault("primaryText", {"content": "One"})
    return row


@pytest.mark.parametrize(
    ("name", "key", "rows", "live"),
    [
        ("720955203aa1", "", 1, 0),  # for members only
        ("ed87241a14a0", "lockupViewModel", 19, 0),
        ("bb9a74d0f95b", "lockupViewModel", 20, 0),
        ("3619fe6ced2f", "lockupViewModel", 20, 0),
        ("803ff3b04ebc", "lockupViewModel", 20, 5),
        ("e952a8a7a026", "shortsLockupViewModel", 30, 0),  # of 2024-10, with the picture at its place until autumn 2025
        ("004e5a151e49", "shortsLockupViewModel", 30, 0),
    ],
)
def test_rows_in_responses_that_are_not_read_have_the_format_of_lists(
    name: str, key: str, rows: int, live: int
) -> None:
    is_short = key == "shortsLockupViewModel"
    parts = parts_of(name, key) if key else [{"lockupViewModel": json.loads(body_of(name))}]
    body = page_with(*(titled(each) if is_short else each for each in parts), tab="shorts" if is_short else "videos")
    page = ChannelPage(HttpResponse(ORIGIN, body, encoding="utf-8"), PageParams({}))
    posts = asyncio.run(page.to_item())["posts"]
    assert (len(posts), page.problems()) == (rows, [])
    assert all(each["caption"] and each["thumbnail_image"] for each in posts)
    assert sum(each["video_duration_seconds"] is None for each in posts) == (rows if is_short else live)


def test_a_recorded_header_in_another_language_is_reported() -> None:
    """The recorded header and metadata lack the rest of their page, which is the simulated site's."""
    recorded = json.loads(body_of("b9050dbbd987"))
    channel = recorded["metadata"]["channelMetadataRenderer"]["externalId"]

    def change(data: Any) -> None:
        of_channel(channel)(data)
        data["header"] = recorded["header"]
        data["metadata"]["channelMetadataRenderer"] |= recorded["metadata"]["channelMetadataRenderer"]
        data["microformat"] = recorded["microformat"]

    page = ChannelPage(HttpResponse(ORIGIN, page_with(change=change), encoding="utf-8"), PageParams({}))
    profile = asyncio.run(page.to_item())["profile"]
    assert (profile["profile_id"], profile["follower_count"], profile["content_count"]) == (channel, None, None)
    assert profile["subscriber_count_text"]
    assert [each.reason for each in page.skipped] == ["language"]
