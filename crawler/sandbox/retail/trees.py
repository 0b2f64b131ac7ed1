"""Large category trees of the simulated shop, for exhaustive crawls. The shop's searches do not find their products."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """A department whose products are spread evenly over its leaf categories, and how the platform presents it."""

    size: int
    groups: int = 4
    leaves_per_group: int = 6
    unpriced: float = 0.0
    """The share of the products that have no price, from 0 to 1."""
    reported: float = 1.0
    """The total that a listing reports, divided by its real number of products."""
    filters_prices: bool = True

    def children(self, cat_id: str) -> tuple[str, ...]:
        """Return the ids of the subcategories of a category in this tree.

        Raises:
            KeyError: the tree has no such category.
        """
        limits = (self.groups, self.leaves_per_group)
        numbers = cat_id.split("_")[1:]
        if len(numbers) > len(limits) or any(
            not number.isdecimal() or number != str(int(number)) or not 1 <= int(number) <= limit
            for number, limit in zip(numbers, limits, strict=False)
        ):
            raise KeyError(cat_id)
        if len(numbers) == len(limits):
            return ()
        return tuple(f"{cat_id}_{number}" for number in range(1, limits[len(numbers)] + 1))

    def leaves(self, department: str) -> list[str]:
        """Return the ids of the department's leaf categories, which have no subcategories."""
        return [leaf for group in self.children(department) for leaf in self.children(group)]


TREES = {
    "880001": Tree(20_000),
    "880002": Tree(20_000, groups=10, unpriced=0.04),
    "880003": Tree(20_000, unpriced=0.04),
    "880004": Tree(6_446, unpriced=0.04, reported=1.03),
    "880005": Tree(6_446, unpriced=0.04, reported=0.97),
    "880006": Tree(3_000, groups=2, leaves_per_group=2, filters_prices=False),
}
"""The trees, by the category id of the department."""
