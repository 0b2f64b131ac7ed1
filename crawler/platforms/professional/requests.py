"""Professional network: builds the request for a profile page. The response contains all data of a record."""

from __future__ import annotations

from urllib.parse import quote

from scrapy import Request

from crawler.platforms.professional import PLATFORM
from crawler.platforms.requests import NAVIGATION_HEADERS


def profile_request(slug: str) -> Request:
    """Build the request for a member's page. ``slug``: the name in the URL, which ``meta["page_params"]`` also has."""
    url = f"{PLATFORM.origin}/in/{quote(slug, safe='')}"
    # Requests that have all headers of a browser are blocked less often (2026-03).
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": {"slug": slug}})
