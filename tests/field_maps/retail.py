"""Retail: reads listings and their rows in all three price formats, independently of the page objects."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote_plus, urljoin

from tests.field_maps.paths import at, first

SHOP = "https://www.walmart.com"


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object of a listing must extract; None for other responses."""
    if isinstance(payload, list):
        return rows_alone(page, payload)
    initial = at(payload, "props.pageProps.initialData") or payload
    listing = first(initial, "searchResult", "data.search.searchResult")
    if not isinstance(listing, dict):
        return None
    if not at(listing, "paginationV2.pageProperties.page"):
        rows = listing["itemStacks"][0]["items"]  # without types, because the capture was trimmed
        return rows_alone(page, [{"__typename": "Product"} | row for row in rows], more=True)
    echo = at(listing, "paginationV2.pageProperties")
    rows = [
        row for stack in listing["itemStacks"] if is_grid(stack) for row in stack.get("items") or stack.get("itemsV2")
    ]
    products = [product(row) for row in rows if row.get("__typename") == "Product" and row.get("usItemId")]
    number, last = int(echo["page"]), at(listing, "paginationV2.maxPage")
    # In a search, the query is under the key of a category's name: a search has no category.
    named = first(listing, "catInfo.name", "requestContext.categories.name") or ""
    name = "" if echo["cat_id"] == "0" else named
    total = first(listing, "aggregatedCount", "itemStacks.0.count", "itemStacks.0.meta.totalItemCount")
    common = {
        "breadcrumbs": [],
        "category_id": echo["cat_id"],
        "cat_id": echo["cat_id"],
        "category_name": name,
        "has_more": bool(products) and number < last,
        # The app's listing has no title of its own; its first grid has the same text.
        "heading": first(listing, "title", "itemStacks.0.meta.title") or name,
        "max_page": last,
        "page": number,
        "products": products,
        "returned": len(products),
        "sort": echo["sort"],
        "title": at(payload, "title") or listing.get("title") or "",
        "total_results": total,
    }
    if page == "SearchPage":
        query = echo["query"]
        return common | {"query": query, "url": f"{SHOP}/search?q={quote_plus(query)}"}
    return common | {"url": f"{SHOP}/browse/{echo['cat_id']}"}


def rows_alone(page: str, rows: list[dict[str, Any]], *, more: bool = False) -> dict[str, Any]:
    """The item for rows that were saved without their listing, so that there are no totals and no title.

    The notes on the platform do not specify three fields: the page number (1, the default of the request), the URL
    (that of the response), and whether more follows (false for rows alone, true for a page without a last page number).
    """
    products = [product(row) for row in rows if row.get("__typename") == "Product" and row.get("usItemId")]
    texts = dict.fromkeys(("category_name", "heading", "sort", "title"), "")
    numbers = {"max_page": None, "page": 1, "returned": len(products), "total_results": None}
    found = {"breadcrumbs": [], "has_more": more, "products": products, "url": f"{SHOP}/"}
    root = "0" if page == "SearchPage" else ""  # searches are in the root category
    own = {"cat_id": root, "category_id": root}
    return texts | numbers | found | own | ({"query": ""} if page == "SearchPage" else {})


def is_grid(stack: dict[str, Any]) -> bool:
    """Whether a stack contains the listing's own rows."""
    layout = first(stack, "layoutEnum", "meta.layoutEnum")
    return layout in {None, "GRID"} and at(stack, "meta.subType") != "SECONDARY_STACK"


def product(row: dict[str, Any]) -> dict[str, Any]:
    """The expected product."""
    status = at(row, "availabilityStatusV2.value") or ""
    path = at(row, "category.categoryPathId") or ""
    shown = row.get("badges") or row.get("unifiedBadge")  # the app's rows of 2022 have the older name
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
        "image": row.get("image") or at(row, "imageInfo.thumbnailUrl") or at(row, "imageInfo.allImages.0.url") or "",
        "is_preowned": row.get("isPreowned"),
        "is_sponsored": bool(first(row, "isSponsoredFlag", "sponsoredProduct")),
        "item_id": row["usItemId"],
        "name": row["name"],
        "offer_id": row.get("offerId") or "",
        "price": price(row),
        "product_id": row.get("id") or "",
        "rating": {"average": row.get("averageRating"), "review_count": row.get("numberOfReviews")},
        "seller": {"id": row.get("sellerId") or "", "name": row.get("sellerName") or ""},
        "short_description": row.get("shortDescription") or "",
        "url": urljoin(SHOP, row["canonicalUrl"].partition("?")[0]) if row.get("canonicalUrl") else "",
        "variant_count": variants(row),
    }
    tags = at(shown, "tags") or []
    badges = [each["text"] for each in at(shown, "flags") or [] if each.get("text")]
    badges += [each["key"] if each.get("type") == "ICON" else each["text"] for each in tags]
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
    """The price. Each part is read from the first format that has it: A (lines), B (flat texts), C (nested objects)."""
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
        or at(info, "currentPrice.price")
    )
    low = lines.get(("OPTIONS_RANGE", "LOW_PRICE")) or lines.get(("OPTIONS", "LOW_PRICE"))
    high = lines.get(("OPTIONS_RANGE", "HIGH_PRICE"))
    if low is None:
        ends = [amount(each) for each in re.findall(r"\d[\d,]*\.?\d*", info.get("priceRangeString") or "")]
        low, high = [*ends, None, None][:2]
    low = low or at(info, "priceRange.minPrice") or current
    high = high or at(info, "priceRange.maxPrice") or None
    if current is None and low is None:
        return {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    is_range = bool(high and low and high > low) or bool(current and low and low < current) or current is None
    currency = first(info, "priceDetails.currency", "currentPrice.currencyUnit", "currencyCode") or "USD"
    found = {"currency": currency, "current_price": current, "is_price_range": is_range, "min_price": low}
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
