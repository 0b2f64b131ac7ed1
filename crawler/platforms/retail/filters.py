"""Retail: the price filter of a listing, which the prices of a page's products prove or contradict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from crawler.reading.values import number

NEAR = 1.0
"""A price may be outside of the filter by this number of dollars, because the platform's own filter has whole dollars.
"""
MAX_OUTSIDE = 0.2
"""If a larger share of the prices is outside of the requested range, the platform has ignored the price filter."""


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

    def differs(self, requested: PriceFilter) -> bool:
        """Whether this filter, which a page states, is another one than the requested filter. A page may state none.

        The limits are compared but for the part of a dollar. A lower limit of 0 is no limit.
        """
        if self == PriceFilter():
            return False
        is_low = abs((self.low or 0) - (requested.low or 0)) <= NEAR
        is_high = abs((self.high or 0) - (requested.high or 0)) <= NEAR
        return not (is_low and is_high) or (self.high is None) != (requested.high is None)

    def excludes(self, price: Mapping[str, Any]) -> bool:
        """Whether none of a product's prices passes the filter. ``price``: the price in the contract's format."""
        lowest = price["min_price"]
        highest = max(price.get("max_price", lowest), price["current_price"] or lowest)
        return (self.low is not None and highest < self.low - NEAR) or (
            self.high is not None and lowest > self.high + NEAR
        )

    def outside(self, products: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
        """Return how many prices of products (in the contract's format) do not pass the filter, and of how many prices.

        Advertisements are left out, because they may have any price.
        """
        prices = [each["price"] for each in products if not each["is_sponsored"]]
        priced = [each for each in prices if each["min_price"] is not None]
        return sum(map(self.excludes, priced)), len(priced)

    def __str__(self) -> str:
        return "..".join("" if limit is None else f"{limit:.2f}" for limit in self)


def ignores(requested: PriceFilter, stated: PriceFilter, products: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a page shows that the platform has not applied the requested filter, or has applied another one.

    ``stated``: the filter that the page states. Both the statement and the products must agree with the request.
    """
    outside, prices = requested.outside(products)
    return stated.differs(requested) or outside > MAX_OUTSIDE * prices
