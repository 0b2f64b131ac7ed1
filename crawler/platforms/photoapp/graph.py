"""Photo app: converts a post from the older GraphQL query or from the embed page to the contract's post."""

from __future__ import annotations

from typing import Any

from crawler.platforms.photoapp.link import code_of_id
from crawler.platforms.photoapp.parts import (
    CAROUSEL,
    IMAGE,
    KINDS,
    VIDEO,
    captions,
    coauthors,
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
from crawler.reading.json import dicts, dig
from crawler.reading.values import count, flag, number, text

# The contract's fields that are never empty, with the keys under which this form of the payload has them.
MANDATORY = {
    "id": "id",
    "shortcode": "shortcode",
    "taken_at_timestamp": "taken_at_timestamp",
    "is_video": "is_video",
    "display_url": "display_url",
    "owner.id": "owner.id",
    "owner.username": "owner.username",
}

EMBEDDED_PARTS = (("edge_media_to_caption", "edges", "*", "node", "text"),)
"""Paths that every post on the embed page has, even if the values are null."""
PARTS = (
    *EMBEDDED_PARTS,
    ("edge_media_to_tagged_user", "edges", "*", "node", "user"),
    ("edge_media_preview_like", "count"),
)
"""Paths that every post in the older query's response has."""

COMMENT_LISTS = ("edge_media_to_parent_comment", "edge_media_to_comment", "edge_media_preview_comment")
"""Keys of the lists of comments, the most complete list first."""
LIKE_LISTS = ("edge_media_preview_like", "edge_liked_by")


def graph_post(found: dict[str, Any]) -> dict[str, Any]:
    """Build the contract's post. The owner's timeline and secondary id stay empty, because this payload lacks them."""
    kind = _kind(found)
    is_video = None if kind is None else kind == VIDEO
    hidden = found.get("like_and_view_counts_disabled")
    pk = post_id(found.get("id"), found.get("pk"))
    likes = (dig(found, name, "count") for name in LIKE_LISTS)
    return {
        "__typename": KINDS.get(kind or 0, ""),
        "accessibility_caption": text(found.get("accessibility_caption")),
        "clips_music_attribution_info": _music(found.get("clips_music_attribution_info")) if is_video else None,
        "coauthor_producers": coauthors(found.get("coauthor_producers")),
        "comments_disabled": flag(found.get("comments_disabled")),
        "dimensions": {
            "height": count(dig(found, "dimensions", "height")) or None,
            "width": count(dig(found, "dimensions", "width")) or None,
        },
        "display_url": _picture(found),
        "edge_media_preview_like": {
            "count": public_count(next((each for each in likes if each is not None), None), hidden=hidden)
        },
        "edge_media_to_caption": captions(dig(found, "edge_media_to_caption", "edges", 0, "node", "text")),
        "edge_media_to_comment": _comments(found),
        "edge_media_to_tagged_user": {
            "edges": [
                tag(node["user"], node.get("x"), node.get("y"))
                for node in dicts(
                    [edge.get("node") for edge in dicts(dig(found, "edge_media_to_tagged_user", "edges"))]
                )
                if node.get("user")
            ]
        },
        "has_audio": flag(found.get("has_audio")),
        "id": pk,
        "is_ad": flag(found.get("is_ad")),
        "is_affiliate": flag(found.get("is_affiliate")),
        "is_paid_partnership": flag(found.get("is_paid_partnership")),
        "is_video": is_video,
        "like_and_view_counts_disabled": flag(hidden),
        "location": location(found.get("location")),
        "owner": owner(found.get("owner")),
        "product_type": text(found.get("product_type")),
        "shortcode": text(found.get("shortcode")) or text(found.get("code")) or code_of_id(pk),
        "taken_at_timestamp": count(found.get("taken_at_timestamp")) or None,
        "thumbnail_src": url(found.get("thumbnail_src")),
        "video_duration": duration(found) if is_video else None,
        "video_play_count": nonzero_count(found.get("video_play_count"), hidden=hidden) if is_video else None,
        "video_url": (url(found.get("video_url")) or None) if is_video else None,
        "video_view_count": nonzero_count(found.get("video_view_count"), hidden=hidden) if is_video else None,
    }


def duration(found: dict[str, Any]) -> float | None:
    """Return a video's duration in seconds. If the post has none, or 0, it is read from the streams' manifest."""
    seconds = number(found.get("video_duration"))
    return seconds if seconds and seconds > 0 else manifest_duration(dig(found, "dash_info", "video_dash_manifest"))


def _kind(found: dict[str, Any]) -> int | None:
    """Return the media type of a post. A carousel is not a video, even if it begins with one."""
    if kind_of_name(found.get("__typename")) == CAROUSEL or isinstance(found.get("edge_sidecar_to_children"), dict):
        return CAROUSEL
    is_video = flag(found.get("is_video"))
    return kind_of_name(found.get("__typename")) if is_video is None else VIDEO if is_video else IMAGE


def _picture(found: dict[str, Any]) -> str:
    largest = dig(found, "display_resources", -1, "src")  # the list is sorted by size: the largest is last
    return url(found.get("display_url")) or url(largest)


def _comments(found: dict[str, Any]) -> dict[str, Any]:
    present = [found[name] for name in COMMENT_LISTS if isinstance(found.get(name), dict)]
    counts = [count(each.get("count")) for each in present] + [count(found.get("comment_count"))]
    return {
        "count": next((each for each in counts if each is not None), None),
        "edges": next((each for each in (comments(one.get("edges")) for one in present) if each), []),
    }


def _music(info: object) -> dict[str, Any] | None:
    if not isinstance(info, dict) or not info:
        return None
    return {
        "artist_name": text(info.get("artist_name")),
        "song_name": text(info.get("song_name")),
        "uses_original_audio": flag(info.get("uses_original_audio")),
        "should_mute_audio": flag(info.get("should_mute_audio")),
        "should_mute_audio_reason": text(info.get("should_mute_audio_reason")),
        "audio_id": text(info.get("audio_id")),
    }
