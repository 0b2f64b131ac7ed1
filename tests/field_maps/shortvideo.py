"""Short videos: reads lists and photo posts in the app's format, independently of the page objects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.field_maps.paths import at, first, values

SITE = "https://www.tiktok.com"
PHOTO = 150
"""The ``aweme_type`` of a photo post."""


def expected(_page: str, payload: Any) -> dict[str, Any] | None:
    """Return what a page object must extract; None for photo posts in the web API's format, which has no field map."""
    if any(list(values(payload, key)) for key in ("imagePost", "images")) and not list(rows(payload)):
        return None
    inner = payload.get("data", payload) if isinstance(payload, dict) else {}
    inner = inner if isinstance(inner, dict) else payload
    more = first(inner, "has_more", "hasMore")
    return {
        "cursor": str(first(inner, "cursor") or 0),
        "has_more": bool(more),
        "keywords": "",
        "search_item_list": [post(row) for row in rows(payload) if at(row, "image_post_info.images")],
    }


def rows(payload: Any) -> Iterator[dict[str, Any]]:
    """The posts in a response of the app: a search, a feed, a single post, or a search that was saved flattened."""
    for row in at(payload, "search_item_list") or []:
        yield row["aweme_info"]
    yield from at(payload, "aweme_list") or []
    if detail := at(payload, "aweme_detail"):
        yield detail
    yield from map(unflattened, at(payload, "items") or [])


def unflattened(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a flattened post, which has an ``id``, a time as text and the slides' URLs, back to the app's format."""
    created = int(datetime.fromisoformat(row["create_time"]).timestamp())
    slides = [{"display_image": url} for url in row.get("images") or []]
    return row | {"aweme_id": row["id"], "create_time": created, "image_post_info": {"images": slides}}


def post(row: dict[str, Any]) -> dict[str, Any]:
    """The expected photo post."""
    number, created = row["aweme_id"], datetime.fromtimestamp(row["create_time"], UTC)
    name = at(row, "author.unique_id")
    kept = ("anchors", "desc_language", "is_eligible_for_commission", "is_nff_or_nr", "is_paid_partnership")
    return {
        **{key: row.get(key) for key in (*kept, "item_comment_settings", "media_id", "shop_product_url")},
        "author": author(row["author"]),
        "author_user_id": row["author"]["uid"],
        "aweme_id": number,
        "aweme_type": row.get("aweme_type", PHOTO),  # missing in trimmed posts: all of these are photo posts
        "commerce_info": commerce(row.get("commerce_info") or {}),
        "create_time": row["create_time"],
        "create_time_utc": created.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "desc": row.get("desc") or "",
        "image_post_info": pictures(row["image_post_info"]),
        "is_ad": bool(first(row, "is_ads", "is_ad")) or at(row, "commerce_info.ad_source") == 1,
        "is_top": row.get("is_top"),
        "music": music(row.get("music") or {}),
        "region": row.get("region") or "",
        "statistics": statistics(row.get("statistics") or {}),
        # For posts without a handle, the URL in the response is the only one.
        "url": f"{SITE}/@{name}/photo/{number}" if name else row["url"],
        "video": video(row.get("video") or {}),
    }


def image(value: Any) -> dict[str, Any]:
    """The expected image, from the app's object or a URL. ``uri`` is a URL; in the app, it can be a storage key."""
    if isinstance(value, str):
        value = {"uri": value, "url_list": [value]}
    urls, key = at(value, "url_list") or [], at(value, "uri") or ""
    return {
        "height": at(value, "height"),
        "uri": key if key.startswith("http") else next(iter(urls), ""),
        "url_list": urls,
        "url_prefix": at(value, "url_prefix"),
        "width": at(value, "width"),
    }


def pictures(info: dict[str, Any]) -> dict[str, Any]:
    """The slides, and the cover, which is the first slide if the post has no cover."""
    return {
        "image_post_cover": {
            "display_image": image(first(info, "image_post_cover.display_image", "images.0.display_image")),
            "owner_watermark_image": image(at(info, "image_post_cover.owner_watermark_image")),
        },
        "images": [
            {key: image(slide.get(key)) for key in ("display_image", "owner_watermark_image")}
            for slide in info["images"]
        ],
    }


def author(value: dict[str, Any]) -> dict[str, Any]:
    """The expected author."""
    return {
        **{key: image(value.get(key)) for key in ("avatar_larger", "avatar_medium", "avatar_thumb")},
        **{key: value.get(key) for key in ("events", "language", "sec_uid", "short_id", "signature", "social_info")},
        **{key: value.get(key) or "" for key in ("nickname", "region", "uid", "unique_id")},
    }


def commerce(value: dict[str, Any]) -> dict[str, Any]:
    """The expected commerce info, with all keys."""
    kept = ("adv_promotable", "auction_ad_invited", "branded_content_type", "is_diversion_ad")
    return {
        **{key: value.get(key) for key in (*kept, "with_comment_filter_words")},
        "organic_log_extra": value.get("organic_log_extra") or "",
    }


def music(value: dict[str, Any]) -> dict[str, Any]:
    """The expected music. ``id_str`` is read, because ``id`` is a rounded number."""
    return {
        **{key: image(value.get(key)) for key in ("cover_large", "cover_medium", "cover_thumb", "play_url")},
        **{key: value.get(key) for key in ("duration", "is_original", "is_original_sound", "user_count")},
        **{key: value.get(key) or "" for key in ("author", "id_str", "mid", "owner_nickname", "title")},
        "album": value.get("album") or None,
        "id": value.get("id_str") or "",
    }


def statistics(value: dict[str, Any]) -> dict[str, Any]:
    """The expected counts."""
    counts = ("collect", "comment", "digg", "download", "forward", "lose_comment", "lose", "play", "repost", "share")
    return {
        **{f"{key}_count": value.get(f"{key}_count") for key in counts},
        "aweme_id": value["aweme_id"],
        "chatapp_share_count": value.get("whatsapp_share_count"),
    }


def video(value: dict[str, Any]) -> dict[str, Any]:
    """The expected video object, which is nearly empty for photo posts."""
    images = ("cover", "dynamic_cover", "origin_cover", "download_addr", "play_addr")
    return {
        **{key: image(value.get(key)) for key in images},
        "data_size": at(value, "play_addr.data_size"),
        "duration": 0,
        "height": value.get("height") or None,
        "watermark_data_size": at(value, "download_addr.data_size"),
        "width": value.get("width") or None,
    }
