"""The faults of the simulated shop, and the expected records of listings with harmless faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.protocol import as_json
from crawler.sandbox.retail.page import challenge, document, not_found, other, parts
from crawler.sandbox.retail.row import no_prices
from crawler.sandbox.retail.shop import UNFILTERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawler.sandbox.protocol import FakeResponse, FaultlessResponse

FAULTS = COMMON | {
    "challenge": Fault("UPSTREAM_BLOCKED", "200 with a CAPTCHA challenge"),
    "challenge-412": Fault("UPSTREAM_BLOCKED", "the challenge with status 412"),
    "challenge-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to the challenge"),
    "challenge-json": Fault(
        "UPSTREAM_BLOCKED", "the challenge as JSON, as the page's script receives it for its API calls"
    ),
    "teapot": Fault("UPSTREAM_BLOCKED", "status 418"),
    "soft-gone": Fault("TARGET_NOT_FOUND", "200 with the shop's own not-found page"),
    "home": Fault("TARGET_NOT_FOUND", "a redirect to the home page"),
    "no-listing": Fault("EXTRACTION_FAILED", "a page whose listing is null"),
    "editorial": Fault("TARGET_NOT_FOUND", "an editorial page with articles instead of a listing"),
    "product-page": Fault("TARGET_NOT_FOUND", "the page of a single product instead of a listing"),
    "reported-error": Fault("UPSTREAM_ERROR", "200 with an error in the page's data"),
    "wrong-category": Fault("EXTRACTION_FAILED", "the listing of another category"),
    "wrong-category-once": Fault("OK", "the listing of another category, for the first request only"),
    "wrong-page": Fault("EXTRACTION_FAILED", "another page number of the same listing than requested"),
    "no-data": Fault("EXTRACTION_FAILED", "a page without a data block"),
    "broken-json": Fault("EXTRACTION_FAILED", "a truncated data block"),
    "deep-json": Fault("EXTRACTION_FAILED", "a data block of ten thousand nested lists"),
    "blind": Fault("EXTRACTION_FAILED", "product rows with renamed keys"),
    "missing-name": Fault("OK", "some product rows without a name, which are left out with a warning"),
    "no-prices": Fault("OK", "offers that all lack a price, with a warning"),
    "filter-ignored": Fault("OK", "products of all prices; `EXTRACTION_FAILED` with `min_price` or `max_price`"),
    "filter-stated": Fault("OK", "the same, and pages state the requested `min_price` and `max_price`"),
    "filter-unasked": Fault("EXTRACTION_FAILED", "a page that states a filter that was not requested"),
    "total-low": Fault("OK", "a total of 350 products, although the listing has more"),
    "blind-later": Fault("OK", "from page 2 on, product rows with renamed keys"),
}
"""The faults by name. A fault is selected by a search for its name, or by its category id in ``Site.faults``. The code
is the outcome of the first page."""

NEWER = ("filter-ignored", "filter-stated", "filter-unasked", "total-low", "blind-later")
"""Faults that were added later. Their category ids follow those of all others, so that existing faults keep theirs."""
LOW_TOTAL = 350

NAMELESS_STEP = 7
"""With the fault ``missing-name``, the first row has no name, and from there on every seventh row."""


def damaged(name: str, path: str, honest: FaultlessResponse) -> FakeResponse:
    """Build the damaged response for a fault that only the shop has."""
    if name in _ANSWERS:
        return _ANSWERS[name](path)
    if name in UNFILTERED:  # the shop's undamaged page ignores the filter
        return honest()
    title, block = parts(honest()[2])
    if name in _BLOCKS:
        return 200, {}, document(title, _BLOCKS[name](block))
    data = orjson.loads(block)
    _DAMAGES[name](data["props"]["pageProps"]["initialData"])
    return 200, {}, document(title, data)


def expected_after_fault(name: str | None, record: dict[str, Any]) -> dict[str, Any]:
    """Return a listing's expected record, changed as required by the listing's fault. Most faults require no change."""
    if name == "missing-name":
        named = [product for index, product in enumerate(record["products"]) if index % NAMELESS_STEP]
        return {**record, "products": named, "returned": len(named)}
    if name == "total-low":
        return {**record, "total_results": LOW_TOTAL}
    if name != "no-prices":
        return record
    no_price = {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    return {**record, "products": [{**product, "price": no_price} for product in record["products"]]}


# Responses that are not a listing page


def _challenge_json(path: str) -> FakeResponse:
    where = f"/blocked?{urlencode({'url': path})}"
    return as_json({"redirectUrl": where, "blockScript": "/px/captcha.js", "appId": "PX"}, 412)


_ANSWERS: dict[str, Callable[[str], FakeResponse]] = {
    "challenge": lambda _: (200, {}, challenge()),
    "challenge-412": lambda _: (412, {}, challenge()),
    "challenge-redirect": lambda path: (307, {"Location": f"/blocked?{urlencode({'url': path})}"}, b""),
    "challenge-json": _challenge_json,
    "teapot": lambda _: (418, {}, b"I'm a teapot"),
    "soft-gone": lambda _: (200, {}, not_found()),
    "home": lambda _: (302, {"Location": "/"}, b""),
    "editorial": lambda _: (200, {}, other("/cp/[...params]", {"contentLayout": {"modules": [{"type": "Article"}]}})),
    "product-page": lambda _: (200, {}, other("/ip/[...itemParams]", {"data": {"product": {"name": "One thing"}}})),
    "no-data": lambda _: (200, {}, b"<!DOCTYPE html><html><title>Shop</title><body>Back in a moment</body></html>"),
}

# Data blocks that cannot be read

_BLOCKS: dict[str, Callable[[bytes], bytes]] = {
    "broken-json": lambda block: block[: len(block) // 2],
    "deep-json": lambda _: b"[" * 10_000 + b"]" * 10_000,
}


# Listing pages with wrong data


def _reported_error(initial: dict[str, Any]) -> None:
    error = {"errorType": "BACKEND_TIMEOUT", "statusCode": 504, "statusMsg": "timeout", "source": "sis"}
    initial["searchResult"]["errorResponse"]["errors"] = [error]


def _blind(initial: dict[str, Any]) -> None:
    for stack in initial["searchResult"]["itemStacks"]:
        rows = stack["items"]
        stack["items"] = [{k if k == "__typename" else f"{k}V3": v for k, v in row.items()} for row in rows]


def _missing_name(initial: dict[str, Any]) -> None:
    for copies in _products(initial)[::NAMELESS_STEP]:
        for row in copies:
            row["name"] = None


def _no_prices(initial: dict[str, Any]) -> None:
    for copies in _products(initial):
        for row in copies:
            row.update(priceInfo=no_prices(), price=0)


def _echo(initial: dict[str, Any]) -> dict[str, Any]:
    echo: dict[str, Any] = initial["searchResult"]["paginationV2"]["pageProperties"]
    return echo


def _products(initial: dict[str, Any]) -> list[tuple[dict[str, Any], ...]]:
    """Return a tuple for each row in a page's grids: the row, and its copy in the carousel if there is one."""
    grid: list[dict[str, Any]] = []
    carousel: list[dict[str, Any]] = []
    for stack in initial["searchResult"]["itemStacks"]:
        rows = grid if stack["layoutEnum"] == "GRID" else carousel
        rows += [row for row in stack["items"] if row["__typename"] == "Product"]
    return [(row, *carousel[index : index + 1]) for index, row in enumerate(grid)]


_DAMAGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "no-listing": lambda initial: initial.update(searchResult=None),
    "reported-error": _reported_error,
    "wrong-category": lambda initial: _echo(initial).update(cat_id="5438", query="something else"),
    "wrong-page": lambda initial: _echo(initial).update(page=_echo(initial)["page"] + 1),
    "blind": _blind,
    "missing-name": _missing_name,
    "no-prices": _no_prices,
    "total-low": lambda initial: initial["searchResult"].update(aggregatedCount=LOW_TOTAL),
    "blind-later": _blind,
}
