"""Retail: finds the listing in a response: a page, a response from the page's API, or a saved part of either."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crawler.platforms.page import PlatformPage, missing_error
from crawler.platforms.retail.payload import (
    ApiAnswer,
    ApiStack,
    Facet,
    Listing,
    RenderedPage,
    RenderedStack,
    SavedListing,
    SavedRows,
    Seo,
)
from crawler.reading.json import is_bare_json

DATA_SCRIPT = "__NEXT_DATA__"

PAGE_PATH = ("props", "pageProps", "initialData", "searchResult")
"""The path of the listing in a page's data block."""
_PAGE = re.compile(rb'"pageProps"\s*:')
_API = re.compile(rb'"search"\s*:\s*\{')


class Found(NamedTuple):
    """The parts of a payload that belong to the listing."""

    path: tuple[str, ...] = PAGE_PATH
    """The path of the listing in the payload."""
    listing: Listing | None = None
    """The listing. None for rows that were saved alone, and for a page that is not a listing."""
    stacks: Sequence[RenderedStack | ApiStack] = ()
    total: int | float | str | None = None
    seo: Seo | None = None
    facets: Sequence[Facet] = ()
    route: str | None = None
    rows_key: str = "items[]"
    """The key under which a stack (a group of rows) contains its rows."""
    has_data: bool = False
    """For a page without a listing: whether the page contains the object ``initialData``, as listing pages do."""
    is_other: bool = False
    """Whether the page is not a listing page: it contains the data of a product page, or its listing is null."""


def found_in(page: PlatformPage, block: bytes | None) -> Found:
    """Read the listing from the response of a page object. ``block``: the page's data block, None if there is none.

    Raises:
        ExtractionFailed: the page has no data block, or the block is not JSON.
    """
    body: bytes = page.response.body
    if block is not None:
        return _rendered(page, block)
    if not is_bare_json(body):
        raise missing_error("The page contains no data block.", [f"script#{DATA_SCRIPT}"], reason="no_data_block")
    if body.lstrip().startswith(b"["):
        wrapped = b'{"stacks":[{"items":%b,"meta":null}]}' % body
        return Found((), stacks=page.payload(SavedRows, wrapped, what="list of rows").stacks)
    if _PAGE.search(body):
        return _rendered(page, body)
    return _of_api(page, body) if _API.search(body) else _saved(page, body)


def _rendered(page: PlatformPage, block: bytes) -> Found:
    found = page.payload(RenderedPage, block, what=DATA_SCRIPT)
    data = found.data
    if data is None:
        return Found(route=found.route)
    if data.listing is None:
        is_null = all(each.path != ".".join(PAGE_PATH) for each in page.unread)
        return Found(route=found.route, has_data=True, is_other=is_null or data.product is not None)
    listing = data.listing
    return Found(PAGE_PATH, listing, listing.stacks, listing.total, data.seo, data.facets, found.route)


def _of_api(page: PlatformPage, body: bytes) -> Found:
    data = page.payload(ApiAnswer, body, what="API response").data
    path = ("data", "search", "searchResult")
    if data is None or data.listing is None:
        return Found(path)
    return Found(
        path, data.listing, data.listing.stacks, data.listing.total, data.seo, data.facets, rows_key="itemsV2[]"
    )


def _saved(page: PlatformPage, body: bytes) -> Found:
    listing = page.payload(SavedListing, body, what="listing").listing
    path = ("searchResult",)
    return Found(path) if listing is None else Found(path, listing, listing.stacks, listing.total)
