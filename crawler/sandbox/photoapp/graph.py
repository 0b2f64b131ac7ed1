"""The simulated photo app's older payloads: the query used before 2026-06, and the data of the embed page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.photoapp.media import video_url
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Account, Comment, Post, hash_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {PHOTO: "GraphImage", VIDEO: "GraphVideo", CAROUSEL: "GraphSidecar"}
SHOWN_WIDTH = 1080


def shown_size(post: Post) -> tuple[int, int]:
    """Return the height and width at which the picture is shown, unlike the size of the uploaded picture."""
    return round(post.height * SHOWN_WIDTH / post.width), SHOWN_WIDTH


def node(post: Post, related: Sequence[Post]) -> dict[str, Any]:
    """Build ``xdt_shortcode_media``, the post in the older query's result."""
    kind = f"XDT{_TYPES[post.kind]}"
    height, width = shown_size(post)
    comments = [{"node": _comment(each)} for each in post.comments]
    more = {"has_next_page": post.comment_count > len(comments), "end_cursor": None}
    return {
        "__typename": kind,
        "__isXDTGraphMediaInterface": kind,
        "id": post.pk,
        "shortcode": post.code,
        "thumbnail_src": post.image("c0.0.640.640a_e35_s640x640"),
        "dimensions": {"height": height, "width": width},
        **dict.fromkeys(_NULL_KEYS),
        **dict.fromkeys(_FALSE_KEYS, False),
        "sharing_friction_info": {"should_have_sharing_friction": False, "bloks_app_url": None},
        "media_preview": hash_of(post.code),
        "display_url": post.image("e35_s1080x1080"),
        "display_resources": [
            {"src": post.image(f"e35_s{side}x{side}"), "config_width": side, "config_height": round(side * 1.25)}
            for side in (640, 750, 1080)
        ],
        "is_video": post.is_video,
        "tracking_token": hash_of(post.pk),
        "edge_media_to_tagged_user": {"edges": [_tag(post, *each) for each in post.tags]},
        "owner": _owner(post.owner),
        "edge_media_to_caption": _caption(post),
        "like_and_view_counts_disabled": post.hidden,
        "edge_media_to_parent_comment": {"count": post.comment_count, "page_info": more, "edges": comments},
        "edge_media_to_hoisted_comment": {"edges": []},
        "edge_media_preview_comment": {"count": post.comment_count, "edges": comments[:2]},
        "comments_disabled": post.closed,
        "taken_at_timestamp": post.taken_at,
        "edge_media_preview_like": {"count": -1 if post.hidden else post.likes, "edges": []},
        "edge_media_to_sponsor_user": {"edges": []},
        "is_paid_partnership": post.paid,
        "location": _place(post),
        "viewer_can_reshare": True,
        "edge_web_media_to_related_media": {"edges": []},
        "coauthor_producers": [_named(each) for each in post.coauthors],
        "pinned_for_users": [],
        "edge_related_profiles": {"edges": [_related(each) for each in related]},
        **(_video(post) if post.is_video else {}),
        **({"edge_sidecar_to_children": {"edges": _children(post)}} if post.kind == CAROUSEL else {}),
    }


def embedded(post: Post) -> dict[str, Any]:
    """Build ``gql_data.shortcode_media`` for the embed page, with some of the older query's keys."""
    height, width = shown_size(post)
    licensed = post.sound is not None and not post.sound.original
    has_duration = post.is_video and post.timing != "nowhere"
    return {
        "__typename": _TYPES[post.kind],
        "id": post.pk,
        "shortcode": post.code,
        "dimensions": {"height": height, "width": width},
        "display_url": post.image("e35_s1080x1080"),
        "is_video": post.is_video,
        "copyright_blocked": licensed,
        "taken_at_timestamp": post.taken_at,
        "edge_media_to_caption": _caption(post),
        "edge_media_to_comment": {"count": post.comment_count},
        "edge_liked_by": {"count": 0 if post.hidden else post.likes},
        "owner": {"id": post.owner.pk, "username": post.owner.username, "is_verified": post.owner.verified},
        **({"video_url": video_url(post)} if post.is_video and not licensed else {}),
        **({"video_duration": post.duration} if has_duration else {}),
    }


_NULL_KEYS = (
    *("gating_info", "fact_check_overall_rating", "fact_check_information", "sensitivity_friction_info"),
    *("media_overlay_info", "accessibility_caption", "upcoming_event", "nft_asset_info"),
)
_FALSE_KEYS = (
    *("can_see_insights_as_brand", "caption_is_edited", "has_ranked_comments", "commenting_disabled_for_viewer"),
    *("is_affiliate", "is_ad", "viewer_has_liked", "viewer_has_saved", "viewer_has_saved_to_collection"),
    "viewer_in_photo_of_you",
)


def _named(account: Account) -> dict[str, Any]:
    return {
        "id": account.pk,
        "is_verified": account.verified,
        "profile_pic_url": account.picture,
        "username": account.username,
    }


def _owner(account: Account) -> dict[str, Any]:
    return {
        **_named(account),
        **dict.fromkeys(("blocked_by_viewer", "followed_by_viewer", "has_blocked_viewer", "is_embeds_disabled"), False),
        **dict.fromkeys(("is_private", "is_unpublished", "requested_by_viewer"), False),
        "restricted_by_viewer": None,
        "has_onboarded_to_text_post_app": True,
        "full_name": account.full_name,
        "pass_tiering_recommendation": True,
        "edge_owner_to_timeline_media": {"count": 2450},
        "edge_followed_by": {"count": 1171},
    }


def _caption(post: Post) -> dict[str, Any]:
    text = {"created_at": str(post.taken_at + 2), "text": post.caption, "id": post.pk[:17]}
    return {"edges": [] if post.caption is None else [{"node": text}]}


def _comment(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.pk,
        "text": comment.text,
        "created_at": comment.at,
        "did_report_as_spam": False,
        "owner": _named(comment.author),
        "viewer_has_liked": False,
        "edge_liked_by": {"count": comment.likes},
        "is_restricted_pending": False,
        "edge_threaded_comments": {
            "count": 0,
            "page_info": {"has_next_page": False, "end_cursor": None},
            "edges": [],
        },
    }


def _tag(post: Post, account: Account, x: float, y: float) -> dict[str, Any]:
    user = _named(account) | {"full_name": account.full_name, "followed_by_viewer": False}
    return {"node": {"user": user, "x": x, "y": y, "id": f"{post.pk}@{account.pk}"}}


def _place(post: Post) -> dict[str, Any] | None:
    if post.place is None:
        return None
    place_id, name, slug = post.place
    return {"id": place_id, "has_public_page": True, "name": name, "slug": slug, "address_json": None}


def _related(post: Post) -> dict[str, Any]:
    owner = post.owner
    listed = {
        "__typename": f"XDT{_TYPES[post.kind]}",
        "id": post.pk,
        "shortcode": post.code,
        "edge_media_preview_like": {"count": post.likes},
        "edge_media_preview_comment": {"count": post.comment_count},
        "thumbnail_src": post.image("e35_s640x640"),
        "owner": {"id": owner.pk, "username": owner.username},
        "gating_info": None,
        "sharing_friction_info": {"should_have_sharing_friction": False, "bloks_app_url": None},
        "media_overlay_info": None,
        "is_video": post.is_video,
        "accessibility_caption": None,
    }
    profile = _named(owner) | {
        "full_name": owner.full_name,
        "is_private": False,
        "edge_followed_by": {"count": 7},
        "edge_owner_to_timeline_media": {"count": 18, "edges": [{"node": listed}]},
    }
    return {"node": profile}


def _children(post: Post) -> list[dict[str, Any]]:
    return [
        {
            "node": {
                "__typename": "XDTGraphImage",
                "id": str(int(post.pk) + n + 1),
                "shortcode": f"{post.code[:-1]}{'abcdefghijk'[n]}",
                "display_url": post.image(f"e35_slide{n}"),
                "is_video": False,
                "dimensions": {"height": 1353, "width": 1080},
            }
        }
        for n in range(post.slides)
    ]


def _video(post: Post) -> dict[str, Any]:
    sound = post.sound
    music = sound and {
        "artist_name": sound.artist,
        "song_name": sound.title,
        "uses_original_audio": sound.original,
        "should_mute_audio": sound.muted,
        "should_mute_audio_reason": "This song is not available" if sound.muted else "",
        "audio_id": sound.id,
    }
    return {
        "dash_info": {"is_dash_eligible": True, "video_dash_manifest": "<MPD/>", "number_of_qualities": 4},
        "has_audio": post.audio,
        "video_url": video_url(post),
        "video_view_count": post.views,
        "video_play_count": post.plays,
        "encoding_status": None,
        "is_published": True,
        "product_type": post.product,
        "title": "",
        "video_duration": post.duration,
        "clips_music_attribution_info": music,
    }
