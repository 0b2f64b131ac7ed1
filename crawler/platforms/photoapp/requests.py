"""Photo app: a shortcode to the requests of its pages. Plain page loads, without ids that the platform rotates."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from scrapy import Request

# What a browser sends when somebody opens a link. Without it the platform gives the page without its data (2026-10).
NAVIGATION_HEADERS = {
    "Accept-Language": "en-US,en;q=0.9",  # texts and dates follow it
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}


def post_request(origin: str, shortcode: str) -> Request:
    """The request of a post's page. It serves reels too."""
    return _page(f"{origin}/p/{shortcode}/", shortcode=shortcode)


def embed_request(origin: str, shortcode: str) -> Request:
    """The request of the small page that other sites embed. It states a video's duration."""
    return _page(f"{origin}/p/{shortcode}/embed/captioned/", shortcode=shortcode)


def reels_request(origin: str, username: str) -> Request:
    """The request of the page that lists an account's newest reels, with how often each was played."""
    return _page(f"{origin}/{quote(username, safe='')}/reels/", username=username)


def share_request(origin: str, share: str) -> Request:
    """The request of a share link. Its redirect is read, not followed: only a shortcode is taken from it."""
    request = _page(f"{origin}/{share}/", share=share)
    request.meta["dont_redirect"] = True
    return request


def _page(url: str, **asked: Any) -> Request:
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": asked})
