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
from crawler.platforms.page import PlatformPage
from crawler.platforms.videosite import requests as upstream
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.lists import ContinuationPage, PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.lists import token
from crawler.sandbox.videosite.site import Site
from tests.make_fixtures import Case, Failure

ORIGIN = "https://www.youtube.com"
NOT_FOUND: Failure = TargetNotFound, "not_found"
CHANNEL_TABS = (
    ("north.pier", "videos"),
    ("ropeworks", "shorts"),
    ("onlyshorts", "shorts"),
    ("harborlights", "streams"),
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


def cases() -> Iterator[Case]:
    """Yield the cases of the video site."""
    site = Site(light=True)
    for name, tab in CHANNEL_TABS:
        yield _case(site, ChannelPage, f"{name}-{tab}", upstream.channel_request(ORIGIN, f"@{name}", tab))
    for channel in site.channels:
        if channel.kind in {"gated", "game", "sport"} and not channel.fault:
            request = upstream.browse_request(ORIGIN, channel.id, "videos")
            yield _case(site, ChannelPage, channel.kind, request)
    for fault, failure in PAGE_FAULTS.items():
        request = upstream.channel_request(ORIGIN, f"@{fault}", "videos")
        yield _case(site, ChannelPage, fault, request, failure)
    yield from _smaller_responses(site)


def _smaller_responses(site: Site) -> Iterator[Case]:
    harbor, gated = site.named("allnight_live"), next(each for each in site.channels if each.kind == "gated")
    following = token(harbor, "streams", 2, heavy=False)
    item = site.named("tinychannel1109").items["videos"][0]
    good: list[tuple[type[PlatformPage], str, Request]] = [
        (ContinuationPage, "last", upstream.continuation_request(ORIGIN, following, channel=harbor.id, tab="streams")),
        (PlaylistPage, "shorts", upstream.playlist_request(ORIGIN, gated.id, "shorts")),
        (PlaylistPage, "none", upstream.playlist_request(ORIGIN, gated.id, "streams")),
        (AboutPage, "panel", upstream.about_request(ORIGIN, f"about-{harbor.id}", channel=harbor.id)),
        (FeedPage, "channel", upstream.feed_request(ORIGIN, gated.id)),
        (VideoPage, "video", upstream.video_request(ORIGIN, item.id)),
        (ResolvePage, "handle", upstream.resolve_request(ORIGIN, upstream.public_url("@harborlights"))),
    ]
    for page, name, request in good:
        yield _case(site, page, name, request)
    stale = upstream.continuation_request(ORIGIN, "stale", channel=harbor.id, tab="streams")
    gone = upstream.feed_request(ORIGIN, "UC0000000000000000000000")
    bad: list[tuple[type[PlatformPage], str, Request, Failure]] = [
        (FeedPage, "gone", gone, (UpstreamError, "no_feed")),
        (VideoPage, "unknown", upstream.video_request(ORIGIN, "aaaaaaaaaaa"), NOT_FOUND),
        (ResolvePage, "unknown", upstream.resolve_request(ORIGIN, upstream.public_url("@nobody")), NOT_FOUND),
        (ContinuationPage, "stale", stale, (InvalidRequest, "stale_cursor")),
    ]
    for page, name, request, failure in bad:
        yield _case(site, page, name, request, failure)
    request = upstream.video_request(ORIGIN, site.named("bot-check").items["videos"][0].id)
    yield _case(site, VideoPage, "bot-check", request, (UpstreamBlocked, "bot_check"))


def _case(site: Site, page: type[PlatformPage], name: str, request: Request, expected: Failure | None = None) -> Case:
    path, _, query = request.url.removeprefix(ORIGIN).partition("?")
    args = dict(each.split("=", 1) for each in query.split("&") if each)
    fake_request = FakeRequest(path, args, request.method, {}, request.body)
    status, _, body = (
        site.damaged(name, fake_request) if name in {*PAGE_FAULTS, "bot-check"} else site.page(fake_request)
    )
    page_params: dict[str, Any] = request.meta["page_params"]
    return Case(page, name, request.url, status, body, page_params, expected)
