"""Recorded responses, and items converted to photo posts."""

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
WEB_SEARCH = "dcff329e5459"


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


def as_photo(item: dict[str, Any]) -> dict[str, Any]:
    """Turn a recorded video item into a photo post. None was recorded; only the keys of ``imagePost`` are known."""
    urls = [["https://p16.example/1.jpeg", "https://p19.example/1.jpeg"], ["https://p16.example/2.jpeg"]]
    images = [{"imageURL": {"urlList": each}, "imageWidth": 1080, "imageHeight": 1440} for each in urls]
    video = item["video"] | {"playAddr": "", "downloadAddr": "", "duration": 0, "height": 0, "width": 0}
    return item | {"imagePost": {"images": images, "cover": images[1], "title": "Synthetic"}, "video": video}


def test_recorded_web_items_converted_to_photo_posts() -> None:
    answer = json.loads(body_of(WEB_SEARCH))
    items = [as_photo(entry["item"]) for entry in answer["data"]["data"] if "item" in entry]
    body = json.dumps({"status_code": 0, "item_list": items, "cursor": 12, "has_more": 1}).encode()
    data = read(body)
    assert (data["cursor"], data["has_more"], data["keywords"]) == ("12", True, "whales")
    posts = data["search_item_list"]
    assert [post["aweme_id"] for post in posts] == [item["id"] for item in items]
    for post, item in zip(posts, items, strict=True):
        assert post["statistics"] == {
            "aweme_id": item["id"],
            **{f"{n}_count": int(item["statsV2"][f"{n}Count"]) for n in ("collect", "comment", "digg", "play")},
            **{f"{n}_count": int(item["statsV2"][f"{n}Count"]) for n in ("repost", "share")},
            **dict.fromkeys(
                ("download_count", "forward_count", "lose_comment_count", "lose_count", "chatapp_share_count")
            ),
        }
        assert post["url"] == f"https://www.tiktok.com/@{item['author']['uniqueId']}/photo/{item['id']}"
        assert post["author"]["sec_uid"] == item["author"]["secUid"]
        assert post["music"]["is_original_sound"] is item["music"]["original"]
        assert post["music"]["play_url"]["uri"] == item["music"]["playUrl"]
        assert set(post["commerce_info"].values()) == {None, ""}
        assert post["image_post_info"]["image_post_cover"]["display_image"]["uri"] == "https://p16.example/2.jpeg"
        assert post["video"]["play_addr"]["url_list"] == []
    figures = [
        (post["statistics"]["collect_count"], item["stats"]["collectCount"])
        for post, item in zip(posts, items, strict=True)
    ]
    assert (71235, 71200) in figures  # exact counts take precedence over rounded ones
    assert (21158, 21200) in figures


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
