"""Video site: reads responses about a channel or a video, independently of the page objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

from tests.field_maps.paths import at, first, values
from tests.field_maps.videosite_channel import (
    PROFILE,
    SITE,
    channel_page,
    continuation_page,
    count,
    marks,
    playlist_page,
    post,
    text_of,
)


def payload_of(body: str) -> Any:
    """The root element of an Atom feed, or None."""
    is_feed = body.lstrip().startswith("<?xml")
    return ET.fromstring(body.strip()) if is_feed else None  # noqa: S314  # a fixture of this repository


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object must extract; None for responses without a field map."""
    if payload is None:
        return None
    maps: dict[str, Callable[[Any], dict[str, Any] | None]] = {
        "AboutPage": about_page,
        "ChannelPage": channel_page,
        "ContinuationPage": continuation_page,
        "FeedPage": feed_page,
        "PlaylistPage": playlist_page,
        "ResolvePage": resolved,
        "VideoPage": video,
    }
    return maps[page](payload)


def resolved(payload: Any) -> dict[str, Any]:
    """The channel to which a URL was resolved."""
    channel = at(payload, "endpoint.browseEndpoint.browseId")
    profile = PROFILE | {"profile_id": channel, "profile_link": f"{SITE}/channel/{channel}"}
    return {"channel": channel, "profile": profile, "url": ""}


def video(payload: Any) -> dict[str, Any]:
    """A video from the player's data: exact date, likes, views and length."""
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


def about_page(data: dict[str, Any]) -> dict[str, Any]:
    """The expected item of the about panel, which shows the details of a channel."""
    panel = next(values(data, "aboutChannelViewModel"))
    day = datetime.strptime(text_of(panel["joinedDateText"]), "Joined %b %d, %Y").replace(tzinfo=UTC)
    link = panel["canonicalChannelUrl"].replace("http://", "https://")
    return {
        "about": {
            "account_creation_date": int(day.timestamp()),
            "account_creation_date_text": f"{day:%Y-%m-%d}",
            "content_count": count(panel["videoCountText"]),
            "follower_count": count(panel["subscriberCountText"]),
            "subscriber_count_text": panel["subscriberCountText"],
            "external_links": [unwrapped(at(each, "channelExternalLinkViewModel.link")) for each in panel["links"]],
            "location": panel["country"],
            "total_views": count(panel["viewCountText"]),
        },
        "channel": panel["channelId"],
        "profile": PROFILE
        | {
            "biography": panel["description"],
            "profile_id": panel["channelId"],
            "profile_link": link,
            "username": link.partition("/@")[2],
        },
    }


def unwrapped(link: dict[str, Any]) -> str:
    """The URL of an external link, without the platform's redirect; the shown text if the redirect has no URL."""
    url: str = at(link, "commandRuns.0.onTap.innertubeCommand.urlEndpoint.url")
    target = parse_qs(urlsplit(url).query).get("q", []) if "/redirect?" in url else [url]
    return target[0] if target else f"https://{link['content']}"


def feed_page(feed: ET.Element) -> dict[str, Any]:
    """A channel's Atom feed: exact times, views and likes of the newest items."""
    names = {"a": "http://www.w3.org/2005/Atom", "yt": "http://www.youtube.com/xml/schemas/2015"}
    names["media"], community = "http://search.yahoo.com/mrss/", "media:group/media:community"
    channel = feed.findtext("a:author/a:uri", "", names).rpartition("/")[2]
    created = datetime.fromisoformat(feed.findtext("a:published", "", names))
    found = []
    for entry in feed.iterfind("a:entry", names):
        number, title = entry.findtext("yt:videoId", "", names), entry.findtext("a:title", "", names)
        link, image, rating, statistics = (
            next(entry.iterfind(path, names)).attrib
            for path in (
                "a:link",
                "media:group/media:thumbnail",
                f"{community}/media:starRating",
                f"{community}/media:statistics",
            )
        )
        found.append(
            post(
                number,
                "short" if "/shorts/" in link["href"] else "video",
                title,
                like_count=int(rating["count"]) or None,
                published_date=int(datetime.fromisoformat(entry.findtext("a:published", "", names)).timestamp()),
                thumbnail_image=image["url"],
                view_count=int(statistics["views"]),
            )
            | marks(f"{title}\n{entry.findtext('media:group/media:description', '', names)}")
        )
    about = {"display_name": feed.findtext("a:title", "", names), "profile_id": channel}
    return {
        "channel": channel,
        "created": {
            "account_creation_date": int(created.timestamp()),
            "account_creation_date_text": f"{created:%Y-%m-%d}",
        },
        "posts": found,
        "profile": PROFILE | about | {"profile_link": f"{SITE}/channel/{channel}"},
    }
