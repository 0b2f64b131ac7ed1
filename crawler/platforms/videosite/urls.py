"""Video site: reads links to channels, and builds the requests: for a channel's page, further items, about panel and
feed, and for single videos. Some values in API requests are changed by the platform, and are read from its data file.

A visitor's browser loads the channel's page, and the page sends the same API requests, without a key or a login.
"""

from __future__ import annotations

import re
from typing import Any, Self
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field
from scrapy import Request

from crawler.platforms.links import Found, Grammar, LinkError, PlatformLinks, Url
from crawler.platforms.requests import IdsModel, shipped_ids
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


class Ids(IdsModel):
    """The platform's data file."""

    note: str = ""
    """Where and when the values were copied."""
    client_version: str = Field(pattern=r"^[0-9.]{5,40}$")
    """Version of the web client in API requests, until the channel's page has shown the current version."""
    tab_params: dict[str, str]
    """The param that selects a channel's tab, by the tab's name: videos, shorts, streams."""
    playlist_params: str
    """The param that selects the complete list of a playlist's items."""

    def with_version(self, version: str) -> Self:
        """Return the ids with the client version that a page shows, or the unchanged ids if ``version`` is ""."""
        return self.model_copy(update={"client_version": version}) if version else self


SHIPPED = shipped_ids(Ids)
"""The ids in the platform's own data file."""
PLAYLISTS = {"videos": "UULF", "shorts": "UUSH", "streams": "UULV", "uploads": "UU"}
"""Prefixes of playlist ids, by tab, and of the playlist of all uploads. The id of a playlist is the prefix followed by
the channel's id without "UC"."""
VIDEO_FIELDS = "microformat,videoDetails.videoId,playabilityStatus.status,playabilityStatus.reason"
BROWSE = "browse"
"""The source name of the API call for a channel's tab, which may succeed when the tab's page fails."""
COOKIES = "SOCS=CAE=; PREF=hl=en&tz=UTC"
"""Cookies that decline the consent request, and set the language of numbers and dates to English, and the time zone to
UTC."""


def addresses(username: str) -> list[str]:
    """Return the URL paths that a channel with this name may have, the most likely first.

    >>> addresses("@some.body"), addresses("somebody")
    (['@some.body'], ['@somebody', 'c/somebody', 'user/somebody'])
    >>> addresses("UCuAXFkgsw1L7xaCfnd5JJOw")
    ['channel/UCuAXFkgsw1L7xaCfnd5JJOw']
    >>> addresses("user/somebody")
    ['user/somebody']
    """
    if username.startswith(("@", "c/", "user/")):
        return [username]
    if CHANNEL_ID.matches(username):  # no handle or legacy name has the format of an id
        return [f"channel/{username}"]
    return [f"@{username}", f"c/{username}", f"user/{username}"]


def playlist_id(channel: str, kind: str) -> str:
    """Return the id of the playlist with all items in a channel's tab, or with all ``uploads``."""
    return PLAYLISTS[kind] + channel.removeprefix("UC")


def channel_request(address: str, tab: str) -> Request:
    """Build the request for a channel's page with a tab."""
    return _get(f"{PLATFORM.origin}/{_path(address)}/{tab}", **expected_echo(address), tab=tab)


def about_page_request(channel: str) -> Request:
    """Build the request for the channel's page with its about panel open."""
    return _get(f"{PLATFORM.origin}/channel/{channel}/about", channel=channel)


def feed_request(channel: str, tab: str | None = None) -> Request:
    """Build the request for the Atom feed: the newest 15 items of all tabs, or of one tab, with exact counts."""
    query = {"channel_id": channel} if tab is None else {"playlist_id": playlist_id(channel, tab)}
    return _get(f"{PLATFORM.origin}/feeds/videos.xml?{urlencode(query)}", channel=channel, tab=tab)


def resolve_request(url: str, *, ids: Ids = SHIPPED) -> Request:
    """Build the API request that resolves one of the platform's URLs to a channel or to another URL."""
    return _call("navigation/resolve_url", ids, {"url": url})


def public_url(address: str) -> str:
    """Return the URL on the platform's public origin with a channel's path (``address``)."""
    return f"{PLATFORM.origin}/{_path(address)}"


def browse_request(channel: str, tab: str = "", *, params: str = "", ids: Ids = SHIPPED) -> Request:
    """Build the API request for a channel's page with a tab. ``params``: the tab's params, by default those of ``ids``.

    Without a tab, the response contains the params of all tabs. Of the channel in the response, only the id is checked,
    because the channel may have a new handle.
    """
    selected = {"params": params or ids.tab_params[tab]} if tab else {}
    shown = {"tab": tab} if tab else {}
    request = _call("browse", ids, {"browseId": channel} | selected, channel=channel, **shown)
    return request.replace(meta={**request.meta, "source": BROWSE})


def playlist_request(channel: str, tab: str, *, kind: str = "", ids: Ids = SHIPPED) -> Request:
    """Build the request for the playlist with all items in a tab, for channels without tabs.

    ``kind``: the key in ``PLAYLISTS`` of a playlist to read instead of the tab's.
    """
    body = {"browseId": f"VL{playlist_id(channel, kind or tab)}", "params": ids.playlist_params}
    return _call("browse", ids, body, channel=channel, tab=tab)


def continuation_request(token: str, *, channel: str, tab: str, ids: Ids = SHIPPED) -> Request:
    """Build the request for the next page of a list. The platform's token is sent back unchanged."""
    return _call("browse", ids, {"continuation": token}, channel=channel, tab=tab)


def about_request(token: str, *, channel: str, ids: Ids = SHIPPED) -> Request:
    """Build the request for a channel's about panel. ``token`` comes from the data of the channel page."""
    return _call("browse", ids, {"continuation": token}, channel=channel)


def video_request(video: str, *, ids: Ids = SHIPPED) -> Request:
    """Build the request for a video's metadata. Only the needed fields are selected, so that the response has 4 kB."""
    body = {"videoId": video, "contentCheckOk": True, "racyCheckOk": True}
    return _call("player", ids, body, fields=VIDEO_FIELDS, video=video)


def _path(address: str) -> str:
    return quote(address, safe="@/")


def expected_echo(address: str) -> dict[str, str]:
    """Return the page params for the handle or id that the page must contain.

    Return {} for a legacy name, which may lead to any channel.
    """
    if address.startswith("@"):
        return {"handle": address.removeprefix("@")}
    return {"channel": address.removeprefix("channel/")} if address.startswith("channel/") else {}


def _get(url: str, **page_params: Any) -> Request:
    return Request(url, headers={"Cookie": COOKIES}, meta={"page_params": page_params})


def _call(endpoint: str, ids: Ids, body: dict[str, Any], *, fields: str = "", **page_params: Any) -> Request:
    client = {
        "hl": "en",
        "gl": "US",
        "clientName": "WEB",
        "clientVersion": ids.client_version,
        "originalUrl": PLATFORM.origin,
        "platform": "DESKTOP",
        "utcOffsetMinutes": 0,
    }
    context = {
        "client": client,
        "request": {"internalExperimentFlags": [], "useSsl": True},
        "user": {"lockedSafetyMode": False},
    }
    query = urlencode({"prettyPrint": "false"} | ({"$fields": fields} if fields else {}), safe="$,")
    headers = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "Cookie": COOKIES,
        "Origin": PLATFORM.origin,
        "Referer": PLATFORM.origin,
        "X-YouTube-Client-Name": "1",
        "X-YouTube-Client-Version": ids.client_version,
    }
    return Request(
        f"{PLATFORM.origin}/youtubei/v1/{endpoint}?{query}",
        method="POST",
        headers=headers,
        body=orjson.dumps({"context": context, **body}),
        meta={"page_params": page_params},
    )
