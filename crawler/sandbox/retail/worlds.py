"""The changes in a world of the simulated shop while it is being crawled, and the effects of its fault on listings."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.sandbox.retail.product import Product
    from crawler.sandbox.retail.trees import Tree

CHALLENGED = 20
"""The number, from 1, of the request that gets the challenge, in a world with the fault ``challenge-midway``."""
IGNORED_FILTER = 2
"""The number, from 1, of the price filter that is ignored, in a world with the fault ``filter-ignored-once``."""
MOVING_SHARE = 0.02
MOVES = 4
"""Number of groups of products that move to other prices or categories, one group after another."""
SHRINK_STEP, SMALLEST = 0.005, 0.5
REPEATED_PAGE, CYCLE = 3, 4

PriceFilter = tuple[str, str | None, str | None]
"""A category's id, and the requested limits of the price filter in dollars."""


@dataclass
class Progress:
    """The progress of a crawl of a world. A request for the department's first page resets it."""

    requests: int = 0
    filters: list[PriceFilter] = field(default_factory=list)
    """The price filters that were requested, each once."""

    def count(self, part: PriceFilter) -> None:
        """Count a request."""
        self.requests += 1
        if part[1:] != (None, None) and part not in self.filters:
            self.filters.append(part)

    def ignores(self, tree: Tree, part: PriceFilter) -> bool:
        """Whether a price filter is ignored."""
        return tree.fault == "filter-ignored-once" and self.filters[IGNORED_FILTER - 1 : IGNORED_FILTER] == [part]

    def factor(self, tree: Tree) -> float:
        """Return the factor by which stated totals are multiplied."""
        shrunk = max(SMALLEST, 1 - SHRINK_STEP * (self.requests - 1)) if tree.fault == "shrinking" else 1.0
        return tree.reported * shrunk

    def moves(self, tree: Tree) -> int:
        """Return how many groups have moved: all, after as many requests as half of the products require."""
        return min(MOVES, self.requests * MOVES * 90 // tree.size) if tree.fault == "moving" else 0


def moved(products: Sequence[Product], tree: Tree, leaves: Sequence[str], moves: int) -> list[Product]:
    """Return the products of a world after ``moves`` groups have moved to other prices or categories."""
    rng = random.Random(f"moving {tree.seed} {tree.size}")  # noqa: S311  # invented data, not a secret
    numbers = rng.sample(range(len(products)), round(MOVING_SHARE * len(products)))
    found = list(products)
    for position, index in enumerate(numbers):
        product, other, factor = found[index], rng.choice(leaves), rng.choice((0.3, 0.6, 1.8, 3.5))
        if position % MOVES >= moves:
            continue
        if position % 2 and product.cents is not None:
            found[index] = replace(product, cents=round(product.cents * factor) + 1, low=None, high=None)
        else:
            found[index] = replace(product, category=other)
    return found


def page_to_show(tree: Tree | None, page: int) -> int:
    """Return the number of the page whose products are shown: the requested page, unless the fault affects paging."""
    fault = tree.fault if tree else ""
    if fault == "repeated-page" and page == REPEATED_PAGE:
        return page - 1
    return (page - 1) % CYCLE + 1 if fault == "leads-back" else page
