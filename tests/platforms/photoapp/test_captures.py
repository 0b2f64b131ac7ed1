"""Recorded responses of the photo app must give the noted values. The recordings must not be published."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from web_poet import HttpResponse, PageParams

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms.photoapp.pages import PostPage, ReelsPage
from crawler.registry import scrapers
from scripts.captures import CAPTURES, body_of

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")

PHOTO, REEL = "15a62b33273a", "add1a341397f"
FULL_PHOTO, FULL_REEL = "4ff3b9ca9e8e", "805847ca6af2"
HIDDEN = "d5a9d20489b6"
ZERO_VIEWS, REDUCED = (
    "b63903f98408",
    "a9ea733cf79c",
)
ITEM = "fbaf36080e28"


def read(name: str) -> dict[str, Any]:
    """Return the post that ``scrapy extract`` reads from a recorded response."""
    scraper = scrapers()["photoapp-post-v4"]
    data = asyncio.run(extract(scraper, [body_of(name)], {}, url="https://www.instagram.com"))
    assert data["success"] is True
    post: dict[str, Any] = data["data"]["xdt_shortcode_media"]
    return post


def at(post: dict[str, Any], path: str) -> Any:
    found: Any = post
    for step in path.split("."):
        found = found[int(step)] if step.isdigit() else found[step]
    return found


NO_VIDEO = dict.fromkeys(("video_url", "video_duration", "video_play_count", "video_view_count"))

VALUES: dict[str, dict[str, Any]] = {
    PHOTO: {
        "__typename": "XDTGraphImage",
        "id": "3999310043081137024",
        "shortcode": "DeAZ0uAgNuA",
        "is_video": False,
        "product_type": "feed",
        "taken_at_timestamp": 1790975127,
        "dimensions": {"height": 1688, "width": 1350},
        "edge_media_preview_like": {"count": 47528},
        "edge_media_to_comment": {"count": 154, "edges": []},
        "coauthor_producers": [],
        "edge_media_to_tagged_user": {"edges": []},
        "clips_music_attribution_info": None,
        "location": None,
        **dict.fromkeys(("comments_disabled", "has_audio", "is_ad", "is_affiliate", "is_paid_partnership")),
        "like_and_view_counts_disabled": False,
        "owner.__typename": "User",
        "owner.id": "787132",
        "owner.pk": "787132",
        "owner.app_id": "17841400573960012",
        "owner.username": "natgeo",
        "owner.full_name": "National Geographic",
        "owner.is_verified": True,
        "owner.is_private": False,
        "owner.is_unpublished": False,
        **NO_VIDEO,
    },
    REEL: {
        "__typename": "XDTGraphVideo",
        "id": "3983118388705688735",
        "shortcode": "DdG4RIxIPyf",
        "is_video": True,
        "product_type": "clips",
        "taken_at_timestamp": 1789045214,
        "dimensions": {"height": 1920, "width": 1080},
        "edge_media_preview_like": {"count": 78676},
        "edge_media_to_comment.count": 525,
        "has_audio": True,
        "video_duration": 72.0,
        "video_play_count": None,
        "video_view_count": None,
        "coauthor_producers.0.id": "1165531538",
        "coauthor_producers.0.username": "rolex",
        "edge_media_to_tagged_user.edges.0.node.user.id": "1165531538",
        "edge_media_to_tagged_user.edges.0.node.x": 0.0,
        "clips_music_attribution_info": {
            "artist_name": "natgeo",
            "song_name": "Original audio",
            "uses_original_audio": True,
            "should_mute_audio": False,
            "should_mute_audio_reason": "",
            "audio_id": "26106058285758518",
        },
    },
    FULL_PHOTO: {
        "__typename": "XDTGraphImage",
        "dimensions": {"height": 1348, "width": 1080},
        "product_type": "",
        "comments_disabled": False,
        "is_ad": False,
        "edge_media_preview_like": {"count": 92},
        "edge_media_to_comment.count": 24,
        "owner.app_id": "",
        "owner.polaris_ordered_timeline_connection": {"edges": []},
        **NO_VIDEO,
    },
    FULL_REEL: {
        "video_view_count": 305044,
        "video_play_count": 721558,
        "video_duration": 61.133,
        "dimensions": {"height": 1333, "width": 750},
        "product_type": "clips",
        "edge_media_preview_like": {"count": 35183},
        "edge_media_to_comment.count": 363,
        "owner.id": "50985074",
    },
    ZERO_VIEWS: {"video_view_count": None, "video_play_count": 116333, "video_duration": 91.902, "has_audio": False},
    HIDDEN: {
        "edge_media_preview_like": {"count": None},
        "like_and_view_counts_disabled": True,
        "location": {
            "id": "213491581",
            "has_public_page": True,
            "name": "Prince George, British Columbia",
            "slug": "prince-george-british-columbia",
            "address_json": None,
        },
    },
    REDUCED: {
        "__typename": "XDTGraphSidecar",
        "is_video": False,
        "edge_media_preview_like": {"count": 32313},
        "edge_media_to_comment.count": 13840,
        "like_and_view_counts_disabled": None,
        "owner.is_private": None,
        **NO_VIDEO,
    },
    ITEM: {
        "__typename": "XDTGraphVideo",
        "id": "3989102446432402227",
        "shortcode": "DdcI4o0Prsz",
        "taken_at_timestamp": 1789758436,
        "dimensions": {"height": 1280, "width": 720},
        "edge_media_preview_like": {"count": 963426},
        "edge_media_to_comment": {"count": 13685, "edges": []},
        "video_view_count": None,
        "is_paid_partnership": False,
        "owner.__typename": "XDTUserDict",
        "owner.id": "25025320",
        "owner.app_id": "",
        "clips_music_attribution_info.artist_name": "Louis Prima",
        "clips_music_attribution_info.uses_original_audio": False,
        "clips_music_attribution_info.audio_id": "442245453190058",
        "edge_media_to_tagged_user.edges.0.node.user.id": "62173828581",
        "edge_media_to_tagged_user.edges.0.node.user.full_name": "Wurzel ૮･ﻌ･ა",
    },
}


@pytest.mark.parametrize("name", VALUES)
def test_posts_have_the_noted_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    post = read(name)
    assert {path: at(post, path) for path in VALUES[name]} == VALUES[name]
    # The program that saved this post left out some keys.
    assert bool(capsys.readouterr().err) == (name == REDUCED), "a part was not understood"


@pytest.mark.parametrize(
    ("name", "timeline", "comments", "captions", "tags"),
    [
        (PHOTO, 12, 0, 1, 0),
        (REEL, 12, 0, 1, 1),
        (FULL_PHOTO, 0, 5, 1, 1),
        (FULL_REEL, 0, 10, 1, 0),
        (ZERO_VIEWS, 0, 5, 1, 0),
        (HIDDEN, 0, 0, 1, 0),
        (REDUCED, 0, 15, 1, 2),
        (ITEM, 0, 0, 1, 1),
    ],
)
def test_lists_have_the_noted_lengths(name: str, timeline: int, comments: int, captions: int, tags: int) -> None:
    post = read(name)
    assert len(post["owner"]["polaris_ordered_timeline_connection"]["edges"]) == timeline
    assert len(post["edge_media_to_comment"]["edges"]) == comments
    assert len(post["edge_media_to_caption"]["edges"]) == captions
    assert len(post["edge_media_to_tagged_user"]["edges"]) == tags


def test_the_timeline_has_the_platforms_ids_and_types() -> None:
    nodes = [edge["node"] for edge in read(REEL)["owner"]["polaris_ordered_timeline_connection"]["edges"]]
    assert {node["__typename"] for node in nodes} >= {"XIGPolarisVideoMedia", "XIGPolarisCarouselMedia"}
    assert all(node["id"] == f"POLARIS_{node['pk']}" for node in nodes)
    assert all(node["user"]["id"].startswith("17841") for node in nodes)
    assert all(node["__isXIGPolarisMedia"] == node["__typename"] for node in nodes)
    assert "DdG4RIxIPyf" in {node["code"] for node in nodes}


@pytest.mark.parametrize("name", [PHOTO, REEL, ITEM])
def test_media_urls_have_the_platforms_hosts(name: str) -> None:
    post = read(name)
    for url in (post["display_url"], post["thumbnail_src"], post["owner"]["profile_pic_url"]):
        assert url.split("/")[2].endswith((".fbcdn.net", ".cdninstagram.com"))
    assert bool(post["video_url"]) == post["is_video"]


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("c130a4ec26b2", "TARGET_NOT_FOUND", "not_found"),
        ("9208a8c6e6c1", "UPSTREAM_BLOCKED", "login_wall"),
        ("2a9aac385ad4", "UPSTREAM_RATE_LIMITED", "throttled_shell"),
        ("5db59b3d97f9", "UPSTREAM_RATE_LIMITED", "throttled_shell"),
        ("ea2f015a4e42", "TARGET_NOT_FOUND", "missing_or_private"),
        ("79e3d77ed295", "TARGET_RESTRICTED", "age_gate"),
        ("6723bdddd4b7", "EXTRACTION_FAILED", "missing_field"),
        ("93473067fac2", "EXTRACTION_FAILED", "no_post"),
    ],
)
def test_failures_have_their_code_and_reason(name: str, code: str, reason: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(name)
    assert (raised.value.code, raised.value.reason) == (code, reason)


def test_a_restriction_has_the_platforms_message() -> None:
    with pytest.raises(ScrapeError, match="Age-restricted content"):
        read("79e3d77ed295")


def test_another_post_is_never_returned() -> None:
    page = PostPage(
        response=HttpResponse("https://x/", body_of(PHOTO)), page_params=PageParams({"shortcode": "DdG4RIxIPyf"})
    )
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    assert raised.value.reason == "wrong_post"


def test_play_counts_of_the_reels_tab() -> None:
    page = ReelsPage(response=HttpResponse("https://x/", body_of("93473067fac2")), page_params=PageParams({}))
    plays = asyncio.run(page.to_item())["plays"]
    assert len(plays) == 3
    assert plays["3991849403537918302"] == 1588516
