"""Photo app: builds the requests for the platform's pages.

All requests are plain page loads. They need no query id (``doc_id``), which the platform changes every few months.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from scrapy import Request

from crawler.platforms.photoapp import PLATFORM
from crawler.platforms.requests import NAVIGATION_HEADERS


def post_request(shortcode: str) -> Request:
    """Build the request for the page of a post or reel."""
    return _page(f"{PLATFORM.origin}/p/{shortcode}/", shortcode=shortcode)


def embed_request(shortcode: str) -> Request:
    """Build the request for a post's embeddable page, which states a video's duration."""
    return _page(f"{PLATFORM.origin}/p/{shortcode}/embed/captioned/", shortcode=shortcode)


def reels_request(username: str) -> Request:
    """Build the request for the page with an account's newest reels, which shows their play counts."""
    return _page(f"{PLATFORM.origin}/{quote(username, safe='')}/reels/", username=username)


def share_request(share: str) -> Request:
    """Build the request for a share link. The redirect is not followed: only the shortcode in its URL is used."""
    request = _page(f"{PLATFORM.origin}/{share}/", share=share)
    request.meta["dont_redirect"] = True
    return request


def _page(url: str, **params: Any) -> Request:
    # Without these headers the platform omits the data (2026-10).
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": params})
