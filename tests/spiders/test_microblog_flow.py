"""Microblog: whole crawls after the platform has renamed a timeline key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.microblog.expected import post_record
from tests.crawls import crawl, on, options, platforms
from tests.spiders.test_microblog_paging import SITE

HANDLE, LONG_TEXTS = "quiet_harbor", "popular_tide"
RENAME = """
from crawler.sandbox.microblog.site import Site
timeline = Site._timeline
def renamed(self, account, request):
    status, headers, body = timeline(self, account, request)
    return status, headers, body.replace(b'"{old}":', b'"{new}":')
Site._timeline = renamed
"""


def crawled(tmp_path: Path, changes: str, *more: str, handle: str = HANDLE) -> tuple[list[Any], list[Any], str]:
    """Crawl an account in a sandbox changed by code. Return the lines of both feeds (data, failures), and the log."""
    targets = tmp_path / "targets.jsonl"
    targets.write_text(json.dumps({"username": handle}))
    with platforms(before=changes) as origins:
        given = (*options(*on(origins)), *more, "-a", f"targets={targets}")
        _, out, failures, log = crawl(tmp_path, *given, spider="microblog")
    return out, failures, log


# tests/platforms/test_mutations.py and tests/contracts rename all keys, in the payloads alone.
@pytest.mark.parametrize("key", ["cursorType", "tweet_results"])
def test_a_renamed_key_is_a_warning_or_the_values_are_right(tmp_path: Path, key: str) -> None:
    out, failures, log = crawled(tmp_path, RENAME.format(old=key, new=f"{key}2"), "-a", "max_pages=1")
    assert (len(out), failures) == (1, []), log
    data, warnings = out[0]["data"], out[0]["warnings"]
    expected = {post.id: post_record(post) for post in SITE.account(HANDLE).posts}
    for post in data["data"]["main"]:
        assert post["is_repost"] == expected[post["post_id"]]["is_repost"], "a repost is never the profile's own post"
    assert data["hasMore"], "the timeline has 230 posts"
    assert any(key in json.dumps(warning) or warning["source"] == "timeline" for warning in warnings), warnings


def test_a_long_text_without_its_note_comes_from_another_source(tmp_path: Path) -> None:
    out, _, log = crawled(tmp_path, RENAME.format(old="note_tweet", new="note"), "-a", "max_pages=1", handle=LONG_TEXTS)
    expected = {post.id: post_record(post)["caption"] for post in SITE.account(LONG_TEXTS).posts}
    captions = {post["post_id"]: post["caption"] for post in out[0]["data"]["data"]["main"]}
    assert any(post.long and post.id in captions for post in SITE.account(LONG_TEXTS).posts), log
    assert captions == {post_id: expected[post_id] for post_id in captions}


def test_paging_without_a_readable_cursor_ends_with_an_error(tmp_path: Path) -> None:
    out, failures, log = crawled(tmp_path, RENAME.format(old="value", new="value2"), "-a", "max_pages=9")
    assert [each["data"]["hasMore"] for each in out] == [True], log
    assert [failure["code"] for failure in failures] == ["EXTRACTION_FAILED"]
