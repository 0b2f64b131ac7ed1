"""Retail: converts one row of a listing to the contract's product object (specification 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.payload import BadgeMember, Row
from crawler.platforms.retail.price import has_wrong_price, price_of, unknown_leads, unread_lines
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, Unread
from crawler.reading.values import absolute_url, count

ORIGIN = PLATFORM.origin
HIGHEST_RATING = 5
DELIVERY_GROUPS = frozenset({"fulfillment", "ProdTileBadgeModule5"})
"""The names of the groups of badges about delivery, which depend on the visitor's location. The platform uses the
second name since 2026-08."""
DELIVERY_WORDS = frozenset({"DELIVERY", "PICKUP", "SHIPPING"})
"""The words in the keys of tags about delivery, such as ``TWO_DAY_SHIPPING``."""
ICON_TEXTS = {"SAVE_WITH_W_PLUS": "Save with Walmart plus"}
"""The texts of tags that are icons, by their keys, as the groups of badges spell them since 2026-08."""
OWN_DELIVERY = frozenset({"FC", "STORE"})
"""The kinds of fulfillment by the shop itself."""
NO_TEXT = "None"
"""The platform's text for a missing description, in three recorded rows."""
ROOT = "0"
"""The id of the root category."""
IN_STOCK = {"IN_STOCK": True, "OUT_OF_STOCK": False}


def product(row: Row) -> dict[str, Any]:
    """Build the contract's product object from a row. Optional keys without a value are omitted."""
    status = row.status or ""
    found: dict[str, Any] = {
        "availability": {"display": row.status_text or "", "in_stock": IN_STOCK.get(status), "status": status},
        "category_path": _category_path(row.category_path),
        "condition": count(row.condition),
        "fulfillment_type": row.fulfillment_type or "",
        "image": absolute_url(ORIGIN, row.image or row.thumbnail, query=False),  # the query asks for a small size
        "is_preowned": row.is_preowned,
        "is_sponsored": row.sponsored is not None if row.is_sponsored is None else row.is_sponsored,
        "item_id": str(row.item_id),
        "name": row.name,
        "offer_id": row.offer_id or "",
        "price": price_of(row),
        "product_id": _text(row.product_id),
        "rating": _rating(row),
        "seller": {"id": _text(row.seller_id), "name": (row.seller_name or "").strip()},
        "short_description": "" if row.short_description in {None, NO_TEXT} else row.short_description.strip(),
        "url": absolute_url(ORIGIN, row.url, query=False),
        "variant_count": _variant_count(row),
    }
    if badges := _badges(row):
        found["badges"] = badges
    if flag := row.flag or (row.flags[0].text if row.flags else None):
        found["flag"] = flag
    return found


def contradictions(rows: Sequence[Row], path: str) -> Iterator[Unread]:
    """Yield values that rows lack although other values show that they exist, and parts of prices that were not read.

    ``path``: where the rows are. In 421 recorded rows since 2024-12, every row with an offer has a price, a URL and a
    kind of fulfillment, and the reverse; every product with reviews has a rating, and the reverse; a row's flag is one
    of its badges; and the status and the description are stated twice. Only products that another seller also delivers
    (``MARKETPLACE``) may have no category. On a page, all rows with an offer have a condition, or none.
    """
    offers = [row for row in rows if row.offer_id]
    has_conditions = any(row.condition is not None for row in rows)
    missing = {
        "priceInfo": [has_wrong_price(row) for row in rows],
        "offerId": [not row.offer_id for row in rows if row.fulfillment_type],
        "category.categoryPathId": [not row.category_path for row in rows if row.fulfillment_type in OWN_DELIVERY],
        "canonicalUrl": [not row.url for row in offers],
        "fulfillmentType": [not row.fulfillment_type for row in offers],
        "conditionV2": [row.condition is None for row in offers if has_conditions or row.is_preowned],
        "averageRating": [not row.rating for row in rows if count(row.reviews)],
        "numberOfReviews": [not count(row.reviews) for row in rows if row.rating],
        "availabilityStatusV2": [not (row.status and row.status_text) for row in rows if row.shown_status],
        "shortDescription": [not row.short_description for row in rows if row.description],
        "badges": [row.flag not in _badges(row) for row in rows if row.flag],
        "flag": [not row.flag for row in rows if row.flags],
    }
    for key, found in missing.items():
        if any(found):
            yield Unread(f"{path}.{key}", "contradiction", sum(found), len(found))
    prices = [row.price for row in rows if row.price]
    lines = f"{path}.priceInfo.priceDetails.priceLines[].…unknown"
    yield from _unknown(lines, [*map(unread_lines, prices)], of=len(rows))
    yield from _unknown(f"{path}.priceInfo.…unknown", [*map(unknown_leads, prices)], of=len(rows))


def _unknown(path: str, found: list[list[str]], *, of: int) -> Iterator[Unread]:
    names = dict.fromkeys(name[:MAX_NAME_LENGTH] for each in found for name in each)
    if names:
        yield Unread(path, "unknown", sum(map(bool, found)), of, names=(*names,)[:MAX_NAMES])


def _text(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _rating(row: Row) -> dict[str, Any]:
    """Return the average and the number of reviews. Without an average, 0 reviews become null, because the number of
    reviews is then unknown.

    The row's object ``rating`` is not read, because it has 0 in place of missing values.
    """
    average, reviews = row.rating, count(row.reviews)
    if average is None or not 0 < average <= HIGHEST_RATING:
        return {"average": None, "review_count": reviews or None}
    return {"average": average, "review_count": reviews}


def _badges(row: Row) -> list[str]:
    """Return the texts of a row's badges as on its tile, without delivery: the flags, the tags, the badges in groups.

    Since August 2026, the list of tags is empty, and the groups contain all badges.
    """
    shown = [flag.text for flag in row.flags]
    for tag in row.tags:
        key = tag.key or ""
        if DELIVERY_WORDS.isdisjoint(key.split("_")):
            shown.append(ICON_TEXTS.get(key, key) if tag.kind == "ICON" else tag.text)
    for group in row.groups:
        if group.name not in DELIVERY_GROUPS:
            shown += [_shown(member) for member in group.members]
    return list(dict.fromkeys(filter(None, shown)))


def _shown(member: BadgeMember) -> str:
    """Return the content of a badge: its texts and the descriptions of its icons, such as "Save with Walmart plus"."""
    parts = (part.value if part.kind == "TEXT" else part.description for part in member.parts)
    return " ".join(part.strip() for part in parts if part and not part.isspace())


def _category_path(ids: str | None) -> str:
    """Convert a path of ids such as "0:3944:1089430" to "3944/1089430", without the root."""
    return "" if ids in {None, ROOT} else (ids or "").removeprefix(f"{ROOT}:").replace(":", "/")


def _variant_count(row: Row) -> int | None:
    """Return the number of variants. None if the row has variants but does not list them, or has no type."""
    stated = count(row.variant_count)
    if stated is not None:
        return stated
    listed = len(row.variants) or sum(len(criterion.variants) for criterion in row.criteria)
    return listed if listed or row.kind not in {None, "VARIANT"} else None
