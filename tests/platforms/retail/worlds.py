"""Exhaustive crawls of the simulated shop's test categories, whose pages are not downloaded."""

from __future__ import annotations

from typing import NamedTuple

from crawler.platforms.coverage import Coverage
from crawler.platforms.retail.plan import Page, Row, Slice, Step
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.misbehaving import ignores_filter
from tests.platforms.retail.plans import run

FEWEST = {"976759": 48, "4044": 144, "880001": 444}
"""Category -> lower bound of requests: the number of products divided by 45, the average number on a page."""


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
