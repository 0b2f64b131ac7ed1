"""Video site: reads links to channels."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, Grammar, LinkError, PlatformLinks, Url
from crawler.platforms.videosite import PLATFORM

VIDEO_HOST = "youtu.be"
"""The host of short links to videos."""
HOSTS = re.compile(rf"(?:(?:www|m|music)\.)?{re.escape(PLATFORM.domain)}|{re.escape(VIDEO_HOST)}")
CHANNEL_ID = Grammar(r"UC[A-Za-z0-9_-]{22}", "a channel's id is UC and 22 letters, digits, - or _")
VIDEO_ID = Grammar(r"[A-Za-z0-9_-]{11}", "a video's id has 11 letters, digits, - or _")
# Not a list of letters, which would have to contain the marks of all scripts: Devanagari, Thai, vocalised Arabic.
_CHARACTER = r"""[^\s\x00-\x1f\x7f-\x9f/\\?#%&=<>"'|*@,;:!$^`~()\[\]{}+\u2028-\u202e\ufffd]"""
NAME = Grammar(rf"(?!\.)(?:{_CHARACTER}){{1,100}}", "a channel's name has at most 100 characters, without spaces")
"""A handle without "@", or a legacy name: one path segment in any script, but not "." or ".."."""
USERNAME = Grammar(
    rf"(?:@|c/|user/)?{NAME.expression}",
    "a channel is named by its handle (@name), its id (UC...) or its old name, also after c/ or user/",
)
TABS: dict[str, dict[str, str]] = {
    "about": {"include_about": "true"},
    "shorts": {"type": "short"},
    "streams": {"type": "live"},
    "videos": {"type": "video"},
}
"""Maps tabs of a channel's page to the params that a link to the tab stands for."""
_PAGES = frozenset(
    """
    about channels community courses discussion featured live membership playlists podcasts posts releases search shorts
    store streams videos
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines
)
"""The pages of a channel. An old name without a prefix has only these below it: other paths are the site's own."""
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

    Other pages of the channel, such as its store or a search in it, stand for the channel.

    The prefix of a name (``@``, ``c/``, ``user/`` or none) is kept, because a handle and an equal legacy name
    may belong to different channels.

    Raises:
        LinkError: the URL is a short link to a video.
    """
    if url.host == VIDEO_HOST:
        raise LinkError("this is a short link to a video, which no scraper can read")
    match url.segments():
        case ["channel", name, *further] if CHANNEL_ID.matches(name):
            pass
        case ["c" | "user" as prefix, name, *further] if NAME.matches(name):
            name = f"{prefix}/{name}"
        case [name, *further] if name.startswith("@") and NAME.matches(name.removeprefix("@")):
            pass
        case [name, *further] if NAME.matches(name) and name.lower() not in RESERVED and _PAGES.issuperset(further):
            pass
        case _:
            return None
    return "channel", {"username": name, **TABS.get(further[0] if further else "", {})}


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
        "a search": re.compile(r"/results|/hashtag/"),
        "a post": re.compile(r"/post/"),
        "a channel without a valid id": re.compile(r"/channel/"),
        "the home page": re.compile(r"/?$"),
    },
    redirects=re.compile(rf"consent\.{re.escape(PLATFORM.domain)}/|[^/]+/(signin|redirect|attribution_link)(/|$)"),
    redirect_hosts=frozenset({f"consent.{PLATFORM.domain}"}),
    destinations=("continue", "next", "q", "u"),
)
