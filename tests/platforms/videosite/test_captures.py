"""Recorded responses of the video site must give the noted values. The recordings must not be published."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import pytest
from web_poet import HttpResponse

from crawler.commands.extract import extract
from crawler.errors import ExtractionFailed, ScrapeError, TargetNotFound, UpstreamRateLimited
from crawler.platforms.videosite.lists import PlaylistPage
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.spiders.videosite import VideositeSpider
from scripts.captures import CAPTURES, body_of, captures

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")


def read(*names: str | bytes, **page_params: Any) -> dict[str, Any]:
    """Return the validated data that ``scrapy extract`` reads from recorded responses."""
    bodies = [name if isinstance(name, bytes) else body_of(name) for name in names]
    return asyncio.run(extract(scrapers()["videosite-profile-v3"], bodies, page_params, url="https://www.youtube.com"))


@cache
def bundle(name: str) -> dict[str, Any]:
    """Return the responses in a bundle file, by their labels."""
    return {each["what"]: each for each in json.loads(body_of(name))}


def entry_body(entry: dict[str, Any]) -> bytes:
    body = entry["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


# name: items, has more, channel id, username, name, subscribers, videos, badge, items without views, without length
LISTS = {
    "0b05d4fd7ab0": (  # lockups
        *(30, True, "UCTwECeGqMZee77BjdoYtI2Q", "creativecommons", "Creative Commons", 8_840, 258, False, 0, 0),
        "video",
    ),
    "abfd085daaea": (  # lockups
        *(30, True, "UCR-DXc1voovS8nhAvccRZhg", "JeffGeerling", "Jeff Geerling", 1_070_000, 562, True, 0, 0),
        "live",
    ),
    "e8be8f5c2067": (  # shorts
        *(48, True, "UCh8gHdtzO2tXd593_bjErWg", "Doobydobap", "Doobydobap", 4_320_000, 466, True, 0, 48),
        "short",
    ),
    "fc1785f1042c": (  # video renderers
        *(30, True, "UC6nSFpj9HTCZ5t-N3Rm3-HA", "Vsauce", "Vsauce", 24_600_000, 636, True, 2, 0),
        "video",
    ),
    "8b73831a70c5": (  # video renderers
        *(30, True, "UCEAXWzgcuF6XEiJcszhikQA", "ShempOfficial", "Shemp", 7_780, 135, False, 0, 0),
        "video",
    ),
    "715417246ffa": (  # video renderers, one video
        *(1, False, "UCUaQMQS9lY5lit3vurpXQ6w", "randomchannel1109", "random channel", 84, 1, False, 0, 0),
        "video",
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_have_the_noted_values(name: str) -> None:
    data = read(name)
    profile, posts = data["profile"], data["posts"]
    assert (
        len(posts),
        data["pagination"]["has_more"],
        *(profile[key] for key in ("profile_id", "username", "display_name", "follower_count", "content_count")),
        profile["verification_status"],
        sum(post["view_count"] is None for post in posts),
        sum(post["video_duration_seconds"] is None for post in posts),
        posts[0]["content_type"],
    ) == LISTS[name]
    assert len({post["content_id"] for post in posts}) == len(posts)
    assert len({post["content_type"] for post in posts}) == 1
    assert {post["author_id"] for post in posts} == {profile["profile_id"]}
    codes = profile["available_country_codes"]
    assert (len(codes), codes) == (249, sorted(codes))
    assert profile["profile_link"] == f"https://www.youtube.com/@{profile['username']}"
    assert profile["is_family_safe"] is True


# The scraper of the page alone

EVERY = [name for name, path in captures().items() if path.parent.name == "videosite"]


def bodies_of(name: str) -> list[bytes]:
    """Return the responses in a capture file. A bundle contains several."""
    if captures()[name].name.startswith("BUNDLE"):
        return [entry_body(entry) for entry in bundle(name).values()]
    return [body_of(name)]


def outcome(body: bytes, scraper: str) -> dict[str, Any] | tuple[str, str]:
    """Return the data that a scraper extracts from a response, or the code and reason of its error."""
    params = VideositeSpider.page_params(scrapers()[scraper], {})
    try:
        return asyncio.run(extract(scrapers()[scraper], [body], params, url="https://www.youtube.com"))
    except ScrapeError as error:
        return error.code, error.reason


@pytest.mark.parametrize("name", EVERY)
def test_co_3_the_page_alone_reads_every_capture_without_the_about_panel(name: str) -> None:
    """Items and channel equal those of ``videosite-profile-v3``, which other tests compare with the noted values."""
    for body in bodies_of(name):
        full, alone = outcome(body, "videosite-profile-v3"), outcome(body, "videosite-profile")
        if isinstance(full, dict) and isinstance(alone, dict):
            assert {key: alone["profile"][key] for key in ABOUT_FIELDS} == ABOUT_FIELDS
            full = {**full, "profile": full["profile"] | ABOUT_FIELDS}
        assert alone == full
        if name in LISTS:
            assert isinstance(alone, dict)
            assert len(alone["posts"]) == LISTS[name][0]


def test_newest_format_field_by_field() -> None:
    data = read("0b05d4fd7ab0")
    profile = data["profile"]
    assert profile["subscriber_count_text"] == "8.84k subscribers"
    assert profile["keywords"].startswith('"creative commons" remix culture nonprofit')
    assert profile["banner_image"].startswith("https://yt3.googleusercontent.com/")
    assert profile["privacy_status"] == "public"
    assert (profile["location"], profile["external_links"], profile["total_views"]) == ("", [], None)
    first = data["posts"][0]
    assert first["content_code"] == first["content_id"]
    assert first["content_link"] == f"https://www.youtube.com/watch?v={first['content_id']}"
    assert (first["published_date"], first["like_count"], first["comment_count"]) == (None, None, None)
    assert first["caption"]
    assert first["thumbnail_image"].startswith("https://i.ytimg.com/vi/")


def test_continuation_page_follows_the_first() -> None:
    names = ["0b05d4fd7ab0", "0bc45455dcb2"]
    first, both = read(names[0]), read(*names)
    assert both["profile"] == first["profile"]
    assert len(both["posts"]) == 30
    assert not {post["content_id"] for post in both["posts"]} & {post["content_id"] for post in first["posts"]}
    assert both["pagination"]["has_more"]
    cursors = [continuation_of(data["pagination"]["cursor"]) for data in (first, both)]
    assert [cursor.channel for cursor in cursors] == [first["profile"]["profile_id"]] * 2
    assert cursors[0].token != cursors[1].token
    assert read(names[1])["profile"]["profile_id"] == first["profile"]["profile_id"]


def test_live_item_has_no_views() -> None:
    posts = read("049b95ef63ce")["posts"]
    assert len(posts) == 30
    (live,) = [post for post in posts if post["view_count"] is None]
    assert live["video_duration_seconds"] is None


def test_shorts_in_a_format_that_is_no_longer_served_are_not_an_empty_list() -> None:
    with pytest.raises(ExtractionFailed, match=r"unknown in 48 of 48 \(reelItemRenderer\), not collected"):
        read("5fc57c28e525")


def test_item_for_members_has_no_views() -> None:
    data = read("720955203aa1", channel="UCTwECeGqMZee77BjdoYtI2Q")
    (post,) = data["posts"]
    assert post["view_count"] is None
    assert post["video_duration_seconds"]


def test_playlist_of_shorts() -> None:
    data = read("ca4fc9bb56ca")
    first, _ = data["posts"]
    assert (first["content_id"], first["content_type"]) == ("9BzS1Hw_KCU", "short")
    assert data["posts"][0]["view_count"] == 2_400
    assert data["profile"]["profile_id"] == "UC16niRr50-MSBwiO3YDb3RA"


def test_releases_of_an_artist_are_not_items() -> None:
    data = read("b58877bf5827")
    assert (data["posts"], data["profile"]["verification_status"]) == ([], True)
    assert data["profile"]["display_name"] == "Radiohead"


@pytest.mark.parametrize(
    ("name", "channel", "display_name", "subscribers"),
    [
        ("e283dba54045", "UCbfnHqxXs_K3kvaH-WlNlig", "Laphroaig Whisky", None),  # age gate
        ("73bd293953f7", "UCQvWX73GQygcwXOTSf_VDVg", "Minecraft", None),  # topic, tabbed header
        ("2b301ed6155e", "UCEgdi0XIXXZ-qJOFPf4JSKw", "Sports", 74_400_000),  # topic, carousel header
    ],
)
def test_channels_with_few_fields(name: str, channel: str, display_name: str, subscribers: int | None) -> None:
    profile = read(name)["profile"]
    assert (profile["profile_id"], profile["display_name"], profile["follower_count"]) == (
        channel,
        display_name,
        subscribers,
    )
    assert profile["profile_image"].startswith("https://")
    assert profile["username"] == ""


def test_about_panel() -> None:
    data = read("6cf4ee0e92db", "546e466c2252")
    profile = data["profile"]
    assert (profile["account_creation_date"], profile["account_creation_date_text"]) == (1_422_748_800, "2015-02-01")
    assert (profile["total_views"], profile["content_count"]) == (2_530_935_570, 434)
    assert (profile["follower_count"], profile["subscriber_count_text"]) == (4_520_000, "4.52M subscribers")
    assert profile["location"] == "United Kingdom"
    assert len(profile["external_links"]) == 10
    assert profile["external_links"][0] == "https://rickastley.lnk.to/Raindrops"
    assert not any("redirect" in link for link in profile["external_links"])
    assert (profile["display_name"], profile["username"]) == ("Rick Astley", "RickAstleyYT")


def test_linked_data_has_the_same_links() -> None:
    panel, page = "6cf4ee0e92db", "546e466c2252"
    links = read(panel, page)["profile"]["external_links"]
    assert read(page)["profile"]["external_links"] == []
    page_params = VideositeSpider.page_params(scrapers()["videosite-profile-v3"], {"include_about": "false"})
    assert read(page, **page_params)["profile"]["external_links"] == []
    assert read(page, include_about=True)["profile"]["external_links"] == links


def test_header_in_another_language_has_null_numbers() -> None:
    profile = read("b9050dbbd987")["profile"]
    assert (profile["follower_count"], profile["content_count"]) == (None, None)
    assert (profile["username"], profile["verification_status"]) == ("BBCNews", True)
    assert not profile["biography"].endswith("...")


def test_feed() -> None:
    data = read("68f6c07439d5")
    posts = data["posts"]
    assert len(posts) == 15
    assert {post["content_type"] for post in posts} == {"video", "short"}
    assert all(post["published_date"] and post["like_count"] and post["view_count"] for post in posts)
    assert data["profile"]["profile_id"] == "UCsXVk37bltHxD1rDPwtNM8Q"


def test_video_metadata() -> None:
    for what, entry in bundle("35fb2eae0182").items():
        (post,) = read(entry_body(entry))["posts"]
        assert post["published_date"], what
        assert post["view_count"], what
        assert (post["like_count"] is None) is ("likes disabled" in what), what
        assert (post["content_type"] == "short") is ("isShortsEligible true" in what), what
        assert (post["video_duration_seconds"] is None) is (what == "live now"), what


@pytest.mark.parametrize(
    ("name", "comments"),
    [("ed87241a14a0", 18), ("bb9a74d0f95b", None)],
)
def test_comment_count(name: str, comments: int | None) -> None:
    (post,) = read(name)["posts"]
    if comments is not None:
        assert post["comment_count"] == comments
    assert post["like_count"] is None


FAILURES = {
    "removed: community guidelines": (TargetNotFound, "removed"),
    "terminated: ToS": (TargetNotFound, "terminated"),
    "does not exist": (TargetNotFound, "not_found"),
    "terminated: copyright": (TargetNotFound, "terminated"),
    "browseId malformed -> HTTP 400": (TargetNotFound, "invalid_id"),
    "resolve_url of an unknown handle -> HTTP 404": (TargetNotFound, "not_found"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_error_responses(what: str) -> None:
    kind, reason = FAILURES[what]
    with pytest.raises(kind) as raised:
        read(entry_body(bundle("901b56e9192b")[what]))
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    "what", ["resolve_url @handle ok", "resolve_url legacy vanity /name ok", "resolve_url /user/ ok"]
)
def test_resolved_addresses_lead_to_a_channel(what: str) -> None:
    data = read(entry_body(bundle("901b56e9192b")[what]))
    assert data["profile"]["profile_id"].startswith("UC")


def test_missing_playlist_is_an_empty_list() -> None:
    (entry,) = [e for w, e in bundle("901b56e9192b").items() if w.startswith("playlist")]
    body = entry_body(entry).decode()
    assert PlaylistPage.recognise(body)
    page = PlaylistPage(HttpResponse("https://www.youtube.com", body.encode()), {})  # type: ignore[arg-type]
    assert asyncio.run(page.to_item())["posts"] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("6c4e44f217bb", UpstreamRateLimited),  # error 429
        ("c90641558764", TargetNotFound),  # feed of a terminated channel
        ("91879125d2a2", TargetNotFound),  # empty results
    ],
)
def test_pages_that_are_not_channels_raise(name: str, kind: type[ScrapeError]) -> None:
    with pytest.raises(kind):
        read(name)
