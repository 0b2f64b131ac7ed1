"""The records that must be extracted from the simulated short-video site."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from crawler.sandbox.shortvideo.web import CDN, FIGURES, anchors, avatar, show_url, sound_cover, sound_url, urls

if TYPE_CHECKING:
    from crawler.sandbox.shortvideo.world import Person, Post, Sound

PUBLIC = "https://www.tiktok.com"
"""The origin of URLs in records: that of the real platform, even for pages of the sandbox."""


def picture(addresses: list[str], width: int | None = None, height: int | None = None) -> dict[str, Any]:
    """Build the expected picture object."""
    first = addresses[0] if addresses else ""
    return {"height": height, "uri": first, "url_list": addresses, "url_prefix": None, "width": width}


NOTHING = picture([])


def moment(seconds: int) -> str:
    """Format a time as expected in the record."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def record(post: Post) -> dict[str, Any]:
    """Build the expected record of a post."""
    slides = [picture(urls(key), width, height) for key, width, height in post.pictures]
    key, width, height = post.pictures[-1]
    cover = picture(urls(f"{key}-cover"), width, height) if post.covered else slides[0]
    figures = dict(zip(FIGURES, post.figures, strict=False))
    own_cover = picture([f"{CDN}/cover/{post.id}.jpeg"]) if post.covered else cover
    return {
        "anchors": anchors() if post.anchored else None,
        "author": _author_record(post.person),
        "author_user_id": post.person.id,
        "aweme_id": post.id,
        "aweme_type": 150,
        "commerce_info": {
            "adv_promotable": None,
            "auction_ad_invited": None,
            "branded_content_type": None,
            "is_diversion_ad": None,
            "organic_log_extra": "",
            "with_comment_filter_words": None,
        },
        "create_time": post.created,
        "create_time_utc": moment(post.created),
        "desc": post.caption,
        "desc_language": post.language or None,
        "image_post_info": {
            "image_post_cover": {"display_image": cover, "owner_watermark_image": NOTHING},
            "images": [{"display_image": slide, "owner_watermark_image": NOTHING} for slide in slides],
        },
        "is_ad": post.ad,
        "is_eligible_for_commission": None,
        "is_nff_or_nr": None,
        "is_paid_partnership": post.paid,
        "is_top": None,
        "item_comment_settings": post.comments,
        "media_id": None,
        "music": _music_record(post.sound),
        "region": "",
        "shop_product_url": None,
        "statistics": {
            "aweme_id": post.id,
            "collect_count": figures["collect"],
            "comment_count": figures["comment"],
            "digg_count": figures["digg"],
            "download_count": None,
            "forward_count": None,
            "lose_comment_count": None,
            "lose_count": None,
            "play_count": figures["play"],
            "repost_count": figures["repost"],
            "share_count": figures["share"],
            "chatapp_share_count": None,
        },
        "url": f"{PUBLIC}/@{post.person.handle}/photo/{post.id}",
        "video": {
            "cover": own_cover,
            "dynamic_cover": NOTHING,
            "origin_cover": picture([f"{CDN}/origin/{post.id}.jpeg"]) if post.covered else NOTHING,
            "download_addr": NOTHING,
            "play_addr": picture([show_url(post)]) if post.rendered else NOTHING,
            "data_size": None,
            "watermark_data_size": None,
            "height": None,
            "width": None,
            "duration": 0,
        },
    }


def _author_record(person: Person) -> dict[str, Any]:
    return {
        "avatar_larger": picture([avatar(person, 1080)]),
        "avatar_medium": picture([avatar(person, 720)]),
        "avatar_thumb": picture([avatar(person, 100)]),
        "events": None,
        "language": None,
        "nickname": person.name,
        "region": "",
        "sec_uid": f"MS4wLjABAAAA{person.id}",
        "short_id": None,
        "signature": person.about,
        "social_info": None,
        "uid": person.id,
        "unique_id": person.handle,
    }


def _music_record(sound: Sound | None) -> dict[str, Any]:
    return {
        "album": (sound.album or None) if sound else None,
        "author": sound.author if sound else "",
        "cover_large": picture([sound_cover(sound, "large")]) if sound else NOTHING,
        "cover_medium": picture([sound_cover(sound, "medium")]) if sound else NOTHING,
        "cover_thumb": picture([sound_cover(sound, "thumb")]) if sound else NOTHING,
        "duration": sound.seconds if sound else None,
        "id": sound.id if sound else "",
        "id_str": sound.id if sound else "",
        "mid": sound.id if sound else "",
        "is_original": None,
        "is_original_sound": sound.original if sound else None,
        "owner_nickname": "",
        "play_url": picture([sound_url(sound)]) if sound else NOTHING,
        "title": sound.title if sound else "",
        "user_count": None,
    }
