"""The simulated shop's data: an invented category tree, its products, and the rows that each listing page shows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import count, islice
from typing import Any
from urllib.parse import urlsplit

from crawler.sandbox.retail.product import Product
from crawler.sandbox.retail.trees import Tree, tree_of
from crawler.sandbox.retail.worlds import Progress, moved, page_to_show
from crawler.sandbox.skeletons import invented

# Specification, section 8. The numbers were measured on one category of the real platform.
ROWS = (50, 47, 48, 50, 49, 50, 48, 47, 50, 36, 12)
"""The maximum number of rows on each page of a listing, beginning with page 1. Later pages are empty."""
CAPPED_MAX_PAGE = 25
BIG_TOTAL = 6446
ADVERTISEMENTS, FOREIGN = 4, 2
"""Number of rows on a full page that only advertise: products of other departments, and products of the same page."""
FOREIGN_STEP = 1_009
"""A prime number, the distance of the advertised products of other departments in ``Shop.products``."""
UNFILTERED = {"filter-ignored", "filter-stated", "filter-unasked"}
"""The faults of listings that ignore price filters."""
ONE_PRICE, ONE_PRICE_COUNT = 1999, 700
UNPRICED_SHARE = 0.04
MAX_TREES = 4
"""Maximum number of large category trees whose products are kept."""

FAULTS_DEPARTMENT = "990000"
BIG_DEPARTMENT = "4044"

INVENTED = invented(__file__)
_DEPARTMENTS = {
    "976759": ("Food", ["Condiments", "Breakfast", "Snacks"], ["Mustard", "Honey", "Crackers", "Tea"]),
    BIG_DEPARTMENT: ("Home", ["Kitchen", "Bedding", "Decor", "Storage"], ["Kettle", "Pillow", "Lamp", "Basket"]),
    "3944": ("Electronics", ["Computers", "Audio", "Phones"], ["Laptop", "Headphones", "Charger", "Tablet"]),
    "4171": ("Toys", ["Pretend Play", "Puzzles"], ["Robot", "Puzzle", "Kite"]),
}


@dataclass(frozen=True, slots=True)
class Category:
    """A category of the shop, with the ids of its subcategories."""

    id: str
    name: str
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row in a page: a product, and whether the row is an advertisement."""

    product: Product
    sponsored: bool


@dataclass(frozen=True, slots=True)
class View:
    """One page of a listing, with its rows."""

    category: Category | None
    query: str | None
    page: int
    sort: str
    total: int
    max_page: int
    rows: tuple[Row, ...]
    prices: tuple[float | None, float | None] = (None, None)
    """The limits of the price filter that was applied."""


class Shop:
    """The simulated shop. The same seed produces the same shop on every machine."""

    def __init__(self, seed: int, faults: dict[str, str], *, light: bool) -> None:
        self.seed = seed
        self.faults = faults
        """The name of each fault, by the category id that selects the fault."""
        self.fault_names = frozenset(faults.values())
        self.light = light
        self.big_category = BIG_DEPARTMENT
        categories, products = stock(seed)
        self.products: Sequence[Product] = products
        self.categories = categories | {fault_id: Category(fault_id, fault, ()) for fault_id, fault in faults.items()}
        self._stocks: dict[str, list[Product]] = {}
        """The products of the trees for exhaustive crawls, by department, before any of them moves."""
        self._shown: dict[tuple[str, int], list[Product]] = {}
        """The products of a category in a tree, by category id and by the number of groups that have moved."""
        self.progress: defaultdict[str, Progress] = defaultdict(Progress)
        """The progress of the crawl of each world, by department."""

    def category(self, cat_id: str) -> Category:
        """Return a category of the shop or of one of the trees for exhaustive crawls, by its id.

        Raises:
            KeyError: the category is unknown.
        """
        if cat_id in self.categories:
            return self.categories[cat_id]
        tree = tree_of(cat_id)
        if tree is None:
            raise KeyError(cat_id)
        return Category(cat_id, f"Tree {cat_id}", tree.children(cat_id))

    def _of_tree(self, cat_id: str, tree: Tree, moves: int = 0) -> list[Product]:
        """Return a category's products after ``moves`` groups have moved. ``tree``: the category's tree."""
        place = tree.place(cat_id)
        department = place.partition("_")[0]
        key = place, moves
        if key not in self._shown:
            if department not in self._stocks:
                self._stock(department, tree)
            found: Sequence[Product] = self._stocks[department]
            if moves:
                found = moved(found, tree, tree.leaves(department), moves)
            self._shown[key] = [p for p in found if f"{p.category}_".startswith(f"{place}_")]
        return self._shown[key]

    def _stock(self, department: str, tree: Tree) -> None:
        """Create the products of a tree.

        If the products of ``MAX_TREES`` category trees are stored already, delete those of the oldest tree.
        """
        for old in list(self._stocks)[: 1 - MAX_TREES]:
            del self._stocks[old]
            self._shown = {key: each for key, each in self._shown.items() if key[0].partition("_")[0] != old}
        rng = random.Random(f"{self.seed}{department}")  # noqa: S311  # invented data, not a secret
        leaves, first = tree.leaves(department), int(department) * 100_000
        one_price = [ONE_PRICE] * tree.one_price + [None] * (tree.size - tree.one_price)
        self._stocks[department] = [
            _product(rng, first + n, leaves[(n + n // len(leaves)) % len(leaves)], ["Thing"], cents, tree=tree)
            for n, cents in enumerate(one_price)
        ]

    @lru_cache(maxsize=32)  # noqa: B019  # shops live as long as their process; a crawl reads each listing page by page
    def _of_tree_in_order(
        self, cat_id: str, tree: Tree, moves: int, sort: str, prices: tuple[int, int] | None
    ) -> list[Product]:
        """Return a category's products with prices in a range of cents, after ``moves`` groups have moved."""
        found: Iterable[Product] = self._of_tree(cat_id, tree, moves)
        if prices is not None:
            found = _within(found, *prices)
        return sorted(found, key=lambda p: self._key(sort, p))

    def _key(self, sort: str, p: Product) -> Any:
        """Return a product's sort key for a sort order. In both orders by price, products without a price come last.

        Raises:
            KeyError: the sort order is unknown.
        """
        late = 10**12
        if sort in (shuffled := orders(self.seed)):
            known = shuffled[sort].get(p.number)
            return hash_order(f"{self.seed}{sort}{p.number}") if known is None else known
        return {
            "price_low": (late if p.cents is None else p.cents, p.number),
            "price_high": (late if p.cents is None else -p.cents, p.number),
            "rating_high": (-(p.stars or 0), p.number),
            "new": -p.number,
        }[sort]

    def matching(self, cat_id: str | None, query: str | None) -> list[Product]:
        """Return the products in a category, or the products that a search finds."""
        if cat_id is not None and (tree := tree_of(cat_id)):
            return list(self._of_tree(cat_id, tree))
        if cat_id is not None:
            return [p for p in self.products if p.category == cat_id or p.category.startswith(cat_id + "_")]
        words = (query or "").lower().split()
        return [p for p in self.products if all(word in p.name.lower() for word in words)]

    def products_of(self, cat_id: str) -> tuple[set[str], set[str]]:
        """Return the ids of a category's products in two sets: with a price, and without."""
        found = self.matching(cat_id, None)
        return {p.item_id for p in found if p.cents is not None}, {p.item_id for p in found if p.cents is None}

    def view(self, params: dict[str, Any]) -> View:
        """Return the page of the listing that these params select.

        Raises:
            KeyError: the category or sort order is unknown, or category and query are both missing.
            ValueError: the page number or a price is invalid.
        """
        cat_id, query = params.get("cat_id"), params.get("query")
        if params.get("url"):
            cat_id = urlsplit(params["url"]).path.rpartition("/")[2]
        if cat_id is None and query is None:
            raise KeyError("cat_id, url or query")
        page, sort = int(params.get("page") or 1), str(params.get("sort") or "best_match")
        if page < 1:
            raise ValueError(page)
        category = self.category(cat_id) if cat_id is not None else None
        tree = tree_of(cat_id) if cat_id is not None else None
        progress = self.progress[cat_id.partition("_")[0]] if cat_id is not None and tree is not None else None
        low, high = params.get("min_price"), params.get("max_price")
        prices = None if low is None and high is None else (_cents(low, 0), _cents(high, 10**12))
        fault = tree.fault if tree else self.faults.get(cat_id or "", query)
        if fault in UNFILTERED or (progress and tree and progress.ignores(tree, (str(cat_id), low, high))):
            prices = None
        if cat_id is not None and progress and tree:
            found = self._of_tree_in_order(cat_id, tree, progress.moves(tree), sort, prices)
        else:
            found = self.matching(
                "3944" if cat_id in self.faults else cat_id, None if query in self.fault_names else query
            )
            found = found if prices is None else _within(found, *prices)
            found.sort(key=lambda p: self._key(sort, p))
        start = 0
        chunks: list[list[Product]] = []
        while start < len(found) and len(chunks) < len(ROWS):
            chunk = found[start : start + ROWS[len(chunks)] - ADVERTISEMENTS]
            chunks.append(chunk)
            start += len(chunk)
        max_page = CAPPED_MAX_PAGE if start < len(found) else max(len(chunks), 1)
        shown = page_to_show(tree, page)
        rows = self._rows(chunks[shown - 1], ROWS[shown - 1], category) if shown <= len(chunks) else ()
        total = round(len(found) * progress.factor(tree)) if progress and tree else len(found)
        stated = (low, high) if prices or fault == "filter-stated" else (None, None)
        applied = (5.0, None) if fault == "filter-unasked" else (_dollars(stated[0]), _dollars(stated[1]))
        return View(category, query, page, sort, total, max_page, rows, applied)

    def _rows(self, products: list[Product], size: int, category: Category | None) -> tuple[Row, ...]:
        """Build the rows of a page. In a category, some are sponsored. A full page also has rows that only advertise.

        The total of a search does not include advertisements, so all of its results have an organic row.
        """
        rows = [Row(p, sponsored=category is not None and p.number % 8 == 3) for p in products]  # about one in eight
        if len(products) == size - ADVERTISEMENTS:
            advertised = [*self._foreign(products[0]), *products[FOREIGN - ADVERTISEMENTS :]]
            rows[2:2] = [Row(p, sponsored=True) for p in advertised]
        return tuple(rows[:6] if self.light else rows)

    def _foreign(self, product: Product) -> Iterator[Product]:
        """Return products of other departments than that of a product."""
        department = product.category.partition("_")[0]
        others = (self.products[number % len(self.products)] for number in count(product.number, FOREIGN_STEP))
        return islice((each for each in others if each.category.partition("_")[0] != department), FOREIGN)

    def crumbs(self, category: Category) -> list[Category]:
        """Return the categories that contain a category, the broadest first."""
        ids = category.id.split("_")
        above = ["_".join(ids[:n]) for n in range(1, len(ids))]
        return [self.category(cat_id) for cat_id in above if cat_id in self.categories or tree_of(cat_id)]


def _within(products: Iterable[Product], lowest: int, highest: int) -> list[Product]:
    return [p for p in products if p.cents is not None and lowest <= p.cents <= highest]


def _cents(dollars: str | float | None, default: int) -> int:
    return default if dollars is None else round(float(dollars) * 100)


def _dollars(dollars: str | float | None) -> float | None:
    return None if dollars is None else float(dollars)


@lru_cache(maxsize=2)
def stock(seed: int) -> tuple[dict[str, Category], tuple[Product, ...]]:
    """Return the categories (by id) and the products of a seed's shop. All shops of a process share them."""
    rng = random.Random(seed)  # noqa: S311  # invented data, not a secret
    categories: dict[str, Category] = {}
    products: list[Product] = []
    for department, (name, groups, nouns) in _DEPARTMENTS.items():
        leaves = _grow(categories, department, name, groups)
        size = BIG_TOTAL if department == BIG_DEPARTMENT else 120 * len(leaves)
        for number in range(size):
            leaf = leaves[number % len(leaves)]
            same = department == BIG_DEPARTMENT and number < ONE_PRICE_COUNT
            products.append(_product(rng, len(products), leaf, nouns, ONE_PRICE if same else None))
    return categories, tuple(products)


@lru_cache(maxsize=2)
def orders(seed: int) -> dict[str, dict[int, float]]:
    """Return pseudo-random sort keys for sort orders that depend on nothing else: order -> product number -> key."""

    def shuffled(name: str) -> dict[int, float]:
        rng = random.Random(f"{seed}{name}")  # noqa: S311  # invented data, not a secret
        return {product.number: rng.random() for product in stock(seed)[1]}

    return {"best_match": shuffled("match"), "best_seller": shuffled("seller")}


def _grow(categories: dict[str, Category], department: str, name: str, groups: list[str]) -> list[str]:
    """Add a department and the categories below it. Return the ids of those without subcategories."""
    leaves: list[str] = []
    group_ids = []
    for g, group in enumerate(groups, 1):
        group_id = f"{department}_{int(department) * 7 + g}"
        group_ids.append(group_id)
        leaf_ids = tuple(f"{group_id}_{int(department) * 31 + g * 10 + n}" for n in range(len(INVENTED.leaves)))
        categories[group_id] = Category(group_id, group, leaf_ids)
        for leaf_id, leaf in zip(leaf_ids, INVENTED.leaves, strict=True):
            categories[leaf_id] = Category(leaf_id, f"{group} {leaf}", ())
        leaves += leaf_ids
    categories[department] = Category(department, name, tuple(group_ids))
    return leaves


def _product(  # noqa: PLR0913  # the kinds of products
    rng: random.Random,
    number: int,
    leaf: str,
    nouns: list[str],
    cents: int | None = None,
    *,
    tree: Tree | None = None,
) -> Product:
    priced = cents is not None or rng.random() >= (tree.unpriced if tree else UNPRICED_SHARE)
    price = (cents or round(100 * rng.lognormvariate(3.2, 0.9)) + 49) if priced else None
    ranged = price is not None and price != ONE_PRICE and rng.random() < 0.15
    condition, preowned = rng.choice(INVENTED.conditions)
    rated = rng.random() < 0.9
    seller = rng.choice(INVENTED.sellers)
    noun = rng.choice(nouns)
    return Product(
        number=number,
        item_id=str(17_000_000_000 + number * 7 if number % 9 else 10_000 + number),
        product_id=f"{number:04X}{rng.getrandbits(32):08X}",
        offer_id=f"{rng.getrandbits(128):032X}" if priced else "",
        name=f"{rng.choice(INVENTED.brands)} {rng.choice(INVENTED.adjectives)} {noun}, {rng.randint(1, 24)} ct",
        category=leaf,
        cents=price,
        # A price range consists of either the current price and a highest price, or only a lowest price ("from").
        low=None if not ranged else price if number % 2 else round((price or 0) * 0.8),
        high=round((price or 0) * 1.7) if ranged and number % 2 else None,
        status=rng.choices(("IN_STOCK", "OUT_OF_STOCK", "UNKNOWN"), (90, 8, 2))[0],
        condition=condition if priced else None,
        preowned=preowned and priced,
        stars=round(rng.uniform(1.5, 5), 1) if rated else None,
        reviews=rng.randint(1, 9_000) if rated else None,
        seller=seller if priced else ("", ""),
        fulfillment=("STORE" if seller == INVENTED.sellers[0] else rng.choice(("FC", "MARKETPLACE"))) if priced else "",
        flag=rng.choice(INVENTED.flags),
        icon=rng.random() < 0.3,
        description=rng.choice(("", "<li>Made of wood</li><li>Easy to clean</li>", f"The {noun.lower()} you need 🙂")),
        variants=rng.choice((0, 0, 0, 3, None)),
    )


def hash_order(name: str) -> float:
    """Return a pseudo-random number from 0 to 1 that depends only on ``name``, so it is the same on every machine."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) / 2**64
