"""Video site: the notes' field maps of a resolved address and of a video's player state, and the choice of the map."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

from tests.field_maps import videosite_channel as channel
from tests.field_maps.paths import at, first, values
from tests.field_maps.videosite_channel import PROFILE, SITE, marks, post


def payload_of(body: str) -> Any:
    """The elements of a feed, or the linked data of a page of which nothing else was saved; None for other markup."""
    if linked := re.match(r'<script type="application/ld\+json"[^>]*>(.*)</script>\s*$', body, re.DOTALL):
        return json.loads(linked[1])
    is_feed = body.lstrip().startswith("<?xml")
    return ET.fromstring(body.strip()) if is_feed else None  # noqa: S314  # a fixture of this repository


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object must extract; None for responses without a field map."""
    if payload is None:
        return None
    maps = {
        "AboutPage": channel.about_page,
        "ChannelPage": channel.saved_person if "mainEntity" in payload else channel.channel_page,
        "CommentsPage": channel.comments_page,
        "ContinuationPage": channel.continuation_page,
        "FeedPage": channel.feed_page,
        "PlaylistPage": channel.playlist_page,
        "ResolvePage": resolved,
        "VideoPage": video,
    }
    return maps[page](payload)


def resolved(payload: Any) -> dict[str, Any]:
    """A channel by the address that leads to it."""
    channel = at(payload, "endpoint.browseEndpoint.browseId")
    profile = PROFILE | {"profile_id": channel, "profile_link": f"{SITE}/channel/{channel}"}
    return {"channel": channel, "profile": profile, "url": ""}


def video(payload: Any) -> dict[str, Any]:
    """A video by its player state: exact date, likes, views and length."""
    micro = next(values(payload, "playerMicroformatRenderer"))
    number = at(payload, "videoDetails.videoId")
    short = bool(micro.get("isShortsEligible")) or "/shorts/" in micro.get("canonicalUrl", "")
    live = at(micro, "liveBroadcastDetails") is not None
    title = first(micro, "title.simpleText") or ""
    text = title + "\n" + (first(micro, "description.simpleText") or "")
    handle = micro["ownerProfileUrl"].rpartition("/")[2]
    fields = {
        "like_count": int(micro["likeCount"]) if "likeCount" in micro else None,
        "published_date": int(datetime.fromisoformat(micro["publishDate"]).timestamp()),
        "thumbnail_image": micro["thumbnail"]["thumbnails"][-1]["url"],
        "video_duration_seconds": int(micro.get("lengthSeconds", 0)) or None,
        "view_count": int(micro["viewCount"]) if "viewCount" in micro else None,
    }
    return {
        "posts": [post(number, "short" if short else "live" if live else "video", title, **fields) | marks(text)],
        "profile": PROFILE
        | {
            "display_name": micro["ownerChannelName"],
            "profile_id": micro["externalChannelId"],
            "profile_link": f"{SITE}/{handle}",
            "username": handle.removeprefix("@"),
        },
    }
