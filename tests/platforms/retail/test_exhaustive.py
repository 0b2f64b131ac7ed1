"""The exhaustive crawl of a simulated listing with a ceiling: no I/O, many kinds of category."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from crawler.platforms.retail.exhaustive import ExhaustiveCrawl, Slice

ROWS, SERVED = 48, 490


@dataclass(frozen=True)
class Product:
    item_id: str
    category: str
    cents: int | None


class Shop:
    """A listing service with the platform's ceiling: it serves the first 490 rows of a slice."""

    def __init__(self, products: list[Product], *, has_children: bool = True) -> None:
        self.products = products
        self.has_children = has_children

    def matches(self, part: Slice) -> list[Product]:
        def fits(product: Product) -> bool:
            inside = product.category == part.cat_id or product.category.startswith(part.cat_id + "_")
            if part.low is None and part.high is None:
                return inside
            priced = product.cents is not None and product.cents >= (part.low or 0)
            return inside and priced and (part.high is None or (product.cents or 0) <= part.high)

        found = [product for product in self.products if fits(product)]
        random.Random(part.sort).shuffle(found)  # noqa: S311  # another order for each sort, the same in each run
        return found

    def children(self, cat_id: str) -> list[str]:
        if not self.has_children:
            return []
        depth = cat_id.count("_") + 2
        return sorted(
            {"_".join(p.category.split("_")[:depth]) for p in self.products if p.category.startswith(cat_id + "_")}
        )


def run(shop: Shop, cat_id: str, *, fail: frozenset[int] = frozenset()) -> tuple[ExhaustiveCrawl, list[dict[str, Any]]]:
    """Crawl the shop exhaustively. The requests numbered in ``fail`` fail."""
    crawl = ExhaustiveCrawl(cat_id, ceiling=400)
    waiting: list[tuple[Slice, int]] = [(crawl.begin(), 0)]
    out: list[dict[str, Any]] = []
    for number in range(2_000):
        if not waiting:
            return crawl, out
        part, page = waiting.pop(0)
        if number in fail:
            waiting += [(following, 0) for following in crawl.fail(part)]
            continue
        matches = shop.matches(part)
        rows = matches[:SERVED][page * ROWS : (page + 1) * ROWS]
        out += crawl.take(part, [{"item_id": product.item_id} for product in rows])
        if page or crawl.fits(part, len(matches)):
            if len(rows) == ROWS and not crawl.complete:
                waiting.append((part, page + 1))
            else:
                waiting += [(following, 0) for following in crawl.close(part)]
        else:
            prices = [product.cents / 100 for product in rows if product.cents is not None]
            following = crawl.split(part, len(matches), prices, None, shop.children(part.cat_id))
            waiting += [(part, 0) for part in following]
    pytest.fail("the crawl did not end")


def category(*, size: int, same_price: int = 0, unpriced: int = 0, leaves: int = 20) -> list[Product]:
    rng = random.Random(size)  # noqa: S311  # a seed, not a secret
    prices = (
        [None] * unpriced + [1999] * same_price + [rng.randint(99, 50_000) for _ in range(size - same_price - unpriced)]
    )
    return [Product(str(n), f"1_{n % 4}_{n % leaves}", cents) for n, cents in enumerate(prices)]


@pytest.mark.parametrize(
    ("products", "least"),
    [
        pytest.param(category(size=0), 0, id="empty"),
        pytest.param(category(size=300), 300, id="fits at once"),
        pytest.param(category(size=3_000), 3_000, id="by price"),
        pytest.param(category(size=6_446, same_price=700), 6_446, id="one price that many share"),
        pytest.param(category(size=6_446, same_price=700, unpriced=258), 6_446, id="unpriced"),
        pytest.param(category(size=2_000, unpriced=2_000), 2_000, id="no prices at all"),
    ],
)
def test_finds_every_product_once(products: list[Product], least: int) -> None:
    crawl, out = run(Shop(products), "1")
    ids = [row["item_id"] for row in out]
    assert len(ids) == len(set(ids))
    assert len(ids) >= least
    assert crawl.finished
    assert crawl.missing() == {}


def test_missing_names_slices_over_the_ceiling() -> None:
    crawl, out = run(Shop(category(size=9_000, same_price=9_000), has_children=False), "1")
    assert len(out) < 9_000
    assert Slice("1", 1999, 1999) in crawl.missing()


def test_a_failed_slice_is_listed_and_the_crawl_continues() -> None:
    crawl, out = run(Shop(category(size=3_000)), "1", fail=frozenset({5}))
    assert len(crawl.failed) == 1
    assert len(out) == 3_000, "the later stages find the products of the failed slice"


def test_a_failed_first_page_ends_the_crawl() -> None:
    crawl, out = run(Shop(category(size=3_000)), "1", fail=frozenset({0}))
    assert crawl.finished
    assert out == []


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Slice("1_2"), "1_2"),
        (Slice("1_2", 100, 199), "1_2 1.00..1.99"),
        (Slice("1_2", 100, None, "new"), "1_2 1.00.. by new"),
    ],
)
def test_slices_are_readable_in_logs(part: Slice, text: str) -> None:
    assert str(part) == text
