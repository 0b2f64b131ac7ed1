"""Video site: channels in every format, the smaller responses, and every error of a response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Request

from crawler.platforms.page import PlatformPage
from crawler.platforms.videosite import requests as upstream
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.lists import ContinuationPage, PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.lists import token
from crawler.sandbox.videosite.site import Site
from tests.make_fixtures import Case

ORIGIN = "https://www.youtube.com"
CHANNEL_TABS = (
    ("north.pier", "videos"),
    ("ropeworks", "shorts"),
    ("onlyshorts", "shorts"),
    ("harborlights", "streams"),
    ("tinychannel1109", "videos"),
    ("emptyroom", "videos"),
)
PAGE_FAULTS = (
    *("broken-json", "captcha", "captcha-200", "consent", "copyright", "never-existed", "no-contents", "no-data"),
    *("no-longer", "region", "removed", "reported-error", "soft-gone", "terminated", "video-page"),
)


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    for name, tab in CHANNEL_TABS:
        yield _case(site, ChannelPage, f"{name}-{tab}", upstream.channel_request(ORIGIN, f"@{name}", tab))
    for channel in site.channels:
        if channel.kind in {"gated", "game", "sport"} and not channel.fault:
            request = upstream.browse_request(ORIGIN, channel.id, "videos")
            yield _case(site, ChannelPage, channel.kind, request)
    for fault in PAGE_FAULTS:
        request = upstream.channel_request(ORIGIN, f"@{fault}", "videos")
        yield _case(site, ChannelPage, fault, request, fault=fault)
    yield from _smaller_responses(site)


def _smaller_responses(site: Site) -> Iterator[Case]:
    harbor, gated = site.named("allnight_live"), next(each for each in site.channels if each.kind == "gated")
    following = token(harbor, "streams", 2, heavy=False)
    item = site.named("tinychannel1109").items["videos"][0]
    requests: list[tuple[type[PlatformPage], str, Request]] = [
        (ContinuationPage, "last", upstream.continuation_request(ORIGIN, following, channel=harbor.id, tab="streams")),
        (PlaylistPage, "shorts", upstream.playlist_request(ORIGIN, gated.id, "shorts")),
        (PlaylistPage, "none", upstream.playlist_request(ORIGIN, gated.id, "streams")),
        (AboutPage, "panel", upstream.about_request(ORIGIN, f"about-{harbor.id}", channel=harbor.id)),
        (FeedPage, "channel", upstream.feed_request(ORIGIN, gated.id)),
        (FeedPage, "gone", upstream.feed_request(ORIGIN, "UC0000000000000000000000")),
        (VideoPage, "video", upstream.video_request(ORIGIN, item.id)),
        (VideoPage, "unknown", upstream.video_request(ORIGIN, "aaaaaaaaaaa")),
        (ResolvePage, "handle", upstream.resolve_request(ORIGIN, "@harborlights")),
        (ResolvePage, "unknown", upstream.resolve_request(ORIGIN, "@nobody")),
    ]
    for page, name, request in requests:
        yield _case(site, page, name, request)
    stale = upstream.continuation_request(ORIGIN, "stale", channel=harbor.id, tab="streams")
    yield _case(site, ContinuationPage, "stale", stale)
    bot = site.named("bot-check").items["videos"][0].id
    yield _case(site, VideoPage, "bot-check", upstream.video_request(ORIGIN, bot), fault="bot-check")


def _case(site: Site, page: type[PlatformPage], name: str, request: Request, *, fault: str = "") -> Case:
    path, _, query = request.url.removeprefix(ORIGIN).partition("?")
    args = dict(each.split("=", 1) for each in query.split("&") if each)
    fake_request = FakeRequest(path, args, request.method, {}, request.body)
    status, _, body = site.damaged(fault, fake_request) if fault else site.page(fake_request)
    page_params: dict[str, Any] = request.meta["page_params"]
    return Case(page, name, request.url, status, body, page_params)
