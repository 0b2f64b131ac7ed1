"""Slices of a category, for exhaustive crawls: listings with filters, what their pages have shown, and their splits.

Prices are in cents. Splits are at whole dollars, because the platform's own filter sends whole dollars, and
neighbouring ranges share the dollar, so that no product is lost if the platform rounds. Only a range without a whole
dollar inside is split at cents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from crawler.platforms.retail.schema import DEFAULT_SORT

DOLLAR = 100
MAX_STEPS = 50
"""Dollars around a price in which a split without a product is searched."""
MAX_OUTSIDE = 0.2
"""Maximum share of rows outside the requested prices. More rows mean that the price filter has no effect."""

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
        """Whether it has another order than the platform's default."""
        return self.sort != DEFAULT_SORT

    def within(self, prices: PriceRange) -> Slice:
        """Return the part in a price range."""
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
    """The content of a page that decides how its slice continues."""

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
    """The result of a finished page."""

    fresh: list[dict[str, Any]]
    """The products that no other page has returned."""
    steps: list[Step]
    """The pages to request next."""
    note: dict[str, Any]
    """JSON data that restores the page's share of the state."""


@dataclass
class Node:
    """A slice and what its pages have shown."""

    part: Slice
    parent: Slice | None = None
    verifying: bool = False
    """Whether it ends after pages without new products: a slice of stage 2 or 3."""
    total: int | None = None
    children: list[str] = field(default_factory=list)
    ranges: list[PriceRange] = field(default_factory=list)
    outside: bool = False
    """Whether rows lie outside the requested prices."""
    truncated: bool = False
    """Whether the platform stopped serving pages before the end."""
    failed: bool = False
    pages: int = 0
    seen: int = 0
    """Products on its pages, new or not."""
    gained: int = 0
    """New products on its pages; for a listing that stage 3 reads on, on those from page 2."""
    idle: int = 0
    """Pages in a row without new products."""
    parts: list[Slice] = field(default_factory=list)
    probes: list[Slice] = field(default_factory=list)
    """Slices of stage 3."""

    @property
    def by_price(self) -> list[Slice]:
        """The parts by price."""
        return [each for each in self.parts if each.cat_id == self.part.cat_id]

    @property
    def by_category(self) -> list[Slice]:
        """The parts by sub-category."""
        return [each for each in self.parts if each.cat_id != self.part.cat_id]


def subcategories(cat_id: str, offered: Iterable[str]) -> list[str]:
    """Return the offered categories that lie below a category, without those below another one of them.

    >>> subcategories("1_2", ["1", "1_2", "1_3", "1_2_7", "1_2_8", "1_2_8_9"])
    ['1_2_7', '1_2_8']
    """
    below = {each for each in offered if each.startswith(f"{cat_id}_")}
    return sorted(each for each in below if not any(each.startswith(f"{other}_") for other in below))


def price_ranges(part: Slice, prices: Iterable[float], count: int, highest: float | None) -> list[PriceRange]:
    """Split a slice into about ``count`` price ranges with equal numbers of products.

    ``prices`` are the prices of some of its products, in dollars, and ``highest`` is the upper end of the page's price
    filter. Each range is smaller than the slice. Empty if the slice has one price, or none is known.
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
    """Return the whole dollar between the ends nearest to a price that is not itself a seen price."""
    for step in range(MAX_STEPS):
        for cut in (-(-price // DOLLAR) * DOLLAR + step * DOLLAR, price // DOLLAR * DOLLAR - step * DOLLAR):
            if low < cut and (high is None or cut < high) and cut not in seen:
                return cut
    return None


def _without_dollars(low: int, price: int, high: int | None) -> list[PriceRange]:
    """Isolate a price: the range below it, the price itself, and the range above it."""
    ranges: list[PriceRange] = [(low, price - 1), (price, price), (price + 1, high)]
    return [(first, last) for first, last in ranges if last is None or first <= last]


def is_outside(part: Slice, products: Sequence[dict[str, Any]]) -> bool:
    """Whether the rows of a page show that the price filter has no effect: too many have other prices.

    Advertisements and products without a price do not count, and a dollar is tolerated.
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
