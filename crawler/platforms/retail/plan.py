"""The plan of an exhaustive crawl: which pages to request next, so that every product of a category is on one of them.

A listing above the ceiling is split in one of two ways:

- by price: a *climb* reads the listing from the lowest price up, to the last page that is served completely. The next
  climb begins at the highest price that was read. The pages of a climb are full, so this takes the fewest requests. But
  with a price filter, the platform omits products without a price;
- by sub-category, if there are products without a price, or if the platform ignores price filters.

When all slices are read, the numbers that the platform states are compared with the products that were read. If
products are missing, the plan searches for them: by price where the sub-categories lack products, in slices that have
grown since they were read, and in other sort orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from crawler.platforms.retail.slices import DOLLAR, PageRead, Reading, Role, Slice, Step, Unit

logger = structlog.get_logger(__name__)

BY_PRICE = "price_low"
FIRST_PRICE = 1
"""Climbs begin at one cent: with this filter, the stated total excludes products without a price."""
TWO_CLIMBS = 10
"""A listing with at least this multiple of the ceiling's number of products is read by two simultaneous climbs."""
MAX_UNCOVERED = 0.05
"""If the sub-categories of a category lack more than this share of its products, the category is also read by price."""
ORDERS = ("best_seller", "new", "rating_high", "price_low", "price_high")
"""Sort orders in which missing products are searched for. The orders by price list products without a price last."""
MAX_CHECKS = 3
"""Maximum number of times that all slices are requested again, because they may have grown."""
MOST = 0.9
"""If more than this share of the parts had fewer products than stated, the stated totals count as too high."""
MAX_IDLE_PAGES = 3
"""A slice in another sort order ends after this number of consecutive pages without new products."""
MAX_VAIN = 2
"""After this number of searches in other sort orders without new products, parts that were read to their end are no
longer searched, because their stated totals are then probably too high."""


@dataclass
class Plan:
    """Keeps what was read of a category's slices, and chooses the next pages to request. The class does no I/O."""

    root: Slice
    ceiling: int
    readings: dict[Slice, Reading] = field(default_factory=dict)
    confirms: bool = False
    """Whether any page of a slice with a price filter has stated a price filter."""
    unfilterable: bool = False
    """Whether price filters are no longer used, because the platform ignores them."""
    has_unpriced: bool = False
    """Whether the category has products without a price."""
    checks: int = 0
    """Number of times that all slices were requested again (at most ``MAX_CHECKS``)."""

    def open(self, part: Slice, role: Role = "whole", listing: Slice | None = None, **facts: Any) -> list[Step]:
        """Add a slice to read, and return its first page. Return [] if the slice was added before."""
        if part in self.readings:
            return []
        self.readings[part] = Reading(part, role, listing or part, **facts)
        return [Step(part)]

    # After a page

    def after(self, reading: Reading, page: PageRead) -> list[Step]:
        """Return the pages to request after a page of a slice."""
        if page.number == 1:
            steps = self._after_first(reading, page)
            if steps is not None:
                reading.abandoned = True
                return steps
        if self._goes_on(reading, page):
            return [Step(reading.part, page.number + 1), *self._second_climb(reading, page)]
        return self.closed(reading)

    def _after_first(self, reading: Reading, page: PageRead) -> list[Step] | None:
        """Return the pages to request instead of the slice's further pages. None: continue with the further pages."""
        part = reading.part
        if part.low is not None or part.high is not None:
            self.confirms = self.confirms or page.selected != (None, None)
            if page.ignores_filter_of(part, confirms=self.confirms):
                reading.ignored = True
                return self._without_filter(reading)
        elif reading.has_unpriced:
            self.has_unpriced = True
        if reading.role == "whole" and page.has_more and page.total > self.ceiling:
            return self._split(reading) or None
        if reading.role == "climb":
            return self._after_first_of_climb(reading, page)
        if reading.role == "check":
            missing = page.total - self._known_within(reading)
            reading.wanted = missing if missing > reading.wanted else 0
        return None

    def _after_first_of_climb(self, reading: Reading, page: PageRead) -> list[Step] | None:
        part, listing = reading.part, self.readings[reading.listing]
        if part.low == _first_price(listing.part) and page.total < (listing.total or 0) and listing.children:
            self.has_unpriced = True
            return self._by_category(listing)
        if page.total > self.ceiling and page.is_of_one_price(part.low):
            return self._one_price(reading)
        return None

    def _second_climb(self, reading: Reading, page: PageRead) -> list[Step]:
        """Begin a second climb in the middle of a large listing, so that two pages can be requested at a time."""
        listing = self.readings[reading.listing]
        if reading.role != "climb" or page.number > 1 or page.total < TWO_CLIMBS * self.ceiling:
            return []
        if reading.part.low != _first_price(listing.part) or listing.middle is None:
            return []
        return self._climb(listing.part, listing.middle)

    def _goes_on(self, reading: Reading, page: PageRead) -> bool:
        """Whether to request the slice's next page."""
        if not page.has_more:
            return False
        match reading.role:
            case "climb":
                return len(reading.rows) < self.ceiling and not reading.repeats and not self._is_joined(reading)
            case "order":
                return reading.idle < MAX_IDLE_PAGES
            case "check":
                return reading.gained < reading.wanted
            case "recount":
                return False
        return True

    def closed(self, reading: Reading) -> list[Step]:
        """Return the pages to request when a slice is not read any further."""
        if reading.role == "whole" and reading.truncated:
            return self._split(reading)
        is_read = reading.ended and not (reading.failed or reading.repeats)
        if reading.role != "climb" or reading.highest is None or is_read or self._is_joined(reading):
            return []
        if reading.highest <= (reading.part.low or 0):
            return self._one_price(reading)
        return self._climb(reading.listing, reading.highest)

    def failed(self, reading: Reading) -> list[Step]:
        """Return the pages to request after a failed page.

        A climb continues from the prices that it has read. If it has read none, other slices replace it.
        """
        reading.failed = True
        if reading.role == "climb" and not reading.pages:
            low, listing = reading.part.low or 0, self.readings[reading.listing]
            above = self._climb(listing.part, low + 1) if low == _first_price(listing.part) else []
            return above or self._nudged(reading) or self._by_category(listing)
        return self.closed(reading)

    # Splitting a listing

    def _split(self, reading: Reading) -> list[Step]:
        """Split a listing above the ceiling. Return [] if it cannot be split."""
        climbs = not self.unfilterable and reading.middle is not None and not reading.part.has_one_price
        is_stuck = reading.parent is not None and reading.parent.cat_id == reading.part.cat_id
        if reading.children and (self.has_unpriced or is_stuck or not climbs):
            return self._by_category(reading)
        return self._climb(reading.part, _first_price(reading.part)) if climbs else []

    def _by_category(self, reading: Reading) -> list[Step]:
        opened = (self.open(replace(reading.part, cat_id=child), parent=reading.part) for child in reading.children)
        return [step for steps in opened for step in steps]

    def _climb(self, listing: Slice, low: int) -> list[Step]:
        """Begin a climb, or continue a climb that was left for sub-categories."""
        part = listing.within(low, listing.high).by(BY_PRICE)
        known = self.readings.get(part)
        if known and _is_left(known):
            known.abandoned = False
            return [Step(part, 2)]
        return self.open(part, "climb", listing)

    def _is_joined(self, reading: Reading) -> bool:
        """Whether a climb has reached the price at which the next climb begins."""
        higher = [each for each in self._climbs(reading.listing) if (each.part.low or 0) > (reading.part.low or 0)]
        return any((each.part.low or 0) <= (reading.highest or 0) for each in higher)

    def _one_price(self, reading: Reading) -> list[Step]:
        """Read a price that too many products share as a separate listing, and continue the climb above it.

        If the platform rounds the filter to whole dollars, the separate listing has all prices of the same dollar.
        """
        low = high = reading.part.low or 0
        if reading.lowest is not None and reading.lowest < low:
            low, high = low // DOLLAR * DOLLAR, (low // DOLLAR + 1) * DOLLAR
        listing = reading.listing
        steps = self.open(listing.within(low, high), parent=listing)
        above = high if high > (reading.part.low or 0) else high + 1
        return steps + (self._climb(listing, above) if listing.high is None or above <= listing.high else [])

    def _without_filter(self, reading: Reading) -> list[Step]:
        """Continue after a page whose price filter was ignored: first with other prices, then without price filters."""
        logger.warning("price_filter_without_effect", slice=str(reading.part))
        if reading.role in {"order", "check"}:
            return []
        steps = [] if self.unfilterable else self._nudged(reading)
        if steps or reading.role != "climb":
            return steps
        self.unfilterable = True
        listing = self.readings[reading.listing]
        steps = self._by_category(listing)
        if not steps and listing.abandoned and not any(each.parent == listing.part for each in self.readings.values()):
            listing.abandoned = False
            return [Step(listing.part, listing.pages + 1)]
        return steps

    def _nudged(self, reading: Reading) -> list[Step]:
        """Return the slice with its price range extended by a cent at each end.

        Return [] if this was tried before, or if the range does not begin above one cent.
        """
        part = reading.part
        smaller = part.within((part.low or 0) + 1, None if part.high is None else part.high - 1)
        before = self.readings.get(smaller)
        if not part.low or part.low <= FIRST_PRICE or (before and (before.ignored or before.failed)):
            return []
        wider = part.within(part.low - 1, None if part.high is None else part.high + 1)
        if reading.role == "whole":
            return self.open(wider, parent=reading.parent)
        return self.open(wider, reading.role, reading.listing)

    # When all slices are read

    def next_stage(self, found: int) -> list[Step]:
        """Return pages that may contain missing products, after all slices were read. ``found``: products so far."""
        stages = (self._uncovered(), self._grown(found), self._in_other_orders(), self._recounted(found))
        return next((steps for steps in map(list, stages) if steps), [])

    def _uncovered(self) -> Iterator[Step]:
        """Climb in categories whose sub-categories lack products, and in listings whose pages repeat."""
        if self.unfilterable:
            return
        for reading in self._wholes():
            if self._climbs(reading.part):
                continue
            if reading.repeated and len(self.known(reading.part)) < (reading.total or 0):
                yield from self._climb(reading.part, _first_price(reading.part))
            parts = [each for each in self._wholes() if each.parent == reading.part]
            if not parts or reading.middle is None or any(self._total(each) is None for each in parts):
                continue
            if self._residual(reading) > MAX_UNCOVERED * (reading.total or 0):
                yield from self._climb(reading.part, _first_price(reading.part))

    def _grown(self, found: int) -> Iterator[Step]:
        """Request slices again that may have grown, because products have moved to them."""
        units = list(self.units())
        last = [each for each in self.readings.values() if each.role == "check" and each.part.sort == self._check_order]
        given_up = self.checks == MAX_CHECKS or (self.checks and not any(each.gained for each in last))
        is_unknown = any(self._total(each) is None for each in self._wholes())
        if given_up or len(units) == 1 or self.is_overstated or is_unknown:
            return
        missing = (self.readings[self.root].total or 0) - found - self.unpriced_gap
        if missing <= sum(unit.gap for unit in units if not unit.is_sound):
            return
        self.checks += 1
        for unit in units:
            yield from self.open(unit.part.by(self._check_order), "check", self._listing_of(unit.part), wanted=unit.gap)

    @property
    def _check_order(self) -> str:
        return ORDERS[self.checks - 1]

    def _in_other_orders(self) -> Iterator[Step]:
        """Search for a slice's missing products in the next sort order, unless the last order had none."""
        vain = sum(not each.gained for each in self.readings.values() if each.role == "order")
        for unit in sorted(self._lacking(), key=lambda unit: -unit.gap / (unit.total or 1)):
            tried = [each for order in ORDERS if (each := self.readings.get(unit.part.by(order)))]
            orders = [each for each in tried if each.role == "order"]
            untried = [order for order in ORDERS if unit.part.by(order) not in self.readings]
            if not untried or (orders and not orders[-1].gained):
                continue
            if unit.is_sound:
                vain += 1
                if vain > MAX_VAIN:
                    continue
            yield from self.open(unit.part.by(untried[0]), "order", self._listing_of(unit.part))

    def _recounted(self, found: int) -> Iterator[Step]:
        """Request the category's total again, to compare it with the total at the start."""
        if found < (self.readings[self.root].total or 0):
            yield from self.open(self.root.by(ORDERS[-1]), "recount", self.root)

    # Missing products

    @property
    def is_overstated(self) -> bool:
        """Whether nearly all parts that were read to their end had fewer products than the platform stated for them."""
        sound = [unit for unit in self.units() if unit.is_sound]
        return sum(unit.gap > 0 for unit in sound) > MOST * len(sound)

    @property
    def unpriced_gap(self) -> int:
        """Number of products missing from listings that were read by price, because they have no price."""
        return sum(self._unpriced_gap(each) for each in self._wholes() if self._climbs(each.part))

    def _unpriced_gap(self, listing: Reading) -> int:
        unpriced = (listing.total or 0) - (self._climbs(listing.part)[0].total or 0)
        known = sum(cents is None for cents in self.known(listing.part).values())
        return max(0, unpriced - known)

    def units(self) -> Iterator[Unit]:
        """Yield the parts of the category that were not split further, with their numbers of products."""
        for reading in self._wholes():
            if climbs := self._climbs(reading.part):
                yield from self._segments(reading, climbs)
            elif not any(each.parent == reading.part for each in self.readings.values()):
                known, total = len(self.known(reading.part)), self._total(reading)
                yield Unit(reading.part, known + 1 if total is None else total, known, reading.is_sound)

    def _total(self, reading: Reading) -> int | None:
        """Return the stated total of a slice. If its first page failed, return that stated in another sort order."""
        others = (each.total for each in self.readings.values() if each.listing == reading.part)
        return reading.total if reading.total is not None else next((each for each in others if each is not None), None)

    def _segments(self, listing: Reading, climbs: list[Reading]) -> Iterator[Unit]:
        """Yield each climb's price range as a part, whose total is the difference between two climbs' stated totals."""
        prices = sorted(cents for cents in self.known(listing.part).values() if cents is not None)
        for climb, above in zip(climbs, [*climbs[1:], None], strict=True):
            low, high = climb.part.low or 0, listing.part.high if above is None else above.part.low
            total = (climb.total or 0) - ((above.total or 0) if above else 0)
            known = sum(low <= price and (above is None or price < (high or 0)) for price in prices)
            joined = above is not None or climb.ended
            sound = joined and not (climb.repeated or climb.failed or climb.lost_rows)
            yield Unit(listing.part.within(low, high), total, known, sound)

    def _lacking(self) -> Iterator[Unit]:
        """Yield the parts with missing products, and the listings that lack more products than all their parts."""
        yield from (unit for unit in self.units() if unit.gap)
        for reading in self._wholes():
            is_split = any(each.parent == reading.part for each in self.readings.values())
            if (is_split or self._climbs(reading.part)) and (residual := self._residual(reading)) > 0:
                known = len(self.known(reading.part))
                yield Unit(reading.part, known + residual, known, is_sound=False)

    def _residual(self, reading: Reading) -> int:
        """Return how many products a split listing still lacks after the numbers that its parts lack are subtracted."""
        missing = (reading.total or 0) - len(self.known(reading.part))
        parts = [each for each in self._wholes() if each.parent == reading.part]
        missing -= sum(max(0, (self._total(each) or 0) - len(self.known(each.part))) for each in parts)
        if climbs := self._climbs(reading.part):
            missing -= sum(unit.gap for unit in self._segments(reading, climbs))
        return missing

    def known(self, listing: Slice) -> dict[str, int | None]:
        """Return the prices of all products that were read in a listing or in parts of it, by item id."""
        rows: dict[str, int | None] = {}
        for reading in self.readings.values():
            if reading.role == "whole" and reading.parent == listing:
                rows |= self.known(reading.part)
            elif reading.listing == listing:
                rows |= reading.rows
        return rows

    def _known_within(self, reading: Reading) -> int:
        rows, part = self.known(reading.listing), reading.part
        if (part.low, part.high) == (reading.listing.low, reading.listing.high):
            return len(rows)
        low, high = part.low or 0, part.high
        return sum(cents is not None and low <= cents and (high is None or cents <= high) for cents in rows.values())

    def _listing_of(self, part: Slice) -> Slice:
        """Return the unsplit slice to which a unit's part belongs."""
        if part in self.readings:
            return part
        fitting: Iterable[Slice] = (each.part for each in self._wholes() if each.part.cat_id == part.cat_id)
        return max(fitting, key=lambda each: (each.low or 0, -(each.high or 0)) if each.contains(part) else (-1, 0))

    def _wholes(self) -> list[Reading]:
        return [each for each in self.readings.values() if each.role == "whole" and not each.ignored]

    def _climbs(self, listing: Slice) -> list[Reading]:
        """Return the climbs in a listing, by ascending price."""
        climbs = (each for each in self.readings.values() if each.role == "climb" and each.listing == listing)
        return sorted(
            (each for each in climbs if each.total is not None and not each.ignored and not _is_left(each)),
            key=lambda each: each.part.low or 0,
        )


def _is_left(climb: Reading) -> bool:
    """Whether a climb was abandoned in favour of sub-categories after its first page."""
    return climb.abandoned and climb.pages == 1 and climb.highest != climb.part.low


def _first_price(listing: Slice) -> int:
    return listing.low or FIRST_PRICE
