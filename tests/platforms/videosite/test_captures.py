"""Recorded responses of the video site, compared with noted values. The recordings must not be published."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from web_poet import HttpResponse

from crawler.commands.extract import extract
from crawler.errors import ScrapeError, TargetNotFound, UpstreamRateLimited
from crawler.platforms.videosite.lists import PlaylistPage
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.spiders.videosite import VideositeSpider

CAPTURES = Path(__file__).parents[4] / "shared" / "captures" / "videosite"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")


def read(*names: str | bytes, **page_params: Any) -> dict[str, Any]:
    """The validated data of captures, by ``scrapy extract``."""
    bodies = [name if isinstance(name, bytes) else (CAPTURES / name).read_bytes() for name in names]
    return asyncio.run(extract(scrapers()["videosite-profile-v3"], bodies, page_params, url="https://www.youtube.com"))


@cache
def bundle(name: str) -> dict[str, Any]:
    """The responses of a bundle by their labels."""
    return {each["what"]: each for each in json.loads((CAPTURES / name).read_bytes())}


def body_of(entry: dict[str, Any]) -> bytes:
    body = entry["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


# name: items, has more, channel id, username, name, subscribers, videos, badge, items without views, without length
LISTS = {
    "browse_videos_lockup_p1_creativecommons_202605.json": (
        *(30, True, "UCTwECeGqMZee77BjdoYtI2Q", "creativecommons", "Creative Commons", 8_840, 258, False, 0, 0),
        "video",
    ),
    "browse_streams_lockup_p1_jeffgeerling_202605.json": (
        *(30, True, "UCR-DXc1voovS8nhAvccRZhg", "JeffGeerling", "Jeff Geerling", 1_070_000, 562, True, 0, 0),
        "live",
    ),
    "browse_shorts_p1_doobydobap_202601.json": (
        *(48, True, "UCh8gHdtzO2tXd593_bjErWg", "Doobydobap", "Doobydobap", 4_320_000, 466, True, 0, 48),
        "short",
    ),
    "OLD_browse_shorts_reelItem_202407.json": (
        *(48, True, "UCh8gHdtzO2tXd593_bjErWg", "Doobydobap", "Doobydobap", 3_930_000, 364, True, 0, 48),
        "short",
    ),
    "browse_videos_videorenderer_vsauce_PREMIUM_202601.json": (
        *(30, True, "UC6nSFpj9HTCZ5t-N3Rm3-HA", "Vsauce", "Vsauce", 24_600_000, 636, True, 2, 0),
        "video",
    ),
    "browse_videos_videorenderer_shemp_PRONOUNS_202601.json": (
        *(30, True, "UCEAXWzgcuF6XEiJcszhikQA", "ShempOfficial", "Shemp", 7_780, 135, False, 0, 0),
        "video",
    ),
    "browse_videos_videorenderer_randomchannel_1video_202601.json": (
        *(1, False, "UCUaQMQS9lY5lit3vurpXQ6w", "randomchannel1109", "random channel", 84, 1, False, 0, 0),
        "video",
    ),
    "OLD_browse_videos_UPCOMING_24newshd_202211.json": (
        *(30, True, "UCcmpeVbSSQlZRvHfdC-CRwg", "24newsHD", "24 News HD", 6_830_000, 140_000, True, 1, 0),
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

EVERY = sorted(path.name for path in CAPTURES.glob("*") if path.suffix != ".md")


def bodies_of(name: str) -> list[bytes]:
    """The responses in a capture. A bundle has several."""
    if name.startswith("BUNDLE"):
        return [body_of(entry) for entry in bundle(name).values()]
    return [(CAPTURES / name).read_bytes()]


def outcome(body: bytes, scraper: str) -> dict[str, Any] | tuple[str, str]:
    """The data that a scraper extracts from a response, or the code and reason of its error."""
    params = VideositeSpider.page_params(scrapers()[scraper], {})
    try:
        return asyncio.run(extract(scrapers()[scraper], [body], params, url="https://www.youtube.com"))
    except ScrapeError as error:
        return error.code, error.reason


@pytest.mark.parametrize("name", EVERY)
def test_co_3_the_page_alone_reads_every_capture_without_the_about_panel(name: str) -> None:
    """The items, and the rest of the channel, are those of v3, whose captures are compared with the notes above."""
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
    data = read("browse_videos_lockup_p1_creativecommons_202605.json")
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
    names = [f"browse_videos_lockup_p{number}_creativecommons_202605.json" for number in (1, 2)]
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
    posts = read("OLD_browse_videos_grid_nbcnews_LIVE_202208.json")["posts"]
    assert len(posts) == 30
    (live,) = [post for post in posts if post["view_count"] is None]
    assert live["video_duration_seconds"] is None


def test_announced_item_has_its_start_time() -> None:
    posts = read("OLD_browse_videos_UPCOMING_24newshd_202211.json")["posts"]
    (announced,) = [post for post in posts if post["published_date"] is not None]
    assert announced["view_count"] is None


def test_item_for_members_has_no_views() -> None:
    data = read("item_lockup_MEMBERS_ONLY_202606.json", channel="UCTwECeGqMZee77BjdoYtI2Q")
    (post,) = data["posts"]
    assert post["view_count"] is None
    assert post["video_duration_seconds"]


def test_playlist_of_shorts() -> None:
    data = read("browse_playlist_UUSH_shorts_bbcnews_202608_TRIMMED.json")
    first, _ = data["posts"]
    assert (first["content_id"], first["content_type"]) == ("9BzS1Hw_KCU", "short")
    assert data["posts"][0]["view_count"] == 2_400
    assert data["profile"]["profile_id"] == "UC16niRr50-MSBwiO3YDb3RA"


def test_releases_of_an_artist_are_not_items() -> None:
    data = read("browse_releases_radiohead_ARTIST_BADGE_202601.json")
    assert (data["posts"], data["profile"]["verification_status"]) == ([], True)
    assert data["profile"]["display_name"] == "Radiohead"


@pytest.mark.parametrize(
    ("name", "channel", "display_name", "subscribers"),
    [
        ("browse_AGEGATE_laphroaig_202601.json", "UCbfnHqxXs_K3kvaH-WlNlig", "Laphroaig Whisky", None),
        ("browse_topic_gaming_interactiveTabbedHeader_202601.json", "UCQvWX73GQygcwXOTSf_VDVg", "Minecraft", None),
        ("browse_topic_sports_carouselHeader_202601.json", "UCEgdi0XIXXZ-qJOFPf4JSKw", "Sports", 74_400_000),
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
    data = read("about_panel_rickastley_202607_TRIMMED.json", "page_ldjson_profilepage_rickastley_202608.html")
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
    panel, page = "about_panel_rickastley_202607_TRIMMED.json", "page_ldjson_profilepage_rickastley_202608.html"
    links = read(panel, page)["profile"]["external_links"]
    assert read(page)["profile"]["external_links"] == []
    page_params = VideositeSpider.page_params(scrapers()["videosite-profile-v3"], {"include_about": "false"})
    assert read(page, **page_params)["profile"]["external_links"] == []
    assert read(page, include_about=True)["profile"]["external_links"] == links


def test_header_in_another_language_has_null_numbers() -> None:
    profile = read("page_header_bbcnews_VIETNAMESE_202608_TRIMMED.json")["profile"]
    assert (profile["follower_count"], profile["content_count"]) == (None, None)
    assert (profile["username"], profile["verification_status"]) == ("BBCNews", True)
    assert not profile["biography"].endswith("...")


def test_feed() -> None:
    data = read("feed_rss_kurzgesagt_202601.xml")
    posts = data["posts"]
    assert len(posts) == 15
    assert {post["content_type"] for post in posts} == {"video", "short"}
    assert all(post["published_date"] and post["like_count"] and post["view_count"] for post in posts)
    assert data["profile"]["profile_id"] == "UCsXVk37bltHxD1rDPwtNM8Q"


def test_video_metadata() -> None:
    for what, entry in bundle("BUNDLE_player_microformat_202606.json").items():
        (post,) = read(body_of(entry))["posts"]
        assert post["published_date"], what
        assert post["view_count"], what
        assert (post["like_count"] is None) is ("likes disabled" in what), what
        assert (post["content_type"] == "short") is ("isShortsEligible true" in what), what
        assert (post["video_duration_seconds"] is None) is (what == "live now"), what


@pytest.mark.parametrize(
    ("name", "comments"),
    [("next_licenseddoctor_commentcount_202606.json", 18), ("next_ratingsdisabled_202606.json", None)],
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
        read(body_of(bundle("BUNDLE_unavailable_and_resolve_202601.json")[what]))
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    "what", ["resolve_url @handle ok", "resolve_url legacy vanity /name ok", "resolve_url /user/ ok"]
)
def test_resolved_addresses_lead_to_a_channel(what: str) -> None:
    data = read(body_of(bundle("BUNDLE_unavailable_and_resolve_202601.json")[what]))
    assert data["profile"]["profile_id"].startswith("UC")


def test_missing_playlist_is_an_empty_list() -> None:
    (entry,) = [e for w, e in bundle("BUNDLE_unavailable_and_resolve_202601.json").items() if w.startswith("playlist")]
    body = body_of(entry).decode()
    assert PlaylistPage.recognise(body)
    page = PlaylistPage(HttpResponse("https://www.youtube.com", body.encode()), {})  # type: ignore[arg-type]
    assert asyncio.run(page.to_item())["posts"] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("error_429_google_sorry_201912.html", UpstreamRateLimited),
        ("feed_rss_404_terminated_202601.html", TargetNotFound),
        ("page_results_empty_html_ytcfg_202605.html", TargetNotFound),
    ],
)
def test_pages_that_are_not_channels_raise(name: str, kind: type[ScrapeError]) -> None:
    with pytest.raises(kind):
        read(name)
