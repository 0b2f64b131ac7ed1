"""Recorded responses of the microblog: whole posts, a page, joined sources."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms.microblog.convert import id_seconds
from crawler.registry import scrapers
from scripts.captures import CAPTURES, body_of, captures
from tests.microblog_pages import page_of, timeline_with
from tests.microblog_parts import AUTHOR, whole

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")

SCRAPER = scrapers()["microblog-profile"]
PAGE = "15e277c749c3"


def read(*names: str, **params: Any) -> dict[str, Any]:
    """The data that ``scrapy extract`` reads from a target's captures, given by their names."""
    return asyncio.run(extract(SCRAPER, [whole(body_of(name)) for name in names], params, url="https://x.com/"))


def posts_of(*names: str, **params: Any) -> list[dict[str, Any]]:
    posts: list[dict[str, Any]] = read(*names, **params)["data"]["main"]
    return posts


def posts_in(data: Any) -> Iterator[dict[str, Any]]:
    """Every post in an older format in some data, at any depth.

    The format of the authors until 2025-03 is not read any more. Such authors are replaced by one of today's format.
    """
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("legacy"), dict) and "full_text" in value["legacy"]:
                if "core" not in value["core"]["user_results"]["result"]:
                    value["core"] = {"user_results": {"result": AUTHOR}}
                yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def raw_posts() -> Iterator[dict[str, Any]]:
    """Every post in the captures that are neither trimmed nor derived."""
    for name, path in captures().items():
        is_json = path.parent.name == "microblog" and path.suffix in {".json", ".gz"}
        if is_json and "DERIVED" not in path.name and "TRIMMED" not in path.name:
            yield from list(posts_in(orjson.loads(body_of(name))))


def lacks_its_article(raw: dict[str, Any]) -> bool:
    """Whether a post is only the link to an article that the response lacks, as before 2024-05: queries had no flag for
    articles then.
    """
    links = [link.get("expanded_url", "") for link in raw["legacy"]["entities"].get("urls", ())]
    is_link = re.fullmatch(r"https://t\.co/\w+", raw["legacy"]["full_text"])
    return "article" not in raw and is_link is not None and any("/i/article/" in each for each in links)


def test_every_post_of_every_capture_is_complete() -> None:
    total = wrappers = without_article = 0
    for raw in raw_posts():
        page = page_of("timeline", timeline_with({"__typename": "Tweet"} | raw))
        (record,) = asyncio.run(page.to_item())["posts"]
        unread = [each.path for each in page.unread if "bookmark" not in each.path]
        if unread:
            assert any(map(lacks_its_article, posts_in(raw)))
            assert unread == ["tweet_results.result.article.article_results.result"]
            without_article += 1
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
    assert (total, wrappers, without_article) == (2400, 512, 5)


def test_decoded_records_give_the_same_data_as_the_page() -> None:
    assert read("cdb29a19e6be") == read(PAGE)


def test_sources_are_joined() -> None:
    user, timeline = "ef88cf9f1b4d", "e992000b9ff4"
    data = read(user, timeline, username="XDevelopers")
    assert data["data"]["additional"]["profile_demographics"]["listed_count"] == 2981
    assert data["data"]["main"] == posts_of(timeline, username="XDevelopers")


@pytest.mark.parametrize("name", [PAGE, "7feb52efce1d"])
def test_another_profile_is_refused(name: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(name, username="someone_else")
    assert raised.value.code == "EXTRACTION_FAILED"
