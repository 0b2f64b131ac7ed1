"""The plan of an exhaustive crawl: which pages to request, so that every product of a category is on one of them.

A listing shows only about 500 products (the *ceiling*). A listing with more products is read in one of two ways:

- *by price*: a climb reads the listing in ascending order of prices, up to the last full page. The next climb begins at
  the highest price that was read. The pages of a climb are full, so this takes the fewest requests. But with a price
  filter, the platform omits products without a price;
- *by sub-category*, which comes first if the category has products without a price.

If more products are missing after the first way than the tolerance permits, the listing is read in the other way, too.
Products that its parts lack do not count. If products are still missing, the next pages of the listing itself are
requested, in the default sort order.

The plan is a function of facts: ``take`` and ``fail`` add the result of a page, and ``next`` computes the pages to
request from all results. The order of the results does not matter, so a plan is restored from its facts.
Prices are in cents. Both ends of a price range are inclusive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from pydantic import BaseModel

from crawler.platforms.coverage import CEILING, FEWER, MORE, REPEATED, UNPROVEN, Coverage
from crawler.platforms.retail.urls import DEFAULT_SORT

BY_PRICE = "price_low"
DOLLAR = 100
MAX_DESCENTS = 0.2
"""If a larger share of prices is below the price before, the platform has ignored the order by ascending price."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a category: a listing with a price range and a sort order. None means no limit."""

    cat_id: str
    low: int | None = None
    high: int | None = None
    sort: str = DEFAULT_SORT

    def by_price(self, low: int) -> Slice:
        """Return the part of this listing from a price up, sorted by ascending price."""
        return replace(self, low=low, sort=BY_PRICE)

    def contains(self, other: Slice) -> bool:
        """Whether this listing has all products of another slice, because of its category and its price range."""
        is_below = self.high is None or (other.high is not None and other.high <= self.high)
        return (self.low or 0) <= (other.low or 0) and is_below and is_within(other.cat_id, self.cat_id)

    def has_price(self, cents: int | None) -> bool:
        """Whether a price is in the price range. A product without a price is only in a listing without limits."""
        if cents is None:
            return self.low is None and self.high is None
        return (self.low or 0) <= cents and (self.high is None or cents <= self.high)

    def __str__(self) -> str:
        prices = "" if self.low is None and self.high is None else f" {_money(self.low)}..{_money(self.high)}"
        order = "" if self.sort == DEFAULT_SORT else f" by {self.sort}"
        return f"{self.cat_id}{prices}{order}"


def _money(cents: int | None) -> str:
    return "" if cents is None else f"{cents / 100:.2f}"


class Step(NamedTuple):
    """A page to request."""

    part: Slice
    page: int = 1

    def __str__(self) -> str:
        return f"{self.part} page {self.page}"


class Row(NamedTuple):
    """The values of a row that an exhaustive crawl needs."""

    item_id: str
    cents: int | None
    category: str = ""
    """The id of the product's own category, "" if the row does not state it."""
    is_sponsored: bool = False


class Page(NamedTuple):
    """The facts that a page states."""

    rows: list[Row]
    has_more: bool
    """Whether the page has rows and the platform states that further pages follow."""
    total: int | None
    """Number of products in the whole listing."""
    children: Sequence[str] = ()
    """Ids of the categories in the department filter."""
    ignores_filter: bool = False
    """Whether the page shows that the platform has ignored the price range (``pages.ignores``)."""
    is_proven: bool = True
    """Whether the page confirms all requested params."""
    lost_rows: int = 0
    """Number of rows that could not be read."""

    @property
    def prices(self) -> list[int]:
        """The prices of the organic rows. Advertisements are left out, because they may be anywhere in the order."""
        return [row.cents for row in self.rows if row.cents is not None and not row.is_sponsored]

    def contradicts(self, part: Slice) -> bool:
        """Whether the page shows that the platform has ignored the price range or the sort order of its slice."""
        descents = sum(after < before for before, after in pairwise(self.prices))
        return self.ignores_filter or (part.sort == BY_PRICE and descents > MAX_DESCENTS * len(self.prices))

    def own(self, part: Slice) -> dict[str, int | None]:
        """Return the page's products that belong to its slice, by item id, with their prices.

        Advertisements may be from another category, and have any price. If the page contradicts the slice, only its
        prices show which products belong to the slice.
        """
        is_contradicted = self.contradicts(part)

        def belongs(row: Row) -> bool:
            if not (row.is_sponsored or is_contradicted):
                return True
            in_category = not row.is_sponsored or is_within(row.category, part.cat_id)
            return in_category and part.has_price(row.cents)

        return {row.item_id: row.cents for row in self.rows if belongs(row)}


class Fact(BaseModel):
    """The result of a requested page. A job stores it with the page, and another worker restores the plan from it."""

    step: Step
    page: Page | None = None
    """None: the page failed."""
    ids: list[str] = []
    """The ids of the category's products that were found on this page first."""
    failed: str = ""
    """The code of the page's error."""


@dataclass
class Reading:
    """The data that was read of one slice."""

    part: Slice
    total: int | None
    """Number of products in the slice according to its first page."""
    children: list[str]
    has_prices: bool
    """Whether an organic row of the first page has a price."""
    is_contradicted: bool = False
    """Whether a page shows that the platform has ignored the price range or the sort order."""
    rows: set[str] = field(default_factory=set)
    """The ids of the category's products on the slice's own pages."""
    known: dict[str, int | None] = field(default_factory=dict)
    """The price of each product that was read in the slice or in a part of it, by item id."""
    pages: int = 0
    has_more: bool = field(init=False)
    """Whether the latest page has products that the earlier pages lack, and states that further pages follow."""
    latest: int = 0
    """Number of the slice's products on its last page with products."""
    ended: bool = field(init=False)
    """Whether the platform has stated, on a page with products, that this page is the last one."""
    repeats: bool = field(init=False)
    """Whether the latest page has only products of the slice's earlier pages."""
    highest: int | None = None
    """If the slice is sorted by price: the price up to which all of its products were read."""
    lowest: int | None = None
    """The lowest price of the first page."""
    parts: dict[Slice, None] = field(default_factory=dict)
    """The listings into which the slice was split, in the order in which they are read."""
    climbed: bool = False
    """Whether climbs have read the slice up to its highest price."""

    def add(self, page: Page, own: dict[str, int | None], *, is_contradicted: bool) -> None:
        """Add the next page. ``own``: the price of each of the category's products on the page, by item id."""
        self.pages += 1
        self.is_contradicted |= is_contradicted
        is_new = not own.keys() <= self.rows
        self.repeats = bool(own) and not is_new
        self.latest = len(own) or self.latest
        self.rows.update(own)
        self.has_more = page.has_more and is_new and not is_contradicted
        self.ended = bool(page.rows) and not page.has_more
        if (prices := page.prices) and is_new and not is_contradicted:
            self.lowest = min(prices) if self.lowest is None else self.lowest
            self.highest = prices[-1] if prices == sorted(prices) else min(prices)

    @property
    def is_split(self) -> bool:
        """Whether the slice is read by parts or climbs, in addition to its own pages."""
        return self.climbed or bool(self.parts)

    @property
    def gap(self) -> int:
        """Number of stated products that were not read."""
        return max(0, (self.total or 0) - len(self.known))

    @property
    def unpriced(self) -> int:
        """Number of products without a price that were read."""
        return sum(cents is None for cents in self.known.values())


def is_within(cat_id: str, above: str) -> bool:
    """Whether a category is another category or below it, by their ids.

    >>> is_within("1_2", "1_2"), is_within("1_2_7", "1_2"), is_within("1_21", "1_2")
    (True, True, False)
    """
    return f"{cat_id}_".startswith(f"{above}_")


def subcategories(cat_id: str, offered: Iterable[str]) -> list[str]:
    """Return the categories among ``offered`` that are below a category, without those that are below another of them.

    A category is also left out if it repeats a category above it, because the tree then contains a loop.

    >>> subcategories("1_2", ["1", "1_2", "1_3", "1_2_7", "1_2_8", "1_2_8_9", "1_2_1"])
    ['1_2_7', '1_2_8']
    """
    below = {each for each in offered if each != cat_id and is_within(each, cat_id) and not repeats(each)}
    return sorted(each for each in below if not any(each.startswith(f"{other}_") for other in below))


def repeats(cat_id: str) -> bool:
    """Whether a category's path contains a category twice.

    >>> repeats("1_2_1"), repeats("1_2_3")
    (True, False)
    """
    path = cat_id.split("_")
    return len(set(path)) < len(path)


FIRST_PRICE = 1
"""Climbs begin at one cent: with this filter, the stated total excludes products without a price."""
TRIES = 2
"""A page that failed is requested again when no other page is left to request."""
MAX_IGNORED = 2
"""After this number of ignored price filters or sort orders, listings are no longer read by price."""
MAX_OVERSTATED = 0.05
"""A listing that was read to its end is read in the other way, too, only if it lacks more than this share of its stated
total, which is an estimate. A smaller difference is still reported."""
MAX_UNCOVERED = 0.01
"""A listing that was split is read in the other way, too, only if it lacks more than this share of its stated total, in
addition to the products that its parts lack."""
ROWS_PER_PAGE = 40
"""Number of rows that the platform states for a page, without advertisements."""
MIN_REQUESTS, MAX_FACTOR = 20, 3
"""A crawl ends after this number of requests, plus this multiple of the number of pages that its products need. If the
platform behaves, a crawl needs at most 1.5 times as many requests as its products have pages."""
MAX_REQUESTS = "max_requests"
"""The reason of a crawl that has reached the user's limit, and the name of this limit."""
REQUESTS_PER_CHECK, MAX_CHECKS = 25, 4
"""A category that was split is checked with one more page for each 25 requests, which are 4 % more requests."""
MAX_SHOWN = 3


@dataclass
class Plan:
    """Chooses the pages of one category's crawl, and compares the result with the stated number. No I/O."""

    root: Slice
    """The listing to collect: the category, with the requested price range."""
    ceiling: int
    """A listing for which the platform states or serves more products than this is split."""
    max_requests: int | None = None
    """The user's limit of requests. None: no limit."""
    readings: dict[Slice, Reading] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    """The item ids of the collected products."""
    open: set[Step] = field(default_factory=set)
    """The pages that were requested and have no result yet."""
    totals: set[int] = field(default_factory=set)
    """The numbers of products that the pages of the whole category have stated."""
    failures: defaultdict[Step, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The codes of the errors of each page that has only failed so far, one for each try."""
    results: int = 0
    ignored: int = 0
    """Number of readings by price whose price filter or sort order was ignored."""
    lost_rows: int = 0
    unproven: int = 0
    """Number of pages that do not confirm the requested params."""
    has_unpriced: bool = False
    has_repeats: bool = False
    """Whether a page had only products of earlier pages of its listing."""
    has_loop: bool = False
    """Whether a department filter lists a category whose path contains a category twice."""
    left_out: bool = False
    """Whether further pages are not requested because of a limit."""

    # Facts

    def take(self, step: Step, page: Page) -> Fact:
        """Add a page. Return the fact, with the ids of the category's products that no earlier page has returned."""
        fact = Fact(step=step, page=page, ids=[each for each in page.own(step.part) if each not in self.found])
        self.add(fact)
        return fact

    def fail(self, step: Step, code: str) -> Fact:
        """Add a page that failed, whose products may still be found on other pages. ``code``: the code of its error."""
        fact = Fact(step=step, failed=code)
        self.add(fact)
        return fact

    def add(self, fact: Fact, *, stored: bool = True) -> None:
        """Add the result of a page. ``stored``: whether its products count as collected."""
        step, page = fact.step, fact.page
        self.open.discard(step)
        self.results += 1
        if page is None:
            self.failures[step].append(fact.failed)
            return
        self.failures.pop(step, None)
        self.found.update(fact.ids if stored else ())
        self.lost_rows += page.lost_rows
        self.unproven += not page.is_proven
        part, own = step.part, page.own(step.part)
        reading = self.readings.get(part)
        if reading is None:
            children, has_prices = subcategories(part.cat_id, page.children), bool(page.prices)
            reading = self.readings[part] = Reading(part, page.total, children, has_prices)
        is_contradicted = page.contradicts(part)
        self.ignored += is_contradicted
        reading.add(page, own, is_contradicted=is_contradicted)
        self.has_repeats |= reading.repeats
        self.has_loop |= any(repeats(each) and is_within(each, part.cat_id) for each in page.children)
        if part == self.root and page.total is not None:
            self.totals.add(page.total)
        self.has_unpriced |= any(row.cents is None and not row.is_sponsored for row in page.rows)
        for listing in self.readings.values():
            if listing.part.sort == DEFAULT_SORT and is_within(part.cat_id, listing.part.cat_id):
                contained = listing.part.contains(part)
                listing.known |= {
                    each: cents for each, cents in own.items() if contained or listing.part.has_price(cents)
                }

    def release(self, ids: Iterable[str]) -> None:
        """Forget that products were found, because the record was not stored. Another page may return them."""
        self.found.difference_update(ids)

    # Pages

    def next(self) -> list[Step]:
        """Return the pages to request now, which are open from then on. If no page is open, the crawl has ended."""
        steps = self._steps(self.root)
        if not steps and (check := self._check()):
            steps = self._page(*check)
        wanted = [step for step in steps if step not in self.open]
        now = [step for step in wanted if step not in self.failures]
        if not now and not self.open and self.readings:
            now = wanted
        room = max(0, min(self.max_requests or self.bound, self.bound) - self.requests)
        self.left_out = len(now) > room
        self.open.update(now[:room])
        return now[:room]

    @property
    def requests(self) -> int:
        """Number of pages requested so far."""
        return self.results + len(self.open)

    @property
    def bound(self) -> int:
        """The plan's own limit of requests, so that a platform that contradicts itself cannot keep a crawl running."""
        return MIN_REQUESTS + MAX_FACTOR * -(-max(self.total or 0, len(self.found)) // ROWS_PER_PAGE)

    def _check(self) -> Step | None:
        """Return one more page, on which a category that seems to be complete must have no further products.

        A category that was split is checked on further pages of its own listing, because its stated total may leave out
        products that no part has: those without a price are in no price range. A listing that ended on a full page is
        checked in another order.
        """
        root = self.readings.get(self.root)
        if root is None or len(self.found) != self.total:
            return None
        if root.is_split:
            checks = min(MAX_CHECKS, self.results // REQUESTS_PER_CHECK)
            is_wanted = root.pages <= checks and (root.has_more or root.pages == 1)
            return Step(self.root, root.pages + 1) if is_wanted else None
        other = self.root.by_price(_first_price(self.root))
        return Step(other) if root.latest >= ROWS_PER_PAGE and other not in self.readings else None

    def _page(self, part: Slice, number: int) -> list[Step]:
        step = Step(part, number)
        return [step] if step not in self.failures or len(self.failures[step]) < TRIES else []

    def _steps(self, part: Slice) -> list[Step]:
        """Return the next pages of a listing. []: it was read as far as possible."""
        listing = self.readings.get(part)
        if listing is None:
            return self._page(part, 1)
        listing.parts, listing.climbed = {}, False
        ways = [self._by_price, self._by_category]
        if self.has_unpriced or self._states_unpriced(listing):
            ways.reverse()
        if (listing.total or 0) < self.ceiling:
            ways.insert(0, self._by_page)
        for way in ways:
            steps = way(listing)
            if steps or not self._lacks_products(listing):
                return steps
        return self._page(part, listing.pages + 1) if listing.has_more else []

    def _lacks_products(self, listing: Reading) -> bool:
        """Whether a listing lacks so many products that it must be read in another way, too."""
        if not listing.is_split and max(listing.total or 0, len(listing.rows)) >= self.ceiling:
            return True
        gaps = sum(self.readings[part].gap for part in listing.parts if part in self.readings)
        missing = (listing.total or 0) - len(listing.known) - gaps
        return missing > self._tolerance(listing) * (listing.total or 0)

    def _tolerance(self, listing: Reading) -> float:
        """Return the share of a listing's products that may be missing. If both ways have begun, both are completed."""
        climb = self.readings.get(listing.part.by_price(_first_price(listing.part)))
        has_categories = any(replace(listing.part, cat_id=child) in self.readings for child in listing.children)
        if has_categories and climb is not None and climb.pages > 1:
            return 0
        if listing.climbed:
            return 0 if self._states_unpriced(listing) else MAX_OVERSTATED
        return MAX_UNCOVERED if listing.parts else MAX_OVERSTATED if listing.ended else 0

    def _by_page(self, listing: Reading) -> list[Step]:
        """Return the next page of a listing, up to the ceiling."""
        goes_on = listing.has_more and len(listing.rows) < self.ceiling
        return self._page(listing.part, listing.pages + 1) if goes_on else []

    def _by_category(self, listing: Reading) -> list[Step]:
        """Return the next pages of a listing's sub-categories."""
        parts = [replace(listing.part, cat_id=child) for child in listing.children]
        listing.parts |= dict.fromkeys(parts)
        return [step for part in parts for step in self._steps(part)]

    # Climbs

    def _by_price(self, listing: Reading) -> list[Step]:
        """Return the next pages of a listing's climbs, from the lowest price up. Climbs do not depend on each other."""
        part, low, steps = listing.part, _first_price(listing.part), list[Step]()
        if not listing.has_prices or (part.low is not None and part.low == part.high):
            return []
        while part.high is None or low <= part.high:
            climb = self.readings.get(start := self._start(listing, low))
            if climb is None:
                return steps + (self._page(start, 1) if self.ignored < MAX_IGNORED else [])
            further = Step(start, climb.pages + 1)
            is_stuck = climb.highest == low and (climb.total or 0) >= self.ceiling
            if climb.has_more and len(climb.rows) < self.ceiling and not is_stuck and further not in self.failures:
                return [*steps, further]
            if climb.highest is None and (climb.total or climb.is_contradicted):
                return steps
            is_read = climb.ended and len(climb.rows) < self.ceiling and len(climb.rows) >= (climb.total or 0)
            if climb.highest is None or is_read or (climb.ended and climb.highest <= low):
                break
            if climb.highest > low:
                low = climb.highest
                continue
            alone, low = _around(part, low, climb.lowest or low)
            if alone == part:
                return steps
            listing.parts[alone] = None
            steps += self._steps(alone)
        listing.climbed = True
        return steps

    def _start(self, listing: Reading, low: int) -> Slice:
        """Return the slice of a climb. If the platform ignored its price filter, the filter is a cent lower."""
        start = listing.part.by_price(low)
        climb = self.readings.get(start)
        is_ignored = climb is not None and climb.is_contradicted and climb.highest is None
        return listing.part.by_price(low - 1) if is_ignored and low > _first_price(listing.part) else start

    def _states_unpriced(self, listing: Reading) -> bool:
        """Whether the first climb states fewer products than the listing, because the others have no price."""
        climb = self.readings.get(listing.part.by_price(_first_price(listing.part)))
        return climb is not None and not climb.is_contradicted and (climb.total or 0) < (listing.total or 0)

    # The result

    @property
    def total(self) -> int | None:
        """The largest number of products that the platform has stated for the whole category."""
        return max(self.totals, default=None)

    @property
    def coverage(self) -> Coverage:
        """The number of products that the platform states, the number collected, and why the crawl may be incomplete.

        A crawl is complete only if both numbers are equal, and if nothing shows that they agree by chance.
        """
        return Coverage(self.total, len(self.found), tuple(self._reasons()))

    def _reasons(self) -> list[str]:
        if not self.readings:
            return []  # the first page has failed, and its error is the outcome of the category
        if self.left_out:
            return [MAX_REQUESTS if self.max_requests and self.requests >= self.max_requests else "bound"]
        listings = list(self._used(self.root))
        climbed = [
            (each, self.readings[each.part.by_price(_first_price(each.part))]) for each in listings if each.climbed
        ]
        unpriced = [(each.unpriced, (each.total or 0) - (climb.total or 0)) for each, climb in climbed]
        found, total = len(self.found), self.total
        contradictions = {
            "not_stated": total is None,
            UNPROVEN: self.unproven > 0,
            MORE: total is not None and found > total,
            "totals_disagree": found == total and any(len(each.known) != each.total for each in listings),
            "filter_ignored": self.readings[self.root].is_contradicted,
            "unread_rows": self.lost_rows > 0,
            "page_failed": self._check() in self.failures,
            "no_price": any(0 < known > stated for known, stated in unpriced),
            CEILING: any(len(each.rows) >= self.ceiling and not each.is_split for each in listings),
        }
        causes = {
            "filter_ignored": self.ignored > 0,
            "category_loop": self.has_loop,
            REPEATED: self.has_repeats,
            "page_failed": bool(self.failures),
            "no_price": any(known < stated for known, stated in unpriced),
            CEILING: any((each.total or 0) >= self.ceiling and not each.is_split for each in listings),
            "total_changed": len(self.totals) > 1,
        }
        named = [reason for reason, applies in contradictions.items() if applies]
        if found != total:
            named += [reason for reason, applies in causes.items() if applies and reason not in named]
        return named or ([] if found == total else [FEWER])

    def _used(self, part: Slice) -> Iterator[Reading]:
        """Yield a listing and the listings into which it was split, as far as they were read."""
        if listing := self.readings.get(part):
            yield listing
            for each in listing.parts:
                yield from self._used(each)

    @property
    def failed(self) -> list[tuple[Step, str]]:
        """The first pages that could not be read, with the codes of their errors."""
        return [(step, codes[-1]) for step, codes in self.failures.items()][:MAX_SHOWN]

    def __str__(self) -> str:
        parts = ", ".join(str(step.part) for step in sorted(self.open, key=str)[:MAX_SHOWN])
        found = Coverage(self.total, len(self.found))
        return f"category {self.root}: {found}, {self.requests:,} requests, {len(self.open):,} open: {parts}"


def _first_price(listing: Slice) -> int:
    return listing.low or FIRST_PRICE


def _around(listing: Slice, price: int, lowest: int) -> tuple[Slice, int]:
    """Return the slice of a price that too many products share, and the price at which the next climb begins.

    If the platform rounds its filter to whole dollars, so that a climb begins below its price, the slice has all prices
    of the same dollar.
    """
    if lowest >= price:
        return replace(listing, low=price, high=price), price + 1
    dollar = price // DOLLAR * DOLLAR
    return replace(listing, low=dollar, high=dollar + DOLLAR), dollar + DOLLAR
