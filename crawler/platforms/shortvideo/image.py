"""Short-video: reads images in the formats of the app's API and the web API, and helps to read the items of both."""

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
"""The app's type number for a photo post."""
MAX_UNIX_SECONDS = 253_402_300_799
"""The last second that Python's ``datetime`` can represent, at the end of the year 9999."""

Path = list[str | int]


def image(value: object) -> dict[str, Any]:
    """Build the record's image object from a URL, or from an image object of the app's API or the web API.

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
    uri = text(value.get("uri"))  # for pictures, this is a storage key, not a URL
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
    """Return whether a post's picture object has an empty or null list of images. If the list is missing, return false.

    >>> [is_empty(post) for post in ({"images": []}, {"images": None}, {"images": [{}]}, {"pictures": [{}]}, None)]
    [True, True, False, False, False]
    """
    return isinstance(post, dict) and "images" in post and not post["images"]


def is_video(item: dict[str, Any]) -> bool:
    """Whether an item is a video. A photo post also has a ``video`` object, but without a duration.

    >>> [is_video({"video": video}) for video in ({"duration": 15}, {"duration": 0}, {}, None)]
    [True, False, False, False]
    """
    return bool(count(dig(item, "video", "duration")))


def slide(display: object, watermarked: object = None) -> dict[str, Any]:
    """Build a picture of a post: the image as shown, and the image with its owner's watermark."""
    return {"display_image": image(display), "owner_watermark_image": image(watermarked)}


def missing_part(path: Path) -> ExtractionFailed:
    """Create the error for a photo post that lacks a mandatory part."""
    return missing_error("A photo post lacks a mandatory part.", path, reason="missing_part")


def required(value: str, path: Path) -> str:
    """Return a text that must not be empty.

    Raises:
        ExtractionFailed: the text is empty.
    """
    if not value:
        raise missing_part(path)
    return value


def created(value: object, path: Path) -> tuple[int, str]:
    """Return a post's creation time as Unix seconds and as ISO 8601 text.

    >>> created("1747676981", [])
    (1747676981, '2025-05-19T17:49:41.000Z')
    >>> created("2025-05-19T17:49:41.000Z", [])[0]
    1747676981

    Raises:
        ExtractionFailed: the value is not a time, or is a time after the year 9999.
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
    """Build the URL of a photo post's page."""
    return f"{ORIGIN}/@{handle}/photo/{post_id}"
