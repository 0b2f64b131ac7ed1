"""Short-video: pictures and sounds in their three formats, and helpers of both item formats."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crawler.errors import ExtractionFailed
from crawler.platforms.page import missing_error
from crawler.platforms.shortvideo import PLATFORM
from crawler.reading.json import dig, nonempty_strings
from crawler.reading.values import count, text

ORIGIN = PLATFORM.origin
PHOTO_POST = 150
"""The app's number for the type of a photo post."""
MAX_UNIX_SECONDS = 253_402_300_799
"""The last second of the year 9999, the end of Python's calendar."""

Path = list[str | int]


def image(value: object) -> dict[str, Any]:
    """The contract's image object from a URL, from the app's object, or from the web's.

    >>> image("https://cdn.example/a.jpeg")["url_list"]
    ['https://cdn.example/a.jpeg']
    >>> image({"imageURL": {"urlList": ["https://cdn.example/b"]}, "imageWidth": 9, "imageHeight": 16})["width"]
    9
    >>> image({"uri": "tos-key/1", "url_list": ["https://cdn.example/c"]})["uri"]
    'https://cdn.example/c'
    >>> image(None)
    {'height': None, 'uri': '', 'url_list': [], 'url_prefix': None, 'width': None}
    """
    if isinstance(value, str):
        return _image([value] if value else [])
    if not isinstance(value, dict):
        return _image([])
    if "imageURL" in value:
        return _image(
            nonempty_strings(dig(value, "imageURL", "urlList")), value.get("imageWidth"), value.get("imageHeight")
        )
    urls = nonempty_strings(value.get("url_list"))
    found = _image(urls, value.get("width"), value.get("height"))
    uri = text(value.get("uri"))  # for pictures this is a storage key
    return {**found, "uri": uri if uri.startswith("http") else found["uri"], "url_prefix": _prefix(value)}


def _image(urls: list[str], width: object = None, height: object = None) -> dict[str, Any]:
    return {
        "height": count(height),
        "uri": urls[0] if urls else "",
        "url_list": urls,
        "url_prefix": None,
        "width": count(width),
    }


def _prefix(value: dict[str, Any]) -> str | None:
    return text(value.get("url_prefix")) or None


def is_empty(post: object) -> bool:
    """Whether a post's picture object has an explicitly empty list of images. A missing list is an error instead.

    >>> [is_empty(post) for post in ({"images": []}, {"images": None}, {"images": [{}]}, {"pictures": [{}]}, None)]
    [True, True, False, False, False]
    """
    return isinstance(post, dict) and "images" in post and not post["images"]


def is_video(item: dict[str, Any]) -> bool:
    """Whether an item is a video. Photo posts have a video, too: a stub without a duration.

    >>> [is_video({"video": video}) for video in ({"duration": 15}, {"duration": 0}, {}, None)]
    [True, False, False, False]
    """
    return bool(count(dig(item, "video", "duration")))


def slide(display: object, watermarked: object = None) -> dict[str, Any]:
    """A picture as shown, and with its owner's watermark."""
    return {"display_image": image(display), "owner_watermark_image": image(watermarked)}


def missing_part(path: Path) -> ExtractionFailed:
    """The error for a missing mandatory part of a photo post."""
    return missing_error("A photo post lacks a mandatory part.", path, reason="missing_part")


def required(value: str, path: Path) -> str:
    """A text that must not be empty.

    Raises:
        ExtractionFailed: it is empty.
    """
    if not value:
        raise missing_part(path)
    return value


def created(value: object, path: Path) -> tuple[int, str]:
    """A post's creation time: Unix seconds, and the same as text.

    >>> created("1747676981", [])
    (1747676981, '2025-05-19T17:49:41.000Z')
    >>> created("2025-05-19T17:49:41.000Z", [])[0]
    1747676981

    Raises:
        ExtractionFailed: not a time, or a time after the year 9999.
    """
    seconds = count(value)
    if seconds is None and isinstance(value, str):
        try:
            seconds = int(datetime.fromisoformat(value).timestamp())
        except (ValueError, OverflowError):
            seconds = None
    if not seconds or not 0 < seconds <= MAX_UNIX_SECONDS:
        raise missing_part(path)
    return seconds, f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def photo_url(handle: str, post_id: str) -> str:
    """The URL of a photo post's page."""
    return f"{ORIGIN}/@{handle}/photo/{post_id}"
