"""What an exhaustive crawl has read of each slice, and which parts of a category lack products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from crawler.platforms.retail.slices import PageRead, Row, Slice, repeats, subcategories

Role = Literal["whole", "climb", "order", "check", "recount"]


@dataclass
class Reading:
    """What was read of a slice. A slice has one of these roles.

    ``whole``: a listing in the platform's default order, which is read to its end or split. ``climb``: a listing sorted
    by ascending price, which ends where the next climb begins. ``order``: a listing in another sort order, to find
    missing products. ``check``: the same, but read beyond its first page only if that page shows that products are
    missing. ``recount``: only the first page, for its total.
    """

    part: Slice
    role: Role
    listing: Slice
    """The ``whole`` slice to which the products belong: the slice itself, or the slice whose missing products it
    searches for."""
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
    """Number of products that a check searches for. Before its first page: the number of products known to be
    missing."""
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
    """Whether the department filter lists a category that is above this one."""
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
        prices = _prices(page)
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
        """Whether all pages were read, and the platform stated that the last one is the last."""
        return self.ended and not (self.repeated or self.failed or self.lost_rows)


def _prices(page: PageRead) -> list[int]:
    """Return the prices of the rows that are not advertisements, which may be anywhere in the sort order."""
    return [row.cents for row in page.rows if row.cents is not None and not row.is_sponsored]


def is_of_one_price(rows: Sequence[Row], price: int | None) -> bool:
    """Whether all rows that are not advertisements have this price."""
    own = [row.cents for row in rows if not row.is_sponsored]
    return bool(own) and all(each == price for each in own)


class Unit(NamedTuple):
    """A part of a category that was not split further: its stated total, and the number of known products."""

    part: Slice
    total: int
    known: int
    is_sound: bool
    """Whether it was read to an end that the platform stated."""

    @property
    def gap(self) -> int:
        """Number of stated products that are not known."""
        return max(0, self.total - self.known)
