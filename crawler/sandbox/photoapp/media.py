"""The simulated photo app's current payloads: the post in the logged-out page and the item of the web-info query."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Account, Comment, Post, hash_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {PHOTO: "XIGPolarisImageMedia", VIDEO: "XIGPolarisVideoMedia", CAROUSEL: "XIGPolarisCarouselMedia"}
EDGE_HOST = "instagram.fakx4-1.fna.fbcdn.net"
SIZES = (
    *("e35", "e35_s1080x1080", "e35_s750x750", "e35_s720x720", "e35_s640x640", "e35_s480x480", "e35_s320x320"),
    *("c0.0.1080.1080a_e35_s1080x1080", "c0.0.1080.1080a_e35_s750x750", "c0.0.1080.1080a_e35_s640x640"),
    *("c0.0.1080.1080a_e35_s480x480", "c0.0.1080.1080a_e35_s320x320", "c0.0.1080.1080a_e35_s240x240"),
)
"""The sizes of a picture in payloads: first the uncropped ones, the largest first, then the cropped ones."""


def video_url(post: Post) -> str:
    """Return the URL of the video's file. In some URLs, a label contains the duration in whole seconds."""
    label: dict[str, Any] = {"vencode_tag": "xpv_progressive.CLIPS.C3.720.dash_baseline_1_v1", "asset_id": 1}
    if post.timing in {"manifest", "label"}:
        label["duration_s"] = int(post.duration)
    packed = urlsafe_b64encode(orjson.dumps(label)).decode().rstrip("=")
    return f"https://{EDGE_HOST}/o1/v/t2/f2/m86/{hash_of(post.pk)}.mp4?_nc_cat=1&efg={packed}&oe=6AC41122"


def typename(post: Post) -> str:
    """Return the type name of this kind of post in the newest format."""
    return _TYPES[post.kind]


def wrapper(post: Post, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build ``xig_polaris_media``: the post, its comments, and null as the ruling, which only withheld posts have."""
    outer = "XDTMediaDict" if post.layout == "dict" else typename(post)
    return {
        "__typename": outer,
        "pk": post.pk,
        "code": post.code,
        "if_not_gated_logged_out": media(post, timeline),
        "gating_ruling": None,
        "id": f"{post.pk}_{post.owner.pk}" if post.layout == "dict" else f"POLARIS_{post.pk}",
        "comments_connection": {
            "edges": [{"node": _comment(each), "cursor": hash_of(each.pk)} for each in post.comments],
            "page_info": {"end_cursor": None, "has_next_page": post.comment_count > len(post.comments)},
        },
    }


def media(post: Post, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build ``if_not_gated_logged_out``, the post. A key that this kind of post does not use is absent, not null."""
    kind = typename(post)
    owner = _user(post.owner) | {
        "seo_canonical_url": None,
        "polaris_ordered_timeline_connection": {"edges": [{"node": timeline_item(each)} for each in timeline]},
        "is_private": False,
        "profile_image_uri": post.owner.small_picture,
    }
    return {
        "__typename": kind,
        "user": owner,
        "__isXIGPolarisMedia": kind,
        **_common(post),
        "coauthor_producers": [_user(each) for each in post.coauthors],
        "ai_label_info": None,
        **({"clips_metadata": _clips(post)} if post.is_video else {}),
        "seo_canonical_url": None,
        "id": f"{post.pk}_{post.owner.pk}" if post.layout == "dict" else f"POLARIS_{post.pk}",
        "accessibility_caption": post.alt or None,
        "display_uri": post.image("e35_s640x640"),
        "image_versions2": _images(post),
        **(_video(post) if post.is_video else {}),
        **({"carousel_media": _slides(post)} if post.kind == CAROUSEL else {}),
        "usertags": {"in": [_tag(account, x, y) for account, x, y in post.tags]},
        "related_topic_pills": [{"seo_canonical_url": None, "topic_id": "quiet-light", "topic_name": "quiet light"}],
        "if_is_crawler": None,
    }


def timeline_item(post: Post) -> dict[str, Any]:
    """Build a post as it appears in its owner's timeline."""
    kind = typename(post)
    item = {
        "__typename": kind,
        "pk": post.pk,
        "__isXIGPolarisMedia": kind,
        "accessibility_caption": post.alt or None,
        "caption": None if post.caption is None else {"text": post.caption},
        "code": post.code,
        "seo_canonical_url": None,
        "display_uri": post.image("e35_s640x640"),
        "media_type": post.kind,
        "product_type": post.product,
        "user": {"pk": post.owner.pk, "username": post.owner.username, "id": post.owner.app_id},
        "id": f"POLARIS_{post.pk}",
    }
    return item | ({"carousel_media_count": post.slides} if post.kind == CAROUSEL else {})


def clip(post: Post) -> dict[str, Any]:
    """Build a reel as it appears on its owner's reels page, with its play count."""
    kind = typename(post)
    return {
        "node": {
            "__typename": kind,
            "__isXIGPolarisMedia": kind,
            "id": f"POLARIS_{post.pk}",
            "pk": post.pk,
            "user": {"pk": post.owner.pk, "id": post.owner.app_id},
            "product_type": post.product,
            "like_and_view_counts_disabled": post.hidden,
            "comment_count": post.comment_count,
            "like_count": post.likes,
            "play_count": post.plays,
            "clips_tab_pinned_user_ids": [],
            "code": post.code,
            "seo_canonical_url": None,
            "display_uri": post.image("e35_s640x640"),
        },
        "cursor": hash_of(post.pk),
    }


def item(post: Post) -> dict[str, Any]:
    """Build the post in the format of the web-info query. Many of its keys have values only for signed-in visitors."""
    owner = post.owner
    user = {
        **{key: value for key, value in _user(owner).items() if key != "id"},
        **dict.fromkeys(("friendship_status", "latest_reel_media", "is_ai_user", "aigm_account_label_info")),
        **dict.fromkeys(("live_broadcast_visibility", "live_broadcast_id", "transparency_product")),
        **dict.fromkeys(("transparency_label", "ai_agent_owner_username")),
        "id": owner.pk,
        "__typename": "XDTUserDict",
        "is_private": False,
        "is_embeds_disabled": False,
        "show_account_transparency_details": True,
        "transparency_product_enabled": False,
        "hd_profile_pic_url_info": {"url": owner.picture.replace("150x150", "320x320")},
    }
    return {
        **dict.fromkeys(_NULL_KEYS),
        **dict.fromkeys(_FALSE_KEYS, False),
        **_common(post),
        "id": f"{post.pk}_{owner.pk}",
        "user": user,
        "coauthor_producers": [_user(each) | {"id": each.pk} for each in post.coauthors],
        "image_versions2": {"candidates": _images(post)["candidates"]},
        "carousel_media": _slides(post) if post.kind == CAROUSEL else None,
        "carousel_media_count": post.slides or None,
        "is_paid_partnership": post.paid,
        "comments_disabled": True if post.closed else None,
        "usertags": {"in": [_tag(account, x, y, pk=True) for account, x, y in post.tags]} if post.tags else None,
        "clips_metadata": _clips(post) if post.is_video else None,
        "display_uri": post.image("c0.0.1080.1080a_e35_s1080x1080"),
        "accessibility_caption": None,
        "preview_comments": [],
        "media_attributions_data": [],
        "invited_coauthor_producers": [],
        "view_count": None,
        "hidden_likes_string_variant": -1,
        "organic_tracking_token": hash_of(post.code),
        "can_viewer_reshare": True,
        "sharing_friction_info": {"should_have_sharing_friction": False, "bloks_app_url": None},
        **(_video(post) if post.is_video else dict.fromkeys(("video_versions", "has_audio"))),
    }


_NULL_KEYS = (
    *("group", "link", "can_reshare", "follow_hashtag_info", "ad_id", "inventory_source", "facepile_top_likers"),
    *("sponsor_tags", "media_overlay_info", "floating_context_items", "clips_attribution_info", "ai_label_info"),
    *("ai_interactive_embodiment_attachment_style_info", "longform_clip_metadata", "open_carousel_submission_state"),
    *("carousel_parent_id", "preview", "previous_submitter", "story_cta", "logging_info_token", "top_likers"),
    *("fb_like_count", "crosspost_metadata", "social_context", "media_repost_count", "saved_collection_ids"),
    *("has_viewer_saved", "boosted_status", "boost_unavailable_identifier", "boost_unavailable_reason"),
    *("is_fb_only", "is_internal_only", "affiliate_info", "wearable_attribution_info", "feed_demotion_control"),
    *("feed_recs_demotion_control", "main_feed_carousel_starting_media_id", "is_shared_from_basel"),
    *("fb_comment_count", "all_previous_submitters", "longform_title", "is_dash_eligible", "number_of_qualities"),
    "video_dash_manifest",
)
_FALSE_KEYS = (
    *("has_liked", "enable_media_notes_production", "can_see_insights_as_brand", "ig_media_sharing_disabled"),
    *("is_in_profile_grid", "profile_grid_control_enabled"),
)


def _common(post: Post) -> dict[str, Any]:
    caption = {"pk": post.pk[:17], "has_translation": None, "text": post.caption, "created_at": post.taken_at - 2}
    place = None if post.place is None else {"pk": post.place[0], "name": post.place[1], "lat": 1.5, "lng": -71.25}
    return {
        "pk": post.pk,
        "code": post.code,
        "taken_at": post.taken_at,
        "media_type": post.kind,
        "product_type": post.product,
        "location": place,
        "like_count": post.likes,
        "like_and_view_counts_disabled": post.hidden,
        "comment_count": post.comment_count,
        "commenting_disabled_for_viewer": None,
        "caption": None if post.caption is None else caption,
        "caption_is_edited": False,
        "original_height": post.height,
        "original_width": post.width,
    }


def _user(account: Account) -> dict[str, Any]:
    return {
        "pk": account.pk,
        "username": account.username,
        "profile_pic_url": account.picture,
        "id": account.app_id,
        "is_unpublished": False,
        "full_name": account.full_name,
        "is_verified": account.verified,
        "__typename": "User",
    }


def _tag(account: Account, x: float, y: float, *, pk: bool = False) -> dict[str, Any]:
    user = {
        "id": account.pk,
        "full_name": account.full_name,
        "is_verified": account.verified,
        "profile_pic_url": account.picture,
        "username": account.username,
    }
    return {"position": [x, y], "user": user | ({"pk": account.pk, "aigm_account_label_info": None} if pk else {})}


def _comment(comment: Comment) -> dict[str, Any]:
    author = comment.author
    return {
        "__typename": "XIGComment",
        "pk": comment.pk,
        "text": comment.text,
        "created_at": comment.at,
        "comment_like_count": comment.likes,
        "child_comment_count": 0,
        "user": {
            "pk": author.pk,
            "id": author.app_id,
            "username": author.username,
            "is_verified": author.verified,
            "profile_pic_url": author.picture,
        },
    }


def _images(post: Post) -> dict[str, Any]:
    sized = {"height": post.height, "width": post.width} if post.is_video else {}
    first = {"first_frame": {"url": post.image("e35_first", EDGE_HOST)}} if post.is_video else None
    candidates = [{"url": post.image(size, EDGE_HOST), **sized} for size in SIZES]
    return {"candidates": candidates, "additional_candidates": first}


def _slides(post: Post) -> list[dict[str, Any]]:
    """Build the slides of a carousel. Each slide has its own id, and contains placeholders instead of counts."""
    return [
        {
            "__typename": _TYPES[VIDEO if n % 3 == 2 else PHOTO],
            "accessibility_caption": post.alt or None,
            "code": f"{post.code[:-1]}{'abcdefghijk'[n]}",
            "display_uri": post.image(f"e35_slide{n}"),
            "original_height": post.height + 10,
            "original_width": post.width + 10,
            "image_versions2": {
                "candidates": [{"url": post.image(f"e35_slide{n}_{size}", EDGE_HOST)} for size in SIZES[:4]],
                "additional_candidates": None,
            },
            "id": f"POLARIS_{int(post.pk) + n + 1}",
            "pk": str(int(post.pk) + n + 1),
            "media_type": VIDEO if n % 3 == 2 else PHOTO,
            "usertags": {"in": []},
            "taken_at": post.taken_at,
            "like_count": 0,
            "user": {"username": post.owner.username, "id": post.owner.app_id},
            **({"has_audio": True, "video_versions": [{"type": 101, "url": video_url(post)}]} if n % 3 == 2 else {}),
        }
        for n in range(post.slides)
    ]


def _video(post: Post) -> dict[str, Any]:
    exact = post.timing == "manifest"
    hours, rest = divmod(post.duration, 3600)
    minutes, seconds = divmod(rest, 60)
    manifest = (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        f'mediaPresentationDuration="PT{int(hours)}H{int(minutes)}M{seconds:.3f}S"><Period id="0"/></MPD>'
    )
    module = "PolarisLoggedOutDesktopWWWMediaItem_media_videoPlayerModule"
    data = "PolarisLoggedOutMobileMediaItem_media_videoData"
    return {
        "has_audio": post.audio,
        "is_dash_eligible": 1,
        "number_of_qualities": 8,
        **({"video_dash_manifest": manifest} if exact else {}),
        "video_versions": [
            {"type": kind, "url": video_url(post) + other, "width": None, "height": None}
            for kind, other in ((103, "&v=103"), (102, "&v=102"), (101, ""))
        ],
        f"__module_operation_{module}": {"__dr": "PolarisLoggedOutDesktopWWWPostMediaVideoPlayer_media$normalization"},
        f"__module_component_{module}": {"__dr": "PolarisLoggedOutDesktopWWWPostMediaVideoPlayer.react"},
        f"__module_operation_{data}": {"__dr": "PolarisLoggedOutMobilePostMediaVideoPlayer_media$normalization"},
        f"__module_component_{data}": {"__dr": "PolarisLoggedOutMobilePostMediaVideoPlayer.react"},
    }


def _clips(post: Post) -> dict[str, Any] | None:
    sound = post.sound
    if sound is None:
        return None
    reason = "This song is not available" if sound.muted else ""
    consumption = {"should_mute_audio_reason": reason, "is_trending_in_clips": False}
    shell = {
        "audio_type": "original_sounds" if sound.original else "licensed_music",
        "achievements_info": {"show_achievements": False},
        "is_shared_to_fb": False,
        "originality_info": None,
    }
    if sound.original:
        own = {
            "audio_asset_id": sound.id,
            "original_audio_title": sound.title,
            "ig_artist": {"username": sound.artist, "id": post.owner.pk},
            "is_explicit": False,
            "should_mute_audio": sound.muted,
            "consumption_info": consumption,
            "audio_filter_infos": None,
        }
        return shell | {"music_info": None, "original_sound_info": own}
    asset = {
        "display_artist": sound.artist,
        "title": sound.title,
        "audio_cluster_id": sound.id,
        "is_explicit": False,
    }
    licensed = {
        "music_consumption_info": consumption | {"should_mute_audio": sound.muted, "audio_filter_infos": []},
        "music_asset_info": asset,
    }
    return shell | {"music_info": licensed, "original_sound_info": None}
