"""Recorded responses of the short-video search."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.shortvideo.schema import PhotoSearch
from crawler.registry import scrapers
from scripts.captures import CAPTURES, body_of

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")

URL = "https://www.tiktok.com/api/search/photo/full/?keyword=whales"


def read(body: bytes | str, **page_params: Any) -> dict[str, Any]:
    """Return the data that ``scrapy extract`` reads from a body."""
    raw = body if isinstance(body, bytes) else body_of(body)
    data = asyncio.run(extract(scrapers()["shortvideo-photo-search-v4"], [raw], page_params, url=URL))
    assert validated(PhotoSearch, data) == data
    return data


def test_response_of_another_service_is_not_recognised() -> None:
    with pytest.raises(ScrapeError) as raised:
        read("824b42189c2a")
    assert (raised.value.code, raised.value.reason) == ("EXTRACTION_FAILED", "no_list")


def test_recorded_photo_post() -> None:
    (post,) = read("f8b47592e6da")["search_item_list"]
    (item,) = json.loads(body_of("f8b47592e6da"))["item_list"]
    images = post["image_post_info"]["images"]
    assert [each["display_image"]["url_list"] for each in images] == [
        each["imageURL"]["urlList"] for each in item["imagePost"]["images"]
    ]
    assert (post["aweme_id"], post["create_time"], post["region"]) == (
        item["id"],
        int(item["createTime"]),
        item["locationCreated"],
    )
    assert post["statistics"]["digg_count"] == item["stats"]["diggCount"]
    assert (post["video"]["duration"], post["video"]["cover"]["uri"]) == (0, item["video"]["cover"])


@pytest.mark.parametrize("name", ["27046691e25c", "91914c1619ec"])
def test_a_single_item_is_not_a_list(name: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(name)
    assert raised.value.code == "EXTRACTION_FAILED"
