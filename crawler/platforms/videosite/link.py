"""Video site: reads links to channels."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, LinkError, PlatformLinks, Url, decoded
from crawler.platforms.videosite import PLATFORM

VIDEO_HOST = "youtu.be"
"""The host of short links to videos."""
HOSTS = re.compile(rf"(?:(?:www|m)\.)?{re.escape(PLATFORM.domain)}|{re.escape(VIDEO_HOST)}")
CHANNEL_ID = r"UC[A-Za-z0-9_-]{22}"
NAME = r"[\w\-·][\w.\-·]{0,99}"
"""Matches a handle without "@", or a legacy name: one path segment in any script, but not "." or ".."."""
TABS: dict[str, dict[str, str]] = {
    "about": {"include_about": "true"},
    "channels": {},
    "community": {},
    "courses": {},
    "featured": {},
    "playlists": {},
    "podcasts": {},
    "posts": {},
    "releases": {},
    "shorts": {"type": "short"},
    "streams": {"type": "live"},
    "videos": {"type": "video"},
}
"""Maps each tab of a channel's page to the params that a link to the tab stands for."""
CHANNEL_PATH = re.compile(
    rf"/(?:channel/(?P<id>{CHANNEL_ID})|(?P<name>(?:@|c/|user/)?{NAME}))(?:/(?P<tab>{'|'.join(TABS)}))?/?"
)
RESERVED = frozenset(
    """
    about account ads app attribution_link c channel channels clip creators embed feed gaming hashtag howyoutubeworks
    jobs kids live live_chat logout movies music new oembed playlist playables podcasts post premium redirect results s
    select_site shorts signin source sports t trending tv upload user v watch watch_popup watch_videos yt
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines
)
"""The first path segments of the site's own pages, which are therefore not names of channels."""


def target_of(url: Url) -> Found | None:
    """Return the channel that a URL leads to, and the params that the tab in the URL stands for.

    The prefix of a name (``@``, ``c/``, ``user/`` or none) is kept, because a handle and an equal legacy name
    may belong to different channels.

    Raises:
        LinkError: the URL is a short link to a video.
    """
    if url.host == VIDEO_HOST:
        raise LinkError("this is a short link to a video, which no scraper can read")
    found = CHANNEL_PATH.fullmatch(decoded(url.path) or "")
    if found is None or (found["name"] or "").lower() in RESERVED:
        return None
    return "channel", {"username": found["id"] or found["name"], **TABS.get(found["tab"], {})}


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"channel": ("videosite-profile-v3", "videosite-profile")},
    target_of=target_of,
    expected=(
        f"expected a channel of www.{PLATFORM.domain}: /@<handle>, /channel/<id>, /c/<name> or /user/<name>, each also "
        "with a tab such as /videos"
    ),
    other_pages={
        "a video": re.compile(r"/(watch|live/|embed/|v/|clip/)"),
        "a short": re.compile(r"/shorts/"),
        "a playlist": re.compile(r"/playlist"),
        "a search": re.compile(r"/results|/hashtag/|/(@|c/|user/|channel/)[^/]+/search"),
        "a post": re.compile(r"/post/"),
        "a channel without a valid id": re.compile(r"/channel/"),
        "the home page": re.compile(r"/?$"),
    },
)
