"""Short-video: builds the record's image objects (specification 2.3)."""

from __future__ import annotations

from typing import Any

from crawler.platforms.shortvideo.payload import Picture
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
