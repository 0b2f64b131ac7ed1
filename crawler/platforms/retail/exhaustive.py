"""Exhaustive crawl of a category, although a listing serves only about 500 products (specification, section 8).

It splits the category into *slices* that fit under this ceiling. The stages run until as many distinct products are
found as the platform reports:

1. By price: a slice is halved at the median of its prices until it fits. A single price that too many products share
   is split by the sub-categories on the page; without sub-categories it is read in every sort order.
2. Products that no price filter returns: the whole category in every sort order.
3. By sub-category, down to the ones that fit.

Products are identified by item id, and each is returned once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Any

import structlog

from crawler.platforms.retail.schema import DEFAULT_SORT, SORTS

logger = structlog.get_logger(__name__)

MAX_SLICES_SHOWN = 3
"""Maximum number of open slices that a progress line lists."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a category: a listing with filters. Prices are in cents and inclusive; None is an open end."""

    cat_id: str
    low: int | None = None
    high: int | None = None
    sort: str = DEFAULT_SORT

    @property
    def base(self) -> Slice:
        """The same slice in the default sort order."""
        return replace(self, sort=DEFAULT_SORT)

    def __str__(self) -> str:
        prices = "" if self.low is None and self.high is None else f" {_money(self.low)}..{_money(self.high)}"
        order = "" if self.sort == DEFAULT_SORT else f" by {self.sort}"
        return f"{self.cat_id}{prices}{order}"


def _money(cents: int | None) -> str:
    return "" if cents is None else f"{cents / 100:.2f}"


@dataclass
class ExhaustiveCrawl:
    """The state of one category's exhaustive crawl, without I/O. It takes finished slices and returns the next ones."""

    cat_id: str
    ceiling: int
    """A slice with at most this number of reported results is read page by page. A larger one is split."""
    total: int | None = None
    """Number of products that the platform reports for the whole category."""
    requests: int = 0
    done: int = 0
    found: set[str] = field(default_factory=set)
    oversized: dict[Slice, int] = field(default_factory=dict)
    """Slices that are too large but cannot be split further, with the number of products that the platform reports."""
    failed: list[Slice] = field(default_factory=list)
    _open: set[Slice] = field(default_factory=set)
    _seen_in: dict[Slice, set[str]] = field(default_factory=dict)
    _stages: list[str] = field(default_factory=lambda: ["sort", "category"])
    _subcategories: Sequence[str] = ()

    def begin(self) -> Slice:
        """Return the first slice: the whole category, whose first page states the total number of products."""
        whole = Slice(self.cat_id)
        self._open.add(whole)
        return whole

    @property
    def complete(self) -> bool:
        """Whether as many products have been found as the platform reports."""
        return self.total is not None and len(self.found) >= self.total

    @property
    def finished(self) -> bool:
        """Whether no slices are in progress."""
        return not self._open

    def take(self, part: Slice, products: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Record a page's products, and return those that no earlier page had, each once."""
        self.requests += 1
        if part.base in self.oversized:
            self._seen_in.setdefault(part.base, set()).update(p["item_id"] for p in products)
        fresh = []
        for product in products:
            if product["item_id"] not in self.found:
                self.found.add(product["item_id"])
                fresh.append(product)
        return fresh

    def fits(self, part: Slice, total: int) -> bool:
        """Whether to read the slice page by page, given the total number of products that its first page states."""
        if self.total is None:
            self.total = total
        return total <= self.ceiling or part.base in self.oversized

    def split(
        self,
        part: Slice,
        total: int,
        prices: Sequence[float],
        bounds: tuple[float, float] | None,
        children: Sequence[str],
    ) -> list[Slice]:
        """Split a slice that does not fit, and close it. ``prices`` are the prices on its first page."""
        if part == Slice(self.cat_id):
            self._subcategories = children
        unfiltered = part.low is None and part.high is None and part != Slice(self.cat_id)
        if unfiltered or (part.low is not None and part.low == part.high):
            parts = [replace(part, cat_id=child) for child in children if child != part.cat_id]
            if not parts:
                self.oversized[part.base] = total
                parts = [replace(part, sort=sort) for sort in SORTS[1:]]
        else:
            parts = _halves(part, prices, bounds)
        return self._replace(part, parts)

    def close(self, part: Slice) -> list[Slice]:
        """Close a slice that was read to its end. The last slice of a stage returns the slices of the next one."""
        return self._replace(part, [])

    def fail(self, part: Slice) -> list[Slice]:
        """Close a slice whose page failed."""
        self.failed.append(part)
        return self._replace(part, [])

    def missing(self) -> dict[Slice, int]:
        """Return the slices that were too large to be read completely, with the number of products not found."""
        whole = Slice(self.cat_id)
        missing = {
            part: total - len(self.found if part == whole else self._seen_in.get(part, ()))
            for part, total in self.oversized.items()
        }
        return {part: count for part, count in missing.items() if count > 0}

    def _replace(self, part: Slice, parts: list[Slice]) -> list[Slice]:
        if part not in self._open:
            return []
        self._open.remove(part)
        self.done += 1
        self._open.update(parts)
        while not self._open and self._stages and self.total is not None and not self.complete:
            parts = self._stage(self._stages.pop(0))
            self._open.update(parts)
        self.log_progress()
        return parts

    def _stage(self, name: str) -> list[Slice]:
        whole = Slice(self.cat_id)
        if name == "sort":
            self.oversized[whole] = self.total or 0
            return [replace(whole, sort=sort) for sort in SORTS]
        return [Slice(child) for child in self._subcategories]

    def __str__(self) -> str:
        found = f"{len(self.found):,} of {self.total or 0:,} products"
        parts = ", ".join(str(part) for part in sorted(self._open, key=str)[:MAX_SLICES_SHOWN])
        return f"category {self.cat_id}: {found}, {self.done:,} slices done, {len(self._open):,} open: {parts}"

    def log_progress(self) -> None:
        """Log the progress."""
        logger.info(
            "exhaustive_progress",
            category=self.cat_id,
            slices_done=self.done,
            slices_open=len(self._open),
            products_found=len(self.found),
            reported_total=self.total,
            requests=self.requests,
        )

    def log_end(self) -> None:
        """Log the result."""
        logger.info(
            "exhaustive_done",
            category=self.cat_id,
            products_found=len(self.found),
            reported_total=self.total,
            requests=self.requests,
            slices=self.done,
            over_the_ceiling={str(part): f"{count} missing" for part, count in self.missing().items()},
            failed=[str(part) for part in self.failed],
        )


def _halves(part: Slice, prices: Sequence[float], bounds: tuple[float, float] | None) -> list[Slice]:
    """Split a slice in two, at the median of the prices, else in the middle. Each half is smaller than the slice."""
    low, high = part.low or 0, part.high
    seen = sorted(
        cents for cents in (round(price * 100) for price in prices) if low <= cents and (high is None or cents <= high)
    )
    if seen:
        middle = median_low(seen)
    elif high is not None:
        middle = (low + high) // 2
    else:
        middle = max(2 * low, round(bounds[1] * 100) if bounds else 100)
    if high is not None:
        middle = min(middle, high - 1)
    return [replace(part, low=low, high=middle), replace(part, low=middle + 1, high=high)]
