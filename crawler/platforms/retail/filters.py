"""Retail: the price filter of a listing, and whether a page's products prove that the platform has applied it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crawler.reading.values import number

NEAR = 1.0
"""A price may be outside of the filter by this number of dollars, because the platform's own filter has whole dollars.
"""
MAX_OUTSIDE = 0.2
"""If a larger share of the prices is outside of the filter, the platform has ignored it."""


class PriceFilter(NamedTuple):
    """The lowest and the highest price in dollars, both inclusive. None: no limit."""

    low: float | None = None
    high: float | None = None

    @classmethod
    def requested(cls, page_params: Mapping[str, Any]) -> PriceFilter:
        """Return the filter in the params of a request."""
        return cls(number(page_params.get("min_price")), number(page_params.get("max_price")))

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the params that the filter consists of."""
        return tuple(name for name, limit in zip(("min_price", "max_price"), self, strict=True) if limit is not None)

    def is_near(self, other: PriceFilter) -> bool:
        """Whether another filter has the same limits, but for the part of a dollar. A lower limit of 0 is no limit."""
        lows = abs((self.low or 0) - (other.low or 0)) <= NEAR
        return (
            lows and (self.high is None) == (other.high is None) and abs((self.high or 0) - (other.high or 0)) <= NEAR
        )

    def excludes(self, price: Mapping[str, Any]) -> bool:
        """Whether none of a product's prices passes the filter. ``price``: the price in the contract's format."""
        lowest = price["min_price"]
        highest = max(price.get("max_price", lowest), price["current_price"] or lowest)
        return (self.low is not None and highest < self.low - NEAR) or (
            self.high is not None and lowest > self.high + NEAR
        )

    def __str__(self) -> str:
        low, high = ("" if limit is None else f"{limit:.2f}" for limit in self)
        return f"{low}..{high}"


class Proof(NamedTuple):
    """What the prices of a page's products show about a filter. Advertisements may have any price."""

    outside: int
    """Number of prices that do not pass the filter."""
    of: int
    """Number of prices. 0: the page proves nothing."""

    @classmethod
    def of_products(cls, applied: PriceFilter, products: Sequence[Mapping[str, Any]]) -> Proof:
        """Return what products in the contract's format show about a filter."""
        prices = [each["price"] for each in products if not each["is_sponsored"]]
        priced = [each for each in prices if each["min_price"] is not None]
        return cls(sum(map(applied.excludes, priced)), len(priced))

    @property
    def is_ignored(self) -> bool:
        """Whether the platform has ignored the filter."""
        return self.outside > MAX_OUTSIDE * self.of

    @property
    def is_complete(self) -> bool:
        """Whether there are prices, and all of them pass the filter."""
        return self.of > 0 and self.outside == 0
