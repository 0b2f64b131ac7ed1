"""Professional network: builds the request for a profile page. The response contains all data of a record."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase
from urllib.parse import quote

from scrapy import Request

from crawler.platforms.browser_headers import NAVIGATION_HEADERS
from crawler.platforms.professional import PLATFORM


def profile_request(origin: str, *, slug: str) -> Request:
    """Build the request for a member's page. ``slug``: the name in the URL, which ``meta["page_params"]`` also has."""
    url = f"{origin}/in/{quote(slug, safe='')}"
    # Requests that have all headers of a browser are blocked less often (2026-03).
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": {"slug": slug}})


def edition_origins(origin: str) -> set[str]:
    """Return the origins to which the site may redirect: all possible country editions, with two letters for "www".

    The set is empty if the origin is not the public site.
    """
    if origin != PLATFORM.origin:
        return set()
    return {origin.replace("://www.", f"://{a}{b}.", 1) for a, b in product(ascii_lowercase, repeat=2)}
