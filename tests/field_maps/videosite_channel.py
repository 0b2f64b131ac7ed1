"""Video site: reads a channel's page and its lists, independently of the page objects."""

from __future__ import annotations

import re
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
POST: dict[str, Any] = {
    **dict.fromkeys(("age_restriction_status", "author_id", "comment_count", "content_language", "first_comment")),
    **dict.fromkeys(("like_count", "published_date", "subtitles", "transcript", "video_duration_seconds")),
    **dict.fromkeys(("video_link", "view_count")),
    **dict.fromkeys(("author_name", "author_username", "caption", "thumbnail_image"), ""),
    "images": [],
    "media_links": dict.fromkeys(("high", "low", "medium", "watermarked")),
    "slideshow_status": False,
}
NO_PAGE: dict[str, Any] = {
    **dict.fromkeys(("about_token", "client_version", "continuation", "moved_to", "tab"), ""),
    "age_gated": False,
    "has_about": False,
    "links": [],
    "more": False,
    "posts": [],
    "tab_params": {},
    "tabs": [],
}
LABELS = {"videos": "video", "shorts": "short", "streams": "live"}
BADGES = {"CHECK_CIRCLE_FILLED", "AUDIO_BADGE"}
UNITS = {"k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "billion": 10**9, "": 1}


def channel_page(data: dict[str, Any]) -> dict[str, Any] | None:
    """A channel's page: its profile and the first page of a tab. None for other pages."""
    tabs = at(data, "contents.twoColumnBrowseResultsRenderer.tabs") or []
    if not tabs and "metadata" not in data:
        return None
    named = {
        at(tab, "endpoint.commandMetadata.webCommandMetadata.url").rpartition("/")[2]: tab
        for tab in (each["tabRenderer"] for each in tabs if "tabRenderer" in each)
        if at(tab, "endpoint")
    }
    selected: dict[str, Any] = next((each["tabRenderer"] for each in tabs if at(each, "tabRenderer.selected")), {})
    name = next((name for name, tab in named.items() if tab is selected), "")
    gate = next(values(selected, "channelAgeGateRenderer"), None)
    about = [each["token"] for each in values(data.get("header"), "continuationCommand")]
    posts, continuation = posts_of(tab_rows(selected) if name in LABELS else [], name)
    following = continuation or token(at(selected, "content.richGridRenderer.contents") or [])
    return NO_PAGE | {
        "about_token": next(iter(about), ""),
        "age_gated": gate is not None,
        "continuation": following,
        "more": bool(following),
        "posts": posts,
        "profile": profile(data) if gate is None else gated_profile(data, gate),
        "tab": name,
        "tab_params": {
            each: at(tab, "endpoint.browseEndpoint.params") for each, tab in named.items() if each in LABELS
        },
        "tabs": [each for each in LABELS if each in named],
    }


def profile(data: dict[str, Any]) -> dict[str, Any]:
    """The expected profile of a channel's page."""
    meta = at(data, "metadata.channelMetadataRenderer") or {}
    head = next(values(data.get("header"), "pageHeaderViewModel"), None) or {}
    topic: dict[str, Any] = next(
        (
            each
            for key in ("interactiveTabbedHeaderRenderer", "topicChannelDetailsRenderer")
            for each in values(data.get("header"), key)
        ),
        {},
    )
    micro = at(data, "microformat.microformatDataRenderer") or {}
    parts = [
        text_of(part.get("text"))
        for row in at(head, "metadata.contentMetadataViewModel.metadataRows") or []
        for part in row.get("metadataParts") or []
    ]
    videos = next((each for each in parts if re.search(r"\d.* videos?$", each)), "")
    # In other languages, no text contains "subscriber": the number of subscribers is the text next to the number of
    # videos.
    shown = next((each for each in parts if "subscriber" in each), "") or next(
        (each for each in parts[1:] if each != videos and each[0].isdecimal()), ""
    )
    subscribers = shown or text_of(topic.get("subtitle"))
    link = meta.get("vanityChannelUrl") or meta.get("channelUrl") or ""
    number = meta.get("externalId") or browse_id(data)
    number = number or (micro.get("urlCanonical") or "").rpartition("/")[2]
    marks = {*values(head.get("title"), "imageName")}
    return PROFILE | {
        "available_country_codes": sorted(
            first(meta, "availableCountryCodes") or micro.get("availableCountries") or []
        ),
        "banner_image": first(head, "banner.imageBannerViewModel.image.sources.-1.url")
        or first(topic, "banner.thumbnails.-1.url")
        or "",
        "biography": (meta.get("description") or "").strip() or text_of(topic.get("description")).strip(),
        "content_count": count(videos),
        "display_name": meta.get("title") or text_of(topic.get("title")),
        "follower_count": count(subscribers),
        "is_family_safe": first(meta, "isFamilySafe") if meta else micro.get("familySafe"),
        "keywords": meta.get("keywords") or "",
        "profile_id": number,
        "profile_image": absolute(first(meta, "avatar.thumbnails.0.url") or topic_image(topic)),
        "profile_link": link.replace("http://", "https://") or f"{SITE}/channel/{number}",
        "subscriber_count_text": subscribers,
        "username": link.partition("/@")[2],
        "verification_status": bool(marks & BADGES) if parts else None,
    }


def topic_image(topic: dict[str, Any]) -> str:
    """The picture of a topic.

    For a game, it is the box art in the header, because the notes on the platform do not specify a picture.
    """
    return first(topic, "avatar.thumbnails.-1.url", "boxArt.thumbnails.-1.url") or ""


def gated_profile(data: dict[str, Any], gate: dict[str, Any]) -> dict[str, Any]:
    """The expected profile of a channel behind an age gate, which shows only name, id and picture."""
    return PROFILE | {
        "display_name": gate["channelTitle"],
        "profile_id": browse_id(data),
        "profile_image": at(gate, "avatar.thumbnails.0.url"),
        "profile_link": f"{SITE}/channel/{browse_id(data)}",
    }


def continuation_page(data: dict[str, Any]) -> dict[str, Any] | None:
    """A continuation page of a list."""
    rows: list[Any] = next(values(data.get("onResponseReceivedActions"), "continuationItems"), [])
    return listed(browse_id(data), *posts_of(rows, "videos"))


def playlist_page(data: dict[str, Any]) -> dict[str, Any]:
    """The record of a playlist of a channel's uploads; without posts if the playlist does not exist."""
    grid: dict[str, Any] = next(values(data.get("contents"), "richGridRenderer"), {"contents": []})
    number = next(values(data, "playlistId"), "")
    return listed(re.sub("^UU(?:LF|SH|LV)", "UC", number), *posts_of(grid["contents"], "shorts"))


def listed(channel: str, posts: list[dict[str, Any]], continuation: str) -> dict[str, Any]:
    """The expected item of a list, which contains nothing of its channel but the id."""
    link = f"{SITE}/channel/{channel}" if channel else ""
    about = PROFILE | {"profile_id": channel, "profile_link": link}
    return {
        "channel": channel,
        "continuation": continuation,
        "more": bool(continuation),
        "posts": posts,
        "profile": about,
    }


def tab_rows(tab: dict[str, Any]) -> list[Any]:
    """The rows in the grid of a tab, in the newer or the older format."""
    grid = next(values(tab.get("content"), "richGridRenderer"), None)
    old = next(values(tab.get("content"), "gridRenderer"), None)
    return grid["contents"] if grid else old["items"] if old else []


def token(rows: list[Any]) -> str:
    """The continuation in the last row of a list; "" at the end."""
    last = at(rows, "-1.continuationItemRenderer") or {}
    return at(last, "continuationEndpoint.continuationCommand.token") or ""


def posts_of(rows: list[Any], tab: str) -> tuple[list[dict[str, Any]], str]:
    """The posts of a list's rows, and the token of the next page."""
    readers = {
        "lockupViewModel": lockup,
        "videoRenderer": renderer,
        "gridVideoRenderer": renderer,
        "shortsLockupViewModel": short,
    }
    found = []
    for row in rows:
        content = at(row, "richItemRenderer.content") or row
        found += [read(content[kind], LABELS[tab]) for kind, read in readers.items() if kind in content]
    return found, token(rows)


def post(number: str, label: str, caption: str, **fields: Any) -> dict[str, Any]:
    """The expected content item."""
    return (
        POST
        | marks(caption)
        | {
            "caption": caption,
            "content_code": number,
            "content_id": number,
            "content_link": f"{SITE}/shorts/{number}" if label == "short" else f"{SITE}/watch?v={number}",
            "content_type": label,
            **fields,
        }
    )


def marks(text: str) -> dict[str, list[str]]:
    """The hashtags and mentions in a text."""
    return {
        "hashtags": list(dict.fromkeys(tag for tag in re.findall(r"#(\w+)", text) if not tag.isdigit())),
        "mentions": list(dict.fromkeys(re.findall(r"(?<![\w/])@([\w.\-·]{3,30})", text))),
    }


def lockup(row: dict[str, Any], label: str) -> dict[str, Any]:
    """An item of the lists since 2026."""
    meta = at(row, "metadata.lockupMetadataViewModel")
    parts = [text_of(each.get("text")) for found in values(meta, "metadataParts") for each in found]
    badges = [each["text"] for each in values(row.get("contentImage"), "thumbnailBadgeViewModel")]
    return post(
        row["contentId"],
        label,
        at(meta, "title.content") or "",
        thumbnail_image=at(row, "contentImage.thumbnailViewModel.image.sources.-1.url"),
        video_duration_seconds=seconds(next(iter(badges), "")),
        view_count=views(next((each for each in parts if re.search(r"\bviews?\b", each)), "")),
    )


def renderer(row: dict[str, Any], label: str) -> dict[str, Any]:
    """An item of the older lists."""
    overlay: dict[str, Any] = next(values(row.get("thumbnailOverlays"), "thumbnailOverlayTimeStatusRenderer"), {})
    return post(
        row["videoId"],
        "short" if overlay.get("style") == "SHORTS" else label,
        text_of(row.get("title")),
        thumbnail_image=at(row, "thumbnail.thumbnails.-1.url"),
        video_duration_seconds=seconds(text_of(row.get("lengthText")) or text_of(overlay.get("text"))),
        view_count=views(text_of(row.get("viewCountText"))),
    )


def short(row: dict[str, Any], _label: str) -> dict[str, Any]:
    """A short. The number of views that its overlay lacks is in its label for screen readers."""
    spoken = re.search(r", ([^,]*? views?) [–-] play Short$", row.get("accessibilityText") or "")
    shown = text_of(at(row, "overlayMetadata.secondaryText")) or (spoken[1] if spoken else "")
    return post(
        at(row, "onTap.innertubeCommand.reelWatchEndpoint.videoId"),
        "short",
        at(row, "overlayMetadata.primaryText.content") or "",
        thumbnail_image=at(row, "thumbnailViewModel.thumbnailViewModel.image.sources.0.url"),
        view_count=views(shown),
    )


def browse_id(data: dict[str, Any]) -> str:
    """The channel's id among the tracking parameters."""
    pairs = [each for found in values(data.get("responseContext"), "params") for each in found]
    return next((each["value"] for each in pairs if each.get("key") == "browse_id"), "")


def text_of(node: Any) -> str:
    """The text of a node, in any of the four formats."""
    if isinstance(node, str):
        return node
    runs = "".join(each["text"] for each in at(node, "runs") or [])
    return first(node, "simpleText", "content") or runs


def count(text: str) -> int | None:
    """The number in a text such as ``1.07m subscribers``; None for texts in another format."""
    found = re.match(
        r"([\d.,]+)\s?(k|m|b|thousand|million|billion|)\s+(?:subscribers?|videos?|views?|comments?)$",
        text,
        re.IGNORECASE,
    )
    return round(float(found[1].replace(",", "")) * UNITS[found[2].lower()]) if found else None


def views(text: str) -> int | None:
    """The number of views in a text. "No views" means 0."""
    return 0 if text == "No views" else count(text)


def seconds(text: str) -> int | None:
    """The seconds in a duration such as ``1:07:32``; None for any other text."""
    if not re.fullmatch(r"\d+(?::\d\d)+", text):
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def absolute(url: str) -> str:
    """A URL with its scheme."""
    return f"https:{url}" if url.startswith("//") else url
