"""The records that must be extracted from the simulated photo app, depending on the format of the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.photoapp.graph import shown_size
from crawler.sandbox.photoapp.media import EDGE_HOST, typename, video_url
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Account, Post

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {PHOTO: "XDTGraphImage", VIDEO: "XDTGraphVideo", CAROUSEL: "XDTGraphSidecar"}


def record(post: Post, form: str, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build a post's record for a payload format: ``page`` (the logged-out page), ``item``, ``graph`` or ``embed``."""
    current, older = form in {"page", "item"}, form == "graph"
    height, width = (post.height, post.width) if current else shown_size(post)
    licensed = post.sound is not None and not post.sound.original
    return {
        "__typename": _TYPES[post.kind],
        "accessibility_caption": post.alt if form == "page" else "",
        "clips_music_attribution_info": None if form == "embed" else _music(post),
        "coauthor_producers": [] if form == "embed" else [_coauthor(each, named=current) for each in post.coauthors],
        "comments_disabled": post.closed if older else True if form == "item" and post.closed else None,
        "dimensions": {"height": height, "width": width},
        "display_url": post.image("e35", EDGE_HOST) if current else post.image("e35_s1080x1080"),
        "edge_media_preview_like": {"count": None if post.hidden else post.likes or (None if form == "embed" else 0)},
        "edge_media_to_caption": {"edges": [] if post.caption is None else [{"node": {"text": post.caption}}]},
        "edge_media_to_comment": {
            "count": post.comment_count,
            "edges": _comments(post) if form in {"page", "graph"} else [],
        },
        "edge_media_to_tagged_user": {"edges": [] if form == "embed" else _tags(post)},
        "has_audio": post.audio if post.is_video and form != "embed" else None,
        "id": post.pk,
        "is_ad": False if older else None,
        "is_affiliate": False if older else None,
        "is_paid_partnership": post.paid if form in {"item", "graph"} else None,
        "is_video": post.is_video,
        "like_and_view_counts_disabled": None if form == "embed" else post.hidden,
        "location": None if form == "embed" else _place(post, whole=older),
        "owner": _owner(post.owner, form, timeline),
        "product_type": post.product if current or (older and post.is_video) else "",
        "shortcode": post.code,
        "taken_at_timestamp": post.taken_at,
        "thumbnail_src": {
            "page": post.image("e35_s640x640"),
            "item": post.image("c0.0.1080.1080a_e35_s1080x1080"),
            "graph": post.image("c0.0.640.640a_e35_s640x640"),
            "embed": "",
        }[form],
        "video_duration": _duration(post, form),
        "video_play_count": post.plays if older and post.is_video and not post.hidden else None,
        "video_url": video_url(post) if post.is_video and not (form == "embed" and licensed) else None,
        "video_view_count": (post.views or None) if older and post.is_video and not post.hidden else None,
    }


def _duration(post: Post, form: str) -> float | None:
    if not post.is_video or (post.timing == "nowhere" and form != "graph"):
        return None
    if form in {"graph", "embed"} or post.timing == "manifest":
        return post.duration
    return float(int(post.duration)) if post.timing == "label" else None


def _owner(owner: Account, form: str, timeline: Sequence[Post]) -> dict[str, Any]:
    known = form != "embed"
    return {
        "__typename": {"page": "User", "item": "XDTUserDict"}.get(form, ""),
        "full_name": owner.full_name if known else "",
        "id": owner.pk,
        "app_id": owner.app_id if form == "page" else "",
        "is_private": False if known else None,
        "is_unpublished": False if known else None,
        "is_verified": owner.verified,
        "pk": owner.pk,
        "profile_image_uri": owner.small_picture if form == "page" else "",
        "profile_pic_url": owner.picture if known else "",
        "username": owner.username,
        "polaris_ordered_timeline_connection": {
            "edges": [{"node": _listed(each)} for each in timeline] if form == "page" else []
        },
    }


def _listed(post: Post) -> dict[str, Any]:
    return {
        "__isXIGPolarisMedia": typename(post),
        "__typename": typename(post),
        "accessibility_caption": post.alt,
        "caption": {"text": post.caption or ""},
        "code": post.code,
        "display_uri": post.image("e35_s640x640"),
        "id": f"POLARIS_{post.pk}",
        "media_type": post.kind,
        "pk": post.pk,
        "product_type": post.product,
        "seo_canonical_url": None,
        "user": {"id": post.owner.app_id, "pk": post.owner.pk, "username": post.owner.username},
    }


def _coauthor(account: Account, *, named: bool) -> dict[str, Any]:
    return {
        "id": account.pk,
        "username": account.username,
        "full_name": account.full_name if named else "",
        "is_verified": account.verified,
        "profile_pic_url": account.picture,
    }


def _tags(post: Post) -> list[dict[str, Any]]:
    return [
        {
            "node": {
                "user": {
                    "full_name": account.full_name,
                    "id": account.pk,
                    "is_verified": account.verified,
                    "profile_pic_url": account.picture,
                    "username": account.username,
                },
                "x": x,
                "y": y,
            }
        }
        for account, x, y in post.tags
    ]


def _comments(post: Post) -> list[dict[str, Any]]:
    return [
        {
            "node": {
                "id": each.pk,
                "text": each.text,
                "created_at": each.at,
                "owner": {
                    "id": each.author.pk,
                    "username": each.author.username,
                    "is_verified": each.author.verified,
                    "profile_pic_url": each.author.picture,
                },
                "edge_liked_by": {"count": each.likes},
            }
        }
        for each in post.comments
    ]


def _music(post: Post) -> dict[str, Any] | None:
    sound = post.sound
    if sound is None:
        return None
    return {
        "artist_name": sound.artist,
        "song_name": sound.title,
        "uses_original_audio": sound.original,
        "should_mute_audio": sound.muted,
        "should_mute_audio_reason": "This song is not available" if sound.muted else "",
        "audio_id": sound.id,
    }


def _place(post: Post, *, whole: bool) -> dict[str, Any] | None:
    if post.place is None:
        return None
    place_id, name, slug = post.place
    return {
        "id": place_id,
        "has_public_page": True if whole else None,
        "name": name,
        "slug": slug if whole else "",
        "address_json": None,
    }
