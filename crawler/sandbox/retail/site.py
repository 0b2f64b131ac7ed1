"""The simulated shop's site: its responses to requests, and the records that must be extracted from its pages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from crawler.sandbox.faults import described, target, too_many_requests
from crawler.sandbox.retail import faults as retail_faults
from crawler.sandbox.retail import page as retail_page
from crawler.sandbox.retail.expected import product
from crawler.sandbox.retail.faults import FAULTS, NEWER
from crawler.sandbox.retail.page import PUBLIC
from crawler.sandbox.retail.shop import FAULTS_DEPARTMENT, Shop
from crawler.sandbox.retail.trees import tree_of
from crawler.sandbox.retail.worlds import CHALLENGED

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeRequest, FakeResponse

__all__ = ["FAULTS", "Site"]

TARGETS = [
    target("a department with 25 pages", cat_id="976759"),
    target("a category below it", cat_id="976759_6837314"),
    target("a department that is too large for one listing: `exhaustive=true` splits it", cat_id="4044"),
    target("a search, as for any other text", query="mustard"),
]


class Site(Shop):
    """The simulated shop as a site that responds to requests."""

    fault_ids: ClassVar[dict[str, str]] = {
        f"{FAULTS_DEPARTMENT}_{n}": name for n, name in enumerate([*sorted(FAULTS.keys() - set(NEWER)), *NEWER], 1)
    }

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        super().__init__(seed, self.fault_ids, light=light)

    # The site

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault that the category id in the path or the search term selects, or None."""
        name = self.faults.get(request.path.rpartition("/")[2]) or request.args.get("q")
        is_spared = name == "blind-later" and request.args.get("page", "1") == "1"
        return name if name in FAULTS and not is_spared else None

    def limited(self, _: FakeRequest, seconds: int) -> FakeResponse:
        """Build the response to a request above a limit by rate."""
        return too_many_requests(seconds)

    def refusal(self, _: FakeRequest) -> None:
        """Refuse no request: a plain request for a page is enough."""

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response: a listing page, the home page, the CAPTCHA page, robots.txt, or 404."""
        if request.path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /search\n"
        if request.path == "/blocked":
            return 200, {}, retail_page.challenge()
        if request.path == "/":
            return 200, {}, retail_page.other("/", {"contentLayout": {"modules": []}})
        if self.is_challenged(request):
            return 200, {}, retail_page.challenge()
        tree = tree_of(request.path.rpartition("/")[2])
        render = self._listing_page if tree is None or not tree.fault else self._rendered
        try:
            return 200, {}, render(request.path, tuple(request.args.items()))
        except (KeyError, ValueError):
            return 404, {}, retail_page.not_found()

    def is_challenged(self, request: FakeRequest) -> bool:
        """Count a request to a world, and return whether the response must be the challenge."""
        cat_id = request.path.rpartition("/")[2]
        tree, department = tree_of(cat_id), cat_id.partition("_")[0]
        if tree is None:
            return False
        if cat_id == department and not request.args:
            self.progress.pop(department, None)
        progress = self.progress[department]
        progress.count((cat_id, request.args.get("min_price"), request.args.get("max_price")))
        return tree.fault == "challenge-midway" and progress.requests == CHALLENGED

    @lru_cache(maxsize=64)  # noqa: B019  # a site lives as long as its process; the cache makes repeated requests free
    def _listing_page(self, path: str, query: tuple[tuple[str, str], ...]) -> bytes:
        return self._rendered(path, query)

    def _rendered(self, path: str, query: tuple[tuple[str, str], ...]) -> bytes:
        kind, _, rest = path.lstrip("/").partition("/")
        args = dict(query)
        if kind == "search":
            return retail_page.listing(self, self.view(args | {"query": args.get("q", "")}))
        if kind == "browse":
            return retail_page.listing(self, self.view(args | {"cat_id": rest.rpartition("/")[2]}))
        raise KeyError(path)

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault that only the shop has."""
        return retail_faults.damaged(name, request.path, lambda: self.page(request))

    def catalogue(self) -> dict[str, Any]:
        """Return the shop's categories and faults."""
        return {
            "targets": TARGETS,
            "big_category": self.big_category,
            "categories": {
                c.id: {"name": c.name, "total": len(self.matching(c.id, None))} for c in self.categories.values()
            },
            "faults": described(FAULTS, lambda name: {"query": name}),
        }

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the exact record that must be extracted for a target.

        Raises:
            KeyError: the category or sort order is unknown, or category and query are both missing.
            ValueError: the page number or a price is invalid.
        """
        view = self.view(params)
        category = view.category
        name = category.name if category else view.query
        cat_id = category.id if category else "0"
        record: dict[str, Any] = {
            "breadcrumbs": [
                {"id": c.id, "name": c.name, "url": f"{PUBLIC}/browse/{c.id}"}
                for c in (self.crumbs(category) if category else [])
            ],
            "cat_id": cat_id,
            "category_id": cat_id,
            "category_name": name if category else "",
            "has_more": bool(view.rows) and view.page < view.max_page,
            "heading": name if category else f'Results for "{name}"',
            "max_page": view.max_page,
            "page": view.page,
            "products": [product(row) for row in view.rows],
            "returned": len(view.rows),
            "sort": view.sort,
            "title": f"{name} - Walmart.com",
            "total_results": view.total,
            "url": f"{PUBLIC}/browse/{cat_id}" if category else retail_page.search_url(view.query or ""),
        }
        fault = self.faults.get(category.id) if category else view.query
        record = retail_faults.expected_after_fault(fault, record)
        return record if category else {**record, "query": view.query}
