"""Runs the plan of an exhaustive crawl against a simulated shop, without a process."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from crawler.platforms.retail.plan import Fact, Page, Plan, Slice, Step

CEILING = 400


@dataclass
class Run:
    """A crawl of a shop, with the state that a job stores: the facts of the finished pages, and the pending pages."""

    read: Callable[[Step], Page | None]
    """Returns the facts of a page. None: the page fails."""
    root: Slice
    ceiling: int = CEILING
    max_requests: int | None = None
    requested: list[Step] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """The ids of the products in the stored records."""
    notes: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plan = Plan(self.root, self.ceiling, self.max_requests)
        self.pending = self.plan.next()

    def until(self, pages: int = 5_000, *, lost: int = 0, seed: int | None = None) -> Run:
        """Read pages, with a seed in random order, as concurrent downloads end.

        ``lost``: how many of the last pages are read, but not stored.
        """
        rng = random.Random(seed)  # noqa: S311  # a seed, not a secret
        unstored = []
        while self.pending and pages:
            pages -= 1
            step = self.pending.pop(0 if seed is None else rng.randrange(min(4, len(self.pending))))
            self.requested.append(step)
            page = self.read(step)
            fact = self.plan.fail(step, "UPSTREAM_BLOCKED") if page is None else self.plan.take(step, page)
            if pages < lost:
                unstored.append(step)
                continue
            self.notes.append(json.loads(json.dumps(fact.model_dump(mode="json"))))
            self.ids += fact.ids
            self.pending += self.plan.next()
        self.pending += unstored
        return self

    def restart(self) -> None:
        """Discard everything but the stored facts and the pending pages, as ``kill -9`` does, and continue."""
        self.plan = Plan(self.root, self.ceiling, self.max_requests)
        for note in self.notes:
            self.plan.add(Fact.model_validate(note))
        self.plan.open.update(self.pending)
        self.pending += self.plan.next()

    @property
    def texts(self) -> list[str]:
        """The requested pages as text, in the order of the requests."""
        return [str(step) for step in self.requested]


def run(read: Callable[[Step], Page | None], root: Slice, **options: Any) -> Run:
    """Crawl to the end, and check what holds for each crawl."""
    found = Run(read, root, **options).until()
    assert not found.plan.open, "the crawl has ended"
    assert found.plan.next() == []
    assert len(found.requested) == found.plan.requests <= found.plan.bound
    assert len(found.ids) == len(set(found.ids)), "each product once"
    assert found.plan.coverage.collected == len(found.ids)
    return found
