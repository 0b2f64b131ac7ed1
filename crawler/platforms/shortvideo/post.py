"""Short-video: converts an item with pictures to a row of the record (specification 2.3).

Values that the platform does not expose are null or empty.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crawler.platforms.model import empty
from crawler.platforms.shortvideo import PLATFORM, schema
from crawler.platforms.shortvideo.payload import Author, Figures, Item, Music, Picture, Video
from crawler.reading.values import count

Image = dict[str, Any]


def image(url: str | None) -> Image:
    """Build an image object from a URL.

    >>> image("https://cdn.example/a.jpeg")["url_list"], image(None)["url_list"]
    (['https://cdn.example/a.jpeg'], [])
    """
    return _image([url] if url else [])


def picture(value: Picture | None) -> Image:
    """Build an image object from a picture of a photo post."""
    if value is None:
        return _image([])
    return _image([url for url in value.urls if url], count(value.width), count(value.height))


def _image(urls: list[str], width: int | None = None, height: int | None = None) -> Image:
    return {
        "height": height,
        "uri": urls[0] if urls else "",
        "url_list": urls,
        "url_prefix": None,
        "width": width,
    }


def slide(display: Image) -> dict[str, Any]:
    """Build one picture of a post from the image as shown. Web responses lack the image with its owner's watermark."""
    return {"display_image": display, "owner_watermark_image": _image([])}


def with_url(found: Image, default: Image) -> Image:
    """Return an image, or the default if the image has no URL."""
    return found if found["url_list"] else default


ORIGIN = PLATFORM.origin
PHOTO_POST = 150
"""The platform's type number for a photo post."""
IMAGES, URLS = "imagePost.images[]", "imagePost.images[].imageURL.urlList[]"
STATISTICS = ("collect", "comment", "digg", "play", "repost", "share")


def missing_part(item: Item) -> str | None:
    """Return the path of a mandatory part that a photo post lacks, None if it lacks none."""
    if not item.id:
        return "id"
    if item.author is None or not item.author.id or not item.author.handle:
        return "author"
    if item.created is None:
        return "createTime"
    if item.pictures is None or not item.pictures.images:
        return IMAGES
    if not any(each.urls for each in item.pictures.images):
        return URLS
    return None


def photo_post(item: Item) -> dict[str, Any]:
    """Convert an item to a row. The item must have all mandatory parts (``missing_part``)."""
    author, pictures = item.author, item.pictures
    seconds = count(item.created)
    assert author is not None
    assert pictures is not None
    assert seconds is not None
    post_id = str(item.id)
    slides = [slide(picture(each)) for each in pictures.images]
    cover = with_url(picture(pictures.cover), slides[0]["display_image"])
    return {
        "anchors": item.anchors,
        "author": _author(author),
        "author_user_id": str(author.id),
        "aweme_id": post_id,
        "aweme_type": PHOTO_POST,
        "commerce_info": empty(schema.CommerceInfo),
        "create_time": seconds,
        "create_time_utc": f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.000Z",
        "desc": item.description or "",
        "desc_language": item.language or None,
        "image_post_info": {"image_post_cover": slide(cover), "images": slides},
        "is_ad": item.is_ad,
        "is_eligible_for_commission": None,
        "is_nff_or_nr": None,
        "is_paid_partnership": item.is_paid,
        "is_top": None if item.is_pinned is None else int(item.is_pinned),
        "item_comment_settings": count(item.comment_status),
        "media_id": None,
        "music": _music(item.music or Music()),
        "region": item.place or "",
        "shop_product_url": None,
        "statistics": _statistics(item, post_id),
        "url": f"{ORIGIN}/@{author.handle}/photo/{post_id}",
        "video": _video(item.video or Video(), cover),
    }


def _author(author: Author) -> dict[str, Any]:
    return {
        **empty(schema.Author),
        "avatar_larger": image(author.avatar_larger),
        "avatar_medium": image(author.avatar_medium),
        "avatar_thumb": image(author.avatar_thumb),
        "nickname": author.nickname or "",
        "sec_uid": author.sec_uid or None,
        "signature": author.signature,
        "uid": str(author.id),
        "unique_id": author.handle,
    }


def _music(music: Music) -> dict[str, Any]:
    sound_id = "" if music.id is None else str(music.id)
    return {
        **empty(schema.Music),
        "album": music.album or None,
        "author": music.author or "",
        "cover_large": image(music.cover_large),
        "cover_medium": image(music.cover_medium),
        "cover_thumb": image(music.cover_thumb),
        "duration": count(music.duration),
        "id": sound_id,
        "id_str": sound_id,
        "mid": sound_id,
        "is_original_sound": music.is_original,
        "play_url": image(music.play_url),
        "title": music.title or "",
    }


def _statistics(item: Item, post_id: str) -> dict[str, Any]:
    """Return a post's counts: exact if available, else rounded."""
    exact, rounded = item.exact_figures or Figures(), item.figures or Figures()
    figures = {**empty(schema.Statistics), "aweme_id": post_id}
    for name in STATISTICS:
        found = count(getattr(exact, name))
        figures[f"{name}_count"] = count(getattr(rounded, name)) if found is None else found
    return figures


def _video(video: Video, cover: dict[str, Any]) -> dict[str, Any]:
    return {
        **empty(schema.Video),
        "cover": with_url(image(video.cover), cover),
        "dynamic_cover": image(video.dynamic_cover),
        "origin_cover": image(video.origin_cover),
        "download_addr": image(video.download_addr),
        "play_addr": image(video.play_addr),
        "height": count(video.height) or None,
        "width": count(video.width) or None,
        "duration": count(video.duration) or 0,
    }
