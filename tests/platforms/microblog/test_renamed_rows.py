"""A key of posts that the platform renames or empties is noticed, also on a small page, and in one row of thirty."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from crawler.sandbox.microblog import new, old
from crawler.sandbox.microblog.site import PLANS, Site
from tests.microblog_pages import answer, page_of, timeline_with, web_timeline_with

POSTS = [post for post in Site().account("quiet_harbor").posts if not post.wrapped]
"""The invented posts of an account, of all kinds."""

API = (
    *("views", "count", "state", "legacy", "full_text", "favorite_count", "reply_count", "retweet_count"),
    *("bookmark_count", "entities", "urls", "expanded_url", "extended_entities", "media", "media_url_https", "type"),
    *("video_info", "variants", "quoted_status_result", "retweeted_status_result", "in_reply_to_status_id_str"),
    *("in_reply_to_screen_name", "created_at", "screen_name", "image_url", "followers"),
)
WEB = (
    *("views", "count", "details", "full_text", "favorite_count", "reply_count", "retweet_count", "url_entities"),
    *("expanded_url", "media_entities2", "video_info", "variants", "screen_name", "image_url"),
)


ROWS: dict[str, list[dict[str, Any]]] = {
    "api": [old.post_payload(post, old.NEW) for post in POSTS],
    "web": [new.plain(new.post_payload(post)) for post in POSTS],
}
PAGES = {"api": timeline_with, "web": web_timeline_with}


def keys_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if each not in (None, [], {}):
                yield key
            yield from keys_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from keys_in(each)


def changed(value: Any, key: str, *, to_null: bool) -> Any:
    """A copy of a value in which a key is renamed, or null, wherever it is."""
    if isinstance(value, list):
        return [changed(each, key, to_null=to_null) for each in value]
    if not isinstance(value, dict):
        return value
    name = {key: key if to_null else f"{key}Renamed"}
    return {
        name.get(each, each): None if to_null and each == key else changed(below, key, to_null=to_null)
        for each, below in value.items()
    }


def outcome(body: bytes) -> tuple[Any, list[str]]:
    page = page_of("timeline", body)
    try:
        posts = asyncio.run(page.to_item())["posts"]
    except Exception as error:  # noqa: BLE001  # its class is compared
        return type(error).__name__, []
    return posts, [str(each) for each in page.unread]


@pytest.mark.parametrize("to_null", [False, True], ids=["renamed", "null"])
@pytest.mark.parametrize(("size", "one"), [(1, False), (5, False), (9, False), (30, True)])
@pytest.mark.parametrize(("form", "key"), [*(("api", key) for key in API), *(("web", key) for key in WEB)])
def test_a_changed_key_is_noticed(form: str, key: str, size: int, *, one: bool, to_null: bool) -> None:
    having = next(number for number, row in enumerate(ROWS[form]) if key in set(keys_in(row)))
    start = max(0, having - size + 1)
    shown = ROWS[form][start : start + size]
    original, unread = outcome(PAGES[form](*shown))
    assert unread == []
    damaged = [
        changed(row, key, to_null=to_null) if not one or start + number == having else row
        for number, row in enumerate(shown)
    ]
    posts, noticed = outcome(PAGES[form](*damaged))
    if posts != original:
        assert posts == "ExtractionFailed" or noticed, key


def test_clean_responses_of_twenty_seeds_have_no_warning() -> None:
    for seed in range(1, 21):
        site = Site(seed, light=True)
        for handle in PLANS:
            for source in ("page", "embed", "user", "timeline"):
                status, _, body = answer(site, source, handle)
                page = page_of(source, body, status=status, username=handle)
                asyncio.run(page.to_item())
                assert [str(each) for each in page.unread] == [], (seed, handle, source)
