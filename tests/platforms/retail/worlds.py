"""Exhaustive crawls of the simulated shop's test categories. The pages are generated in this process, not downloaded.

``python -m tests.platforms.retail.worlds SIZE...`` prints the results of all faults with twenty seeds each.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

from crawler.platforms.coverage import Coverage
from crawler.platforms.retail.plan import Page, Row, Slice, Step
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from crawler.sandbox.retail.trees import WORLD_FAULTS, WORLD_SIZES, world_id
from tests.misbehaving import ignores_filter
from tests.platforms.retail.plans import run

FEWEST = {"976759": 48, "4044": 144, "880001": 444}
"""Category -> lower bound of requests: the number of products divided by 45, the average number on a page."""
SEEDS = range(1, 21)


class Sweep(NamedTuple):
    """The result of an exhaustive crawl."""

    truth: int
    coverage: Coverage
    requests: int

    @property
    def is_honest(self) -> bool:
        """Whether the crawl collected everything, or stated why products may be missing."""
        return bool(self.coverage.reasons) or self.coverage.collected == self.truth


def arguments(step: Step) -> dict[str, str]:
    """Return the arguments of a page's query string."""
    part, page = step
    low, high = (None if price is None else f"{price / 100:.2f}" for price in (part.low, part.high))
    default = part.sort == "best_match"
    found = {"page": page if page > 1 else None, "sort": None if default else part.sort}
    return {name: str(value) for name, value in (found | {"min_price": low, "max_price": high}).items() if value}


def page_of(site: Site, step: Step) -> Page | None:
    """Return what a page object would read from a page, or None if the site responds with a bot challenge."""
    request = FakeRequest(f"/browse/{step.part.cat_id}", arguments(step))
    if site.is_challenged(request):
        return None
    view = site.view({**request.args, "cat_id": step.part.cat_id})
    assert view.category is not None
    rows = [Row(row.product.item_id, row.product.cents, row.product.category, row.sponsored) for row in view.rows]
    low, high = (None if cents is None else cents / 100 for cents in (step.part.low, step.part.high))
    has_more = bool(rows) and step.page < view.max_page
    return Page(rows, has_more, view.total, list(view.category.children), ignores_filter(low, high, view.prices, rows))


def sweep(site: Site, cat_id: str) -> Sweep:
    """Crawl a category until no page is left to request."""
    found = run(lambda step: page_of(site, step), Slice(cat_id))
    truth = set[str]().union(*site.products_of(cat_id))
    assert truth >= set(found.ids)
    return Sweep(len(truth), found.plan.coverage, len(found.requested))


def main(sizes: list[str]) -> None:
    """Print the table of results."""
    for size in sizes or list(WORLD_SIZES):
        for fault in WORLD_FAULTS:
            site = Site()
            sweeps = [sweep(site, world_id(size, fault, seed)) for seed in SEEDS]
            complete = sum(each.coverage.collected == each.truth for each in sweeps)
            silent = sum(not each.is_honest for each in sweeps)
            least = min(each.coverage.collected / each.truth for each in sweeps)
            requests = sorted(each.requests for each in sweeps)
            reasons = Counter(reason for each in sweeps for reason in each.coverage.reasons)
            named = ", ".join(f"{name} {count}" for name, count in reasons.most_common()) or "-"
            most = f"{requests[len(requests) // 2]} ({requests[-1]})"
            counts = f"{complete} | {sum(bool(each.coverage.reasons) for each in sweeps)} | {silent}"
            row = (
                f"| {size} | {fault} | {counts} | {least:.2%} | {named} | {most} | {requests[-1] / FEWEST[size]:.2f} |"
            )
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
