"""Retail: builds the request for a listing page. The data is in the page's HTML; no further request is needed."""

from __future__ import annotations

from urllib.parse import urlencode

from scrapy import Request

from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.schema import DEFAULT_SORT


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
