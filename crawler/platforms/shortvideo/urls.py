"""Short-video: reads links to searches, and builds the request for the public search page.

The page's own script signs the API call that fetches the results. Therefore the page is loaded in a browser, and the
responses that it receives are read. This project neither builds nor signs the call.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from scrapy import Request

from crawler.platforms.links import Found, PlatformLinks, Url, cleaned
from crawler.platforms.shortvideo import PLATFORM

HOSTS = re.compile(rf"(?:(?:www|m)\.)?{re.escape(PLATFORM.domain)}")


def target_of(url: Url) -> Found | None:
    """Return the search that a URL leads to: in the photo tab, or in the tab with results of all kinds; else None."""
    if url.segments() not in (["search"], ["search", "photo"]):
        return None
    words = cleaned(url.arguments().get("q", ""))
    return ("search", {"keywords": words}) if words else None


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"search": ("shortvideo-photo-search-v4",)},
    target_of=target_of,
    expected=f"expected a search of www.{PLATFORM.domain}: /search?q=<words> or /search/photo?q=<words>",
    other_pages={
        "a short link": re.compile(r"/t/"),
        "a photo post": re.compile(r"/@[^/]*/photo/"),
        "a video": re.compile(r"/@[^/]*/video/|/v/|/embed/"),
        "a profile": re.compile(r"/@"),
        "a hashtag": re.compile(r"/tag/"),
        "a sound": re.compile(r"/music/"),
        "a search for videos or accounts": re.compile(r"/search/(?!photo)\w"),
        "a search without words": re.compile(r"/search"),
        "the home page": re.compile(r"/?$"),
    },
    short_hosts=frozenset({f"vm.{PLATFORM.domain}", f"vt.{PLATFORM.domain}"}),
    redirects=re.compile(r"[^/]+/(login|signup|link/v2)(/|$)"),
    destinations=("redirect_url", "target"),
)


RESULTS_PATH = "/api/search/photo/full/"
"""Path of the API call for the photo tab, according to four public projects between 2025-11 and 2026-09."""
SEARCH_CALLS = re.compile(r"/api/search/.+")
"""Matches the paths of all API calls for searches: of the other tabs, of suggestions, and of new versions."""

CAPTCHA_MOUNT = "#tiktok-verify-ele"
"""Selector of the element into which the platform puts a CAPTCHA. While it is empty, there is no CAPTCHA."""
STOP_SELECTORS = {
    "captcha": f"{CAPTCHA_MOUNT}, .captcha_verify_container, .captcha-verify-container",
    "login": '#loginContainer, [data-e2e="login-modal"]',
}
"""Selectors of login dialogs and CAPTCHAs, by kind. Once such an element is visible, the page receives no more
results."""
CLOSE_SELECTORS = {
    "login": ':is([role="dialog"]:has(#loginContainer), #loginContainer, [data-e2e="login-modal"], #login-modal)'
    ' :is([data-e2e="modal-close-inner-button"], [data-e2e="modal-close-button"], [aria-label="Close"])'
}
"""Selectors of the buttons that close the elements of ``STOP_SELECTORS``, by kind. There is no selector for CAPTCHAs,
which are never closed."""


def search_request(*, keywords: str, cursor: str = "0", count: int = 30) -> Request:
    """Build the request for the photo tab on the search page.

    The page object receives the params (keywords, cursor, count) as ``page_params``.
    """
    params = {"keywords": keywords, "cursor": cursor, "count": count}
    return Request(f"{PLATFORM.origin}/search/photo?q={quote(keywords, safe='')}", meta={"page_params": params})
