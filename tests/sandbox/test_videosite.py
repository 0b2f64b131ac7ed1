"""The simulated video site: determinism, all formats and faults, realistic structure, expected records."""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.extra import player
from crawler.sandbox.videosite.item import lockup
from crawler.sandbox.videosite.lists import read_token, tab_data, token
from crawler.sandbox.videosite.parts import ago, clock, compact
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.sandbox.videosite.world import CODES
from scripts.captures import CAPTURES, body_of

ROOT = Path(__file__).parents[2]
needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing"
)

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


def data(name: str, tab: str = "videos", of: Site | None = None) -> dict[str, Any]:
    of = of or site()
    return tab_data(of.named(name), tab, heavy=of.heavy)


def digest(seed: int) -> str:
    seeded = Site(seed, light=True)
    parts = [
        seeded.page(FakeRequest("/@harborlights/videos"))[2],
        orjson.dumps(seeded.expected_record({"username": "harborlights"})),
    ]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_site_has_every_kind_of_item() -> None:
    listed = [item for channel in site().channels for items in channel.items.values() for item in items]
    assert {item.state for item in listed} == {"done", "live", "upcoming", "members", "premium", "hidden"}
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


def test_pages_have_realistic_sizes() -> None:
    body = site().page(FakeRequest("/@harborlights/videos"))[2]
    assert len(body) > 300_000
    assert len(zlib.compress(body, 6)) > len(body) / 20
    assert len(Site(light=True).page(FakeRequest("/@harborlights/videos"))[2]) < 100_000


def key_paths(tree: object) -> set[tuple[str, ...]]:
    """Return the paths of all keys. "[]" stands for list indexes."""
    found: set[tuple[str, ...]] = set()
    waiting: list[tuple[object, tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                found.add((*above, key))
                waiting.append((value, (*above, key)))
        elif isinstance(node, list):
            waiting += [(value, (*above, "[]")) for value in node]
    return found


def followup(name: str) -> dict[str, Any]:
    body = orjson.dumps({"continuation": token(site().named(name), "videos", 1, heavy=True)})
    found: dict[str, Any] = orjson.loads(site().page(FakeRequest("/youtubei/v1/browse", {}, "POST", {}, body))[2])
    return found


STRUCTURES = {
    "0b05d4fd7ab0": lambda: data("harborlights"),  # lockups
    "0bc45455dcb2": lambda: followup("harborlights"),  # second page of lockups
    "abfd085daaea": lambda: data("harborlights", "streams"),  # streams
    "e8be8f5c2067": lambda: data("harborlights", "shorts"),  # shorts
    "fc1785f1042c": lambda: data("saltmill"),  # video renderers
    "8b73831a70c5": lambda: data("saltmill"),  # video renderers, pronouns
    "715417246ffa": lambda: data("saltmill"),  # video renderers, one video
    "720955203aa1": lambda: lockup(  # one lockup, for members
        site().named("harborlights"),
        next(i for i in site().named("harborlights").items["videos"] if i.state == "members"),
        heavy=True,
    )["lockupViewModel"],
}


@needs_captures
@pytest.mark.parametrize("capture", STRUCTURES)
def test_structure_matches_the_capture(capture: str) -> None:
    real, ours = key_paths(orjson.loads(body_of(capture))), key_paths(STRUCTURES[capture]())
    missing = real - ours
    assert len(missing) <= 0.10 * len(real), sorted(".".join(path) for path in missing)


@needs_captures
def test_structure_of_video_metadata_matches_the_capture() -> None:
    body = orjson.loads(body_of("35fb2eae0182"))[0]["body"]
    real = key_paths(orjson.loads(body) if isinstance(body, str) else body)
    channel = site().named("harborlights")
    ours = key_paths(player(channel, next(i for i in channel.items["videos"] if i.likes and i.state == "done")))
    missing = {path for path in real - ours if path[0] == "microformat"}
    assert len(missing) <= 0.10 * len(real), sorted(".".join(path) for path in missing)
