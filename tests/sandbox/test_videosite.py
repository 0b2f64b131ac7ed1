"""The simulated video site: determinism, all formats and faults, realistic structure, expected records."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.lists import read_token, token
from crawler.sandbox.videosite.parts import ago, clock, compact
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


def test_list_has_ten_pages() -> None:
    pages = [site().expected_record({"username": "@harborlights", "page": number}) for number in range(1, 11)]
    assert [len(page["posts"]) for page in pages] == [30] * 9 + [27]
    assert [page["pagination"]["has_more"] for page in pages] == [True] * 9 + [False]
    with pytest.raises(IndexError):
        site().expected_record({"username": "@harborlights", "page": 11})


@pytest.mark.parametrize("name", ["nobody", "@", "UC0000000000000000000000"])
def test_unknown_channel_has_no_expected_record(name: str) -> None:
    with pytest.raises(KeyError):
        site().expected_record({"username": name})


def test_every_fault_has_a_channel() -> None:
    for name in FAULTS:
        assert site().fault(FakeRequest(f"/@{name}/videos")) == name
        assert site().fault(FakeRequest(f"/channel/{site().named(name).id}/videos")) == name
    assert site().fault(FakeRequest("/@harborlights/videos")) is None
    faults = site().catalogue()["faults"]
    assert {name: fault["params"] for name, fault in faults.items()} == {
        name: {"username": f"@{name}"} for name in FAULTS
    }


def test_tokens_have_realistic_lengths_and_can_be_decoded() -> None:
    channel = site().named("harborlights")
    made = token(channel, "videos", 3, heavy=True)
    assert 1_500 < len(made) < 5_000
    assert read_token(made) == {"c": channel.id, "t": "videos", "p": 3}
    assert read_token("somebody else's") == {}
    assert 1_500 < len(token(channel, "shorts", 3, heavy=True)) < 5_000


@pytest.mark.parametrize(
    ("number", "text", "stated"),
    [
        (999, "999", 999),
        (43_712, "43K", 43_000),
        (1_000, "1K", 1_000),
        (1_290_000, "1.2M", 1_200_000),
        (10**9, "1B", 10**9),
    ],
)
def test_rounded_numbers(number: int, text: str, stated: int) -> None:
    assert compact(number) == (text, stated)
    assert compact(8_849, digits=3, lower=True) == ("8.84k", 8_840)


def test_lengths_and_ages() -> None:
    assert (clock(4_054), clock(9)) == ("1:07:34", "0:09")
    assert (ago(60), ago(86_400), ago(15 * 86_400)) == ("1 minute ago", "1 day ago", "2 weeks ago")
