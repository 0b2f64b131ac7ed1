"""Recorded responses in both item formats, compared with noted values. The recordings must not be published."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.shortvideo.pages import AppResultsPage, ResultsPage
from crawler.platforms.shortvideo.schema import PhotoSearch
from crawler.registry import scrapers

CAPTURES = Path(__file__).parents[4] / "shared" / "captures" / "shortvideo"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")

URL = "https://www.tiktok.com/api/search/photo/full/?keyword=whales"
PHOTO_DETAIL = "app_photo_detail_7images_2025-09-09.json"
TOP_SEARCH = "app_search_top_photo_and_video_2026-04-16_partly_trimmed.json"
TRENDING = "app_trending_feed_photo_2025-08-26_trimmed.json"
WEB_SEARCH = "web_search_general_full_page1_2026-02-05.json"


def saved(name: str) -> bytes:
    body = (CAPTURES / name).read_bytes()
    return gzip.decompress(body) if name.endswith(".gz") else body


def read(body: bytes | str, **page_params: Any) -> dict[str, Any]:
    """The data of a body, by ``scrapy extract``."""
    raw = body if isinstance(body, bytes) else saved(body)
    data = asyncio.run(extract(scrapers()["shortvideo-photo-search-v4"], [raw], page_params, url=URL))
    assert validated(PhotoSearch, data) == data
    return data


def recognised_page(name: str) -> type[ResultsPage]:
    body = saved(name).decode()
    return next(page for page in (AppResultsPage, ResultsPage) if page.recognise(body))


def picture(value: dict[str, Any]) -> dict[str, Any]:
    """The contract's picture object: its ``uri`` is a URL, the app's may be a storage key."""
    uri = value["uri"] if value["uri"].startswith("http") else (value["url_list"] or [""])[0]
    return {"uri": uri} | {name: value[name] for name in ("height", "url_list", "url_prefix", "width")}


def test_complete_photo_post_of_the_app() -> None:
    post = json.loads(saved(PHOTO_DETAIL))["aweme_detail"]
    data = read(PHOTO_DETAIL, keywords="how to")
    assert {key: data[key] for key in ("cursor", "has_more", "keywords")} == {
        "cursor": "0",
        "has_more": False,
        "keywords": "how to",
    }
    (item,) = data["search_item_list"]
    same = ("aweme_id", "desc", "desc_language", "create_time", "create_time_utc", "region", "url", "is_ad", "is_top")
    assert {key: item[key] for key in same} == {key: post[key] for key in same}
    assert item["url"] == "https://www.tiktok.com/@emily.growth/photo/7506215463664274710"
    assert (item["aweme_type"], item["is_ad"], item["is_nff_or_nr"], item["item_comment_settings"]) == (
        150,
        True,
        False,
        0,
    )
    assert item["author_user_id"] == item["author"]["uid"] == "7265752733188277281"  # not the rounded number
    assert (item["anchors"], item["media_id"], item["shop_product_url"]) == (None, None, None)
    assert item["commerce_info"] == {
        "adv_promotable": True,
        "auction_ad_invited": False,
        "branded_content_type": 0,
        "is_diversion_ad": None,
        "organic_log_extra": '{"req_id":"20250909125159F5B07A062B160E02F247"}',
        "with_comment_filter_words": False,
    }
    assert item["image_post_info"] == {
        "image_post_cover": {
            name: picture(post["image_post_info"]["image_post_cover"][name])
            for name in ("display_image", "owner_watermark_image")
        },
        "images": [
            {name: picture(each[name]) for name in ("display_image", "owner_watermark_image")}
            for each in post["image_post_info"]["images"]
        ],
    }
    assert len(item["image_post_info"]["images"]) == 7


def test_author_sound_figures_and_video_stub_of_the_app() -> None:
    post = json.loads(saved(PHOTO_DETAIL))["aweme_detail"]
    (item,) = read(PHOTO_DETAIL)["search_item_list"]
    assert item["statistics"] == {
        "aweme_id": "7506215463664274710",
        "collect_count": 2565,
        "comment_count": 2411,
        "digg_count": 11163,
        "download_count": 38,
        "forward_count": 0,
        "lose_comment_count": 0,
        "lose_count": 0,
        "play_count": 313901,
        "repost_count": 0,
        "share_count": 1018,
        "chatapp_share_count": 9,
    }
    author = item["author"]
    assert (author["language"], author["region"], author["short_id"], author["social_info"]) == ("en", "FR", "0", None)
    assert author["signature"] == post["author"]["signature"]
    assert author["avatar_larger"] == picture(post["author"]["avatar_larger"])
    music = item["music"]
    assert {music[name] for name in ("id", "id_str", "mid")} == {"7140790914893236998"}
    assert (music["album"], music["is_original"], music["is_original_sound"]) == (None, False, True)
    assert (music["duration"], music["owner_nickname"], music["user_count"]) == (59, "blipstudio", 0)
    assert music["play_url"]["uri"] == post["music"]["play_url"]["uri"]
    video = item["video"]
    assert video["download_addr"] == {"height": 720, "uri": "", "url_list": [], "url_prefix": None, "width": 720}
    assert len(video["play_addr"]["url_list"]) == 3
    assert (video["height"], video["width"], video["data_size"], video["duration"]) == (None, None, None, 0)
    assert video["cover"] == picture(post["video"]["cover"])


def test_flattened_search_of_the_app_has_one_photo_post_of_two_rows() -> None:
    data = read(TOP_SEARCH)
    assert data["cursor"] == "30"
    (item,) = data["search_item_list"]
    assert (item["aweme_id"], item["create_time"]) == ("7620673421353012494", 1774326345)
    assert item["create_time_utc"] == "2026-03-24T04:25:45.000Z"
    assert item["url"] == "https://www.tiktok.com/@idk_kid712/photo/7620673421353012494"
    assert [len(each["display_image"]["url_list"]) for each in item["image_post_info"]["images"]] == [1]
    assert item["music"]["id"] == ""  # the response has only the rounded number
    assert item["statistics"]["chatapp_share_count"] == 430


def test_trimmed_post_has_the_url_of_its_share_link() -> None:
    (item,) = read(TRENDING)["search_item_list"]
    assert item["url"] == "https://www.tiktok.com/@breannafriedman0/photo/7540000301621841183"
    assert (
        item["image_post_info"]["image_post_cover"]["display_image"]
        == (item["image_post_info"]["images"][0]["display_image"])
    )
    assert item["author"]["social_info"] == '{"imprs_info":"vv_100k+","is_cold_info":"0"}'
    assert (item["music"]["id"], item["music"]["play_url"]["url_list"]) == ("", [])


@pytest.mark.parametrize(
    ("name", "page", "cursor", "more"),
    [
        (WEB_SEARCH, ResultsPage, "12", True),
        ("web_search_general_items_2022-09-08.json", ResultsPage, "0", False),
        ("web_search_general_whales_84items_projected_2026-01.json.gz", ResultsPage, "0", False),
        ("web_video_page_itemstruct_projected_2026-01-29.json", ResultsPage, "0", False),
        ("web_collection_videos_short_sample.json", ResultsPage, "0", False),
        ("web_post_item_list_page_2025-10-20.json", ResultsPage, None, True),
        ("web_post_item_list_popular_2025-10-20.json", ResultsPage, None, True),
        ("app_search_keyword_page_2025-01-24_full_item.json", AppResultsPage, "12", False),
        ("app_hashtag_page_cursor_has_more_2025-01-24.json", AppResultsPage, "12", True),
        ("app_song_videos_page_cursor_has_more_2025-02-18.json", AppResultsPage, "12", True),
        ("app_profile_videos_page_max_cursor_2025-02-13.json", AppResultsPage, "0", True),
        ("app_video_detail_2025-01-24.json", AppResultsPage, "0", False),
    ],
)
def test_videos_are_not_photo_posts(name: str, page: type[ResultsPage], cursor: str | None, more: bool) -> None:  # noqa: FBT001
    assert recognised_page(name) is page
    data = read(name, keywords="TikTok")
    assert (data["search_item_list"], data["has_more"], data["keywords"]) == ([], more, "TikTok")
    if cursor is not None:
        assert data["cursor"] == cursor


def test_response_of_another_service_is_not_recognised() -> None:
    with pytest.raises(ScrapeError) as raised:
        read("thirdparty_flattened_photo_item_2026-08-24.json")
    assert (raised.value.code, raised.value.reason) == ("EXTRACTION_FAILED", "blind")


def as_photo(item: dict[str, Any]) -> dict[str, Any]:
    """A recorded web item as a photo post. No photo post was recorded; only the structure of its key is known."""
    urls = [["https://p16.example/1.jpeg", "https://p19.example/1.jpeg"], ["https://p16.example/2.jpeg"]]
    images = [{"imageURL": {"urlList": each}, "imageWidth": 1080, "imageHeight": 1440} for each in urls]
    video = item["video"] | {"playAddr": "", "downloadAddr": "", "duration": 0, "height": 0, "width": 0}
    return item | {"imagePost": {"images": images, "cover": images[1], "title": "Synthetic"}, "video": video}


def test_recorded_web_items_converted_to_photo_posts() -> None:
    answer = json.loads(saved(WEB_SEARCH))
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
    assert (71235, 71200) in figures  # exact before rounded
    assert (21158, 21200) in figures
