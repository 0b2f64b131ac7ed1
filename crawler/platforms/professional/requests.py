"""Professional network: params to the request of a profile page, which is rendered whole: no other call is needed."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase
from urllib.parse import quote

from scrapy import Request

from crawler.platforms.professional import PLATFORM


def profile_request(origin: str, *, slug: str) -> Request:
    """The request of a member's page. The page object finds the name asked for in ``page_params``."""
    return Request(f"{origin}/in/{quote(slug, safe='')}", meta={"page_params": {"slug": slug}})


def edition_origins(origin: str) -> set[str]:
    """The origins of the site's country editions, to which it may send a visitor on: two letters in place of "www".

    None for an origin that is not the public site.
    """
    if origin != PLATFORM.origin:
        return set()
    return {origin.replace("://www.", f"://{a}{b}.", 1) for a, b in product(ascii_lowercase, repeat=2)}
