"""Retail: reads links to categories and searches."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, Grammar, LinkError, PlatformLinks, Url, cleaned
from crawler.platforms.retail import PLATFORM

HOSTS = re.compile(rf"(?:(?:www|m)\.)?{re.escape(PLATFORM.domain)}")
CATEGORY_ID = Grammar(
    r"[0-9]{1,20}(?:_[0-9]{1,20}){0,9}", "a category's id is a number, or several joined by underscores: 976759_976787"
)
_LANGUAGES = frozenset({"en", "es"})
"""Path segments that may stand in front of a page's own path."""
_LANGUAGE = rf"(?:/(?:{'|'.join(sorted(_LANGUAGES))}))?"
NO_CATEGORY = "0"
"""The id in links without a category, such as a search in the whole shop."""
_CATEGORY_ARGUMENTS = ("cat_id", "catId")
LISTING_ARGUMENTS = ("page", "sort", "min_price", "max_price")
"""The query parameters that are params of both scrapers, under the same names."""


def target_of(url: Url) -> Found | None:
    """Return the category or the search that a URL leads to, with the page, order and prices that the URL states.

    Return None if the URL leads to another page.

    Raises:
        LinkError: the URL selects products in a way that the params cannot express, so that the record would contain
            other products than the page.
    """
    arguments = url.arguments()
    segments = url.segments()
    if segments and segments[0] in _LANGUAGES:
        del segments[0]
    first = segments[0] if segments else ""
    is_search = first == "search"
    words = cleaned(arguments.get("q") or arguments.get("query") or "")
    if first in {"browse", "cp"}:  # the category's names may stand in front of its id
        cat_id = next(filter(CATEGORY_ID.matches, reversed(segments)), "")
    else:
        cat_id = next((arguments[name] for name in _CATEGORY_ARGUMENTS if is_search and arguments.get(name)), "")
    has_category = CATEGORY_ID.matches(cat_id) and cat_id != NO_CATEGORY
    if "facet" in arguments and (has_category or is_search):
        raise LinkError("this is a listing with a filter (facet=), for which there is no param: remove the filter")
    listing = {name: arguments[name] for name in LISTING_ARGUMENTS if name in arguments}
    if is_search and words:
        if has_category:
            raise LinkError("this is a search in one category, for which there is no param: remove cat_id= or catId=")
        return "search", {"query": words, **listing}
    return ("category", {"cat_id": cat_id, **listing}) if has_category else None


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"category": ("retail-category-v4",), "search": ("retail-search-v4",)},
    target_of=target_of,
    expected=(
        f"expected a page of www.{PLATFORM.domain} with a category, /browse/<names>/<id> or /cp/<name>/<id>, or with a "
        "search, /search?q=<words>"
    ),
    other_pages={
        "a product": re.compile(rf"{_LANGUAGE}/ip/"),
        "a search without words": re.compile(rf"{_LANGUAGE}/search(/|$)"),
        "a category page without a category's id": re.compile(rf"{_LANGUAGE}/(browse|cp)(/|$)"),
        "a page of products for a keyword, which is a search": re.compile(rf"{_LANGUAGE}/c/kp(/|$)"),
        "a page of deals": re.compile(rf"{_LANGUAGE}/shop/deals(/|$)"),
        "a brand or a seller": re.compile(rf"{_LANGUAGE}/(brand|global/seller|seller|shop)(/|$)"),
        "the home page": re.compile(rf"{_LANGUAGE}/?$"),
    },
    short_hosts=frozenset({"w-mt.co"}),
    redirects=re.compile(rf"goto\.{re.escape(PLATFORM.domain)}/|[^/]+/(account/(login|signup)|blocked)(/|$)"),
    redirect_hosts=frozenset({f"goto.{PLATFORM.domain}"}),
    destinations=("u", "returnUrl", "url"),
)
