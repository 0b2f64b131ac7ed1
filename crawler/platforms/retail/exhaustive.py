"""Exhaustive crawls: collect all products of a category, although a listing serves only about 500.

A crawl splits the category into *slices* of at most about 500 products (the ceiling), as ``plan.py`` describes. At its
end, the crawl compares the number of collected products with the number that the platform states. If products are
missing, the crawl ends with a *report*: a follow-up target that fails with an error that contains both numbers and the
reasons.

Products are identified by item id, and each product is returned once. Each finished page has a *note*: JSON data with
the page's content. A job stores the notes, and the worker that continues a crawl restores its state from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from crawler.platforms.retail.plan import Plan
from crawler.platforms.retail.slices import PageRead, Reading, Slice, Step, Taken
from crawler.targets.coverage import Coverage

logger = structlog.get_logger(__name__)

MAX_SLICES_SHOWN = 3
"""A progress line lists at most this many of the slices that are being crawled."""


@dataclass
class ExhaustiveCrawl:
    """The state of one category's crawl, without I/O. ``take`` processes a page and returns the next pages."""

    root: Slice
    ceiling: int
    """A slice for which the platform states more products than this is split, instead of being read page by page."""
    max_requests: int | None = None
    """Maximum number of pages that the crawl requests; None for no limit."""
    requests: int = 0
    """Number of pages requested so far."""
    left_out: list[Step] = field(default_factory=list)
    """The pages that were not requested because of ``max_requests``."""
    found: set[str] = field(default_factory=set)
    open: set[Slice] = field(default_factory=set)
    """The slices of which a page was requested and is not finished yet."""
    reported: bool = False
    """Whether the crawl has ended without all products, and the follow-up target that reports this was returned."""
    _issued: set[Step] = field(default_factory=set)
    _read: set[Step] = field(default_factory=set)
    _restoring: bool = False

    def __post_init__(self) -> None:
        self.plan = Plan(self.root, self.ceiling)

    # Pages

    def begin(self) -> Step:
        """Return the first page of the whole category, which contains the total."""
        (first,) = self._requested(self.plan.open(self.root))
        return first

    def take(self, part: Slice, page: PageRead, *, stored: bool = True) -> Taken:
        """Process a finished page. Return its new products and the pages to request next.

        ``stored``: whether the page's products count as found.
        """
        reading = self._reading(part)
        ids = dict.fromkeys(row.item_id for row in page.rows)
        fresh = [each for each in ids if each not in self.found] if stored else []
        self.found.update(fresh)
        reading.add(page, len(fresh))
        steps = self._finish(Step(part, page.number), self.plan.after(reading, page))
        return Taken(fresh, steps, {"slice": part.as_list(), **page.as_note(), "ids": fresh})

    def fail(self, part: Slice, number: int) -> Taken:
        """Continue after a failed page, whose products may still be found in other slices."""
        steps = self._finish(Step(part, number), self.plan.failed(self._reading(part)))
        return Taken([], steps, {"slice": part.as_list(), "number": number, "failed": True})

    def release(self, ids: Sequence[str]) -> None:
        """Forget that products were found, because the record was not stored. Another page may return them."""
        self.found.difference_update(ids)

    def _reading(self, part: Slice) -> Reading:
        # This has an effect only if the notes of a resumed crawl lack the page that led to this slice.
        self.plan.open(part, "order", self.root)
        return self.plan.readings[part]

    def _finish(self, step: Step, steps: list[Step]) -> list[Step]:
        """Return the pages to request after a finished page. If no slice is open any more, begin the next stage.

        If there is no further stage and products are missing, the result is the report (``is_report``).
        """
        self._read.add(step)
        self.open.discard(step.part)
        steps = self._requested(steps)
        if not self.open and not self.left_out and self.total is not None:
            steps += self._requested(self.plan.next_stage(len(self.found)))
        if not self.open and not self.reported and not self._restoring and self.coverage.reasons:
            self.reported = True
            steps.append(Step(self.root))
        return steps

    def _requested(self, steps: list[Step]) -> list[Step]:
        """Return those of the pages that are not finished, up to ``max_requests``. The others go to ``left_out``."""
        steps = [step for step in steps if step not in self._read]
        limited = self.max_requests is not None and not self._restoring
        room = max(0, (self.max_requests or 0) - self.requests) if limited else len(steps)
        allowed = steps[:room]
        self.left_out += steps[room:]
        self.requests += len(allowed)
        self._issued.update(allowed)
        self.open.update(step.part for step in allowed)
        return allowed

    # Restoring

    def restore(self, note: dict[str, Any], *, stored: bool) -> None:
        """Add a page that was finished before an interruption. ``stored``: whether its products were stored."""
        part, self._restoring = Slice(*note["slice"]), True
        if not self._read:
            self.begin()
        if Step(part, note["number"]) not in self._issued:
            self._requested([Step(part, note["number"])])
        if "failed" in note:
            self.fail(part, note["number"])
        else:
            self.take(part, PageRead.from_note(note), stored=stored)
        self._restoring = False

    def resume(self, pending: Sequence[Step]) -> list[Step]:
        """Continue with the pages that were unfinished when the crawl was interrupted. Call this after all finished
        pages are restored.

        Return the pages to request in addition to the pending ones, as far as ``max_requests`` now allows.
        """
        unfinished = {step for step in pending if not self.is_report(step)}
        missing = sorted(self._issued - self._read - unfinished, key=str)
        self.requests = len(self._read) + len(unfinished)
        self.open = {step.part for step in unfinished}
        self.left_out = []
        steps = self._requested(missing)
        self.reported = not self.open and bool(self.coverage.reasons)
        return steps

    def is_report(self, step: Step) -> bool:
        """Whether a follow-up target requests no page, and only reports that the crawl has ended without all products.

        Such a follow-up has the params of the category's first page.
        """
        return step == Step(self.root)

    # Progress

    @property
    def total(self) -> int | None:
        """The largest number of products that the platform has stated for the whole category."""
        stated = (
            each.total for each in self.plan.readings.values() if self._is_of_root(each) and each.total is not None
        )
        return max(stated, default=None)

    def _is_of_root(self, reading: Reading) -> bool:
        part = reading.part
        return (part.cat_id, part.low, part.high) == (self.root.cat_id, self.root.low, self.root.high)

    @property
    def finished(self) -> bool:
        """Whether no slice is open."""
        return not self.open

    @property
    def coverage(self) -> Coverage:
        """The number of products that the platform states, the number collected, and the reasons for a difference."""
        return Coverage(self.total, len(self.found), tuple(self._reasons()))

    def _reasons(self) -> list[str]:
        """Return why products are missing, or may be missing. [] if the crawl is complete, or the total is unknown."""
        readings = list(self.plan.readings.values())
        lost_rows = any(each.lost_rows for each in readings)
        if self.left_out:
            return ["max_requests"]
        if self.total is None or (len(self.found) >= self.total and not lost_rows):
            return []
        found = {
            "filter_ignored": any(each.ignored for each in readings),
            "category_loop": any(each.looped for each in readings),
            "repeated_page": any(each.repeated for each in readings),
            "page_failed": any(each.failed for each in readings),
            "unread_rows": lost_rows,
            "no_price": self.plan.unpriced_gap > 0,
            "ceiling": any(not unit.is_sound and unit.total > self.ceiling for unit in self.plan.units()),
            "total_changed": any(self._is_of_root(each) and each.total not in {None, self.total} for each in readings),
            "moved": bool(self.plan.checks),
            "overstated": self.plan.is_overstated,
        }
        return [reason for reason, applies in found.items() if applies] or ["unknown"]

    def __str__(self) -> str:
        parts = ", ".join(str(part) for part in sorted(self.open, key=str)[:MAX_SLICES_SHOWN])
        found = Coverage(self.total, len(self.found))
        return f"category {self.root}: {found}, {self.requests:,} requests, {len(self.open):,} open: {parts}"

    def log_end(self) -> None:
        """Log the result of the whole crawl."""
        readings = list(self.plan.readings.values())
        logger.info(
            "exhaustive_done",
            category=str(self.root),
            result=str(self.coverage),
            requests=self.requests,
            slices=len(readings),
            found_by_sort_order=sum(each.gained for each in readings if each.role in {"order", "check"}),
            filter_without_effect=[str(each.part) for each in readings if each.ignored],
            failed=[str(each.part) for each in readings if each.failed],
            pages_left_out=len(self.left_out),
        )
