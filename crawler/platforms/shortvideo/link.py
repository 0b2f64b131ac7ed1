"""Short-video: reads links to searches."""

from __future__ import annotations

import re

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
