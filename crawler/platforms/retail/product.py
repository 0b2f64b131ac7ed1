"""Retail: converts one row of a listing to the contract's product object (specification 2.7).

The price is read from the price lines of the row, or else from its older texts. "" and 0 mean that a price is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.payload import BadgeMember, PriceDetails, PriceLine, Row, RowPrice
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, Unread
from crawler.reading.values import absolute_url, amount, count, stated_price

LEADS = frozenset({"", "Now", "Now est.", "From", "Options from", "More options from"})
"""The words before a price in all captures. A price after other words is read, and the words are reported."""
PRICE_LINES = {"CURRENT_PRICE", "DISCOUNTED_PRICE", "OPTIONS_RANGE", "OPTIONS"}
"""The known types of price lines with a price of the product."""
OTHER_LINES = {"UNIT_PRICE", "COMPARISON"}
"""The known types of price lines with another amount."""
KNOWN_LINES = PRICE_LINES | OTHER_LINES


class Price(NamedTuple):
    """The price of a row, read from either format."""

    current: float | None = None
    low: float | None = None
    """The lowest price, if the product has options with different prices."""
    high: float | None = None
    currency: str = ""
    is_contradictory: bool = False
    """Whether the row states different current prices, or a current price outside of its own range of prices. The
    values that contradict each other are left out, except for a current price beside a range."""


def price_of(row: Row) -> dict[str, Any]:
    """Return the price of a row in the contract's format."""
    current, low, high, currency, _ = read_price(row.price)
    minimum = current if low is None else low
    if minimum is None:
        return {"currency": "", "current_price": None, "is_price_range": False, "min_price": None}
    price = {
        "currency": currency or "USD",  # price texts lack the currency, but shops of other countries are refused
        "current_price": current,
        "is_price_range": low is not None and not low == current == high,
        "min_price": minimum,
    }
    return price if high is None else {**price, "max_price": high}


def read_price(stated: RowPrice | None) -> Price:
    """Return the price from the price lines, or else from the older keys."""
    if stated is None:
        return Price()
    of_lines = _of_lines(stated.details) if stated.details else Price()
    return of_lines if of_lines != Price() else _of_texts(stated)


def _of_texts(stated: RowPrice) -> Price:
    shown = filter(None, map(stated_price, (stated.line_price, stated.line_price_display)))
    options = stated_price(stated.range)
    low, high = (options.low or None, options.high) if options else (None, None)
    return _checked({each.low for each in shown if each.low}, low, high)


def _of_lines(details: PriceDetails) -> Price:
    stated: dict[tuple[str | None, str | None], set[float]] = {}  # several amounts of one key contradict each other
    for line in details.lines:
        for each in line.values:
            if (number := amount(each.amount)) is not None:
                stated.setdefault((line.kind, each.key), set()).add(number)
    current = stated.get(("DISCOUNTED_PRICE", "PRICE")) or stated.get(("CURRENT_PRICE", "PRICE"), set())
    lows = stated.get(("OPTIONS_RANGE", "LOW_PRICE")) or stated.get(("OPTIONS", "LOW_PRICE"), set())
    highs = stated.get(("OPTIONS_RANGE", "HIGH_PRICE"), set())
    price = _checked(current, min(lows, default=None), max(highs, default=None))
    return price._replace(currency=details.currency or "") if price != Price() else price


def _checked(current: set[float], low: float | None, high: float | None) -> Price:
    """Return a price after a check: there is at most one current price, and it is inside of the range of prices."""
    if len(current) > 1:
        return Price(is_contradictory=True)
    price = next(iter(current), None)
    ordered = [each for each in (low, price, high) if each is not None]
    return Price(price, low, high) if ordered == sorted(ordered) else Price(price, is_contradictory=True)


# The parts of prices that were not read


def has_wrong_price(row: Row) -> bool:
    """Whether a row has an offer without a price, or a price that contradicts itself.

    A row with a notice in place of a price ("See price in cart") is right.
    """
    price = read_price(row.price)
    lines = row.price.details.lines if row.price and row.price.details else []
    if price == Price() and all(each.kind in KNOWN_LINES for each in lines):
        return bool(row.offer_id)
    return price.is_contradictory


def unknown_leads(stated: RowPrice) -> list[str]:
    """Return the words before prices that are not in ``LEADS``."""
    found = filter(None, map(stated_price, (stated.line_price, stated.line_price_display, stated.range)))
    return [each.lead for each in found if each.lead not in LEADS]


def unread_lines(stated: RowPrice) -> list[str]:
    """Return the types of price lines whose amount was not read: unknown types, and texts that are not an amount.

    A line without an amount is a notice, and so is a line of an unknown type beside a price.
    """
    lines = stated.details.lines if stated.details else []
    unknown = [each.kind for each in lines if each.kind not in KNOWN_LINES and _has_amount(each)]
    broken = [each.kind for each in lines if each.kind in PRICE_LINES and _has_other_text(each)]
    return [kind for kind in broken + (unknown if unknown and read_price(stated) == Price() else []) if kind]


def _has_amount(line: PriceLine) -> bool:
    return any(amount(each.amount) is not None for each in line.values)


def _has_other_text(line: PriceLine) -> bool:
    return any(each.amount not in {None, "", "0", 0} and amount(each.amount) is None for each in line.values)


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
        "averageRating": [_average(row) is None for row in rows if count(row.reviews)],
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
    average, reviews = _average(row), count(row.reviews)
    return {"average": average, "review_count": (reviews or None) if average is None else reviews}


def _average(row: Row) -> float | None:
    """Return the average rating. None for 0, which stands for no rating, and for a number that cannot be one."""
    return row.rating if row.rating and 0 < row.rating <= HIGHEST_RATING else None


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
