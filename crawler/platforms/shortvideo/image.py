"""Short-video: pictures and sounds in their three spellings, and what both item shapes share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crawler.errors import ExtractionFailed
from crawler.platforms.page import missing
from crawler.platforms.shortvideo import PLATFORM
from crawler.reading.json import dig, nonempty_strings
from crawler.reading.values import count, text

ORIGIN = PLATFORM.origin
PHOTO_POST = 150
"""What the app calls the type of a photo post."""
LATEST = 253_402_300_799
"""The last second that a date can state."""

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
    uri = text(value.get("uri"))  # pictures have the key of a storage here
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
    """Whether what should hold a post's pictures says that there are none: not that they are not found in it.

    >>> [is_empty(post) for post in ({"images": []}, {"images": None}, {"images": [{}]}, {"pictures": [{}]}, None)]
    [True, True, False, False, False]
    """
    return isinstance(post, dict) and "images" in post and not post["images"]


def slide(display: object, watermarked: object = None) -> dict[str, Any]:
    """A picture as shown, and as its owner marked it."""
    return {"display_image": image(display), "owner_watermark_image": image(watermarked)}


def missing_part(path: Path) -> ExtractionFailed:
    """The error for a part that every photo post has."""
    return missing("A photo post lacks a part that every post has.", path, reason="missing_part")


def required(value: str, path: Path) -> str:
    """A text that must be there.

    Raises:
        ExtractionFailed: it is not.
    """
    if not value:
        raise missing_part(path)
    return value


def created(value: object, path: Path) -> tuple[int, str]:
    """When a post was made: Unix seconds, and the same as text.

    >>> created("1747676981", [])
    (1747676981, '2025-05-19T17:49:41.000Z')
    >>> created("2025-05-19T17:49:41.000Z", [])[0]
    1747676981

    Raises:
        ExtractionFailed: no moment, or one that no calendar has.
    """
    seconds = count(value)
    if seconds is None and isinstance(value, str):
        try:
            seconds = int(datetime.fromisoformat(value).timestamp())
        except (ValueError, OverflowError):
            seconds = None
    if not seconds or not 0 < seconds <= LATEST:
        raise missing_part(path)
    return seconds, f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def photo_url(handle: str, post_id: str) -> str:
    """A photo post's page."""
    return f"{ORIGIN}/@{handle}/photo/{post_id}"
