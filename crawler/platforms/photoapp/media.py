"""Photo app: converts a post from the logged-out page, or an item from the web-info query, to the contract's post.

Both have the same keys. The page adds a wrapper with the comments. The item adds keys that are for signed-in visitors.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from typing import Any
from urllib.parse import parse_qs, urlsplit

from crawler.errors import ExtractionFailed
from crawler.platforms.photoapp.link import code_of_id
from crawler.platforms.photoapp.parts import (
    CAROUSEL,
    IMAGE,
    KINDS,
    VIDEO,
    captions,
    coauthors,
    comment,
    comments,
    kind_of_name,
    location,
    manifest_duration,
    nonzero_count,
    owner,
    post_id,
    public_count,
    tag,
    url,
)
from crawler.reading.json import decode, dicts, dig
from crawler.reading.values import count, flag, number, text

PROGRESSIVE = 101
"""The value of ``type`` for a video version that is one playable file. Other versions usually have the same file."""

# The contract's fields that are never empty, with the keys under which this form of the payload has them.
MANDATORY = {
    "id": "pk",
    "shortcode": "code",
    "taken_at_timestamp": "taken_at",
    "is_video": "media_type",
    "display_url": "image_versions2",
    "owner.id": "user.pk",
    "owner.username": "user.username",
}

PARTS = (
    ("caption", "text"),
    ("coauthor_producers", "*"),
    ("comment_count",),
    ("like_and_view_counts_disabled",),
    ("like_count",),
    ("usertags", "in", "*", "user"),
)
"""Paths that every post in this form has, even if the values are null."""
PAGE_PARTS = (("user", "polaris_ordered_timeline_connection", "edges", "*", "node", "pk"),)
"""Paths that every post on the logged-out page has in addition."""
AROUND = (("comments_connection", "edges", "*", "node", "text"),)
"""Paths that the object around every post on the logged-out page has."""


def media_post(media: dict[str, Any], wrapper: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the contract's post. ``wrapper`` is the object around the media on the page, with ids and comments."""
    outer = wrapper or {}
    kind = media_type(media)
    is_video = None if kind is None else kind == VIDEO
    hidden = media.get("like_and_view_counts_disabled")
    pk = post_id(media.get("pk"), outer.get("pk"), media.get("id"), outer.get("id"))
    return {
        "__typename": KINDS.get(kind or 0, ""),
        "accessibility_caption": text(media.get("accessibility_caption")),
        "clips_music_attribution_info": music(media.get("clips_metadata")) if is_video else None,
        "coauthor_producers": coauthors(media.get("coauthor_producers")),
        # "commenting_disabled_for_viewer" is a statement about the visitor, not about the post.
        "comments_disabled": flag(media.get("comments_disabled")),
        "dimensions": {side: _length(media, side) for side in ("height", "width")},
        "display_url": _picture(media),
        "edge_media_preview_like": {"count": public_count(media.get("like_count"), hidden=hidden)},
        "edge_media_to_caption": captions(dig(media, "caption", "text")),
        "edge_media_to_comment": {
            "count": count(media.get("comment_count")),
            "edges": comments(dig(outer, "comments_connection", "edges")) or app_comments(media),
        },
        "edge_media_to_tagged_user": {
            "edges": [
                tag(each["user"], dig(each, "position", 0), dig(each, "position", 1))
                for each in dicts(dig(media, "usertags", "in"))
                if each.get("user")
            ]
        },
        "has_audio": flag(media.get("has_audio")),
        "id": pk,
        "is_ad": flag(media.get("is_ad")),
        "is_affiliate": flag(media.get("is_affiliate")),
        "is_paid_partnership": flag(media.get("is_paid_partnership")),
        "is_video": is_video,
        "like_and_view_counts_disabled": flag(hidden),
        "location": location(media.get("location")),
        "owner": owner(media.get("user")),
        "product_type": text(media.get("product_type")),
        "shortcode": text(media.get("code")) or text(outer.get("code")) or code_of_id(pk),
        "taken_at_timestamp": count(media.get("taken_at")) or None,
        "thumbnail_src": url(media.get("display_uri")) or _smallest_picture(media),
        "video_duration": (exact_duration(media) or _file_duration(media)) if is_video else None,
        "video_play_count": nonzero_count(media.get("play_count"), hidden=hidden) if is_video else None,
        "video_url": _video_url(media) if is_video else None,
        "video_view_count": nonzero_count(media.get("view_count"), hidden=hidden) if is_video else None,
    }


def media_type(media: dict[str, Any]) -> int | None:
    """Return the media type: 1 for an image, 2 for a video, 8 for a carousel.

    If the number is missing, it is derived from the type name or other keys.
    """
    kind = count(media.get("media_type"))
    if kind in KINDS:
        return kind
    return (
        kind_of_name(media.get("__typename"))
        or (CAROUSEL if dicts(media.get("carousel_media")) else None)
        or (VIDEO if dicts(media.get("video_versions")) else None)
        or (IMAGE if dicts(dig(media, "image_versions2", "candidates")) else None)
    )


def _picture(media: dict[str, Any]) -> str:
    """Return the URL of the largest picture, or "".

    Candidates are sorted, uncropped pictures first. If a carousel has no picture, its first slide's is used.
    """
    for each in (media, dig(media, "carousel_media", 0)):
        candidates = (url(one.get("url")) for one in dicts(dig(each, "image_versions2", "candidates")))
        found = next(filter(None, candidates), "") or url(dig(each, "display_uri"))
        if found:
            return found
    return ""


def _smallest_picture(media: dict[str, Any]) -> str:
    """Return the URL of the smallest picture in a post in the format of the app's API, "" for other formats."""
    if "__typename" in media:
        return ""  # not an item of the app: here the list also has cropped pictures
    sized = [each for each in dicts(dig(media, "image_versions2", "candidates")) if count(each.get("width"))]
    return url(min(sized, key=lambda each: each["width"]).get("url")) if sized else ""


def _length(media: dict[str, Any], side: str) -> int | None:
    """Return the post's height or width.

    In the format of the app's API, a carousel has no dimensions of its own: return those of its first slide.
    """
    both = (media, dig(media, "carousel_media", 0))
    return next(filter(None, (count(dig(each, f"original_{side}")) for each in both)), None)


def app_comments(media: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the comments of a post in the format of the app's API, which lists them without ``edges``."""
    return [comment(each) for each in dicts(media.get("preview_comments")) or dicts(media.get("comments"))]


def _video_url(media: dict[str, Any]) -> str | None:
    versions = [each for each in dicts(media.get("video_versions")) if url(each.get("url"))]
    versions.sort(key=lambda each: each.get("type") != PROGRESSIVE)
    return url(versions[0]["url"]) if versions else None


def exact_duration(media: dict[str, Any]) -> float | None:
    """Return the exact duration in seconds from the DASH manifest, else from ``video_duration``, else None."""
    seconds = number(media.get("video_duration"))
    return manifest_duration(media.get("video_dash_manifest")) or (seconds if seconds and seconds > 0 else None)


def _file_duration(media: dict[str, Any]) -> float | None:
    """Return the duration in whole seconds from a label in the video's URL, or None."""
    for version in dicts(media.get("video_versions")):
        label = _label(text(version.get("url")))
        seconds = number(dig(label, "duration_s"))
        if seconds and seconds > 0:
            return seconds
    return None


def _label(address: str) -> Any:
    """Decode the label in a media URL, which has the file's properties. Return None if there is no readable label."""
    try:
        (packed,) = parse_qs(urlsplit(address).query).get("efg", [""])[:1]
        return decode(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode(), what="efg") if packed else None
    except (NotBase64, UnicodeError, ValueError, ExtractionFailed):
        return None


def music(clips: object) -> dict[str, Any] | None:
    """Build the contract's object for the sound of a reel: original audio or licensed music. None without a sound."""
    original, licensed = dig(clips, "original_sound_info"), dig(clips, "music_info")
    if isinstance(original, dict) and original:
        return {
            "artist_name": text(dig(original, "ig_artist", "username")),
            "song_name": text(original.get("original_audio_title")),
            "uses_original_audio": True,
            "should_mute_audio": flag(original.get("should_mute_audio")),
            "should_mute_audio_reason": text(dig(original, "consumption_info", "should_mute_audio_reason")),
            "audio_id": text(original.get("audio_asset_id")),
        }
    if isinstance(licensed, dict) and licensed:
        asset, consumption = licensed.get("music_asset_info"), licensed.get("music_consumption_info")
        return {
            "artist_name": text(dig(asset, "display_artist")),
            "song_name": text(dig(asset, "title")),
            "uses_original_audio": False,
            "should_mute_audio": flag(dig(consumption, "should_mute_audio")),
            "should_mute_audio_reason": text(dig(consumption, "should_mute_audio_reason")),
            "audio_id": text(dig(asset, "audio_cluster_id")),
        }
    return None
