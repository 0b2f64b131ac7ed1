"""Short-video: reads photo posts in the format of the web API."""

from __future__ import annotations

from typing import Any

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
from crawler.reading.json import dicts, dig
from crawler.reading.values import count, flag, text

STATISTICS = ("collect", "comment", "digg", "play", "repost", "share")
NOT_EXPOSED = ("download", "forward", "lose_comment", "lose", "chatapp_share")
COMMERCE = (
    "adv_promotable",
    "auction_ad_invited",
    "branded_content_type",
    "is_diversion_ad",
    "with_comment_filter_words",
)


def is_photo(item: dict[str, Any]) -> bool:
    """Return whether an item is a photo post. A post with an empty list of pictures is not.

    If the list is missing, the result is true, and ``photo_post`` raises an error for the item.
    """
    post = item.get("imagePost")
    return bool(post) and not is_empty(post)


def is_known_non_photo(item: dict[str, Any]) -> bool:
    """Return whether an item is a video, a live stream or a photo post without pictures: a known, unwanted kind."""
    if item.get("liveRoomInfo") or isinstance(item.get("imagePost"), dict):
        return True
    return bool(text(item.get("id"))) and is_video(item)


def is_hidden(item: dict[str, Any]) -> bool:
    """Return whether an item is left out of the record because it is private or a live stream."""
    return (
        bool(item.get("liveRoomInfo"))
        or item.get("privateItem") is True
        or dig(item, "author", "privateAccount") is True
    )


def photo_post(item: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert the platform's JSON of a post to a row of the record. ``path``: its place in the response, for errors.

    Raises:
        ExtractionFailed: a part that every photo post has is missing.
    """
    post_id = required(text(item.get("id")), [*path, "id"])
    author = _author(item, path)
    handle = required(author["unique_id"], [*path, "author", "uniqueId"])
    seconds, moment = created(item.get("createTime"), [*path, "createTime"])
    pictures = _pictures(item, path)
    pinned = flag(item.get("isPinnedItem"))
    anchors = item.get("anchors")
    return {
        "anchors": anchors if isinstance(anchors, list) else None,
        "author": author,
        "author_user_id": author["uid"],
        "aweme_id": post_id,
        "aweme_type": PHOTO_POST,
        "commerce_info": {**dict.fromkeys(COMMERCE), "organic_log_extra": ""},
        "create_time": seconds,
        "create_time_utc": moment,
        "desc": text(item.get("desc")),
        "desc_language": text(item.get("textLanguage")) or None,
        "image_post_info": pictures,
        "is_ad": flag(item.get("isAd")),
        "is_eligible_for_commission": None,
        "is_nff_or_nr": None,
        "is_paid_partnership": flag(item.get("adAuthorization")),
        "is_top": None if pinned is None else int(pinned),
        "item_comment_settings": count(item.get("itemCommentStatus")),
        "media_id": None,
        "music": _music(item.get("music")),
        "region": text(item.get("locationCreated")),
        "shop_product_url": None,
        "statistics": _statistics(item, post_id),
        "url": photo_url(handle, post_id),
        "video": _video(item.get("video"), pictures["image_post_cover"]["display_image"]),
    }


def _author(item: dict[str, Any], path: Path) -> dict[str, Any]:
    found = item.get("author")
    if isinstance(found, str):  # older page states have only the handle here; the item has the rest
        names = {"id": "authorId", "secUid": "authorSecId", "nickname": "nickname", "avatarThumb": "avatarThumb"}
        found = {"uniqueId": found} | {key: item.get(flat) for key, flat in names.items()}
    author = found if isinstance(found, dict) else {}
    return {
        "avatar_larger": image(author.get("avatarLarger")),
        "avatar_medium": image(author.get("avatarMedium")),
        "avatar_thumb": image(author.get("avatarThumb")),
        "events": None,
        "language": None,
        "nickname": text(author.get("nickname")),
        "region": "",
        "sec_uid": text(author.get("secUid")) or None,
        "short_id": None,
        "signature": _text_or_none(author.get("signature")),
        "social_info": None,
        "uid": required(text(author.get("id")), [*path, "author", "id"]),
        "unique_id": text(author.get("uniqueId")),
    }


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _pictures(item: dict[str, Any], path: Path) -> dict[str, Any]:
    images = dicts(dig(item, "imagePost", "images"))
    if not images:
        raise missing_part([*path, "imagePost", "images"])
    slides = [slide(each) for each in images]
    if not any(each["display_image"]["url_list"] for each in slides):
        raise missing_part([*path, "imagePost", "images", 0, "imageURL", "urlList"])
    cover = image(dig(item, "imagePost", "cover"))
    return {
        "image_post_cover": slide(None) | {"display_image": _with_url(cover, slides[0]["display_image"])},
        "images": slides,
    }


def _with_url(image_: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    return image_ if image_["url_list"] else default


def _music(value: object) -> dict[str, Any]:
    music = value if isinstance(value, dict) else {}
    sound_id = text(music.get("id"))
    return {
        "album": text(music.get("album")) or None,
        "author": text(music.get("authorName")),
        "cover_large": image(music.get("coverLarge")),
        "cover_medium": image(music.get("coverMedium")),
        "cover_thumb": image(music.get("coverThumb")),
        "duration": count(music.get("duration")),
        "id": sound_id,
        "id_str": sound_id,
        "mid": sound_id,
        "is_original": None,
        "is_original_sound": flag(music.get("original")),
        "owner_nickname": "",
        "play_url": image(music.get("playUrl")),
        "title": text(music.get("title")),
        "user_count": None,
    }


def _statistics(item: dict[str, Any], post_id: str) -> dict[str, Any]:
    """Return a post's figures. ``statsV2`` has exact figures as strings; ``stats`` has rounded figures."""
    figures: dict[str, Any] = {"aweme_id": post_id}
    for name in STATISTICS:
        exact = count(dig(item, "statsV2", f"{name}Count"))
        figures[f"{name}_count"] = count(dig(item, "stats", f"{name}Count")) if exact is None else exact
    return figures | {f"{name}_count": None for name in NOT_EXPOSED}


def _video(value: object, cover: dict[str, Any]) -> dict[str, Any]:
    video = value if isinstance(value, dict) else {}
    return {
        "cover": _with_url(image(video.get("cover")), cover),
        "dynamic_cover": image(video.get("dynamicCover")),
        "origin_cover": image(video.get("originCover")),
        "download_addr": image(video.get("downloadAddr")),
        "play_addr": image(video.get("playAddr")),
        "data_size": None,
        "watermark_data_size": None,
        "height": count(video.get("height")) or None,
        "width": count(video.get("width")) or None,
        "duration": count(video.get("duration")) or 0,
    }
