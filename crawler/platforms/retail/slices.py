"""Slices of a category, and the facts that their pages state, for exhaustive crawls.

Prices are in cents. Both ends of a price range are inclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from pydantic import BaseModel

from crawler.platforms.retail.schema import DEFAULT_SORT

BY_PRICE = "price_low"
DOLLAR = 100
MAX_DESCENTS = 0.2
"""If a larger share of prices is below the price before, the platform has ignored the order by ascending price."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a category: a listing with a price range and a sort order. None means no limit."""

    cat_id: str
    low: int | None = None
    high: int | None = None
    sort: str = DEFAULT_SORT

    def by_price(self, low: int) -> Slice:
        """Return the part of this listing from a price up, sorted by ascending price."""
        return replace(self, low=low, sort=BY_PRICE)

    def contains(self, other: Slice) -> bool:
        """Whether this listing has all products of another slice, because of its category and its price range."""
        is_below = self.high is None or (other.high is not None and other.high <= self.high)
        return (self.low or 0) <= (other.low or 0) and is_below and is_within(other.cat_id, self.cat_id)

    def has_price(self, cents: int | None) -> bool:
        """Whether a price is in the price range. A product without a price is only in a listing without limits."""
        if cents is None:
            return self.low is None and self.high is None
        return (self.low or 0) <= cents and (self.high is None or cents <= self.high)

    def __str__(self) -> str:
        prices = "" if self.low is None and self.high is None else f" {_money(self.low)}..{_money(self.high)}"
        order = "" if self.sort == DEFAULT_SORT else f" by {self.sort}"
        return f"{self.cat_id}{prices}{order}"


def _money(cents: int | None) -> str:
    return "" if cents is None else f"{cents / 100:.2f}"


class Step(NamedTuple):
    """A page to request."""

    part: Slice
    page: int = 1

    def __str__(self) -> str:
        return f"{self.part} page {self.page}"


class Row(NamedTuple):
    """The values of a row that an exhaustive crawl needs."""

    item_id: str
    cents: int | None
    category: str = ""
    """The id of the product's own category, "" if the row does not state it."""
    is_sponsored: bool = False


class Page(NamedTuple):
    """The facts that a page states."""

    rows: list[Row]
    has_more: bool
    """Whether the page has rows and the platform states that further pages follow."""
    total: int | None
    """Number of products in the whole listing."""
    children: Sequence[str] = ()
    """Ids of the categories in the department filter."""
    ignores_filter: bool = False
    """Whether the page shows that the platform has ignored the price range (``filters.ignores``)."""
    is_proven: bool = True
    """Whether the page confirms all requested params."""
    lost_rows: int = 0
    """Number of rows that could not be read."""

    @property
    def prices(self) -> list[int]:
        """The prices of the organic rows. Advertisements are left out, because they may be anywhere in the order."""
        return [row.cents for row in self.rows if row.cents is not None and not row.is_sponsored]

    def contradicts(self, part: Slice) -> bool:
        """Whether the page shows that the platform has ignored the price range or the sort order of its slice."""
        descents = sum(after < before for before, after in pairwise(self.prices))
        return self.ignores_filter or (part.sort == BY_PRICE and descents > MAX_DESCENTS * len(self.prices))

    def own(self, part: Slice) -> dict[str, int | None]:
        """Return the page's products that belong to its slice, by item id, with their prices.

        Advertisements may be from another category, and have any price. If the page contradicts the slice, only its
        prices show which products belong to the slice.
        """
        is_contradicted = self.contradicts(part)

        def belongs(row: Row) -> bool:
            if not (row.is_sponsored or is_contradicted):
                return True
            in_category = not row.is_sponsored or is_within(row.category, part.cat_id)
            return in_category and part.has_price(row.cents)

        return {row.item_id: row.cents for row in self.rows if belongs(row)}


class Fact(BaseModel):
    """The result of a requested page. A job stores it with the page, and another worker restores the plan from it."""

    step: Step
    page: Page | None = None
    """None: the page failed."""
    ids: list[str] = []
    """The ids of the category's products that were found on this page first."""
    failed: str = ""
    """The code of the page's error."""


@dataclass
class Reading:
    """The data that was read of one slice."""

    part: Slice
    total: int | None
    """Number of products in the slice according to its first page."""
    children: list[str]
    has_prices: bool
    """Whether an organic row of the first page has a price."""
    is_contradicted: bool = False
    """Whether a page shows that the platform has ignored the price range or the sort order."""
    rows: set[str] = field(default_factory=set)
    """The ids of the category's products on the slice's own pages."""
    known: dict[str, int | None] = field(default_factory=dict)
    """The price of each product that was read in the slice or in a part of it, by item id."""
    pages: int = 0
    has_more: bool = True
    """Whether the latest page has products that the earlier pages lack, and states that further pages follow."""
    latest: int = 0
    """Number of the slice's products on its last page with products."""
    ended: bool = False
    """Whether the platform has stated, on a page with products, that this page is the last one."""
    repeats: bool = False
    """Whether the latest page has only products of the slice's earlier pages."""
    highest: int | None = None
    """If the slice is sorted by price: the price up to which all of its products were read."""
    lowest: int | None = None
    """The lowest price of the first page."""
    parts: dict[Slice, None] = field(default_factory=dict)
    """The listings into which the slice was split, in the order in which they are read."""
    climbed: bool = False
    """Whether climbs have read the slice up to its highest price."""

    def add(self, page: Page, own: dict[str, int | None], *, is_contradicted: bool) -> None:
        """Add the next page. ``own``: the price of each of the category's products on the page, by item id."""
        self.pages += 1
        self.is_contradicted |= is_contradicted
        is_new = not own.keys() <= self.rows
        self.repeats = bool(own) and not is_new
        self.latest = len(own) or self.latest
        self.rows.update(own)
        self.has_more = page.has_more and is_new and not is_contradicted
        self.ended = bool(page.rows) and not page.has_more
        if (prices := page.prices) and is_new and not is_contradicted:
            self.lowest = min(prices) if self.lowest is None else self.lowest
            self.highest = prices[-1] if prices == sorted(prices) else min(prices)

    @property
    def is_split(self) -> bool:
        """Whether the slice is read by parts or climbs, in addition to its own pages."""
        return self.climbed or bool(self.parts)

    @property
    def gap(self) -> int:
        """Number of stated products that were not read."""
        return max(0, (self.total or 0) - len(self.known))

    @property
    def unpriced(self) -> int:
        """Number of products without a price that were read."""
        return sum(cents is None for cents in self.known.values())


def is_within(cat_id: str, above: str) -> bool:
    """Whether a category is another category or below it, by their ids.

    >>> is_within("1_2", "1_2"), is_within("1_2_7", "1_2"), is_within("1_21", "1_2")
    (True, True, False)
    """
    return f"{cat_id}_".startswith(f"{above}_")


def subcategories(cat_id: str, offered: Iterable[str]) -> list[str]:
    """Return the categories among ``offered`` that are below a category, without those that are below another of them.

    A category is also left out if it repeats a category above it, because the tree then contains a loop.

    >>> subcategories("1_2", ["1", "1_2", "1_3", "1_2_7", "1_2_8", "1_2_8_9", "1_2_1"])
    ['1_2_7', '1_2_8']
    """
    below = {each for each in offered if each != cat_id and is_within(each, cat_id) and not repeats(each)}
    return sorted(each for each in below if not any(each.startswith(f"{other}_") for other in below))


def repeats(cat_id: str) -> bool:
    """Whether a category's path contains a category twice.

    >>> repeats("1_2_1"), repeats("1_2_3")
    (True, False)
    """
    path = cat_id.split("_")
    return len(set(path)) < len(path)
