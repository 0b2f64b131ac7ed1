"""Exhaustive crawls: collect all products of a category, although a listing serves only about 500.

A crawl splits the category into *slices* of at most about 500 products (the ceiling), in three stages:

1. By sub-category, where the page offers any; else by price.
2. By price, where the sub-categories report fewer products than the category.
3. By sort order, where the parts of a listing report fewer products than the listing. Causes are products without a
   price, a price that too many products share, failed pages, and a price filter that has no effect.

The crawl does not rely on the platform's totals. They are estimates: they decide what is split, never when to stop. A
slice of stage 1 ends when the platform serves no further page. A slice of stage 2 or 3 also ends after several pages
without new products. The crawl detects a price filter that has no effect, and stops using it.

Products are identified by item id, and each is returned once. Each finished page has a *note*: JSON data with the
page's effect on the crawl's state. A journal stores the notes, and a resumed crawl restores its state from them, in any
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import structlog

from crawler.platforms.retail.slices import Node, PageRead, Slice, Step, Taken, is_outside, price_ranges, subcategories

logger = structlog.get_logger(__name__)

FILL = 0.75
"""Intended share of the ceiling in a price range. The prices of one page are a small sample, so it is below 1."""
MAX_RANGES = 7
"""Maximum number of price ranges into which a slice is split at once."""
MAX_IDLE_PAGES = 3
"""A slice of stage 2 or 3 ends after this number of consecutive pages without new products."""
SAME_TOTAL = 0.95
"""A part whose total is at least this share of the listing's total counts as having the same total."""
MAX_UNCOVERED = 0.05
"""If the sub-categories' totals lack more than this share of the category's total, stage 2 splits it by price."""
MAX_UNFILTERED = 2
"""After this number of listings whose price filter has no effect, the crawl no longer splits by price."""
PROBE_ORDERS = ("best_seller", "new", "rating_high", "price_low", "price_high")
"""Sort orders of stage 3. The orders by price are tried last, because they list products without a price at the end."""
MAX_SLICES_SHOWN = 3
"""Maximum number of slices in progress that a progress line lists."""


@dataclass
class ExhaustiveCrawl:
    """The state of one category's crawl. ``take`` gets a finished page and returns the next ones. It does no I/O."""

    root: Slice
    ceiling: int
    """If a slice reports more products than this, it is split instead of being read page by page."""
    max_requests: int | None = None
    """Maximum number of pages that the crawl requests; None for no limit."""
    requests: int = 0
    """Number of pages requested so far."""
    left_out: list[Step] = field(default_factory=list)
    """The pages that were not requested because of ``max_requests``."""
    found: set[str] = field(default_factory=set)
    open: set[Slice] = field(default_factory=set)
    """Slices with a requested page that is not finished."""
    unfiltered: set[Slice] = field(default_factory=set)
    """Listings whose price filter has no effect."""
    nodes: dict[Slice, Node] = field(default_factory=dict)
    reported: bool = False
    """Whether the crawl has ended because of ``max_requests``, and the follow-up that reports this was returned."""
    _read: set[Step] = field(default_factory=set)
    """The pages that earlier starts of the crawl finished."""
    _opened: list[list[Any]] = field(default_factory=list)
    _newly_left_out: list[list[Any]] = field(default_factory=list)

    # Pages

    def begin(self) -> Step:
        """Return the first page of the whole category, which contains the total."""
        self._node(self.root)
        self.open.add(self.root)
        self.requests = 1
        return Step(self.root)

    def take(self, part: Slice, page: PageRead) -> Taken:
        """Process a finished page. Return its new products and the pages to request next."""
        node = self._node(part)
        fresh = []
        for product in page.products:
            if product["item_id"] not in self.found:
                self.found.add(product["item_id"])
                fresh.append(product)
        self._count(node, page.number, len({each["item_id"] for each in page.products}), len(fresh))
        if page.number == 1:
            self._observe(node, page)
        elif not page.products:
            node.truncated = node.seen >= self.ceiling or node.seen < SAME_TOTAL * (node.total or 0)
        if self._reads_on(node, page):
            steps = self._allowed([Step(part, page.number + 1)])
        else:
            self.open.discard(part)
            steps = self._allowed([])
        steps += self._continue(node)
        note = {
            **self._note(part, page.number),
            "total": node.total,
            "children": node.children if page.number == 1 else [],
            "ranges": node.ranges if page.number == 1 else [],
            "outside": node.outside,
            "truncated": node.truncated,
            "rows": len({each["item_id"] for each in page.products}),
            "ids": [each["item_id"] for each in fresh],
        }
        return Taken(fresh, steps, note)

    def fail(self, part: Slice, number: int) -> Taken:
        """Close a slice because one of its pages failed. Stage 3 tries to find the missing products."""
        node = self._node(part)
        node.failed = True
        self.open.discard(part)
        return Taken([], self._continue(node), self._note(part, number))

    def release(self, ids: Sequence[str]) -> None:
        """Forget the products on a page whose record was not stored, so that another page may return them."""
        self.found.difference_update(ids)

    def _node(self, part: Slice) -> Node:
        return self.nodes.setdefault(part, Node(part))

    @staticmethod
    def _count(node: Node, number: int, rows: int, fresh: int) -> None:
        node.pages += 1
        node.seen += rows
        node.idle = 0 if fresh else node.idle + 1
        if number > 1 or node.part.is_sorted:
            node.gained += fresh

    def _observe(self, node: Node, page: PageRead) -> None:
        """Store what a slice's first page shows: total, sub-categories, and price ranges to split the slice into."""
        part, node.total = node.part, page.total
        node.children = subcategories(part.cat_id, page.children)
        node.outside = is_outside(part, page.products)
        if page.has_more and not part.is_sorted:
            count = min(MAX_RANGES, max(2, ceil(page.total / (FILL * self.ceiling))))
            prices = [each["price"]["current_price"] for each in page.products]
            known = [price for price in prices if price is not None]
            node.ranges = price_ranges(part, known, count, page.highest_price)

    def _reads_on(self, node: Node, page: PageRead) -> bool:
        if not page.has_more:
            return False
        if page.number == 1 and self._is_oversized(node) and not node.part.is_sorted:
            return False
        return not node.verifying or node.idle < MAX_IDLE_PAGES

    def _is_oversized(self, node: Node) -> bool:
        return node.truncated or (node.total or 0) > self.ceiling

    # Stages

    def _continue(self, node: Node) -> list[Step]:
        """Split the slices that can be split now that a page is finished. If no slice is open, begin the next stage."""
        steps = self._split_ready(node)
        for stage in (self._uncovered_by_price, self._probes):
            if not self.open and not self.left_out and self.total is not None:
                steps += self._allowed(list(stage()))
        if not self.open and self.left_out and not self.reported:
            self.reported = True
            steps.append(Step(self.root))
        return steps

    def _split_ready(self, node: Node) -> list[Step]:
        """Split the slice if it is above the ceiling. If it is a price range, also split the ranges that waited for it.

        All ranges of a listing wait for each other: only together they show whether the price filter has an effect.
        """
        parent = self.nodes.get(node.parent) if node.parent else None
        candidates = [node]
        if parent and node.part in parent.by_price:
            candidates = [self.nodes[each] for each in parent.by_price]
            if self._is_waited_for(parent.by_price) or self._judge(parent):
                return []
        return [step for each in candidates for step in self._allowed(list(self._split(each)))]

    def _is_waited_for(self, parts: list[Slice]) -> bool:
        return any(each in self.open and self.nodes[each].total is None for each in parts)

    def _judge(self, parent: Node, *, log: bool = True) -> bool:
        """Whether the price filter of a listing has no effect, according to the first pages of all its price ranges."""
        parts = [each for part in parent.by_price if (each := self.nodes[part]).total is not None]
        same = [each for each in parts if (each.total or 0) >= SAME_TOTAL * (parent.total or 0)]
        outside = any(each.outside for each in parts)
        if not outside and (len(parts) < 2 or len(same) < len(parts)):
            return False
        if log and parent.part not in self.unfiltered:
            reason = "rows lie outside the requested prices" if outside else "each range reports the same total"
            logger.warning("price_filter_without_effect", slice=str(parent.part), reason=reason)
        self.unfiltered.add(parent.part)
        return True

    def _split(self, node: Node) -> Iterator[Step]:
        """Open the parts of a slice above the ceiling. A slice that cannot be split is left to stage 3."""
        waits = node.part in self.open or node.total is None or node.part.is_sorted
        if waits or node.parts or not self._is_oversized(node):
            return
        for child in node.children:
            yield self._opened_part(replace(node.part, cat_id=child), node, verifying=node.verifying)
        if not node.children:
            yield from self._by_price(node, verifying=node.verifying)

    def _by_price(self, node: Node, *, verifying: bool) -> Iterator[Step]:
        if len(self.unfiltered) < MAX_UNFILTERED:
            for each in node.ranges:
                yield self._opened_part(node.part.within(each), node, verifying=verifying)

    def _uncovered_by_price(self) -> Iterator[Step]:
        """Stage 2: split categories by price if their sub-categories together report too few products."""
        for node, gap in self._uncovered():
            if node.by_category and not node.by_price and gap > MAX_UNCOVERED * (node.total or 0):
                yield from self._by_price(node, verifying=True)

    def _probes(self) -> Iterator[Step]:
        """Stage 3: open the next sort order of each listing with missing products, unless the last order found none."""
        uncovered = self._uncovered()
        root = self._node(self.root)
        if not uncovered and self._is_oversized(root) and len(self.found) < (root.total or 0):
            uncovered = [(root, (root.total or 0) - len(self.found))]
        for node, _ in sorted(uncovered, key=lambda each: -each[1] / (each[0].total or 1)):
            if node.probes and not self.nodes[node.probes[-1]].gained:
                continue
            if node.pages == 1 and not node.failed:
                yield self._opened_part(node.part, node, verifying=True)  # read on from the listing's second page
                continue
            orders = [replace(node.part, sort=sort) for sort in PROBE_ORDERS]
            untried = [each for each in orders if each not in self.nodes]
            if untried:
                yield self._opened_part(untried[0], node, verifying=True)

    def _uncovered(self) -> list[tuple[Node, int]]:
        """Return each listing that probably has unread products, with their estimated number."""
        gaps = [(node, self._gap(node)) for node in list(self.nodes.values()) if not node.part.is_sorted]
        return [(node, gap) for node, gap in gaps if gap > 0]

    def _gap(self, node: Node) -> int:
        total = node.total or 0
        if node.failed or node.part in self.unfiltered:
            return max(total - node.seen, 1)
        if node.total is None or not self._is_oversized(node) or node.parent in self.unfiltered:
            return 0
        if not node.parts:
            return max(total - node.seen, 1)
        return total - max(self._reported_by(node.by_category), self._reported_by(node.by_price))

    def _reported_by(self, parts: list[Slice]) -> int:
        return sum(self.nodes[each].total or 0 for each in parts)

    def _opened_part(self, part: Slice, parent: Node, *, verifying: bool) -> Step:
        """Add a slice and return its first page.

        The slice is a part of a listing, the listing in another sort order, or the rest of the listing from page 2 on.
        """
        self._add(part, parent, verifying=verifying)
        self._opened.append([part.as_list(), parent.part.as_list(), verifying])
        self.open.add(part)
        return Step(part, 2 if part == parent.part else 1)

    def _add(self, part: Slice, parent: Node, *, verifying: bool) -> None:
        node = self._node(part)
        node.verifying = node.verifying or verifying
        if part == parent.part or part.is_sorted:
            parent.probes.append(part)
        else:
            parent.parts.append(part)
        if part != parent.part:
            node.parent = parent.part

    def _allowed(self, steps: list[Step]) -> list[Step]:
        """Return as many of the pages to request as ``max_requests`` allows, and close the slices of the others."""
        room = len(steps) if self.max_requests is None else max(0, self.max_requests - self.requests)
        for step in steps[room:]:
            self.open.discard(step.part)
            self._newly_left_out.append([step.part.as_list(), step.page])
        self.left_out += steps[room:]
        self.requests += len(steps[:room])
        return steps[:room]

    # Restoring

    def _note(self, part: Slice, number: int) -> dict[str, Any]:
        opened, self._opened = self._opened, []
        left_out, self._newly_left_out = self._newly_left_out, []
        return {"slice": part.as_list(), "page": number, "opened": opened, "left_out": left_out}

    def restore(self, note: dict[str, Any], *, stored: bool) -> None:
        """Add a page that an earlier start of the crawl finished. ``stored``: whether its products were stored."""
        node = self._node(Slice(*note["slice"]))
        self.requests += 1
        self._read.add(Step(node.part, note["page"]))
        self.left_out += [Step(Slice(*part), page) for part, page in note["left_out"]]
        if "total" in note:
            ids = note["ids"] if stored else []
            self.found.update(ids)
            self._count(node, note["page"], note["rows"], len(ids))
            node.truncated, node.outside = note["truncated"], note["outside"]
            if note["page"] == 1:
                node.total, node.children = note["total"], note["children"]
                node.ranges = [(low, high) for low, high in note["ranges"]]
        else:
            node.failed = True
        for part, parent, verifying in note["opened"]:
            self._add(Slice(*part), self._node(Slice(*parent)), verifying=verifying)

    def resume(self, pending: Sequence[Step]) -> list[Step]:
        """Continue with the unfinished pages of earlier starts. Call this after all finished pages are restored.

        Return the pages that earlier starts left out, as many as ``max_requests`` allows now.
        """
        unfinished = [step for step in pending if not self.is_report(step)]
        self.open = {step.part for step in unfinished}
        self.requests += len(unfinished)
        left_out = [step for step in self.left_out if step not in self._read and step not in unfinished]
        self.left_out = []
        steps = self._allowed(left_out)
        self._newly_left_out = []  # the notes of earlier starts have these pages
        self.open |= {step.part for step in steps}
        self.reported = not self.open and bool(self.left_out)
        for node in list(self.nodes.values()):
            if node.by_price and not self._is_waited_for(node.by_price):
                self._judge(node, log=False)
        return steps

    def is_report(self, step: Step) -> bool:
        """Whether a follow-up requests no page, and only reports that the crawl reached ``max_requests``.

        Such a follow-up has the params of the category's first page.
        """
        return step == Step(self.root)

    # Progress

    @property
    def total(self) -> int | None:
        """Number of products that the platform reports for the whole category: an estimate."""
        return self._node(self.root).total

    @property
    def finished(self) -> bool:
        """Whether no slices are in progress."""
        return not self.open

    @property
    def progress(self) -> str:
        """How many products were found, and how many the platform reports, as text."""
        return f"{len(self.found):,} of about {self.total or 0:,} products"

    def __str__(self) -> str:
        parts = ", ".join(str(part) for part in sorted(self.open, key=str)[:MAX_SLICES_SHOWN])
        return f"category {self.root}: {self.progress}, {self.requests:,} requests, {len(self.open):,} open: {parts}"

    def log_end(self) -> None:
        """Log the result of the whole crawl."""
        nodes = self.nodes.values()
        by_price = [node for node in nodes if node.by_price and node.part not in self.unfiltered]
        logger.info(
            "exhaustive_done",
            category=str(self.root),
            result=self.progress,
            requests=self.requests,
            slices=len(self.nodes),
            unreachable_by_price=sum(max(0, (n.total or 0) - self._reported_by(n.by_price)) for n in by_price),
            found_by_sort_order=sum(node.gained for node in nodes if node.part.is_sorted or node.probes),
            filter_without_effect=[str(part) for part in sorted(self.unfiltered, key=str)],
            failed=[str(node.part) for node in nodes if node.failed],
            pages_left_out=len(self.left_out),
        )
