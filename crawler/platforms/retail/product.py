"""Retail: converts one row of a listing to the contract's product object (specification 2.7)."""

from __future__ import annotations

from typing import Any

from crawler.platforms.retail import PLATFORM
from crawler.reading.json import dicts, dig, nonempty_strings
from crawler.reading.values import absolute_url, amount, amounts, count, flag, number, text

ORIGIN = PLATFORM.origin
HIGHEST_RATING = 5
DELIVERY_GROUP = "fulfillment"
"""The group of badges about delivery, which depends on the visitor's place."""


def product(row: dict[str, Any]) -> dict[str, Any]:
    """Build the contract's product object from a row. Optional keys are omitted if the row has no value for them."""
    status = text(dig(row, "availabilityStatusV2", "value"))
    flags = _badge_objects(row, "flags")
    found = {
        "availability": {
            "display": text(dig(row, "availabilityStatusV2", "display"))
            or text(row.get("availabilityStatusDisplayValue")),
            "in_stock": {"IN_STOCK": True, "OUT_OF_STOCK": False}.get(status),
            "status": status,
        },
        "badges": _badges(row, flags),
        "category_path": _category_path(row),
        "condition": count(dig(row, "conditionV2", "code")),
        "flag": _flag(row, flags),
        "fulfillment_type": text(row.get("fulfillmentType")),
        "image": _image(row),
        "is_preowned": flag(row.get("isPreowned")),
        "is_sponsored": _is_sponsored(row),
        "item_id": text(row.get("usItemId")),
        "name": text(row.get("name")),
        "offer_id": text(row.get("offerId")),
        "price": _price(row),
        "product_id": text(row.get("id")),
        "rating": _rating(row),
        "seller": {"id": text(row.get("sellerId")), "name": text(row.get("sellerName"))},
        "short_description": text(row.get("shortDescription")),
        "url": absolute_url(ORIGIN, row.get("canonicalUrl"), query=False),
        "variant_count": _variant_count(row),
    }
    return {key: value for key, value in found.items() if value or key not in {"badges", "flag"}}


def _rating(row: dict[str, Any]) -> dict[str, Any]:
    """Return the average and the number of reviews. If there is no average, 0 reviews means an unknown number: null.

    ``row["rating"]`` is not read, because both of its values are only placeholders.
    """
    average, reviews = number(row.get("averageRating")), count(row.get("numberOfReviews"))
    if average is None or not 0 < average <= HIGHEST_RATING:
        return {"average": None, "review_count": reviews or None}
    return {"average": average, "review_count": reviews}


def _is_sponsored(row: dict[str, Any]) -> bool:
    sponsored = flag(row.get("isSponsoredFlag"))
    return bool(row.get("sponsoredProduct")) if sponsored is None else sponsored


def _badge_objects(row: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return dicts(dig(row, "badges", kind)) or dicts(dig(row, "unifiedBadge", kind))


def _badges(row: dict[str, Any], flags: list[dict[str, Any]]) -> list[str]:
    """Return the texts of a row's badges: the flags, then the tags, then the members of ``groupsV2``.

    For a tag of the type ``ICON``, return its key: its text is incomplete. Since August 2026 the lists of flags and
    tags are empty, and ``groupsV2`` has all badges.
    """
    tags = [
        text(tag.get("key") if tag.get("type") == "ICON" else tag.get("text")) for tag in _badge_objects(row, "tags")
    ]
    groups = [group for group in _badge_objects(row, "groupsV2") if text(group.get("name")) != DELIVERY_GROUP]
    members = [_shown(member) for group in groups for member in dicts(group.get("members"))]
    return list(dict.fromkeys(nonempty_strings([text(each.get("text")) for each in flags] + tags + members)))


def _shown(member: dict[str, Any]) -> str:
    """Return what a badge in a group shows: its texts, or the description of its icon."""
    content = dicts(member.get("content"))
    texts = [text(each.get("value")).strip() for each in content if each.get("type") == "TEXT"]
    return " ".join(filter(None, texts)) or next((d for each in content if (d := text(each.get("contDesc")))), "")


def _flag(row: dict[str, Any], flags: list[dict[str, Any]]) -> str:
    return text(row.get("flag")) or text(dig(flags, 0, "text")) or text(dig(row, "badge", "text"))


def _category_path(row: dict[str, Any]) -> str:
    ids = text(dig(row, "category", "categoryPathId")).split(":")
    return "/".join(each for each in ids if each not in {"", "0"})


def _image(row: dict[str, Any]) -> str:
    info = row.get("imageInfo")
    return text(row.get("image")) or text(dig(info, "thumbnailUrl")) or text(dig(info, "allImages", 0, "url"))


VARIANT_KEYS = frozenset({"type", "variantList", "variantCriteria"})
"""Without these keys, a row does not show whether it has variants."""


def _variant_count(row: dict[str, Any]) -> int | None:
    """Return the number of variants, None if the row has variants but does not list them, or does not mention any."""
    stated = count(row.get("variantCount"))
    if stated is not None:
        return stated
    listed = len(dicts(row.get("variantList"))) or sum(
        len(dicts(criterion.get("variantList"))) for criterion in dicts(row.get("variantCriteria"))
    )
    mentioned = VARIANT_KEYS & row.keys() and row.get("type") != "VARIANT"
    return listed if listed or mentioned else None


# Prices: three layouts, all in use. "" and 0 mean that a price is missing.


def _price(row: dict[str, Any]) -> dict[str, Any]:
    info = row.get("priceInfo")
    current, low, high, currency = _lines(info) or _nested(row, info) or _flat(info) or (None, None, None, "")
    if current is None and low is None:
        return {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    minimum = current if low is None else low
    assert minimum is not None
    price = {
        "currency": currency or "USD",  # the flat layout has no currency. Other countries' shops are refused
        "current_price": current,
        "is_price_range": (high is not None and high > minimum) or current is None or minimum < current,
        "min_price": minimum,
    }
    return price if high is None else {**price, "max_price": high}


_Found = tuple[float | None, float | None, float | None, str]
"""The current price, the lowest price, the highest price, and the currency."""


def _lines(info: Any) -> _Found | None:
    """Read a price in the layout since July 2026: typed lines. The older layouts' fields exist, but are "" or 0."""
    values: dict[tuple[str, str], float | None] = {}
    for line in dicts(dig(info, "priceDetails", "priceLines")):
        for each in dicts(line.get("values")):
            values[text(line.get("lineType")), text(each.get("key"))] = amount(each.get("value"))
    current = values.get(("DISCOUNTED_PRICE", "PRICE")) or values.get(("CURRENT_PRICE", "PRICE"))
    low = values.get(("OPTIONS_RANGE", "LOW_PRICE")) or values.get(("OPTIONS", "LOW_PRICE"))
    high = values.get(("OPTIONS_RANGE", "HIGH_PRICE"))
    if current is None and low is None:
        return None
    return current, low, high, text(dig(info, "priceDetails", "currency"))


def _nested(row: dict[str, Any], info: Any) -> _Found | None:
    """Read a price in the layout of responses to the page's API calls: objects with a number and its text."""
    current = amount(dig(info, "currentPrice", "price"))
    low, high = amount(dig(info, "priceRange", "minPrice")), amount(dig(info, "priceRange", "maxPrice"))
    if current is None and low is None:
        return None
    return current, low, high, text(dig(info, "currentPrice", "currencyUnit")) or text(row.get("currencyCode"))


def _flat(info: Any) -> _Found | None:
    """Read a price in the layout until mid-2026, in which prices are texts.

    ``itemPrice`` is not read: it is the struck-through price. ``row["price"]`` is not read: it may be cut.
    """
    current = amount(dig(info, "linePrice")) or amount(dig(info, "linePriceDisplay"))
    ends = amounts(dig(info, "priceRangeString") if isinstance(dig(info, "priceRangeString"), str) else "")
    if current is None and not ends:
        return None
    return current, ends[0] if ends else None, ends[1] if len(ends) > 1 else None, ""
