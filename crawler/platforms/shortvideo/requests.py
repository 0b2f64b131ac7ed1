"""Short-video: params to the request of the public search page.

The page asks for its results by itself and signs that call with a script of its own. We load the page in a browser
and read what it received; nothing here builds the call.
"""

from __future__ import annotations

from urllib.parse import quote

from scrapy import Request

RESULTS_PATH = "/api/search/photo/full/"
"""Path of the call by which the photo tab fetches its results (seen in four public projects, 2025-11 to 2026-09)."""

SIGNS = {
    "captcha": "#tiktok-verify-ele, .captcha_verify_container, .captcha-verify-container",
    "login": '#loginContainer, [data-e2e="login-modal"]',
}
"""What stands on the page when no further results will come: elements, by what they are."""


def search_request(origin: str, *, keywords: str, cursor: str = "0", count: int = 30) -> Request:
    """The request of the search page's photo tab. The page object finds what was asked for in ``page_params``."""
    asked = {"keywords": keywords, "cursor": cursor, "count": count}
    return Request(f"{origin}/search/photo?q={quote(keywords, safe='')}", meta={"page_params": asked})
