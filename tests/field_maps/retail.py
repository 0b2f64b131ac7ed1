"""Retail: reads listings and their rows in both price formats, independently of the page objects."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote_plus, urljoin

from tests.field_maps.paths import at, first

SHOP = "https://www.walmart.com"


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object of a listing must extract; None for other responses."""
    listing = at(payload, "props.pageProps.initialData.searchResult")
    if not isinstance(listing, dict):
        return None
    echo = at(listing, "paginationV2.pageProperties") or {}
    rows = [row for stack in listing["itemStacks"] if is_grid(stack) for row in stack["items"]]
    if not echo:  # the rows have no types, because the capture was trimmed
        rows = [{"__typename": "Product"} | row for row in rows]
    products = [product(row) for row in rows if row.get("__typename") == "Product" and row.get("usItemId")]
    number, last = int(echo.get("page") or 1), at(listing, "paginationV2.maxPage")
    # In a search, the query is under the key of a category's name: a search has no category.
    named = first(listing, "catInfo.name", "requestContext.categories.name") or ""
    root = "0" if page == "SearchPage" else ""  # searches are in the root category
    cat_id = echo.get("cat_id") or root
    name = "" if cat_id == "0" else named
    total = first(listing, "aggregatedCount", "itemStacks.0.count", "itemStacks.0.meta.totalItemCount")
    common = {
        "breadcrumbs": [],
        "category_id": cat_id,
        "cat_id": cat_id,
        "category_name": name,
        "has_more": bool(products) and (last is None or number < last),
        # Without a title of its own, a listing has the title of its first grid.
        "heading": first(listing, "title", "itemStacks.0.meta.title") or name,
        "max_page": last,
        "page": number,
        "products": products,
        "returned": len(products),
        "sort": echo.get("sort") or "",
        "title": at(payload, "title") or listing.get("title") or "",
        "total_results": total,
    }
    if page == "SearchPage":
        query = echo.get("query") or ""
        return common | {"query": query, "url": f"{SHOP}/search?q={quote_plus(query)}" if query else f"{SHOP}/"}
    return common | {"url": f"{SHOP}/browse/{cat_id}" if cat_id else f"{SHOP}/"}


def is_grid(stack: dict[str, Any]) -> bool:
    """Whether a stack contains the listing's own rows."""
    layout = first(stack, "layoutEnum", "meta.layoutEnum")
    return layout in {None, "GRID"} and at(stack, "meta.subType") != "SECONDARY_STACK"


def product(row: dict[str, Any]) -> dict[str, Any]:
    """The expected product."""
    status = at(row, "availabilityStatusV2.value") or ""
    path = at(row, "category.categoryPathId") or ""
    shown = row.get("badges")
    image = row.get("image") or at(row, "imageInfo.thumbnailUrl") or ""
    description = row.get("shortDescription") or ""
    flag = row.get("flag") or at(shown, "flags.0.text") or at(row, "badge.text") or ""
    found: dict[str, Any] = {
        "availability": {
            "display": first(row, "availabilityStatusV2.display", "availabilityStatusDisplayValue") or "",
            "in_stock": None if status in {"", "UNKNOWN"} else status == "IN_STOCK",
            "status": status,
        },
        "category_path": "/".join(path.removeprefix("0:").split(":")),
        "condition": at(row, "conditionV2.code"),
        "fulfillment_type": row.get("fulfillmentType") or "",
        "image": image.partition("?")[0],
        "is_preowned": row.get("isPreowned"),
        "is_sponsored": bool(first(row, "isSponsoredFlag", "sponsoredProduct")),
        "item_id": row["usItemId"],
        "name": row["name"],
        "offer_id": row.get("offerId") or "",
        "price": price(row),
        "product_id": row.get("id") or "",
        "rating": {"average": row.get("averageRating"), "review_count": row.get("numberOfReviews")},
        "seller": {"id": row.get("sellerId") or "", "name": (row.get("sellerName") or "").strip()},
        "short_description": "" if description == "None" else description.strip(),
        "url": urljoin(SHOP, row["canonicalUrl"].partition("?")[0]) if row.get("canonicalUrl") else "",
        "variant_count": variants(row),
    }
    tags = at(shown, "tags") or []
    badges = [each["text"] for each in at(shown, "flags") or [] if each.get("text")]
    # The text of an icon is cut: "Save with". Newer pages have the whole text.
    badges += ["Save with Walmart plus" if each["key"] == "SAVE_WITH_W_PLUS" else each["text"] for each in tags]
    return found | ({"flag": flag} if flag else {}) | ({"badges": badges} if badges else {})


def variants(row: dict[str, Any]) -> int | None:
    """The number of a product's variants; None if the row lists no variants and its ``type`` is VARIANT or missing.

    The notes on the platform leave both types open ("null is more honest"); the contract allows no invented 0.
    """
    criteria = row.get("variantCriteria") or []
    listed = len(row.get("variantList") or []) or sum(len(each.get("variantList") or []) for each in criteria)
    open_ended = row.get("type") in {None, "VARIANT"}
    return None if not listed and open_ended else row.get("variantCount", listed)


def price(row: dict[str, Any]) -> dict[str, Any]:
    """The price. Each part is read from the first format that has it: A (lines), B (flat texts)."""
    lines = {
        (line["lineType"], each["key"]): amount(each["value"])
        for line in at(row, "priceInfo.priceDetails.priceLines") or []
        for each in line["values"]
    }
    info = row.get("priceInfo") or {}
    current = (
        lines.get(("DISCOUNTED_PRICE", "PRICE"))
        or lines.get(("CURRENT_PRICE", "PRICE"))
        or amount(info.get("linePrice"))
    )
    low = lines.get(("OPTIONS_RANGE", "LOW_PRICE")) or lines.get(("OPTIONS", "LOW_PRICE"))
    high = lines.get(("OPTIONS_RANGE", "HIGH_PRICE"))
    if low is None:
        ends = [amount(each) for each in re.findall(r"\d[\d,]*\.?\d*", info.get("priceRangeString") or "")]
        low, high = [*ends, None, None][:2]
    if current is None and low is None:
        return {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    is_range = low is not None and (low, high) != (current, current)
    currency = first(info, "priceDetails.currency", "currencyCode") or "USD"
    found = {"currency": currency, "current_price": current, "is_price_range": is_range, "min_price": low or current}
    return found | ({"max_price": high} if high else {})


def amount(text: Any) -> float | None:
    """The first number in a text, without thousands separators; None if it is missing or 0."""
    found = re.search(r"\d[\d,]*\.?\d*", text or "")
    return float(found[0].replace(",", "")) or None if found else None


def payload_of(body: str) -> Any:
    """The JSON in the page's ``__NEXT_DATA__`` script, with the page's title added under the key ``title``."""
    script = re.search(r'<script id="__NEXT_DATA__"[^>]*>(.*?)</script>', body, re.DOTALL)
    title = re.search(r"<title[^>]*>(.*?)</title>", body, re.DOTALL)
    return json.loads(script[1]) | {"title": title[1] if title else ""} if script else None
