"""Retail: reads links to categories and searches."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, LinkError, PlatformLinks, Url
from crawler.platforms.retail import PLATFORM

HOSTS = re.compile(rf"(?:www\.)?{re.escape(PLATFORM.domain)}")
CATEGORY_ID = r"[0-9]{1,20}(?:_[0-9]{1,20}){0,9}"
# Category names may precede the id. They are ignored, but refused if they contain dot segments, slashes or backslashes.
_NAME = r"(?!\.{1,2}/)(?:[^/\\%]|%(?!2[eEfF]|5[cC]|00)[0-9a-fA-F]{2})+/"
CATEGORY_PATH = re.compile(rf"/(?:browse/(?:{_NAME})*|cp/(?:{_NAME})?)(?P<id>{CATEGORY_ID})/?")
SEARCH_PATH = re.compile(r"/search/?")
NO_CATEGORY = "0"
"""The id in links without a category, such as a search in the whole shop."""
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
    category = CATEGORY_PATH.fullmatch(url.path)
    is_search = SEARCH_PATH.fullmatch(url.path) is not None
    words = arguments.get("q") or arguments.get("query") or ""
    cat_id = category["id"] if category else arguments.get("cat_id", "") if is_search else ""
    has_category = re.fullmatch(CATEGORY_ID, cat_id) is not None and cat_id != NO_CATEGORY
    if "facet" in arguments and (category or is_search):
        raise LinkError("this is a listing with a filter (facet=), for which there is no param: remove the filter")
    listing = {name: arguments[name] for name in LISTING_ARGUMENTS if name in arguments}
    if is_search and words.strip():
        if has_category:
            raise LinkError("this is a search in one category, for which there is no param: remove cat_id=")
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
        "a product": re.compile(r"/ip/"),
        "a search without words": SEARCH_PATH,
        "a category page without a category's id": re.compile(r"/(browse|cp)(/|$)"),
        "a brand or a seller": re.compile(r"/(brand|global/seller|seller|shop)(/|$)"),
        "the home page": re.compile(r"/?$"),
    },
    short_hosts=frozenset({"w-mt.co"}),
)
