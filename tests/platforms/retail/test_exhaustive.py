"""Exhaustive crawls of a model of the shop that has the platform's page sizes and result limit. No I/O."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from structlog.testing import capture_logs

from crawler.platforms.retail.exhaustive import ExhaustiveCrawl
from crawler.platforms.retail.slices import PageRead, Row, Slice, Step, subcategories
from crawler.targets.coverage import Coverage

SERVED = (46, 43, 44, 46, 45, 46, 44, 43, 46, 32, 8)
"""Number of distinct products on each page of a listing. No listing has more pages."""
MAX_PAGE = 25
CEILING = 400


@dataclass(frozen=True)
class Product:
    item_id: str
    category: str
    cents: int | None


@dataclass
class Shop:
    """A model of the shop's listings, which shows at most as many products of a listing as the platform."""

    products: list[Product]
    reported: Callable[[Slice], float] = lambda _: 1.0
    """Maps a listing to its reported total divided by its true total."""
    filters: bool = True
    whole_dollars: bool = False
    """Whether the price filter ignores cents."""
    hidden: frozenset[str] = frozenset()
    """Categories that no department filter lists."""
    requests: int = 0
    fail: frozenset[int] = frozenset()
    """The numbers of the requests that fail. The first request of the crawl has the number 1."""
    _listings: dict[Slice, list[Product]] = field(default_factory=dict)
    _children: dict[str, list[str]] = field(default_factory=dict)

    def matches(self, part: Slice) -> list[Product]:
        if part in self._listings:
            return self._listings[part]
        low, high = part.low, part.high
        if self.whole_dollars:
            low, high = low and low // 100 * 100, high and high // 100 * 100
        above = self.products if not part.cat_id.count("_") else self.matches(Slice(part.cat_id.rpartition("_")[0]))
        found = [p for p in above if p.category == part.cat_id or p.category.startswith(part.cat_id + "_")]
        if self.filters and (low is not None or high is not None):
            found = [p for p in found if p.cents is not None and (low or 0) <= p.cents <= (high or 10**9)]
        random.Random(f"{part.sort}").shuffle(found)  # noqa: S311  # another order for each sort, the same in each run
        if part.sort in {"price_low", "price_high"}:
            sign = 1 if part.sort == "price_low" else -1
            found.sort(key=lambda p: 10**9 if p.cents is None else sign * p.cents)
        self._listings[part] = found
        return found

    def children(self, cat_id: str) -> list[str]:
        if cat_id not in self._children:
            depth = cat_id.count("_") + 2
            paths = {p.category for p in self.matches(Slice(cat_id)) if p.category != cat_id}
            below = {"_".join(path.split("_")[:depth]) for path in paths}
            self._children[cat_id] = ["1", "2_7", *sorted(below - self.hidden)]
        return self._children[cat_id]

    def page(self, part: Slice, number: int) -> PageRead | None:
        self.requests += 1
        if self.requests in self.fail:
            return None
        found = self.matches(part)
        start = sum(SERVED[: number - 1])
        rows = found[start : start + SERVED[number - 1]] if number <= len(SERVED) else []
        max_page = MAX_PAGE
        if len(found) <= sum(SERVED):
            max_page = next(n for n in range(12) if sum(SERVED[:n]) >= len(found)) or 1
        return PageRead(
            number,
            round(len(found) * self.reported(part)),
            bool(rows) and number < max_page,
            [row(product) for product in rows],
            self.children(part.cat_id),
        )


def row(product: Product) -> Row:
    return Row(product.item_id, product.cents)


@dataclass
class Run:
    """A crawl of the shop, with the state that a job stores."""

    shop: Shop
    max_requests: int | None = None
    ids: list[str] = field(default_factory=list)
    stored: list[dict[str, Any]] = field(default_factory=list)
    pending: list[Step] = field(default_factory=list)
    reports: int = 0

    def __post_init__(self) -> None:
        self.crawl = self.new()
        self.pending = [self.crawl.begin()]

    def new(self) -> ExhaustiveCrawl:
        return ExhaustiveCrawl(Slice("1"), CEILING, self.max_requests)

    def restart(self) -> None:
        """Discard everything but the notes stored with the pages, as ``kill -9`` does, and continue from them."""
        if self.stored:
            self.crawl = self.new()
            for note in self.stored:
                self.crawl.restore(json.loads(json.dumps(note)), stored=True)
            reports = [step for step in self.pending if self.crawl.is_report(step)]
            pages = [step for step in self.pending if step not in reports] + self.crawl.resume(self.pending)
            self.pending = pages + (reports[:1] if self.crawl.reported else [])
        else:
            self.__post_init__()

    def until(self, pages: int, *, lost: int = 0, seed: int = 0) -> Run:
        """Read pages in random order, as concurrent downloads end. The last ``lost`` pages are read, but not stored."""
        rng = random.Random(seed)  # noqa: S311  # a seed, not a secret
        started = []
        while self.pending and pages:
            pages -= 1
            step = self.pending.pop(rng.randrange(min(4, len(self.pending))))
            if self.stored and self.crawl.is_report(step):
                self.reports += 1
                continue
            read = self.shop.page(*step)
            taken = self.crawl.fail(*step) if read is None else self.crawl.take(step.part, read)
            if pages < lost:
                started.append(step)
                continue
            self.stored.append(taken.note)
            self.ids += taken.fresh
            self.pending = taken.steps + self.pending
        self.pending += started
        return self


def crawled(shop: Shop, **options: Any) -> Run:
    run = Run(shop, **options).until(5_000)
    assert not run.pending, "the crawl did not end"
    assert run.crawl.finished
    assert len(run.ids) == len(set(run.ids)), "each product once"
    return run


@cache
def category(  # noqa: PLR0913  # the properties of a category, by name
    size: int, *, leaves: int = 24, groups: int = 4, same: int = 0, unpriced: float = 0, own: int = 0
) -> tuple[Product, ...]:
    """Return products in a category tree: ``own`` of them are in its root, and ``same`` of them have one price."""
    rng = random.Random(size)  # noqa: S311  # a seed, not a secret
    found = []
    for number in range(size):
        price = 1999 if number < same else round(100 * rng.lognormvariate(3.2, 0.9)) + 49
        leaf = number % leaves
        place = "1" if number >= size - own else f"1_{100 + leaf % groups}_{1_000 + leaf}"
        found.append(Product(str(number), place, None if rng.random() < unpriced else price))
    return tuple(found)


def shop(products: tuple[Product, ...], **options: Any) -> Shop:
    return Shop(list(products), **options)


# The required properties of the crawl


def test_re_5_categories_come_first() -> None:
    run = crawled(shop(category(6_446, same=700, unpriced=0.04)))
    assert len(run.ids) == 6_446
    assert run.shop.requests <= 160


@pytest.mark.parametrize("factor", [1.03, 0.97])
def test_re_4_the_total_is_an_estimate(factor: float) -> None:
    exact = crawled(shop(category(6_446, same=700, unpriced=0.04))).shop.requests
    run = crawled(shop(category(6_446, same=700, unpriced=0.04), reported=lambda _: factor))
    assert len(run.ids) == 6_446
    assert run.shop.requests <= 1.15 * exact


def test_re_4_the_total_of_each_listing_may_vary() -> None:
    exact = crawled(shop(category(6_446, same=700, unpriced=0.04))).shop.requests
    run = crawled(
        shop(category(6_446, same=700, unpriced=0.04), reported=lambda part: random.Random(str(part)).uniform(0.99, 1))  # noqa: S311
    )
    assert len(run.ids) == 6_446
    assert run.shop.requests <= 1.15 * exact


def test_re_4_a_filter_of_whole_dollars_loses_nothing() -> None:
    run = crawled(shop(category(20_000), whole_dollars=True))
    assert len(run.ids) == 20_000


@pytest.mark.parametrize(("leaves", "groups", "unpriced", "most"), [(24, 4, 0.0, 600), (60, 10, 0.04, 570)])
def test_large_categories_are_complete(leaves: int, groups: int, unpriced: float, most: int) -> None:
    run = crawled(shop(category(20_000, leaves=leaves, groups=groups, unpriced=unpriced)))
    assert len(run.ids) == 20_000
    assert run.shop.requests <= most


def test_products_without_a_price_are_tried_by_sort_order() -> None:
    products = category(20_000, unpriced=0.04)
    priced = {product.item_id for product in products if product.cents is not None}
    with capture_logs() as logs:
        run = crawled(shop(products), max_requests=1_000)
        run.crawl.log_end()
    assert len(priced & set(run.ids)) >= 0.99 * len(priced)
    assert run.shop.requests <= 1_000
    (end,) = [each for each in logs if each["event"] == "exhaustive_done"]
    assert 0 < end["found_by_sort_order"] <= len(set(run.ids) - priced)
    assert run.reports == 1


@pytest.mark.parametrize("leaves", [1, 4])
def test_re_1_a_price_filter_without_effect_ends(leaves: int) -> None:
    with capture_logs() as logs:
        run = crawled(shop(category(3_000, leaves=leaves, groups=leaves), filters=False))
    warnings = [each for each in logs if each["event"] == "price_filter_without_effect"]
    assert len(warnings) == 2, "with two price ranges"
    assert run.shop.requests < 400
    assert run.reports == 1
    assert "filter_ignored" in run.crawl.coverage.reasons


def test_one_price_is_not_a_filter_without_effect() -> None:
    run = crawled(shop(category(900, leaves=1, groups=1, same=900)))
    assert not run.crawl.plan.unfilterable
    assert len(run.ids) > sum(SERVED), "a single price is read in several sort orders"


@pytest.mark.parametrize("price", [1500, 1999])
def test_a_price_that_many_share_is_isolated(price: int) -> None:
    products = [Product(str(n), "1", price if n < 380 else 100 + 7 * n) for n in range(1_200)]
    assert len(crawled(Shop(products)).ids) == 1_200


@pytest.mark.parametrize("seed", range(6))
def test_re_7_killed_and_resumed_it_is_as_complete(seed: int) -> None:
    run = Run(shop(category(6_446, own=600)))
    for number in range(5):
        run.until(random.Random(seed * 10 + number).randint(1, 60), lost=3, seed=seed).restart()  # noqa: S311
    run.until(5_000, seed=seed)
    assert not run.pending
    assert len(run.ids) == len(set(run.ids)) == 6_446


def test_re_7_a_resumed_crawl_recognises_a_filter_without_effect() -> None:
    run = Run(shop(category(3_000, leaves=4, groups=4), filters=False))
    for number in range(10):
        run.until(12, lost=2, seed=number).restart()
    run.until(5_000)
    assert not run.pending
    assert run.shop.requests < 450


@pytest.mark.parametrize("most", [1, 2, 10, 50, 148])
def test_max_requests_ends_the_crawl_with_one_report(most: int) -> None:
    run = crawled(shop(category(6_446, unpriced=0.04)), max_requests=most)
    assert run.shop.requests == most
    assert run.reports == 1
    assert run.crawl.coverage == Coverage(6_446, len(run.ids), ("max_requests",))


def test_max_requests_counts_the_pages_of_earlier_starts() -> None:
    run = Run(shop(category(6_446)), max_requests=60)
    for _ in range(4):
        run.until(20, lost=2).restart()
    run.until(5_000)
    assert 60 < run.shop.requests <= 60 + 4 * 2, "only pages that were lost are requested twice"
    assert run.reports == 1


@pytest.mark.parametrize("lost", [0, 3])
def test_a_crawl_that_reached_max_requests_continues_with_a_higher_one(lost: int) -> None:
    """The step that reports missing products stays pending, as in a job. ``lost``: how many pages each kill loses."""
    run = Run(shop(category(6_446, own=600)), max_requests=10)
    for limit in (10, 60, 61, None):
        run.max_requests = limit
        run.restart()
        run.until(30, lost=lost).restart()
        run.until(5_000)
        assert run.crawl.finished
        if limit is not None:
            assert bool(run.crawl.left_out) == run.crawl.reported
            assert run.crawl.requests == limit
            run.pending.append(Step(run.crawl.root))
    assert not run.crawl.left_out
    assert len(run.ids) == len(set(run.ids)) == 6_446


def test_a_crawl_within_max_requests_has_no_report() -> None:
    assert crawled(shop(category(300)), max_requests=100).reports == 0


# Other kinds of category


@pytest.mark.parametrize(
    ("products", "least"),
    [
        pytest.param(category(0), 0, id="empty"),
        pytest.param(category(300), 300, id="fits at once"),
        pytest.param(category(3_000, leaves=1, groups=1), 3_000, id="by price"),
        pytest.param(category(6_446, same=700), 6_446, id="one price that many share"),
        pytest.param(category(2_000, unpriced=1.0), 2_000, id="no prices at all"),
        pytest.param(category(6_446, own=1_500), 6_446, id="products outside of all sub-categories"),
    ],
)
def test_finds_every_product_once(products: tuple[Product, ...], least: int) -> None:
    assert len(crawled(shop(products)).ids) == least


def test_sub_categories_that_are_not_offered_are_found_by_price() -> None:
    run = crawled(shop(category(6_446), hidden=frozenset({"1_102"})))
    assert len(run.ids) >= 0.99 * 6_446


def test_a_listing_that_ends_early_is_split() -> None:
    products = [*category(900, leaves=1, groups=1)]
    run = crawled(Shop(products, reported=lambda part: 0.4 if part == Slice("1") else 1.0))
    assert len(run.ids) == 900, "390 reported, 443 served, 900 products"


def test_a_root_with_prices_stays_within_them() -> None:
    products = category(6_446)
    run = Run(shop(products))
    run.crawl = ExhaustiveCrawl(Slice("1", 1_000, 4_000), CEILING)
    run.pending = [run.crawl.begin()]
    run.until(5_000)
    assert set(run.ids) == {p.item_id for p in products if p.cents is not None and 1_000 <= p.cents <= 4_000}


@pytest.mark.parametrize("request_number", [2, 5, 9, 40, 140])
def test_a_failed_slice_is_listed_and_the_crawl_continues(request_number: int) -> None:
    run = crawled(shop(category(6_446), fail=frozenset({request_number})))
    assert [reading.failed for reading in run.crawl.plan.readings.values()].count(True) == 1
    assert len(run.ids) == 6_446, "other slices have the products of the failed page"


def test_a_failed_first_page_ends_the_crawl() -> None:
    run = crawled(shop(category(3_000), fail=frozenset({1})))
    assert run.ids == []
    assert run.shop.requests == 1


def test_products_of_a_lost_record_are_returned_by_another_page() -> None:
    crawl = ExhaustiveCrawl(Slice("1"), CEILING)
    crawl.begin()
    page = shop(category(30)).page(Slice("1"), 1)
    assert page is not None
    taken = crawl.take(Slice("1"), page)
    crawl.release(taken.note["ids"])
    assert crawl.take(Slice("1"), page).fresh == taken.fresh


# Slices


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


def test_re_5_a_sub_category_lies_below_its_category() -> None:
    assert subcategories("1_2", ["1_2", "1", "1_3", "1_21", "3_1_2_9", "1_2_9", "1_2_9_4", "1_2_8"]) == [
        "1_2_8",
        "1_2_9",
    ]


PAGES = {
    "inside": [Row(str(n), 1500) for n in range(8)],
    "edge": [Row("8", 2050), Row("9", None)],
    "advertised": [Row(str(n), 9000, is_sponsored=True) for n in range(10, 15)],
    "outside": [Row(str(n), 9000) for n in range(10, 15)],
}


@pytest.mark.parametrize(
    ("rows", "selected", "confirms", "expected"),
    [
        (("inside", "edge", "advertised"), (None, None), False, False),
        (("inside", "outside"), (None, None), False, True),
        (("inside",), (None, None), True, True),
        (("outside",), (1000, 2000), False, False),
        (("inside",), (1050, 1950), True, False),
        (("inside",), (3000, 4000), False, True),
        ((), (None, None), True, False),
    ],
)
def test_re3_5_a_page_shows_whether_its_price_filter_was_applied(
    rows: tuple[str, ...],
    selected: tuple[int | None, int | None],
    confirms: bool,  # noqa: FBT001  # a column of the table
    expected: bool,  # noqa: FBT001
) -> None:
    page = PageRead(1, 100, has_more=True, rows=[row for name in rows for row in PAGES[name]], selected=selected)
    assert page.ignores_filter_of(Slice("1", 1000, 2000), confirms=confirms) is expected
