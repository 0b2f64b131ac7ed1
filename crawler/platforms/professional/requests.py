"""Professional network: the request of a profile page. The page is rendered completely on the server."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase
from urllib.parse import quote

from scrapy import Request

from crawler.platforms.professional import PLATFORM


def profile_request(origin: str, *, slug: str) -> Request:
    """The request of a member's page. ``page_params`` passes the requested name to the page object."""
    return Request(f"{origin}/in/{quote(slug, safe='')}", meta={"page_params": {"slug": slug}})


def edition_origins(origin: str) -> set[str]:
    """The origins of the country editions, to which the site may redirect: two letters in place of "www".

    Empty for an origin other than the public site.
    """
    if origin != PLATFORM.origin:
        return set()
    return {origin.replace("://www.", f"://{a}{b}.", 1) for a, b in product(ascii_lowercase, repeat=2)}
