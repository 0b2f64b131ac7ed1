"""Video site: the notes' field maps of a resolved address and of a video's player state."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from tests.field_maps.paths import at, first, values

SITE = "https://www.youtube.com"
PROFILE: dict[str, Any] = {
    **dict.fromkeys(("account_creation_date", "content_count", "follower_count", "is_family_safe", "total_views")),
    "verification_status": None,
    **dict.fromkeys(("account_creation_date_text", "banner_image", "biography", "display_name", "keywords"), ""),
    **dict.fromkeys(
        ("location", "profile_id", "profile_image", "profile_link", "subscriber_count_text", "username"), ""
    ),
    "available_country_codes": [],
    "external_links": [],
    "privacy_status": "public",
}
FILES = dict.fromkeys(("high", "low", "medium", "watermarked"))


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object must extract; None for responses without a field map here."""
    if page == "ResolvePage":
        return resolved(payload)
    if page == "VideoPage":
        return video(payload)
    return None


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
    return {
        "posts": [
            {
                **dict.fromkeys(("age_restriction_status", "author_id", "comment_count", "content_language")),
                **dict.fromkeys(("first_comment", "subtitles", "transcript", "video_link")),
                "author_name": "",
                "author_username": "",
                "caption": title,
                "content_code": number,
                "content_id": number,
                "content_link": f"{SITE}/shorts/{number}" if short else f"{SITE}/watch?v={number}",
                "content_type": "short" if short else "live" if live else "video",
                "hashtags": list(dict.fromkeys(re.findall(r"#(\w+)", text))),
                "images": [],
                "like_count": int(micro["likeCount"]) if "likeCount" in micro else None,
                "media_links": FILES,
                "mentions": list(dict.fromkeys(re.findall(r"(?<!\w)@([\w.\-·]{3,30})", text))),
                "published_date": int(datetime.fromisoformat(micro["publishDate"]).timestamp()),
                "slideshow_status": False,
                "thumbnail_image": micro["thumbnail"]["thumbnails"][-1]["url"],
                "video_duration_seconds": int(micro.get("lengthSeconds", 0)) or None,
                "view_count": int(micro["viewCount"]) if "viewCount" in micro else None,
            }
        ],
        "profile": PROFILE
        | {
            "display_name": micro["ownerChannelName"],
            "profile_id": micro["externalChannelId"],
            "profile_link": f"{SITE}/{handle}",
            "username": handle.removeprefix("@"),
        },
    }
