"""The plan of an exhaustive crawl, without a process: its requests in small shops, and its results in shops that
misbehave.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pytest

from crawler.platforms.coverage import Coverage
from crawler.platforms.retail.plan import Page, Plan, Row, Slice, Step, subcategories
from tests.misbehaving import BEHAVING, MODES, ROOT, ROWS_PER_PAGE, MisbehavingShop, ignores_filter
from tests.platforms.retail.plans import Run, run

# The requests in small shops, which show 3 rows on a page and 3 pages of a listing. The ceiling is 6.


@dataclass
class SmallShop:
    """A shop with the category 1. ``products``: the sub-category and the price in dollars of each product."""

    products: Sequence[tuple[str, float | None]]
    total: int | None = None
    """The stated total of the category, if it is wrong."""
    fails: Sequence[str] = ()
    """The pages that fail. A page that is listed twice fails twice."""
    ignores: Sequence[str] = ()
    """The pages whose price filter is ignored."""
    empty: Sequence[str] = ()
    rounds: bool = False
    """Whether the price filter is rounded to whole dollars: prices of the same dollar are shown, too."""

    def __post_init__(self) -> None:
        self.failing = list(self.fails)

    def read(self, step: Step) -> Page | None:
        part, text = step.part, str(step)
        if text in self.failing:
            self.failing.remove(text)
            return None
        low, high = (None, None) if text in self.ignores else (part.low, part.high)
        if self.rounds and low is not None:
            low, high = low // 100 * 100, None if high is None else -(-high // 100) * 100
        rows = [
            Row(str(n), None if p is None else round(p * 100), c)
            for n, (c, p) in enumerate(self.products)
            if f"{c}_".startswith(f"{part.cat_id}_")
        ]
        if (low, high) != (None, None):
            rows = [row for row in rows if row.cents and (low or 0) <= row.cents <= (high or 10**6)]
        if part.sort == "price_low":
            rows.sort(key=lambda row: row.cents or 10**6)
        shown = [] if text in self.empty else rows[: 3 * 3][3 * step.page - 3 : 3 * step.page]
        total = self.total if self.total and part == Slice("1") else len(rows)
        below = sorted({category for category, _ in self.products} - {"1"})
        wanted = [None if cents is None else cents / 100 for cents in (part.low, part.high)]
        has_more = bool(shown) and 3 * step.page < len(rows)
        return Page(shown, has_more, total, below, ignores_filter(wanted[0], wanted[1], (None, None), shown))


def dollars(*prices: float | None, categories: Sequence[str] = ("1",)) -> list[tuple[str, float | None]]:
    """Return products with these prices, one after the other in each of the categories."""
    return [(categories[n % len(categories)], price) for n, price in enumerate(prices)]


TWO = ("1_2", "1_3")
FIRST = "1 page 1"
PARTS = ["1_2 page 1", "1_3 page 1", "1_2 page 2", "1_3 page 2"]
"""The pages of the sub-categories ``TWO``."""


def climb(low: str, pages: int) -> list[str]:
    """Return the first pages of all products from a price on, with the lowest price first."""
    return [f"1 {low}.. by price_low page {page}" for page in range(1, pages + 1)]


CRAWLS: dict[str, tuple[SmallShop, list[str], *tuple[str, ...]]] = {
    "an empty category": (SmallShop([]), [FIRST]),
    "within the ceiling": (SmallShop(dollars(1, 2, 3, 4, 5)), [FIRST, "1 page 2"]),
    "by price, also if there are sub-categories": (
        SmallShop(dollars(*range(1, 13), categories=TWO)),
        [FIRST, *climb("0.01", 2), *climb("6.00", 2), *climb("11.00", 1)],
    ),
    "by sub-category, because the first page has a product without a price": (
        SmallShop(dollars(None, 2, 3, 4, 5, 6, 7, 8, categories=TWO)),
        [FIRST, *PARTS],
    ),
    "by sub-category, because a price filter lowers the total": (
        SmallShop(dollars(1, 2, 3, None, 5, 6, 7, 8, categories=TWO)),
        [FIRST, *climb("0.01", 1), *PARTS],
    ),
    "by price without sub-categories; the product without a price is on the first page": (
        SmallShop(dollars(None, 2, 3, 4, 5, 6, 7)),
        [FIRST, *climb("0.01", 2), *climb("7.00", 1)],
    ),
    "by price without sub-categories; the product without a price is on the next page of the listing": (
        SmallShop(dollars(1, 2, 3, None, 5, 6, 7)),
        [FIRST, *climb("0.01", 2), *climb("7.00", 1), "1 page 2"],
    ),
    "a single product without a price is looked for, although totals of many products are estimates": (
        SmallShop(dollars(1, 2, 3, None, *range(5, 26))),
        [
            FIRST,
            *climb("0.01", 2),
            *climb("7.00", 2),
            *climb("12.00", 2),
            *climb("17.00", 2),
            *climb("22.00", 2),
            "1 page 2",
        ],
    ),
    "by price without sub-categories; the product without a price is on no page": (
        SmallShop(dollars(*range(1, 13), None)),
        [FIRST, *climb("0.01", 2), *climb("6.00", 2), *climb("11.00", 1), "1 page 2", "1 page 3", "1 page 4"],
        "no_price",
    ),
    "a large sub-category: its prices by price, then its own pages for the products without a price": (
        SmallShop([*(("1_2", price) for price in (1, 2, 3, 4, None, 6, 7)), ("1_3", None)]),
        [
            FIRST,
            *climb("0.01", 1),
            "1_2 page 1",
            "1_3 page 1",
            "1_2 0.01.. by price_low page 1",
            "1_2 0.01.. by price_low page 2",
            "1_2 7.00.. by price_low page 1",
            "1_2 page 2",
        ],
    ),
    "a price that too many products share": (
        SmallShop(dollars(1, 5, 5, 5, 5, 5, 5, 5, 9, categories=TWO)),
        [
            FIRST,
            *climb("0.01", 2),
            *climb("5.00", 1),
            "1 5.00..5.00 page 1",
            *climb("5.01", 1),
            "1_2 5.00..5.00 page 1",
            "1_3 5.00..5.00 page 1",
            "1_3 5.00..5.00 page 2",
        ],
    ),
    "a price that too many products share, if the filter has whole dollars: all prices of the dollar": (
        SmallShop(dollars(1, 5.2, *[5.5] * 7, 5.8, 9, 10, categories=TWO), rounds=True),
        [
            FIRST,
            *climb("0.01", 2),
            *climb("5.50", 1),
            "1 5.00..6.00 page 1",
            *climb("6.00", 1),
            "1 5.00..6.00 by price_low page 1",
            "1 5.00..6.00 by price_low page 2",
            "1 5.50..6.00 by price_low page 1",
            "1_2 5.00..6.00 page 1",
            "1_3 5.00..6.00 page 1",
            "1_2 5.00..6.00 page 2",
            "1_3 5.00..6.00 page 2",
        ],
    ),
    "an ignored price filter": (
        SmallShop(dollars(*range(1, 13)), ignores=["1 6.00.. by price_low page 1"]),
        [FIRST, *climb("0.01", 2), *climb("6.00", 1), *climb("5.99", 2), *climb("11.00", 1)],
    ),
    "two ignored price filters: sub-categories that cannot be split are read to their end": (
        SmallShop(
            dollars(*range(1, 13), categories=TWO),
            ignores=["1 6.00.. by price_low page 1", "1 5.99.. by price_low page 1"],
        ),
        [FIRST, *climb("0.01", 2), *climb("6.00", 1), *climb("5.99", 1), *PARTS],
        "ceiling",
    ),
    "a failed page of a climb: the next climb begins at the highest price": (
        SmallShop(dollars(*range(1, 13)), fails=["1 0.01.. by price_low page 2"]),
        [FIRST, *climb("0.01", 2), *climb("3.00", 2), *climb("8.00", 2)],
    ),
    "a failed page is requested again": (
        SmallShop(dollars(*range(1, 6)), fails=["1 page 2"]),
        [FIRST, "1 page 2", "1 page 2"],
    ),
    "a failed page is requested again when no other page is left": (
        SmallShop(dollars(None, 2, 3, 4, 5, 6, 7, 8, categories=TWO), fails=["1_2 page 1"]),
        [FIRST, "1_2 page 1", "1_3 page 1", "1_3 page 2", "1_2 page 1", "1_2 page 2"],
    ),
    "a page that failed twice: the listing is read by price": (
        SmallShop(dollars(*range(1, 6)), fails=["1 page 2"] * 2),
        [FIRST, "1 page 2", "1 page 2", *climb("0.01", 2)],
    ),
    "a listing without its last page is read by price": (
        SmallShop(dollars(*range(1, 6)), empty=["1 page 2"]),
        [FIRST, "1 page 2", *climb("0.01", 2)],
    ),
    "pages that always fail": (
        SmallShop(dollars(*range(1, 6)), fails=["1 page 2"] * 2 + climb("0.01", 1) * 2),
        [FIRST, "1 page 2", "1 page 2", *climb("0.01", 1), *climb("0.01", 1)],
        "page_failed",
    ),
    "products in no sub-category are found by price": (
        SmallShop([*dollars(None, 2, 3, 4, 5, 6, categories=TWO), ("1", 7), ("1", 8)]),
        [FIRST, "1_2 page 1", "1_3 page 1", *climb("0.01", 2), *climb("7.00", 1)],
    ),
    "more products than stated": (SmallShop(dollars(*range(1, 6)), total=4), [FIRST, "1 page 2"], "more_than_stated"),
}
"""Name -> a shop, the requests of a crawl, and the reasons why it is incomplete."""


@pytest.mark.parametrize("name", CRAWLS)
def test_the_requests_and_the_result(name: str) -> None:
    shop, requests, *reasons = CRAWLS[name]
    found = run(shop.read, Slice("1"), ceiling=6)
    assert found.texts == requests
    assert list(found.plan.coverage.reasons) == reasons
    assert bool(reasons) or len(found.ids) == len(shop.products)


def test_a_failed_first_page_ends_the_crawl() -> None:
    found = run(SmallShop(dollars(1, 2), fails=[FIRST]).read, Slice("1"))
    assert (found.texts, found.plan.coverage.reasons) == ([FIRST], ())


def test_a_root_with_prices_stays_within_them() -> None:
    found = run(SmallShop(dollars(*range(1, 13))).read, Slice("1", 300, 1_000), ceiling=6)
    assert found.texts == [
        "1 3.00..10.00 page 1",
        "1 3.00..10.00 by price_low page 1",
        "1 3.00..10.00 by price_low page 2",
        "1 8.00..10.00 by price_low page 1",
    ]
    assert len(found.ids) == 8


# Shops that misbehave


def swept(*modes: str, size: int = 1_400) -> tuple[MisbehavingShop, Run]:
    """Crawl a shop, and check that the crawl is complete or states why it may lack products."""
    shop = MisbehavingShop(*modes, size=size)
    found = run(shop.facts, Slice(ROOT))
    assert found.plan.coverage.reasons or set(found.ids) == shop.truth, found.plan.coverage
    assert set(found.ids) <= shop.truth or WITH_FOREIGN_ROWS & set(modes)
    return shop, found


WITH_FOREIGN_ROWS = {"ads-unmarked", "tree-substitute"}

REASONS = {
    "total-low": ("more_than_stated",),
    "total-high": ("fewer_than_stated",),
    "total-tenfold": ("no_price",),
    "total-tenth": ("more_than_stated",),
    "total-350": ("more_than_stated",),
    "total-served": ("more_than_stated",),
    "total-1000": ("more_than_stated",),
    "total-zero": ("more_than_stated",),
    "total-null": ("not_stated",),
    "total-of-page": ("more_than_stated", "total_changed"),
    "total-priced": ("more_than_stated",),
    "total-shrinks": ("totals_disagree",),
    "total-grows": ("no_price", "total_changed"),
    "total-noise": ("more_than_stated",),
    "total-of-root": ("fewer_than_stated",),
    "totals-of-parts": ("totals_disagree",),
    "filter-unasked": ("filter_ignored",),
    "order-changes": ("fewer_than_stated",),
    "page-repeated": ("repeated_page",),
    "page-lost-rows": ("unread_rows",),
    "wall-often": ("page_failed", "no_price"),
    "wall-on-page": ("page_failed", "no_price"),
    "wall-from-20": ("page_failed",),
    "last-page-1": ("fewer_than_stated",),
    "ads-unmarked": ("more_than_stated",),
    "ceiling-1": ("page_failed", "no_price"),
    "tree-hidden": ("no_price",),
    "tree-outside": ("no_price",),
    "tree-substitute": ("more_than_stated",),
}
"""The reasons in each mode in which the crawl cannot be complete, or cannot be known to be complete. In all other modes
it is complete."""


@pytest.mark.parametrize("advertisements", [(), ("ads-foreign",)], ids=["", "advertisements"])
@pytest.mark.parametrize("mode", MODES)
def test_a_crawl_is_complete_or_states_why_not(mode: str, advertisements: tuple[str, ...]) -> None:
    shop, found = swept(mode, *advertisements)
    assert found.plan.coverage.reasons == REASONS.get(mode, ())
    if mode not in REASONS:
        assert found.plan.coverage == Coverage(len(shop.truth), len(shop.truth))


@pytest.mark.parametrize("mode", sorted(MODES.keys() - REASONS.keys() - {"priced", "moving"}))
def test_a_category_with_prices_is_complete_in_the_same_modes(mode: str) -> None:
    _, found = swept(mode, "priced")
    assert found.plan.coverage.reasons == ()


@pytest.mark.parametrize("size", [300, 700, 1_400, 4_000])
@pytest.mark.parametrize("mode", BEHAVING)
def test_a_shop_that_behaves_takes_few_requests(mode: str, size: int) -> None:
    _, found = swept(mode, size=size)
    assert found.plan.coverage == Coverage(size, size)
    fewest = -(-size // ROWS_PER_PAGE)
    assert len(found.requested) <= (1.1 if mode == "priced" else 1.5) * fewest


PAIRS = list(combinations(MODES, 2))


@pytest.mark.parametrize("pair", PAIRS[::29], ids="+".join)
def test_some_pairs_of_modes(pair: tuple[str, str]) -> None:
    swept(*pair)


@pytest.mark.soak
@pytest.mark.parametrize("advertisements", [(), ("ads-foreign",)], ids=["", "advertisements"])
@pytest.mark.parametrize("first", MODES)
def test_all_pairs_of_modes(first: str, advertisements: tuple[str, ...]) -> None:
    for second in MODES:
        swept(first, second, *advertisements)


@pytest.mark.parametrize("advertisements", [(), ("ads-foreign",)], ids=["", "advertisements"])
@pytest.mark.parametrize(
    ("mode", "reason"),
    [("none", "more_than_stated"), ("last-page-1", "more_than_stated"), ("ceiling-1", "page_failed")],
)
def test_a_total_without_the_unpriced_products_is_checked(
    mode: str, reason: str, advertisements: tuple[str, ...]
) -> None:
    # All prices are read, and the totals agree. Only further pages of the category itself can show the other products.
    _, found = swept("total-priced", mode, *advertisements)
    assert found.plan.coverage.reasons == (reason,)


@pytest.mark.parametrize(("size", "pages"), [(700, 1), (1_400, 2), (4_000, 4), (8_000, 5)])
def test_a_larger_category_is_checked_on_more_pages(size: int, pages: int) -> None:
    _, found = swept("priced", size=size)
    assert [step.page for step in found.requested if step.part == Slice(ROOT)] == [*range(1, pages + 1)]


@pytest.mark.parametrize(
    "modes",
    [
        ("total-served", "ceiling-300"),
        ("total-served", "ceiling-300-marked"),
        ("total-served", "ceiling-1"),
        ("total-of-page", "last-page-1"),
    ],
    ids="+".join,
)
def test_an_end_on_a_full_page_is_checked(modes: tuple[str, str]) -> None:
    _, found = swept(*modes)
    assert "more_than_stated" in found.plan.coverage.reasons


# Resumed crawls and limits


@pytest.mark.parametrize("mode", ["none", "priced", "one-price", "wall-once", "filter-ignored-once"])
@pytest.mark.parametrize("seed", range(3))
def test_killed_and_resumed_it_is_as_complete(seed: int, mode: str) -> None:
    shop = MisbehavingShop(mode)
    crawl, rng = Run(shop.facts, Slice(ROOT)), random.Random(seed)  # noqa: S311  # a seed, not a secret
    for _ in range(5):
        crawl.until(rng.randint(1, 12), lost=3, seed=seed).restart()
    crawl.until(seed=seed)
    assert not crawl.pending
    assert len(crawl.ids) == len(set(crawl.ids))
    assert set(crawl.ids) == shop.truth
    assert crawl.plan.coverage.reasons == ()


def test_the_order_of_the_facts_does_not_matter() -> None:
    found = run(MisbehavingShop("none").facts, Slice(ROOT))
    other = Run(MisbehavingShop("none").facts, Slice(ROOT))
    first, *rest = found.notes
    by_slice = sorted(rest, key=lambda note: str(note["step"][0]))
    other.notes, other.pending = [first, *by_slice], []
    other.restart()
    assert (other.pending, other.plan.coverage) == ([], found.plan.coverage)


@pytest.mark.parametrize("most", [1, 2, 10, 40])
def test_max_requests_ends_the_crawl(most: int) -> None:
    found = Run(MisbehavingShop("none").facts, Slice(ROOT), max_requests=most).until()
    assert len(found.requested) == most
    assert found.plan.coverage == Coverage(1_400, len(found.ids), ("max_requests",))


def test_a_higher_limit_continues_the_crawl() -> None:
    crawl = Run(MisbehavingShop("none").facts, Slice(ROOT), max_requests=10)
    for limit in (10, 20, 21, None):
        crawl.max_requests = limit
        crawl.restart()
        crawl.until()
        if limit is not None:
            assert (len(crawl.requested), crawl.plan.coverage.reasons) == (limit, ("max_requests",))
    assert crawl.plan.coverage == Coverage(1_400, 1_400)


def test_a_shop_without_end_ends_at_the_bound() -> None:
    def read(step: Step) -> Page:
        numbers = range(step.page * 1_000, step.page * 1_000 + 3)
        rows = [Row(f"{n}", (step.part.low or 0) + 1, "1") for n in numbers]
        return Page(rows, has_more=True, total=1_000, children=[f"{step.part.cat_id}_{n}" for n in range(100, 200)])

    found = run(read, Slice("1"))
    assert len(found.requested) == found.plan.bound == 95
    assert found.plan.coverage.reasons == ("bound",)


def test_products_of_a_lost_record_are_returned_by_another_page() -> None:
    shop, step = SmallShop(dollars(1, 2, 3)), Step(Slice("1"))
    plan = Plan(Slice("1"), 6)
    plan.next()
    page = shop.read(step)
    assert page is not None
    fact = plan.take(step, page)
    plan.release(fact.ids)
    assert plan.take(step, page).ids == fact.ids


# Slices and pages


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


def test_a_sub_category_lies_below_its_category() -> None:
    assert subcategories("1_2", ["1_2", "1", "1_3", "1_21", "3_1_2_9", "1_2_9", "1_2_9_4", "1_2_8"]) == [
        "1_2_8",
        "1_2_9",
    ]


@pytest.mark.parametrize(
    ("stated", "prices", "expected"),
    [
        ((None, None), [15, 15, 20.5], False),
        ((None, None), [15, 90, 15], True),
        ((10.5, 19.5), [15], False),
        ((30, 40), [15], True),
        ((10, 20), [90], True),
        ((None, None), [], False),
    ],
)
def test_rows_and_statement_prove_a_price_filter(
    stated: tuple[float | None, float | None],
    prices: list[float],
    expected: bool,  # noqa: FBT001  # a column of the table
) -> None:
    rows = [Row(str(n), round(price * 100)) for n, price in enumerate(prices)]
    advertised = Row("advertised", 9_000, is_sponsored=True)
    assert ignores_filter(10, 20, stated, [*rows, advertised]) is expected


def test_a_filter_that_nobody_requested_is_another_filter() -> None:
    assert ignores_filter(None, None, (10, 20), [Row("1", 1_500)])


@pytest.mark.parametrize(
    ("prices", "expected"), [((1, 2, 3, 4, 5, 6), False), ((1, 3, 2, 4, 5, 6), False), ((6, 2, 5, 1), True)]
)
def test_rows_prove_the_order_by_price(prices: tuple[int, ...], expected: bool) -> None:  # noqa: FBT001
    page = Page([Row(str(n), 100 * price) for n, price in enumerate(prices)], has_more=True, total=100)
    assert page.contradicts(Slice("1").by_price(1)) is expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (Row("a", 500, "9"), True),
        (Row("a", 500, "1_2", is_sponsored=True), True),
        (Row("a", 500, "9", is_sponsored=True), False),
        (Row("a", 500, "", is_sponsored=True), False),
        (Row("a", 5_000, "1_2", is_sponsored=True), False),
    ],
    ids=["organic", "advertised", "of another category", "of an unknown category", "with another price"],
)
def test_an_advertisement_counts_if_it_belongs_to_the_slice(row: Row, expected: bool) -> None:  # noqa: FBT001
    own = Page([row], has_more=False, total=1).own(Slice("1", 100, 1_000))
    assert bool(own) is expected
