"""Large category trees of the simulated shop, for exhaustive crawls. The shop's searches do not find their products.

The departments in ``TREES`` have such trees, and so have *worlds*: departments whose id contains a size, a fault and a
seed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache


@dataclass(frozen=True)
class Tree:
    """A department whose products are distributed evenly over its leaf categories, and how the listings present it."""

    size: int
    groups: int = 4
    leaves_per_group: int = 6
    unpriced: float = 0.0
    """The share of the products that have no price, from 0 to 1."""
    one_price: int = 0
    """Number of products that have the same price."""
    reported: float = 1.0
    """The ratio of the total that a listing states to its real number of products."""
    fault: str = ""
    """The fault of the listings, a name in ``WORLD_FAULTS``."""
    seed: str = ""
    """Distinguishes worlds that have the same size and fault."""

    def children(self, cat_id: str) -> tuple[str, ...]:
        """Return the ids of the subcategories of a category in this tree.

        Raises:
            KeyError: the tree has no such category.
        """
        department, *numbers = self.place(cat_id).split("_")
        groups = [str(number) for number in range(1, self.groups + 1)]
        leaves = [f"{group}{number:02}" for group in numbers[:1] for number in range(1, self.leaves_per_group + 1)]
        known = [[], *([group] for group in groups), *([*numbers[:1], leaf] for leaf in leaves)]
        if numbers not in known:
            raise KeyError(cat_id)
        below = (groups, leaves, [department] if self.fault == "tree-loop" else [])[len(numbers)]
        return tuple(f"{cat_id}_{each}" for each in below)

    def place(self, cat_id: str) -> str:
        """Return the id of the category that an id stands for. The two ids differ only in a world with ``tree-loop``.

        In such a world, each leaf category has one subcategory: the department itself, under a longer id.
        """
        department = cat_id.partition("_")[0]
        if self.fault != "tree-loop":
            return cat_id
        return f"{department}{cat_id.rpartition(department)[2]}"

    def leaves(self, department: str) -> list[str]:
        """Return the ids of the department's leaf categories: those at the lowest level, which have the products."""
        return [leaf for group in self.children(department) for leaf in self.children(group)]


TREES = {
    "880001": Tree(20_000),
    "880002": Tree(20_000, groups=10, unpriced=0.04),
    "880003": Tree(20_000, unpriced=0.04),
    "880004": Tree(6_446, unpriced=0.04, reported=1.03),
    "880005": Tree(6_446, unpriced=0.04, reported=0.97),
    "880006": Tree(3_000, groups=2, leaves_per_group=2, fault="filter-ignored"),
}
"""The trees, by the category id of the department."""

WORLD_SIZES = {
    "976759": Tree(2_160, groups=3, unpriced=0.04),
    "4044": Tree(6_446, unpriced=0.04, one_price=700),
    "880001": Tree(20_000),
}
"""The sizes of worlds, named after departments, with their trees. In the first two, about 4 % of the products have no
price, unless the fault is ``priced``."""

WORLD_FAULTS = {
    "none": "no fault",
    "priced": "no fault, and every product has a price",
    "filter-ignored": "every price filter is ignored",
    "filter-ignored-once": "the second of the requested price filters is ignored, in every request that contains it",
    "moving": "2 % of the products change their price or their category while the department is being crawled",
    "shrinking": "with each request, all totals become smaller, down to half",
    "tree-loop": "each leaf category has the department as its only subcategory, with a longer id",
    "repeated-page": "page 3 of every listing has the products of page 2",
    "leads-back": "from page 5 on, every listing begins again with its first page",
    "challenge-midway": "the 20th request gets a CAPTCHA challenge",
    "overstated": "all totals are 3 % too high",
}
"""The faults of worlds by name, with their descriptions."""

_WORLD = re.compile(r"7(\d)(\d\d)(\d\d)")


def world_id(size: str, fault: str, seed: int) -> str:
    """Return the category id of a world's department. ``size``: a key of ``WORLD_SIZES``; ``seed``: from 0 to 99.

    >>> world_id("4044", "moving", 7)
    '710407'
    """
    return f"7{list(WORLD_SIZES).index(size)}{list(WORLD_FAULTS).index(fault):02}{seed:02}"


@cache
def tree_of(cat_id: str) -> Tree | None:
    """Return the tree that contains a category, or None for a category of the ordinary shop."""
    department = cat_id.partition("_")[0]
    found = _WORLD.fullmatch(department)
    if found is None:
        return TREES.get(department)
    size, fault, seed = found.groups()
    if int(size) >= len(WORLD_SIZES) or int(fault) >= len(WORLD_FAULTS):
        return None
    tree, name = list(WORLD_SIZES.values())[int(size)], list(WORLD_FAULTS)[int(fault)]
    return replace(
        tree,
        fault=name,
        seed=seed,
        unpriced=0.0 if name == "priced" else tree.unpriced,
        reported=1.03 if name == "overstated" else 1.0,
    )
