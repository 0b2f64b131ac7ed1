"""Slices of a category, for exhaustive crawls: listings with filters, what their pages have shown, and their splits.

Prices are in cents. Ranges are split at whole dollars, because the platform's own price filter uses whole dollars.
Neighbouring ranges both contain the price at which they are split, so that no product is lost if the platform rounds.
Only a range that contains no whole dollar is split at cents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from crawler.platforms.retail.schema import DEFAULT_SORT

DOLLAR = 100
MAX_STEPS = 50
"""How many dollars around a price are tried, to find a whole dollar that is not the price of a known product."""
MAX_OUTSIDE = 0.2
"""If the share of rows with prices outside the requested range exceeds this, the price filter has no effect."""

PriceRange = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a category: a listing with filters. Prices are inclusive; None is an open end."""

    cat_id: str
    low: int | None = None
    high: int | None = None
    sort: str = DEFAULT_SORT

    @property
    def is_sorted(self) -> bool:
        """Whether the slice has another sort order than the platform's default."""
        return self.sort != DEFAULT_SORT

    def within(self, prices: PriceRange) -> Slice:
        """Return the slice of this listing with the prices in a range."""
        return replace(self, low=prices[0], high=prices[1])

    def as_list(self) -> list[Any]:
        """Return the slice as JSON data: the arguments of the class."""
        return [self.cat_id, self.low, self.high, self.sort]

    def __str__(self) -> str:
        prices = "" if self.low is None and self.high is None else f" {_money(self.low)}..{_money(self.high)}"
        order = f" by {self.sort}" if self.is_sorted else ""
        return f"{self.cat_id}{prices}{order}"


def _money(cents: int | None) -> str:
    return "" if cents is None else f"{cents / 100:.2f}"


class PageRead(NamedTuple):
    """The content of a page that decides which pages of its slice, or which parts of it, are requested next."""

    number: int
    total: int
    has_more: bool
    products: Sequence[dict[str, Any]]
    children: Sequence[str] = ()
    """Ids of the categories in the department filter."""
    highest_price: float | None = None
    """The upper end of the price filter."""


class Step(NamedTuple):
    """A page to request."""

    part: Slice
    page: int = 1


class Taken(NamedTuple):
    """The products of a finished page, and what follows from the page."""

    fresh: list[dict[str, Any]]
    """The products that no other page has returned."""
    steps: list[Step]
    """The pages to request next."""
    note: dict[str, Any]
    """JSON data from which ``ExhaustiveCrawl.restore`` restores the effect of this page on the crawl's state."""


@dataclass
class Node:
    """A slice, and the facts that its pages have shown."""

    part: Slice
    parent: Slice | None = None
    verifying: bool = False
    """Whether the slice belongs to stage 2 or 3, and so ends after several pages without new products."""
    total: int | None = None
    children: list[str] = field(default_factory=list)
    ranges: list[PriceRange] = field(default_factory=list)
    outside: bool = False
    """Whether too many rows have prices outside the requested range."""
    truncated: bool = False
    """Whether the platform stopped serving pages before the last page."""
    failed: bool = False
    pages: int = 0
    seen: int = 0
    """Number of products on the slice's pages, new or not."""
    gained: int = 0
    """Number of new products that count for stage 3: in another sort order on all pages, else from page 2 on."""
    idle: int = 0
    """Number of consecutive pages without new products, up to the latest page."""
    parts: list[Slice] = field(default_factory=list)
    probes: list[Slice] = field(default_factory=list)
    """The slices that stage 3 added for this listing."""

    @property
    def by_price(self) -> list[Slice]:
        """The parts into which the slice was split by price."""
        return [each for each in self.parts if each.cat_id == self.part.cat_id]

    @property
    def by_category(self) -> list[Slice]:
        """The parts into which the slice was split by sub-category."""
        return [each for each in self.parts if each.cat_id != self.part.cat_id]


def subcategories(cat_id: str, offered: Iterable[str]) -> list[str]:
    """Return the offered categories below a category. A category below another offered one is left out.

    >>> subcategories("1_2", ["1", "1_2", "1_3", "1_2_7", "1_2_8", "1_2_8_9"])
    ['1_2_7', '1_2_8']
    """
    below = {each for each in offered if each.startswith(f"{cat_id}_")}
    return sorted(each for each in below if not any(each.startswith(f"{other}_") for other in below))


def price_ranges(part: Slice, prices: Iterable[float], count: int, highest: float | None) -> list[PriceRange]:
    """Split a slice into about ``count`` price ranges with equal numbers of products.

    ``prices`` are the prices of some of its products, in dollars, and ``highest`` is the upper end of the page's price
    filter. Each range is narrower than the slice's price filter. Return [] if the slice has only one price, or if no
    price is known.
    """
    low, high = part.low or 0, part.high
    cents = (round(price * 100) for price in prices)
    seen = sorted(each for each in cents if low <= each and (high is None or each <= high))
    if low == high:
        return []
    if seen:
        wanted = [seen[len(seen) * number // count] for number in range(1, count)]
    elif high is not None:
        wanted = [(low + high) // 2]
    elif highest:
        wanted = [max(round(highest * 100), low)]
    else:
        return []
    cuts = {cut for each in wanted if (cut := _dollar_near(each, low, high, set(seen))) is not None}
    if cuts:
        ends = sorted({low, *cuts})
        return list(zip(ends, [*ends[1:], high], strict=True))
    price = wanted[len(wanted) // 2]
    return _without_dollars(low, price, high)


def _dollar_near(price: int, low: int, high: int | None, seen: set[int]) -> int | None:
    """Return the whole dollar nearest to ``price`` between ``low`` and ``high`` that is not in ``seen``, or None."""
    for step in range(MAX_STEPS):
        for cut in (-(-price // DOLLAR) * DOLLAR + step * DOLLAR, price // DOLLAR * DOLLAR - step * DOLLAR):
            if low < cut and (high is None or cut < high) and cut not in seen:
                return cut
    return None


def _without_dollars(low: int, price: int, high: int | None) -> list[PriceRange]:
    """Split a range into up to three: the prices below ``price``, this price alone, and the prices above it."""
    ranges: list[PriceRange] = [(low, price - 1), (price, price), (price + 1, high)]
    return [(first, last) for first, last in ranges if last is None or first <= last]


def is_outside(part: Slice, products: Sequence[dict[str, Any]]) -> bool:
    """Whether a page shows that the price filter has no effect: too many rows have prices outside the range.

    Advertisements and products without a price do not count. A price may be outside the range by up to a dollar.
    """
    if part.low is None and part.high is None:
        return False
    rows = [
        each["price"] for each in products if not each["is_sponsored"] if each["price"]["current_price"] is not None
    ]
    outside = [price for price in rows if _lies_outside(part, price)]
    return len(outside) > MAX_OUTSIDE * len(rows)


def _lies_outside(part: Slice, price: dict[str, Any]) -> bool:
    lowest = min(price["min_price"] or price["current_price"], price["current_price"]) * 100
    highest = max(price.get("max_price") or 0, price["current_price"]) * 100
    return highest < (part.low or 0) - DOLLAR or (part.high is not None and lowest > part.high + DOLLAR)
