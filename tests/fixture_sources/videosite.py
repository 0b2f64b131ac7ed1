"""Video site: pages of channels of every kind, the site's smaller responses, and the errors that these can contain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Request

from crawler.errors import (
    ExtractionFailed,
    InvalidRequest,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.platforms.model import empty
from crawler.platforms.page import PlatformPage
from crawler.platforms.videosite import urls as upstream
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.pages import ChannelPage, ContinuationPage, PlaylistPage
from crawler.platforms.videosite.schema import Profile
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite import expected
from crawler.sandbox.videosite.extra import feed_items, feed_picture
from crawler.sandbox.videosite.lists import token
from crawler.sandbox.videosite.page import TABS
from crawler.sandbox.videosite.site import Site
from crawler.sandbox.videosite.world import Channel, Item
from tests.make_fixtures import Case, Failure

ORIGIN = "https://www.youtube.com"
NOT_FOUND: Failure = TargetNotFound, "not_found"
CHANNEL_TABS = (
    ("north.pier", "videos"),
    ("ropeworks", "shorts"),
    ("onlyshorts", "shorts"),
    ("harborlights", "streams"),
    ("harborlights", "videos"),
    ("tinychannel1109", "videos"),
    ("emptyroom", "videos"),
)
PAGE_FAULTS: dict[str, Failure] = {
    "broken-json": (ExtractionFailed, "broken_data_block"),
    "captcha": (UpstreamRateLimited, "rate_limited"),
    "captcha-200": (UpstreamRateLimited, "captcha"),
    "consent": (UpstreamBlocked, "consent"),
    "copyright": (TargetNotFound, "terminated"),
    "never-existed": NOT_FOUND,
    "no-contents": (ExtractionFailed, "no_contents"),
    "no-data": (ExtractionFailed, "no_data_block"),
    "no-longer": (ExtractionFailed, "unknown_alert"),
    "region": (TargetRestricted, "region"),
    "removed": (TargetNotFound, "removed"),
    "reported-error": (UpstreamError, "reported_error"),
    "soft-gone": NOT_FOUND,
    "terminated": (TargetNotFound, "terminated"),
    "video-page": (ExtractionFailed, "no_channel"),
}


NO_AUTHOR = {"author_id": None, "author_name": "", "author_username": ""}
"""The author of a post in lists: the spider fills it in from the channel."""
KIND_OF_TAB = {"videos": "video", "shorts": "short", "streams": "live"}
Data = dict[str, Any]


def cases() -> Iterator[Case]:
    """Yield the cases of the video site."""
    site = Site(light=True)
    for name, tab in CHANNEL_TABS:
        request = upstream.channel_request(f"@{name}", tab)
        yield _case(site, ChannelPage, f"{name}-{tab}", request, _channel(site, site.named(name), tab))
    for channel in site.channels:
        if channel.kind in {"gated", "game", "sport"} and not channel.fault:
            request = upstream.browse_request(channel.id, "videos")
            yield _case(site, ChannelPage, channel.kind, request, _channel(site, channel, "videos"))
    for fault, failure in PAGE_FAULTS.items():
        request = upstream.channel_request(f"@{fault}", "videos")
        yield _case(site, ChannelPage, fault, request, failure)
    yield from _smaller_responses(site)


def _smaller_responses(site: Site) -> Iterator[Case]:
    night, gated = site.named("allnight_live"), next(each for each in site.channels if each.kind == "gated")
    harbor, tiny = site.named("harborlights"), site.named("tinychannel1109")
    following = token(night, "streams", 2, heavy=False)
    item = tiny.items["videos"][0]
    good: list[tuple[type[PlatformPage], str, Request, Data]] = [
        (
            ContinuationPage,
            "last",
            upstream.continuation_request(following, channel=night.id, tab="streams"),
            _list(night, _posts(site, night, "streams", page=3)),
        ),
        (
            PlaylistPage,
            "shorts",
            upstream.playlist_request(gated.id, "shorts"),
            _list(gated, _posts(site, gated, "shorts")),
        ),
        (PlaylistPage, "none", upstream.playlist_request(gated.id, "streams"), _list(gated, [])),
        (AboutPage, "panel", upstream.about_request(f"about-{night.id}", channel=night.id), _about(night)),
        (FeedPage, "channel", upstream.feed_request(gated.id), _feed(gated)),
        (VideoPage, "video", upstream.video_request(item.id), _video(tiny, item)),
        (
            ResolvePage,
            "handle",
            upstream.resolve_request(upstream.public_url("@harborlights")),
            {"channel": harbor.id, "url": "", "profile": _profile(harbor)},
        ),
    ]
    for page, name, request, data in good:
        yield _case(site, page, name, request, data)
    stale = upstream.continuation_request("stale", channel=night.id, tab="streams")
    gone = upstream.feed_request("UC0000000000000000000000")
    bad: list[tuple[type[PlatformPage], str, Request, Failure]] = [
        (FeedPage, "gone", gone, (UpstreamError, "no_feed")),
        (VideoPage, "unknown", upstream.video_request("aaaaaaaaaaa"), NOT_FOUND),
        (ResolvePage, "unknown", upstream.resolve_request(upstream.public_url("@nobody")), NOT_FOUND),
        (ContinuationPage, "stale", stale, (InvalidRequest, "stale_cursor")),
    ]
    for page, name, request, failure in bad:
        yield _case(site, page, name, request, failure)
    request = upstream.video_request(site.named("bot-check").items["videos"][0].id)
    yield _case(site, VideoPage, "bot-check", request, (UpstreamBlocked, "bot_check"))


# The expected items, from the sandbox's truth


def _channel(site: Site, channel: Channel, tab: str) -> Data:
    """Return the expected item of a channel's page, opened with a tab."""
    is_gated, is_normal = channel.kind == "gated", channel.kind == "normal"
    tabs = [each for each in TABS if channel.items.get(each)] if is_normal else []
    record = _record(site, channel, tab)
    following = "" if is_gated else record["pagination"]["cursor"]
    return {
        "posts": [] if is_gated else _posts(site, channel, tab),
        "continuation": following,
        "more": bool(following),
        "profile": record["profile"],
        "tab": tab if tab in tabs else "" if is_gated else "featured",
        "tabs": tabs,
        "tab_params": {each: TABS[each][1] for each in tabs},
        "about_token": f"about-{channel.id}" if is_normal else "",
        "links": list(channel.links) if is_normal else [],
        "has_about": False,
        "age_gated": is_gated,
        "client_version": "2.20260801.03.00" if is_normal else "",
        "moved_to": "",
    }


def _record(site: Site, channel: Channel, tab: str, page: int = 1) -> Data:
    """Return the record that is read from a page of a channel's list alone."""
    params = {"username": channel.handle or channel.id, "type": KIND_OF_TAB[tab], "page": page}
    return site.expected_record({"scraper": "videosite-profile", **params})


def _posts(site: Site, channel: Channel, tab: str, page: int = 1) -> list[Data]:
    return [post | NO_AUTHOR for post in _record(site, channel, tab, page)["posts"]]


def _profile(channel: Channel, **known: Any) -> Data:
    """Return a profile of which a response states only the id, and some other fields."""
    link = f"{ORIGIN}/channel/{channel.id}"
    stated = {"privacy_status": "public", "profile_id": channel.id, "profile_link": link}
    return empty(Profile) | stated | known


def _list(channel: Channel, posts: list[Data]) -> Data:
    return {"posts": posts, "continuation": "", "more": False, "channel": channel.id, "profile": _profile(channel)}


def _about(channel: Channel) -> Data:
    whole = expected.profile(channel, about=True)
    names = ("external_links", "location", "total_views", "content_count")
    own = {name: whole[name] for name in ("biography", "profile_link", "username")}
    times = ("account_creation_date", "account_creation_date_text")
    about = {name: whole[name] for name in (*names, *times)}
    return {"channel": channel.id, "about": about, "profile": _profile(channel, **own)}


def _feed(channel: Channel) -> Data:
    items = sorted((each for tab in channel.items.values() for each in tab), key=lambda each: -each.published)
    posts = [
        expected.post(channel, item, "feed")
        | NO_AUTHOR
        | {"thumbnail_image": feed_picture(item), "view_count": item.views, "video_duration_seconds": None}
        for item in feed_items(items)
    ]
    whole = expected.profile(channel, about=True)
    created = {name: whole[name] for name in ("account_creation_date", "account_creation_date_text")}
    profile = _profile(channel, display_name=channel.name)
    return {"channel": channel.id, "profile": profile, "created": created, "posts": posts}


def _video(channel: Channel, item: Item) -> Data:
    post = expected.post(channel, item, "video") | NO_AUTHOR
    post["thumbnail_image"] = f"https://i.ytimg.com/vi/{item.id}/maxresdefault.jpg"
    own = {"profile_link": f"{ORIGIN}/@{channel.handle}", "username": channel.handle}
    return {"posts": [post], "profile": _profile(channel, display_name=channel.name, **own)}


def _case(site: Site, page: type[PlatformPage], name: str, request: Request, outcome: Failure | Data) -> Case:
    path, _, query = request.url.removeprefix(ORIGIN).partition("?")
    args = dict(each.split("=", 1) for each in query.split("&") if each)
    fake_request = FakeRequest(path, args, request.method, {}, request.body)
    status, _, body = (
        site.damaged(name, fake_request) if name in {*PAGE_FAULTS, "bot-check"} else site.page(fake_request)
    )
    page_params: dict[str, Any] = request.meta["page_params"]
    return Case(page, name, request.url, status, body, page_params, outcome)
