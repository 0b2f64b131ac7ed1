"""Short-video: the request for the public search page.

The page fetches its results by a call that its own script signs. The page is loaded in a browser, and the responses
that it received are read. This project does not build or sign the call.
"""

from __future__ import annotations

from urllib.parse import quote

from scrapy import Request

RESULTS_PATH = "/api/search/photo/full/"
"""Path of the API call of the photo tab (seen in four public projects, 2025-11 to 2026-09)."""

CAPTCHA_MOUNT = "#tiktok-verify-ele"
"""Selector of the element into which the platform puts a CAPTCHA. Empty, it is not one."""
STOP_SELECTORS = {
    "captcha": f"{CAPTCHA_MOUNT}, .captcha_verify_container, .captcha-verify-container",
    "login": '#loginContainer, [data-e2e="login-modal"]',
}
"""Selectors of the elements after which a page receives no more results, by kind."""
CLOSE_SELECTORS = {
    "login": ':is([role="dialog"]:has(#loginContainer), #loginContainer, [data-e2e="login-modal"], #login-modal)'
    ' :is([data-e2e="modal-close-inner-button"], [data-e2e="modal-close-button"], [aria-label="Close"])'
}
"""Selectors of the buttons with which a visitor closes such an element. A CAPTCHA's button is not one of them."""


def search_request(origin: str, *, keywords: str, cursor: str = "0", count: int = 30) -> Request:
    """The request for the photo tab of the search page, with the params in ``page_params`` for the page object."""
    params = {"keywords": keywords, "cursor": cursor, "count": count}
    return Request(f"{origin}/search/photo?q={quote(keywords, safe='')}", meta={"page_params": params})
