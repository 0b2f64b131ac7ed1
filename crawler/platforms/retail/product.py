"""Retail: converts one row of a listing to the contract's product object (specification 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.payload import ApiRow, Badge, BadgeMember, Price, RenderedPrice, RenderedRow
from crawler.reading.contract import OFTEN_ROWS
from crawler.reading.unread import MAX_NAME_LENGTH, MAX_NAMES, Unread
from crawler.reading.values import absolute_url, count

ORIGIN = PLATFORM.origin
HIGHEST_RATING = 5
DELIVERY_GROUPS = frozenset({"fulfillment", "ProdTileBadgeModule5"})
"""The names of the groups of badges about delivery, which depend on the visitor's location. The platform uses the
second name since 2026-08."""
ROOT = "0"
"""The id of the root category."""
IN_STOCK = {"IN_STOCK": True, "OUT_OF_STOCK": False}


def product(row: RenderedRow | ApiRow) -> dict[str, Any]:
    """Build the contract's product object from a row. Optional keys without a value are omitted."""
    status = row.status or ""
    found: dict[str, Any] = {
        "availability": {"display": row.status_text or "", "in_stock": IN_STOCK.get(status), "status": status},
        "category_path": _category_path(row.category_path),
        "condition": count(row.condition),
        "fulfillment_type": row.fulfillment_type or "",
        "image": row.image or row.thumbnail or "",
        "is_preowned": row.is_preowned,
        "is_sponsored": row.sponsored is not None if row.is_sponsored is None else row.is_sponsored,
        "item_id": str(row.item_id),
        "name": row.name,
        "offer_id": row.offer_id or "",
        "price": _price(row),
        "product_id": _text(row.product_id),
        "rating": _rating(row),
        "seller": {"id": _text(row.seller_id), "name": row.seller_name or ""},
        "short_description": row.short_description or "",
        "url": absolute_url(ORIGIN, row.url, query=False),
        "variant_count": _variant_count(row),
    }
    flags = row.flags
    if badges := _badges(row, flags):
        found["badges"] = badges
    if flag := row.flag or (flags[0].text if flags else None):
        found["flag"] = flag
    return found


def contradictions(
    rows: Sequence[RenderedRow | ApiRow], products: Sequence[dict[str, Any]], path: str
) -> Iterator[Unread]:
    """Yield values that all rows lack although other values of the rows show that they exist, and unknown price lines.

    ``path``: where the rows are. In the captures of listings, 459 of 459 rows with an offer have a price, 7 of 7
    pre-owned products have a condition, and 370 of 370 products with reviews have a rating.
    """
    offers = [each for each in products if each["offer_id"]]
    if len(offers) >= OFTEN_ROWS and all(each["price"]["min_price"] is None for each in offers):
        yield Unread(f"{path}.priceInfo", "contradiction", len(offers), len(offers))
    prices = [row.price for row in rows if isinstance(row.price, RenderedPrice)]
    unknown = [price.unknown_lines for price in prices if price.unknown_lines]
    if unknown:
        names = dict.fromkeys(kind[:MAX_NAME_LENGTH] for kinds in unknown for kind in kinds)
        lines = f"{path}.priceInfo.priceDetails.priceLines[].…unknown"
        yield Unread(lines, "unknown", len(unknown), len(rows), names=(*names,)[:MAX_NAMES])
    missing = {
        "conditionV2": [row.condition is None for row in rows if row.is_preowned],
        "averageRating": [row.rating is None for row in rows if count(row.reviews)],
        "numberOfReviews": [not count(row.reviews) for row in rows if row.rating],
    }
    for key, found in missing.items():
        if found and all(found):
            yield Unread(f"{path}.{key}", "contradiction", sum(found), len(found))


def _text(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _rating(row: RenderedRow | ApiRow) -> dict[str, Any]:
    """Return the average and the number of reviews. Without an average, 0 reviews become null, because the number of
    reviews is then unknown.

    The row's object ``rating`` is not read, because it has 0 in place of missing values.
    """
    average, reviews = row.rating, count(row.reviews)
    if average is None or not 0 < average <= HIGHEST_RATING:
        return {"average": None, "review_count": reviews or None}
    return {"average": average, "review_count": reviews}


def _badges(row: RenderedRow | ApiRow, flags: list[Badge]) -> list[str]:
    """Return the texts of a row's badges as on its tile: the flags, then the tags, then the badges in groups.

    For a tag of the type ``ICON``, return its key, because its text is incomplete. Since August 2026, the list of tags
    is empty, and the groups contain all badges.
    """
    shown = [flag.text for flag in flags]
    shown += [tag.key if tag.kind == "ICON" else tag.text for tag in row.tags]
    for group in row.groups:
        if group.name not in DELIVERY_GROUPS:
            shown += [_shown(member) for member in group.members]
    return list(dict.fromkeys(filter(None, shown))) if shown else []


def _shown(member: BadgeMember) -> str:
    """Return the content of a badge: its texts and the descriptions of its icons, such as "Save with Walmart plus"."""
    parts = (part.value if part.kind == "TEXT" else part.description for part in member.parts)
    return " ".join(part.strip() for part in parts if part and not part.isspace())


def _category_path(ids: str | None) -> str:
    """Convert a path of ids such as "0:3944:1089430" to "3944/1089430", without the root."""
    return "" if ids in {None, ROOT} else (ids or "").removeprefix(f"{ROOT}:").replace(":", "/")


def _variant_count(row: RenderedRow | ApiRow) -> int | None:
    """Return the number of variants. None if the row has variants but does not list them, or has no type."""
    stated = count(row.variant_count)
    if stated is not None:
        return stated
    listed = len(row.variants) or sum(len(criterion.variants) for criterion in row.criteria)
    return listed if listed or row.kind not in {None, "VARIANT"} else None


def _price(row: RenderedRow | ApiRow) -> dict[str, Any]:
    current, low, high, currency = Price() if row.price is None else row.price.read()
    minimum = current if low is None else low
    if minimum is None:
        return {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    price = {
        "currency": currency or "USD",  # price texts lack the currency, but shops of other countries are refused
        "current_price": current,
        "is_price_range": (high is not None and high > minimum) or current is None or minimum < current,
        "min_price": minimum,
    }
    return price if high is None else {**price, "max_price": high}
