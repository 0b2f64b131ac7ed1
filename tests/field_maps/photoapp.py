"""Photo app: reads posts (in the formats XIG and XDTITEM) and a profile's reels, without the page objects."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.field_maps.paths import at, first, values

KINDS = {1: "XDTGraphImage", 2: "XDTGraphVideo", 8: "XDTGraphSidecar"}


def payload_of(body: str) -> Any:
    """The decoded JSON of all JSON scripts of a page, as a list."""
    return [json.loads(each) for each in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', body)]


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return the item that the page object must extract; None for responses with neither a post nor reels."""
    edges = at(payload, "xig_user_by_username.polaris_clips_connection.edges")
    if page == "ReelsPage" and edges is not None:
        return {"plays": {edge["node"]["pk"]: edge["node"]["play_count"] for edge in edges}}
    if item := at(payload, "xdt_api__v1__media__shortcode__web_info.items.0"):
        return media_post(item, [])
    wrapper = next(values(payload, "xig_polaris_media"), None)
    if not at(wrapper, "if_not_gated_logged_out"):
        return None
    return media_post(at(wrapper, "if_not_gated_logged_out"), at(wrapper, "comments_connection.edges") or [])


def media_post(media: dict[str, Any], comment_edges: list[Any]) -> dict[str, Any]:
    """The expected post from an XIG or XDTITEM payload. Both formats have the same keys for a post."""
    caption, video = at(media, "caption.text"), media["media_type"] == 2
    user = media["user"]
    has_second_id = user.get("id") not in {None, user["pk"]}
    return {
        **dict.fromkeys(("is_ad", "is_affiliate", "video_play_count", "video_view_count")),
        **{key: media.get(key) for key in ("comments_disabled", "has_audio", "is_paid_partnership")},
        "__typename": KINDS[media["media_type"]],
        "accessibility_caption": media.get("accessibility_caption") or "",
        "clips_music_attribution_info": music(media.get("clips_metadata")),
        "coauthor_producers": [coauthor(each) for each in media["coauthor_producers"]],
        "dimensions": {key: media.get(f"original_{key}") for key in ("height", "width")},
        "display_url": first(media, "image_versions2.candidates.0.url", "display_uri"),
        "edge_media_preview_like": likes(media, media.get("like_count")),
        "edge_media_to_caption": captions(caption),
        "edge_media_to_comment": comments(media["comment_count"], comment_edges),
        "edge_media_to_tagged_user": tagged((each["user"], *each["position"]) for each in at(media, "usertags.in")),
        "id": media["pk"],
        "is_video": video,
        "like_and_view_counts_disabled": media["like_and_view_counts_disabled"],
        "location": location(media.get("location")),
        "owner": owner(user if has_second_id else user | {"id": ""}),
        "product_type": media["product_type"],
        "shortcode": media["code"],
        "taken_at_timestamp": media["taken_at"],
        "thumbnail_src": media["display_uri"],
        "video_duration": duration(media),
        "video_url": stream(media) if video else None,
    }


def owner(user: dict[str, Any]) -> dict[str, Any]:
    """The expected owner. ``id`` and ``pk`` are the payload's ``pk``; ``app_id`` is its ``id``, "" if missing."""
    texts = ("__typename", "full_name", "pk", "profile_image_uri", "profile_pic_url", "username")
    edges = at(user, "polaris_ordered_timeline_connection.edges") or []
    return {
        **{key: user.get(key) or "" for key in texts},
        **{key: user.get(key) for key in ("is_private", "is_unpublished", "is_verified")},
        "app_id": user["id"],
        "id": user["pk"],
        "polaris_ordered_timeline_connection": {"edges": [{"node": timeline_item(each["node"])} for each in edges]},
    }


def timeline_item(node: dict[str, Any]) -> dict[str, Any]:
    """The expected timeline item: the platform's item without the number of pictures in a carousel."""
    kept = ("__isXIGPolarisMedia", "__typename", "code", "display_uri", "id", "media_type", "pk", "product_type")
    return {
        **{key: node[key] for key in kept},
        "accessibility_caption": node.get("accessibility_caption") or "",
        "caption": {"text": at(node, "caption.text") or ""},
        "seo_canonical_url": node["seo_canonical_url"],
        "user": {key: node["user"][key] for key in ("id", "pk", "username")},
    }


def coauthor(user: dict[str, Any]) -> dict[str, Any]:
    """The expected coauthor."""
    return {
        "full_name": user.get("full_name") or "",
        "id": first(user, "pk", "id"),
        **{key: user[key] for key in ("is_verified", "profile_pic_url", "username")},
    }


def likes(media: dict[str, Any], count: int | None) -> dict[str, Any]:
    """The number of likes; null if it is hidden, which a negative number also means."""
    hidden = media.get("like_and_view_counts_disabled") or (count or 0) < 0
    return {"count": None if hidden else count}


def captions(text: str | None) -> dict[str, Any]:
    """The caption, if there is one."""
    return {"edges": [] if text is None else [{"node": {"text": text}}]}


def comments(count: int | None, edges: list[Any] | None) -> dict[str, Any]:
    """The expected comments."""
    nodes = [
        {
            **{key: node[key] for key in ("created_at", "id", "text")},
            "edge_liked_by": {"count": at(node, "edge_liked_by.count")},
            "owner": {key: node["owner"][key] for key in ("id", "is_verified", "profile_pic_url", "username")},
        }
        for node in (each["node"] for each in edges or [])
    ]
    return {"count": count, "edges": [{"node": node} for node in nodes]}


def tagged(users: Any) -> dict[str, Any]:
    """The tagged users with their positions in the picture."""
    kept = ("full_name", "id", "is_verified", "profile_pic_url", "username")
    return {"edges": [{"node": {"user": {key: user[key] for key in kept}, "x": x, "y": y}} for user, x, y in users]}


def location(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """The five keys of the record's location."""
    return value and {key: value.get(key) for key in ("address_json", "has_public_page", "id", "name", "slug")}


def music(clip: dict[str, Any] | None) -> dict[str, Any] | None:
    """The music of a reel: its own sound or a licensed track; None without either."""
    if sound := at(clip, "original_sound_info"):
        return {
            "artist_name": at(sound, "ig_artist.username"),
            "audio_id": sound["audio_asset_id"],
            "should_mute_audio": sound["should_mute_audio"],
            "should_mute_audio_reason": at(sound, "consumption_info.should_mute_audio_reason"),
            "song_name": sound["original_audio_title"],
            "uses_original_audio": True,
        }
    if track := at(clip, "music_info"):
        return {
            "artist_name": at(track, "music_asset_info.display_artist"),
            "audio_id": at(track, "music_asset_info.audio_cluster_id"),
            "should_mute_audio": at(track, "music_consumption_info.should_mute_audio"),
            "should_mute_audio_reason": at(track, "music_consumption_info.should_mute_audio_reason"),
            "song_name": at(track, "music_asset_info.title"),
            "uses_original_audio": False,
        }
    return None


def stream(media: dict[str, Any]) -> str | None:
    """The URL of the video version of type 101, else of the first version, else None."""
    urls: dict[int, str] = {each["type"]: each["url"] for each in reversed(media.get("video_versions") or [])}
    return urls.get(101) or next(reversed(urls.values()), None)


def duration(media: dict[str, Any]) -> float | None:
    """The duration in seconds from the DASH manifest, else from the argument ``efg`` of the video's URL, else None."""
    found = re.search(
        r'mediaPresentationDuration="PT(?:(\d+)H)?(?:(\d+)M)?([\d.]+)S', media.get("video_dash_manifest") or ""
    )
    if found:
        return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60 + float(found[3])
    encoded = parse_qs(urlsplit(stream(media) or "").query).get("efg", [""])[0]
    seconds: float | None = json.loads(base64.b64decode(encoded + "==") or b"{}").get("duration_s")
    return seconds
