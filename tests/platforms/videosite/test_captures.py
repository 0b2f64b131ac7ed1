"""Recorded responses of the video site: the page alone, joined responses, formats that are not transcribed."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import pytest

from crawler.commands.extract import extract
from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.spiders.videosite import VideositeSpider
from scripts.captures import CAPTURES, body_of, captures

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
def test_co_3_the_page_alone_reads_every_capture_without_the_about_panel(name: str) -> None:
    """Items and channel equal those of ``videosite-profile-v3``."""
    for body in bodies_of(name):
        full, alone = outcome(body, "videosite-profile-v3"), outcome(body, "videosite-profile")
        if isinstance(full, dict) and isinstance(alone, dict):
            assert {key: alone["profile"][key] for key in ABOUT_FIELDS} == ABOUT_FIELDS
            full = {**full, "profile": full["profile"] | ABOUT_FIELDS}
        assert alone == full


def test_continuation_page_follows_the_first() -> None:
    names = ["0b05d4fd7ab0", "0bc45455dcb2"]
    first, both = read(names[0]), read(*names)
    assert both["profile"] == first["profile"]
    assert len(both["posts"]) == 30
    assert not {post["content_id"] for post in both["posts"]} & {post["content_id"] for post in first["posts"]}
    assert both["pagination"]["has_more"]
    cursors = [continuation_of(data["pagination"]["cursor"]) for data in (first, both)]
    assert [cursor.channel for cursor in cursors] == [first["profile"]["profile_id"]] * 2
    assert cursors[0].token != cursors[1].token
    assert read(names[1])["profile"]["profile_id"] == first["profile"]["profile_id"]


def test_live_item_has_no_views() -> None:
    posts = read("049b95ef63ce")["posts"]
    assert len(posts) == 30
    (live,) = [post for post in posts if post["view_count"] is None]
    assert live["video_duration_seconds"] is None


def test_shorts_in_a_format_that_is_no_longer_served_are_not_an_empty_list() -> None:
    with pytest.raises(ExtractionFailed, match=r"unknown in 48 of 48 \(reelItemRenderer\), not collected"):
        read("5fc57c28e525")


def test_linked_data_has_the_same_links() -> None:
    panel, page = "6cf4ee0e92db", "546e466c2252"
    links = read(panel, page)["profile"]["external_links"]
    assert len(links) == 10
    assert read(page)["profile"]["external_links"] == []
    page_params = VideositeSpider.page_params(scrapers()["videosite-profile-v3"], {"include_about": "false"})
    assert read(page, **page_params)["profile"]["external_links"] == []
    assert read(page, include_about=True)["profile"]["external_links"] == links
