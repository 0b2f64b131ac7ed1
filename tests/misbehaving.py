"""A shop that misbehaves in named ways, for exhaustive crawls: as facts for a plan, and as pages on loopback."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from crawler.platforms.retail.pages import ALWAYS_SERVED, MOST_ROWS, PriceFilter, ignores
from crawler.platforms.retail.plan import Page, Slice, Step
from crawler.platforms.retail.plan import Row as Fact
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.retail import page as pages
from crawler.sandbox.retail.product import Product
from crawler.sandbox.retail.shop import Category, Row, View
from crawler.sandbox.retail.site import Site

ROOT, FOREIGN = "5000", "6000"
SERVED = (46, 43, 44, 46, 45, 46, 44, 43, 46, 32, 8)
"""Number of distinct products on each page of a listing. No listing has more pages, although it states 25."""
STATED_PAGES = 25
ROWS_PER_PAGE = 45
LATE = 10**9

BEHAVING = {
    "none": "4 % of the products have no price",
    "priced": "every product has a price",
    "one-price": "half of the products have the same price",
    "ceiling-none": "a listing serves all of its pages",
}
MISBEHAVING = {
    # totals
    "total-low": "all totals are 3 % too low",
    "total-high": "all totals are 3 % too high",
    "total-tenfold": "all totals are ten times too high",
    "total-tenth": "all totals are a tenth",
    "total-350": "the category states 350 products",
    "total-served": "all totals are the number of products that the listing serves",
    "total-1000": "no total is above 1,000",
    "total-zero": "all totals are 0",
    "total-null": "no page states a total",
    "total-of-page": "all totals are the number of rows on the page",
    "total-priced": "totals do not count the products without a price",
    "total-shrinks": "all totals become smaller with each request, down to half",
    "total-grows": "all totals become larger with each request, up to the double",
    "total-noise": "each listing's total is up to 2 % too high or too low",
    "total-of-root": "every listing states the number of products of the whole category",
    "totals-of-parts": "the totals of all listings but the category are 10 % too high",
    # price filters
    "filter-ignored": "price filters are ignored",
    "filter-stated": "price filters are stated and not applied",
    "filter-ignored-once": "the second of the requested price filters is ignored",
    "filter-ignored-often": "every other request with a price filter gets the whole listing",
    "filter-ignored-later": "the price filter is ignored from page 2 on",
    "filter-dollars": "price filters have whole dollars",
    "filter-exclusive": "the lowest price of a filter is excluded",
    "filter-states-other": "the page states another price filter than the requested one",
    "filter-unasked": "the page states a price filter that nobody has requested",
    "filter-drops": "with a price filter, a tenth of the products is missing, and the total counts them",
    "filter-drops-counted": "with a price filter, a tenth of the products is missing, also from the total",
    "filter-keeps-unpriced": "with a price filter, products without a price are listed, too",
    # sort orders
    "order-ignored": "the sort order is ignored",
    "order-reversed": "the highest prices come first",
    "order-rough": "the order by price is correct to 5 %",
    "order-changes": "the default order differs from request to request",
    "order-ignored-later": "the sort order is ignored from page 2 on",
    # pages
    "page-repeated": "page 3 of every listing has the products of page 2",
    "page-leads-back": "from page 5 on, every listing begins again with its first page",
    "page-empty": "page 4 of every listing is empty",
    "page-lost-rows": "two rows of every fifth page cannot be read",
    "wall-once": "the 20th request gets a challenge",
    "wall-often": "every fifth request gets a challenge",
    "wall-on-page": "page 2 of one sub-category always gets a challenge",
    "wall-from-20": "all requests from the 20th on get a challenge",
    "last-page-1": "every page states that it is the last one",
    "last-page-3": "page 3 states that it is the last one",
    "last-page-null": "no page states the number of pages",
    # advertisements
    "ads-foreign": "two advertisements of another category on every page",
    "ads-half": "every page has as many advertisements of another category as products",
    "ads-own": "four advertisements of the category on every page, at any price",
    "ads-unmarked": "a row of another category, which is not marked as an advertisement, on every tenth page",
    # ceilings
    "ceiling-300": "a listing serves 7 pages",
    "ceiling-300-marked": "a listing serves 7 pages, and states that the last one is the end",
    "ceiling-1": "a listing serves one page",
    # categories
    "tree-loop": "each leaf category lists the category, with a longer id",
    "tree-hidden": "a sub-category is not listed",
    "tree-outside": "a fourteenth of the products is in no sub-category",
    "tree-gone": "one of the listed sub-categories is not found",
    "tree-redirect": "a sub-category gets the page of another category",
    "tree-substitute": "a sub-category states 0 products, and lists products of another category",
    "moving": "2 % of the products change their category or their price after the 20th request",
    # prices
    "price-unread": "the price of every third product cannot be read",
    "price-mostly-unread": "the prices of nine of ten products cannot be read",
}
MODES = BEHAVING | MISBEHAVING
"""The ways in which the shop behaves, with their descriptions."""


@cache
def shuffled(name: str) -> float:
    """Return a pseudo-random number from 0 to 1, the same in each run."""
    return random.Random(name).random()  # noqa: S311  # an order, not a secret


@cache
def stock(size: int, modes: Sequence[str], leaves: Sequence[str]) -> tuple[list[Product], list[Product], list[Product]]:
    """Return the category's products before and after some have moved, and products of another category."""
    rng = random.Random(size)  # noqa: S311  # a seed, not a secret
    invented = list(Site(light=True).products[: size + 400])
    products, moved = [], []
    for number, product in enumerate(invented[:size]):
        cents: int | None = round(100 * rng.lognormvariate(3.2, 0.9)) + 49
        if "one-price" in modes and number < size // 2:
            cents = 1999
        elif number % 25 == 7 and not {"priced", "one-price"} & set(modes):
            cents = None
        place = ROOT if "tree-outside" in modes and number < size // 14 else leaves[number * 7 % len(leaves)]
        products.append(replace(product, category=place, cents=cents, low=None, high=None))
        new = products[-1]
        if "moving" in modes and number % 100 == 0:
            new = replace(new, category=leaves[number % len(leaves)])
        elif "moving" in modes and number % 100 == 50 and cents is not None:
            new = replace(new, cents=cents * 3)
        moved.append(new)
    foreign = [replace(product, category=FOREIGN, cents=1_500, low=None, high=None) for product in invented[size:]]
    return products, moved, foreign


def ignores_filter(
    low: float | None, high: float | None, stated: tuple[float | None, float | None], rows: Sequence[Fact]
) -> bool:
    """Return what the page object's facts say about the price filter of a page with these rows."""
    prices = [None if row.cents is None else row.cents / 100 for row in rows]
    products = [
        {"is_sponsored": row.is_sponsored, "price": {"min_price": price, "current_price": price}}
        for row, price in zip(rows, prices, strict=True)
    ]
    return ignores(PriceFilter(low, high), PriceFilter(*stated), products)


class MisbehavingShop(Site):
    """A simulated shop with one category, whose pages have all of the given modes."""

    def __init__(self, *modes: str, size: int = 1_400) -> None:
        super().__init__(light=True)
        assert set(modes) <= MODES.keys(), modes
        self.modes = frozenset(modes)
        self.requests = 0
        self.filters: list[tuple[int | None, int | None]] = []
        self._orders: dict[Any, list[Product]] = {}
        self.leaves = [f"{ROOT}_{group}_{group}{leaf}" for group in (1, 2, 3) for leaf in (1, 2, 3, 4)]
        groups = tuple(f"{ROOT}_{group}" for group in (1, 2, 3))
        below = {group: tuple(each for each in self.leaves if each.startswith(f"{group}_")) for group in groups}
        loop = (f"_{ROOT}",) if "tree-loop" in self.modes else ()
        tree = {
            ROOT: groups,
            FOREIGN: (),
            **below,
            **{leaf: tuple(leaf + each for each in loop) for leaf in self.leaves},
        }
        self.categories = {cat_id: Category(cat_id, f"Category {cat_id}", tree[cat_id]) for cat_id in tree}
        shape = self.modes & {"priced", "one-price", "tree-outside", "moving"}
        self.products, self.moved, self.foreign = stock(size, tuple(sorted(shape)), tuple(self.leaves))
        self.truth = {product.item_id for product in self.products}

    # The listings

    def answer(self, step: Step) -> View | None:
        """Return the page of a listing. None: a challenge."""
        self.requests += 1
        part, number = step
        has_filter = (part.low, part.high) != (None, None)
        if has_filter and (part.low, part.high) not in self.filters:
            self.filters.append((part.low, part.high))
        if self._is_walled(step):
            return None
        is_substitute = "tree-substitute" in self.modes and part.cat_id == self.leaves[5]
        found = self.foreign[:120] if is_substitute else self._listing(part, number)
        total = 0 if is_substitute else self._total(part, found)
        served = self._served(found)
        shown = self._number_shown(number)
        products = served[shown - 1] if shown <= len(served) else []
        if "page-empty" in self.modes and number == 4:
            products = []
        rows = [Row(product, sponsored=False) for product in products]
        last = STATED_PAGES if sum(map(len, served)) < len(found) else max(1, len(served))
        if "ceiling-300-marked" in self.modes:
            last = max(1, len(served))
        if "last-page-1" in self.modes:
            last = number
        if "last-page-3" in self.modes:
            last = min(last, 3)
        if "total-of-page" in self.modes:
            total = len(rows)
        rows = self._with_advertisements(rows, number) if rows else rows
        listing = self.category(part.cat_id), None, number, part.sort
        return View(*listing, total, last, tuple(rows), self._stated(part))  # type: ignore[arg-type]  # no total

    def _listing(self, part: Slice, number: int) -> list[Product]:
        """Return the products of a listing in its order."""
        low, high, sort = part.low, part.high, part.sort
        if self._ignores_filter(part, number):
            low = high = None
        if "filter-dollars" in self.modes:
            low, high = low and low // 100 * 100, high and high // 100 * 100
        if "order-ignored" in self.modes or ("order-ignored-later" in self.modes and number > 1):
            sort = "best_match"
        elif "order-reversed" in self.modes and sort == "price_low":
            sort = "price_high"
        has_moved = self.requests > 20 and "moving" in self.modes
        seed = self.requests if "order-changes" in self.modes and sort == "best_match" else 0
        key = (part.cat_id, low, high, sort, has_moved, seed)
        if key not in self._orders:
            found = [
                p
                for p in (self.moved if has_moved else self.products)
                if f"{p.category}_".startswith(f"{part.cat_id}_")
            ]
            if low is not None or high is not None:
                found = [p for p in found if self._passes(p, low or 0, LATE if high is None else high)]
            self._orders[key] = sorted(found, key=lambda p: self._place_in(sort, p, seed))
        return self._orders[key]

    def _passes(self, product: Product, low: int, high: int) -> bool:
        if product.cents is None:
            return "filter-keeps-unpriced" in self.modes
        if self.modes & {"filter-drops", "filter-drops-counted"} and product.number % 10 == 3:
            return False
        return (
            low < product.cents if "filter-exclusive" in self.modes else low <= product.cents
        ) and product.cents <= high

    def _place_in(self, sort: str, product: Product, seed: int) -> tuple[float, int]:
        if sort not in {"price_low", "price_high"}:
            return shuffled(f"{sort}{product.number}{seed}"), product.number
        rough = 0.95 + 0.1 * shuffled(f"{product.number}") if "order-rough" in self.modes else 1
        sign = 1 if sort == "price_low" else -1
        return (LATE if product.cents is None else sign * product.cents * rough), product.number

    def _ignores_filter(self, part: Slice, number: int) -> bool:
        if (part.low, part.high) == (None, None):
            return False
        modes = self.modes
        return bool(
            modes & {"filter-ignored", "filter-stated"}
            or ("filter-ignored-once" in modes and self.filters.index((part.low, part.high)) == 1)
            or ("filter-ignored-often" in modes and self.requests % 2)
            or ("filter-ignored-later" in modes and number > 1)
        )

    def _total(self, part: Slice, found: list[Product]) -> int | None:
        size, modes = len(found), self.modes
        if "filter-drops" in modes and (part.low, part.high) != (None, None):
            size = round(size / 0.9)
        if "total-of-root" in modes:
            size = len(self.products)
        if "total-priced" in modes:
            size = sum(product.cents is not None for product in found)
        if "total-served" in modes:
            size = min(size, sum(map(len, self._served(found))))
        if "total-350" in modes and part == Slice(ROOT):
            size = 350
        size = round(size * self._factor(part))
        if "total-1000" in modes:
            size = min(size, 1_000)
        return None if "total-null" in modes else 0 if "total-zero" in modes else size

    def _factor(self, part: Slice) -> float:
        """Return the ratio of a listing's stated total to its number of products."""
        factors = {
            "total-low": 0.97,
            "total-high": 1.03,
            "total-tenfold": 10.0,
            "total-tenth": 0.1,
            "total-shrinks": max(0.5, 1 - 0.01 * (self.requests - 1)),
            "total-grows": min(2.0, 1 + 0.01 * (self.requests - 1)),
            "total-noise": 0.98 + 0.04 * shuffled(str(part)),
            "totals-of-parts": 1.0 if part.cat_id == ROOT else 1.1,
        }
        return math.prod(factor for mode, factor in factors.items() if mode in self.modes)

    def _served(self, found: list[Product]) -> list[list[Product]]:
        """Return the products of each page that the listing serves."""
        sizes: tuple[int, ...] = SERVED
        if self.modes & {"ceiling-300", "ceiling-300-marked"}:
            sizes = SERVED[:7]
        if "ceiling-1" in self.modes:
            sizes = SERVED[:1]
        if "ceiling-none" in self.modes:
            sizes = (ROWS_PER_PAGE,) * (len(found) // ROWS_PER_PAGE + 1)
        chunks, start = [], 0
        for size in sizes:
            if chunk := found[start : start + size]:
                chunks.append(chunk)
            start += size
        return chunks

    def _number_shown(self, number: int) -> int:
        if "page-repeated" in self.modes and number == 3:
            return 2
        return (number - 1) % 4 + 1 if "page-leads-back" in self.modes else number

    def _is_walled(self, step: Step) -> bool:
        modes, part = self.modes, step.part
        return bool(
            ("wall-once" in modes and self.requests == 20)
            or ("wall-often" in modes and self.requests % 5 == 0)
            or ("wall-from-20" in modes and self.requests >= 20)
            or ("wall-on-page" in modes and part.cat_id == self.leaves[5] and step.page == 2)
            or (modes & {"tree-gone", "tree-redirect"} and part.cat_id == self.leaves[5])
        )

    def _with_advertisements(self, rows: list[Row], number: int) -> list[Row]:
        modes = self.modes
        count = len(rows) if "ads-half" in modes else 2 if "ads-foreign" in modes else 0
        ads = [self.foreign[(self.requests * 2 + n) % 400] for n in range(count)]
        if "ads-own" in modes:
            ads += [self.products[(self.requests * 37 + n * 11) % len(self.products)] for n in range(4)]
        rows = rows[:2] + [Row(product, sponsored=True) for product in ads] + rows[2:]
        if "ads-unmarked" in modes and self.requests % 10 == 0:
            rows.append(Row(self.foreign[self.requests % 400], sponsored=False))
        return rows

    def _stated(self, part: Slice) -> tuple[float | None, float | None]:
        """Return the limits of the price filter that the page states, in dollars. The platform states none."""
        low, high = (None if cents is None else cents / 100 for cents in (part.low, part.high))
        if "filter-unasked" in self.modes:
            return 10.0, 20.0
        if "filter-states-other" in self.modes and (low, high) != (None, None):
            return (low or 0) + 5, high
        return (low, high) if "filter-stated" in self.modes else (None, None)

    def _reads_price(self, product: Product) -> bool:
        unread = ("price-unread" in self.modes and product.number % 3 == 0) or (
            "price-mostly-unread" in self.modes and product.number % 10 != 0
        )
        return not unread

    def _loses_rows(self) -> bool:
        return "page-lost-rows" in self.modes and self.requests % 5 == 0

    # As facts

    def facts(self, step: Step) -> Page | None:
        """Return the facts that the page object reads from a page. None: the page fails."""
        view = self.answer(step)
        if view is None:
            return None
        total = view.total
        is_blind = not view.rows and step.page <= view.max_page
        if is_blind and MOST_ROWS * (step.page - 1) < min(total or 0, ALWAYS_SERVED):
            return None
        rows = [
            Fact(p.item_id, p.cents if self._reads_price(p) else None, p.category, each.sponsored)
            for each in view.rows
            for p in [each.product]
        ]
        lost = 2 if self._loses_rows() and len(rows) > 2 else 0
        has_more = bool(rows) and ("last-page-null" in self.modes or step.page < view.max_page)
        low, high = (None if cents is None else cents / 100 for cents in (step.part.low, step.part.high))
        children = list(view.category.children) if view.category else []
        if "tree-hidden" in self.modes:
            children = children[1:]
        return Page(
            rows[lost:], has_more, total, children, ignores_filter(low, high, view.prices, rows), lost_rows=lost
        )

    # As pages

    def page(self, request: FakeRequest) -> FakeResponse:
        """Return the HTML page of a listing."""
        args, cat_id = request.args, request.path.rpartition("/")[2]
        low, high = (round(float(args[name]) * 100) if name in args else None for name in ("min_price", "max_price"))
        step = Step(Slice(cat_id, low, high, args.get("sort", "best_match")), int(args.get("page", 1)))
        if "tree-gone" in self.modes and cat_id == self.leaves[5]:
            return 404, {}, pages.not_found()
        view = self.answer(step)
        if view is None and "tree-redirect" in self.modes:
            view = self.answer(Step(Slice(self.leaves[6])))
        if view is None:
            return 200, {}, pages.challenge()
        rows = [
            row if self._reads_price(p := row.product) else replace(row, product=replace(p, cents=None))
            for row in view.rows
        ]
        category = view.category
        assert category is not None
        if "tree-hidden" in self.modes:
            category = replace(category, children=category.children[1:])
        view = replace(view, rows=tuple(rows), category=category)
        data = pages.next_data(self, view)
        listing = data["props"]["pageProps"]["initialData"]["searchResult"]
        if self._loses_rows():
            lost = [row for stack in listing["itemStacks"] for row in stack["items"] if "usItemId" in row][:2]
            for row in lost:
                row["usItemIds"] = row.pop("usItemId")
        if "last-page-null" in self.modes:
            listing["paginationV2"]["maxPage"] = None
        return 200, {}, pages.document(pages.title_of(view), data, light=True)
