"""Short-video: reads photo posts in the format of the app's API, from saved responses. No request fetches them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from crawler.platforms.shortvideo.image import (
    PHOTO_POST,
    Path,
    created,
    image,
    is_empty,
    is_video,
    missing_part,
    photo_url,
    required,
    slide,
)
from crawler.reading.json import dig, nonempty_strings
from crawler.reading.values import count, flag, text

STATISTICS = (
    *("collect_count", "comment_count", "digg_count", "download_count", "forward_count", "lose_comment_count"),
    *("lose_count", "play_count", "repost_count", "share_count"),
)


def is_photo(item: dict[str, Any]) -> bool:
    """Return whether an item is a photo post. A post with an empty list of pictures is not.

    If the list is missing, the result is true, and ``photo_post`` raises an error for the item.
    """
    post = item.get("image_post_info")
    has_photo_type = count(item.get("aweme_type")) == PHOTO_POST or item.get("content_type") == "multi_photo"
    return (has_photo_type or bool(post)) and not is_empty(post)


def is_known_non_photo(item: dict[str, Any]) -> bool:
    """Return whether an item is a video or a photo post without pictures: a known kind that is not returned."""
    return bool(_id(item)) and (is_video(item) or isinstance(item.get("image_post_info"), dict))


def _id(item: dict[str, Any]) -> str:
    return text(item.get("aweme_id")) or text(item.get("id"))


def photo_post(item: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert the platform's JSON of a post to a row of the record. ``path``: its place in the response, for errors.

    Raises:
        ExtractionFailed: a part that every photo post has is missing.
    """
    post_id = required(_id(item), [*path, "aweme_id"])
    author = _author(item.get("author"), path)
    seconds, moment = created(item.get("create_time"), [*path, "create_time"])
    pictures = _pictures(item, path)
    anchors = item.get("anchors")
    kind = count(item.get("aweme_type"))
    return {
        "anchors": anchors if isinstance(anchors, list) else None,
        "author": author,
        # The response's own ``author_user_id`` is a number that is too large for JavaScript, and arrives rounded.
        "author_user_id": author["uid"],
        "aweme_id": post_id,
        "aweme_type": PHOTO_POST if kind is None else kind,
        "commerce_info": _commerce(item.get("commerce_info")),
        "create_time": seconds,
        "create_time_utc": moment,
        "desc": text(item.get("desc")),
        "desc_language": text(item.get("desc_language")) or None,
        "image_post_info": pictures,
        "is_ad": _is_ad(item),
        "is_eligible_for_commission": flag(item.get("is_eligible_for_commission")),
        "is_nff_or_nr": flag(item.get("is_nff_or_nr")),
        "is_paid_partnership": flag(item.get("is_paid_partnership")),
        "is_top": count(item.get("is_top")),
        "item_comment_settings": count(item.get("item_comment_settings")),
        "media_id": text(item.get("media_id")) or None,
        "music": _music(item.get("music")),
        "region": text(item.get("region")),
        "shop_product_url": text(item.get("shop_product_url")) or None,
        "statistics": _statistics(item.get("statistics"), post_id),
        "url": required(_url(item, author["unique_id"], post_id), [*path, "author", "unique_id"]),
        "video": _video(item.get("video"), pictures["image_post_cover"]["display_image"]),
    }


def _url(item: dict[str, Any], handle: str, post_id: str) -> str:
    if handle:
        return photo_url(handle, post_id)
    for name in ("share_url", "url"):
        parts = urlsplit(text(item.get(name)).partition("?")[0]).path.split("/")
        # Some saved samples contain the address of another post.
        if len(parts) == 4 and parts[1][:1] == "@" and parts[1] != "@" and parts[3] == post_id:
            return photo_url(parts[1][1:], post_id)
    return ""


def _author(value: object, path: Path) -> dict[str, Any]:
    author = value if isinstance(value, dict) else {}
    events = author.get("events")
    return {
        "avatar_larger": image(author.get("avatar_larger")),
        "avatar_medium": image(author.get("avatar_medium")),
        "avatar_thumb": image(author.get("avatar_thumb")),
        "events": events if isinstance(events, list) else None,
        "language": text(author.get("language")) or None,
        "nickname": text(author.get("nickname")),
        "region": text(author.get("region")),
        "sec_uid": text(author.get("sec_uid")) or None,
        "short_id": text(author.get("short_id")) or None,
        "signature": _text_or_none(author.get("signature")),
        "social_info": _text_or_none(author.get("social_info")),
        "uid": required(text(author.get("uid")), [*path, "author", "uid"]),
        "unique_id": text(author.get("unique_id")),
    }


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_ad(item: dict[str, Any]) -> bool | None:
    flags = [each for each in (flag(item.get("is_ads")), flag(item.get("is_ad"))) if each is not None]
    is_paid = 1 in (dig(item, "commerce_info", "ad_source"), item.get("ad_aweme_source"))
    return True if is_paid else any(flags) if flags else None


def _commerce(value: object) -> dict[str, Any]:
    info = value if isinstance(value, dict) else {}
    return {
        "adv_promotable": flag(info.get("adv_promotable")),
        "auction_ad_invited": flag(info.get("auction_ad_invited")),
        "branded_content_type": count(info.get("branded_content_type")),
        "is_diversion_ad": count(info.get("is_diversion_ad")),
        "organic_log_extra": text(info.get("organic_log_extra")),
        "with_comment_filter_words": flag(info.get("with_comment_filter_words")),
    }


def _pictures(item: dict[str, Any], path: Path) -> dict[str, Any]:
    images = dig(item, "image_post_info", "images")
    if isinstance(images, list) and images:
        slides = [slide(dig(each, "display_image"), dig(each, "owner_watermark_image")) for each in images]
        images_path: Path = [*path, "image_post_info", "images"]
    else:
        slides = [slide(url) for url in nonempty_strings(item.get("images"))]  # flattened samples have only the URLs
        images_path = [*path, "image_post_info" if item.get("images") is None else "images"]
    if not any(each["display_image"]["url_list"] for each in slides):
        raise missing_part(images_path)
    found = dig(item, "image_post_info", "image_post_cover")
    cover = slide(dig(found, "display_image"), dig(found, "owner_watermark_image"))
    if not cover["display_image"]["url_list"]:
        cover["display_image"] = slides[0]["display_image"]
    return {"image_post_cover": cover, "images": slides}


def _music(value: object) -> dict[str, Any]:
    music = value if isinstance(value, dict) else {}
    number = music.get("id")
    # A numeric id is not used: it is too large for JavaScript, and arrives rounded.
    sound_id = text(music.get("id_str")) or text(music.get("mid")) or (number if isinstance(number, str) else "")
    return {
        "album": text(music.get("album")) or None,
        "author": text(music.get("author")),
        "cover_large": image(music.get("cover_large")),
        "cover_medium": image(music.get("cover_medium")),
        "cover_thumb": image(music.get("cover_thumb")),
        "duration": count(music.get("duration")),
        "id": sound_id,
        "id_str": sound_id,
        "mid": text(music.get("mid")) or sound_id,
        "is_original": flag(music.get("is_original")),
        "is_original_sound": flag(music.get("is_original_sound")),
        "owner_nickname": text(music.get("owner_nickname")),
        "play_url": image(music.get("play_url")),
        "title": text(music.get("title")),
        "user_count": count(music.get("user_count")),
    }


def _statistics(value: object, post_id: str) -> dict[str, Any]:
    figures = value if isinstance(value, dict) else {}
    found: dict[str, Any] = {name: count(figures.get(name)) for name in STATISTICS}
    return {
        "aweme_id": text(figures.get("aweme_id")) or post_id,
        **found,
        "chatapp_share_count": count(figures.get("whatsapp_share_count")),
    }


def _video(value: object, cover: dict[str, Any]) -> dict[str, Any]:
    video = value if isinstance(value, dict) else {}
    video_cover = image(video.get("cover"))
    return {
        "cover": video_cover if video_cover["url_list"] else cover,
        "dynamic_cover": image(video.get("dynamic_cover")),
        "origin_cover": image(video.get("origin_cover")),
        "download_addr": image(video.get("download_addr")),
        "play_addr": image(video.get("play_addr")),
        "data_size": None,
        "watermark_data_size": None,
        "height": count(video.get("height")) or None,
        "width": count(video.get("width")) or None,
        "duration": (count(video.get("duration")) or 0) // 1000,  # the app states milliseconds
    }
