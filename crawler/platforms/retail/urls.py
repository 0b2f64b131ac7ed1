"""Retail: reads links to categories and searches, and builds the request for a listing page. The data is in the page's
HTML; no further request is needed.
"""

from __future__ import annotations

import re
from typing import Literal, get_args
from urllib.parse import urlencode

from scrapy import Request

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
Sort = Literal["best_match", "best_seller", "price_low", "price_high", "rating_high", "new"]
SORTS: tuple[Sort, ...] = get_args(Sort)
"""The platform's names for its sort orders, the default first."""
DEFAULT_SORT: Sort = SORTS[0]
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


def listing_request(  # noqa: PLR0913  # the scrapers' params, by name
    *,
    cat_id: str | None = None,
    query: str | None = None,
    page: int = 1,
    sort: str = DEFAULT_SORT,
    min_price: float | None = None,
    max_price: float | None = None,
) -> Request:
    """Build the request for one page of a category (``cat_id``) or of a search (``query``).

    Params with default values are not sent. ``meta["page_params"]`` has all params: the page object checks the response
    with them.
    """
    arguments: dict[str, str] = {} if query is None else {"q": query}
    if page != 1:
        arguments["page"] = str(page)
    if sort != DEFAULT_SORT:
        arguments["sort"] = sort
    if min_price is not None:
        arguments["min_price"] = f"{min_price:.2f}"
    if max_price is not None:
        arguments["max_price"] = f"{max_price:.2f}"
    path = f"/browse/{cat_id}" if query is None else "/search"
    prices = {"min_price": min_price, "max_price": max_price}
    page_params = {"cat_id": cat_id, "query": query, "page": page, "sort": sort, **prices}
    url = f"{PLATFORM.origin}{path}?{urlencode(arguments)}" if arguments else f"{PLATFORM.origin}{path}"
    return Request(url, meta={"page_params": page_params})
