"""Retail: reads the price of a row, from its price lines or else from its older texts.

"" and 0 mean that a price is missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from crawler.platforms.retail.payload import PriceDetails, PriceLine, Row, RowPrice
from crawler.reading.values import amount, stated_price

LEADS = frozenset({"", "Now", "Now est.", "From", "Options from", "More options from"})
"""The words before a price in all captures. A price after other words is read, and the words are reported."""
PRICE_LINES = {"CURRENT_PRICE", "DISCOUNTED_PRICE", "OPTIONS_RANGE", "OPTIONS"}
"""The known types of price lines with a price of the product."""
OTHER_LINES = {"UNIT_PRICE", "COMPARISON"}
"""The known types of price lines with another amount."""


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
    if price == Price() and all(each.kind in PRICE_LINES | OTHER_LINES for each in lines):
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
    unknown = [each.kind for each in lines if each.kind not in PRICE_LINES | OTHER_LINES and _has_amount(each)]
    broken = [each.kind for each in lines if each.kind in PRICE_LINES and _has_other_text(each)]
    return [kind for kind in broken + (unknown if unknown and read_price(stated) == Price() else []) if kind]


def _has_amount(line: PriceLine) -> bool:
    return any(amount(each.amount) is not None for each in line.values)


def _has_other_text(line: PriceLine) -> bool:
    return any(each.amount not in {None, "", "0", 0} and amount(each.amount) is None for each in line.values)
