"""Slices of a category, for exhaustive crawls: the contents of their pages, and what was read of them.

Prices are in cents. Both ends of a price range are inclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from crawler.platforms.retail.schema import DEFAULT_SORT

DOLLAR = 100
MAX_OUTSIDE = 0.2
"""If a larger share of rows has prices outside the requested range, the platform has ignored the price filter."""

PriceRange = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a category: a listing with filters. Prices are inclusive; None means no limit."""

    cat_id: str
    low: int | None = None
    high: int | None = None
    sort: str = DEFAULT_SORT

    def within(self, low: int | None, high: int | None) -> Slice:
        """Return the part of this listing with prices in a range."""
        return replace(self, low=low, high=high)

    def by(self, sort: str) -> Slice:
        """Return the same listing in the given sort order."""
        return replace(self, sort=sort)

    @property
    def has_one_price(self) -> bool:
        """Whether the price range consists of one price."""
        return self.low is not None and self.low == self.high

    def contains(self, other: Slice) -> bool:
        """Whether the price range contains the range of another slice."""
        is_below = self.high is None or (other.high is not None and other.high <= self.high)
        return (self.low or 0) <= (other.low or 0) and is_below

    def as_list(self) -> list[Any]:
        """Return the slice as JSON data: the arguments of the class."""
        return [self.cat_id, self.low, self.high, self.sort]

    def __str__(self) -> str:
        prices = "" if self.low is None and self.high is None else f" {_money(self.low)}..{_money(self.high)}"
        order = "" if self.sort == DEFAULT_SORT else f" by {self.sort}"
        return f"{self.cat_id}{prices}{order}"


def _money(cents: int | None) -> str:
    return "" if cents is None else f"{cents / 100:.2f}"


class Row(NamedTuple):
    """The values of a product that an exhaustive crawl needs."""

    item_id: str
    cents: int | None
    is_sponsored: bool = False


class PageRead(NamedTuple):
    """The data of a page that a crawl needs to choose its next requests: the slice's next page, or narrower slices."""

    number: int
    total: int
    has_more: bool
    rows: Sequence[Row]
    children: Sequence[str] = ()
    """Ids of the categories in the department filter."""
    selected: PriceRange = (None, None)
    """The limits of the price filter that the page states."""
    lost_rows: int = 0
    """Number of rows of the page that could not be read."""

    @property
    def prices(self) -> list[int]:
        """The prices of the rows, without advertisements, because these may be anywhere in the sort order."""
        return [row.cents for row in self.rows if row.cents is not None and not row.is_sponsored]

    def is_of_one_price(self, price: int | None) -> bool:
        """Whether all rows that are not advertisements have this price."""
        own = [row.cents for row in self.rows if not row.is_sponsored]
        return bool(own) and all(each == price for each in own)

    def ignores_filter_of(self, part: Slice, *, confirms: bool) -> bool:
        """Whether the platform ignored the price filter of the page's slice.

        If the page states a price filter, this filter decides. ``confirms``: whether other pages have stated their
        filters; then a page with rows that states none is unfiltered. Otherwise the prices of the rows decide, without
        advertisements and products without a price. A price may be outside the range by up to a dollar, because the
        platform's own filter has whole dollars.
        """
        if self.selected != (None, None):
            return not (_is_near(part.low, self.selected[0]) and _is_near(part.high, self.selected[1]))
        if confirms:
            return bool(self.rows)
        low, high = (part.low or 0) - DOLLAR, None if part.high is None else part.high + DOLLAR
        outside = [price for price in self.prices if price < low or (high is not None and price > high)]
        return len(outside) > MAX_OUTSIDE * len(self.prices)

    def as_note(self) -> dict[str, Any]:
        """Return the page as JSON data."""
        return self._asdict() | {"rows": [list(row) for row in self.rows], "children": list(self.children)}

    @classmethod
    def from_note(cls, note: dict[str, Any]) -> PageRead:
        """Return the page from the JSON data of ``as_note``."""
        low, high = note["selected"]
        fields = {name: note[name] for name in cls._fields}
        return cls(**fields | {"rows": [Row(*row) for row in note["rows"]], "selected": (low, high)})


class Step(NamedTuple):
    """A page to request."""

    part: Slice
    page: int = 1


class Taken(NamedTuple):
    """The result of a finished page."""

    fresh: list[str]
    """The ids of the products that no earlier page has returned."""
    steps: list[Step]
    """The pages to request next."""
    note: dict[str, Any]
    """JSON data with which ``ExhaustiveCrawl.restore`` repeats this page's effect on the crawl's state."""


def subcategories(cat_id: str, offered: Iterable[str]) -> list[str]:
    """Return the categories among ``offered`` that are below a category, without those that are below another of them.

    A category is also left out if it repeats a category above it, because the tree then contains a loop.

    >>> subcategories("1_2", ["1", "1_2", "1_3", "1_2_7", "1_2_8", "1_2_8_9", "1_2_1"])
    ['1_2_7', '1_2_8']
    """
    below = {each for each in offered if each.startswith(f"{cat_id}_") and not repeats(each)}
    return sorted(each for each in below if not any(each.startswith(f"{other}_") for other in below))


def repeats(cat_id: str) -> bool:
    """Whether a category's path contains a category twice.

    >>> repeats("1_2_1"), repeats("1_2_3")
    (True, False)
    """
    path = cat_id.split("_")
    return len(set(path)) < len(path)


def _is_near(requested: int | None, selected: int | None) -> bool:
    return abs((requested or 0) - (selected or 0)) <= DOLLAR


Role = Literal["whole", "climb", "order", "check", "recount"]


@dataclass
class Reading:
    """The data that was read of a slice. A slice has one of these roles.

    ``whole``: a listing in the platform's default order, which is read to its end or split. ``climb``: a listing sorted
    by ascending price, which ends where the next climb begins. ``order``: a listing in another sort order, to find
    missing products. ``check``: a listing in another sort order, read beyond its first page only if its stated total
    shows that more products are missing than was known. ``recount``: only the first page, for its stated total.
    """

    part: Slice
    role: Role
    listing: Slice
    """The ``whole`` slice to which the products belong: the slice itself, or the slice of which this one is a climb, or
    in which it searches for missing products."""
    parent: Slice | None = None
    """For a ``whole`` slice: the ``whole`` slice of which it is a part."""
    total: int | None = None
    rows: dict[str, int | None] = field(default_factory=dict)
    """The prices of the products that were read, by item id."""
    children: list[str] = field(default_factory=list)
    pages: int = 0
    highest: int | None = None
    """The price up to which a climb has read all products."""
    lowest: int | None = None
    """The lowest price of a climb."""
    middle: int | None = None
    """The median of the prices on the first page."""
    wanted: int = 0
    """For a check: the number of products to search for. Before its first page: the number of products that are known
    to be missing."""
    gained: int = 0
    """Number of products that were found first in this slice."""
    idle: int = 0
    """Number of consecutive pages without new products, ending with the latest page."""
    lost_rows: int = 0
    ended: bool = False
    """Whether the platform stated that the latest page is the last one."""
    truncated: bool = False
    """Whether the platform served an empty page although it stated further pages."""
    repeats: bool = False
    """Whether the latest page contained only products of the slice's earlier pages."""
    repeated: bool = False
    """Whether any page contained only products of the slice's earlier pages."""
    looped: bool = False
    """Whether the department filter lists a sub-category whose path contains a category twice."""
    ignored: bool = False
    failed: bool = False
    abandoned: bool = False
    """Whether the slice is not read to its end, because the crawl reads its products in another way."""

    def add(self, page: PageRead, fresh: int) -> None:
        """Add a page. ``fresh``: the number of its products that were not found before."""
        before = len(self.rows)
        self.rows.update((row.item_id, row.cents) for row in page.rows)
        self.pages += 1
        self.gained += fresh
        self.idle = 0 if fresh else self.idle + 1
        self.lost_rows += page.lost_rows
        self.ended = bool(page.rows) and not page.has_more
        self.truncated = not page.rows and page.number > 1
        self.repeats = len(page.rows) > 0 and len(self.rows) == before
        self.repeated = self.repeated or self.repeats
        prices = page.prices
        if page.number == 1:
            self.total = page.total
            self.children = subcategories(self.part.cat_id, page.children)
            self.looped = any(repeats(each) for each in page.children if each.startswith(f"{self.part.cat_id}_"))
            self.middle = sorted(prices)[len(prices) // 2] if prices else None
            self.lowest = prices[0] if prices else None
        if prices and not self.repeats:
            self.highest = prices[-1] if prices == sorted(prices) else min(prices)

    @property
    def has_unpriced(self) -> bool:
        """Whether any product that was read has no price."""
        return None in self.rows.values()

    @property
    def is_sound(self) -> bool:
        """Whether all pages were read completely, to a page that the platform stated to be the last."""
        return self.ended and not (self.repeated or self.failed or self.lost_rows)


class Unit(NamedTuple):
    """A part of a category that was not split further: its stated total, and the number of products that were read."""

    part: Slice
    total: int
    known: int
    is_sound: bool
    """Whether the part was read completely, to an end that the platform stated."""

    @property
    def gap(self) -> int:
        """Number of stated products that were not read."""
        return max(0, self.total - self.known)
