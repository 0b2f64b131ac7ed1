"""What the simulated shop can do wrong, and what is still true of a listing to which it was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.retail.page import challenge, document, not_found, other, parts
from crawler.sandbox.retail.row import no_prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawler.sandbox.protocol import Answer, HonestAnswer

FAULTS = COMMON | {
    "challenge": Fault("UPSTREAM_BLOCKED", "200 with a page that asks whether a human is there"),
    "challenge-412": Fault("UPSTREAM_BLOCKED", "the same as 412"),
    "challenge-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to the page that asks"),
    "challenge-json": Fault("UPSTREAM_BLOCKED", "the challenge of the in-page calls"),
    "teapot": Fault("UPSTREAM_BLOCKED", "418"),
    "soft-gone": Fault("TARGET_NOT_FOUND", "200 with the shop's own not-found page"),
    "home": Fault("TARGET_NOT_FOUND", "a redirect to the home page"),
    "no-listing": Fault("TARGET_NOT_FOUND", "the listing is null"),
    "editorial": Fault("TARGET_NOT_FOUND", "a page of articles"),
    "product-page": Fault("TARGET_NOT_FOUND", "a page of one product"),
    "reported-error": Fault("UPSTREAM_ERROR", "200 whose data reports an error"),
    "wrong-category": Fault("EXTRACTION_FAILED", "another category's listing"),
    "wrong-category-once": Fault("OK", "the same, the first time"),
    "wrong-page": Fault("EXTRACTION_FAILED", "another page of the listing"),
    "no-data": Fault("EXTRACTION_FAILED", "no data block, and no word why"),
    "broken-json": Fault("EXTRACTION_FAILED", "the data block ends in the middle"),
    "deep-json": Fault("EXTRACTION_FAILED", "a data block of ten thousand nested lists"),
    "blind": Fault("EXTRACTION_FAILED", "product rows whose keys have new names"),
    "missing-name": Fault("EXTRACTION_FAILED", "some rows without a name"),
    "no-prices": Fault("OK", "rows of which none states a price"),
}
"""What the shop can do wrong, by target name. A search is for the name; categories have the ids of ``Site.faults``."""

NAMELESS = 7
"""Every so many rows one has no name."""


def damaged(name: str, path: str, honest: HonestAnswer) -> Answer:
    """The answer of a fault of the shop's own."""
    if name in _ANSWERS:
        return _ANSWERS[name](path)
    title, block = parts(honest()[2])
    if name in _BLOCKS:
        return 200, {}, document(title, _BLOCKS[name](block))
    data = orjson.loads(block)
    _DAMAGES[name](data["props"]["pageProps"]["initialData"])
    return 200, {}, document(title, data)


def expected_after_fault(name: str | None, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a listing, after a fault that leaves some of it."""
    if name != "no-prices":
        return record
    nothing = {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    return {**record, "products": [{**product, "price": nothing} for product in record["products"]]}


# Answers that are no listing


def _challenge_json(path: str) -> Answer:
    data = {"redirectUrl": f"/blocked?{urlencode({'url': path})}", "blockScript": "/px/captcha.js", "appId": "PX"}
    return 412, {"Content-Type": "application/json"}, orjson.dumps(data)


def _product_page(_path: str) -> Answer:
    product = {"usItemId": "1", "name": "One thing"}
    return 200, {}, other("/ip/[...itemParams]", {"data": {"product": product, "contentLayout": {}}})


_ANSWERS: dict[str, Callable[[str], Answer]] = {
    "challenge": lambda _: (200, {}, challenge()),
    "challenge-412": lambda _: (412, {}, challenge()),
    "challenge-redirect": lambda path: (307, {"Location": f"/blocked?{urlencode({'url': path})}"}, b""),
    "challenge-json": _challenge_json,
    "teapot": lambda _: (418, {}, b"I'm a teapot"),
    "soft-gone": lambda _: (200, {}, not_found()),
    "home": lambda _: (302, {"Location": "/"}, b""),
    "editorial": lambda _: (200, {}, other("/cp/[...params]", {"contentLayout": {"modules": [{"type": "Article"}]}})),
    "product-page": _product_page,
    "no-data": lambda _: (200, {}, b"<!DOCTYPE html><html><title>Shop</title><body>Back in a moment</body></html>"),
}

# Data blocks that cannot be read

_BLOCKS: dict[str, Callable[[bytes], bytes]] = {
    "broken-json": lambda block: block[: len(block) // 2],
    "deep-json": lambda _: b"[" * 10_000 + b"]" * 10_000,
}


# Listings that say something else


def _reported_error(initial: dict[str, Any]) -> None:
    error = {"errorType": "BACKEND_TIMEOUT", "statusCode": 504, "statusMsg": "timeout", "source": "sis"}
    initial["searchResult"]["errorResponse"]["errors"] = [error]


def _wrong_category(initial: dict[str, Any]) -> None:
    _echo(initial).update(cat_id="5438", query="something else")


def _wrong_page(initial: dict[str, Any]) -> None:
    _echo(initial)["page"] += 1


def _blind(initial: dict[str, Any]) -> None:
    for stack in initial["searchResult"]["itemStacks"]:
        rows = stack["items"] or stack["itemsV2"]
        stack["items"] = [{k if k == "__typename" else f"{k}V3": v for k, v in row.items()} for row in rows]


def _missing_name(initial: dict[str, Any]) -> None:
    for copies in _products(initial)[::NAMELESS]:
        for row in copies:
            row["name"] = None


def _no_prices(initial: dict[str, Any]) -> None:
    for copies in _products(initial):
        for row in copies:
            row.update(priceInfo=no_prices(), price=0, currencyCode=None)


def _echo(initial: dict[str, Any]) -> dict[str, Any]:
    echo: dict[str, Any] = initial["searchResult"]["paginationV2"]["pageProperties"]
    return echo


def _products(initial: dict[str, Any]) -> list[tuple[dict[str, Any], ...]]:
    """The products of the listing's own grids: the row of each, and its copy in the carousel that shows the first."""
    grid: list[dict[str, Any]] = []
    carousel: list[dict[str, Any]] = []
    for stack in initial["searchResult"]["itemStacks"]:
        rows = grid if stack["layoutEnum"] == "GRID" else carousel
        rows += [row for row in stack["items"] or stack["itemsV2"] if row["__typename"] == "Product"]
    return [(row, *carousel[place : place + 1]) for place, row in enumerate(grid)]


_DAMAGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "no-listing": lambda initial: initial.update(searchResult=None),
    "reported-error": _reported_error,
    "wrong-category": _wrong_category,
    "wrong-page": _wrong_page,
    "blind": _blind,
    "missing-name": _missing_name,
    "no-prices": _no_prices,
}
