"""Video site: the values in API requests that the platform changes, and the requests: for a channel's page, further
items, about panel and feed, and for single videos.

A visitor's browser loads the channel's page, and the page sends the same API requests, without a key or a login.
"""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field
from scrapy import Request

from crawler.platforms.requests import IdsModel, shipped_ids
from crawler.platforms.videosite import PLATFORM
from crawler.platforms.videosite.link import CHANNEL_ID


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
