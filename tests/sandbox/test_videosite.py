"""The simulated video site: determinism, all formats and faults, realistic structure, expected records."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.sandbox.videosite.world import CODES

# Keys copied from specification 2.4, so that expected records are compared with it and not with our own schemas.
POST_KEYS = {
    *("age_restriction_status", "author_id", "author_name", "author_username", "caption"),
    *("comment_count", "content_code", "content_id", "content_language", "content_link"),
    *("content_type", "first_comment", "hashtags", "images", "like_count"),
    *("media_links", "mentions", "published_date", "slideshow_status", "subtitles"),
    *("thumbnail_image", "transcript", "video_duration_seconds", "video_link", "view_count"),
}
PROFILE_KEYS = {
    *("account_creation_date", "account_creation_date_text", "available_country_codes", "banner_image", "biography"),
    *("content_count", "display_name", "external_links", "follower_count", "is_family_safe"),
    *("keywords", "location", "privacy_status", "profile_id", "profile_image"),
    *("profile_link", "subscriber_count_text", "total_views", "username", "verification_status"),
}


@cache
def site() -> Site:
    return Site()


def test_site_has_every_kind_of_item() -> None:
    listed = [item for channel in site().channels for items in channel.items.values() for item in items]
    assert {item.state for item in listed} == {"done", "live", "upcoming", "members", "premium"}
    assert len({item.id for item in listed}) == len(listed)
    kinds = {
        "dash": [item for item in listed if item.id.startswith("-")],
        "no title": [item for item in listed if not item.title],
        "no likes": [item for item in listed if item.likes is None],
        "together": [item for item in listed if item.together],
        "mentions": [item for item in listed if item.friends[0]],
        "hashtags": [item for item in listed if item.tags[0]],
        "many views": [item for item in listed if item.views > 10**9],
        "no views": [item for item in listed if not item.views],
    }
    assert [kind for kind, items in kinds.items() if not items] == []


def test_site_has_every_kind_of_channel() -> None:
    channels = site().channels
    assert {channel.shape for channel in channels} == {"lockup", "rich", "grid"}
    assert {channel.ending for channel in channels} == {"renderer", "view", "button"}
    assert {channel.kind for channel in channels} == {"normal", "gated", "topic", "game", "sport"}
    assert {channel.badge for channel in channels} == {"", "verified", "artist"}
    assert any(channel.subscribers is None for channel in channels)
    assert len(CODES) == 249


@pytest.mark.parametrize("params", [{"username": "harborlights"}, {"username": "onlyshorts", "type": "short"}])
def test_expected_record_has_the_keys_of_the_contract(params: dict[str, Any]) -> None:
    record = site().expected_record(params)
    assert set(record) == {"pagination", "posts", "profile"}
    assert set(record["pagination"]) == {"cursor", "has_more"}
    assert set(record["profile"]) == PROFILE_KEYS
    assert record["posts"]
    assert all(set(post) == POST_KEYS for post in record["posts"])


def test_every_fault_has_a_channel() -> None:
    for name in FAULTS:
        assert site().fault(FakeRequest(f"/@{name}/videos")) == name
        assert site().fault(FakeRequest(f"/channel/{site().named(name).id}/videos")) == name
    assert site().fault(FakeRequest("/@harborlights/videos")) is None
    faults = site().catalogue()["faults"]
    assert {name: fault["params"] for name, fault in faults.items()} == {
        name: {"username": f"@{name}"} for name in FAULTS
    }
