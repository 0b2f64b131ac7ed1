"""Retail: the spider for category listings and searches. Each target is one page; the next pages are follow-ups."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import structlog
from pydantic import BaseModel, model_validator
from scrapy import Request
from scrapy.crawler import Crawler

from crawler.errors import Detail, ExtractionFailed, ScrapeError, ServiceError, ShuttingDown
from crawler.items import RetailCategoryV4Item, RetailSearchV4Item
from crawler.jobs.options import LimitedOptions
from crawler.platforms.links import LinkError, read_link
from crawler.platforms.retail.pages import ALWAYS_SERVED, PAGE_PATH, ListingPage, PriceFilter, SearchPage, ignores
from crawler.platforms.retail.plan import MAX_REQUESTS, Fact, Page, Plan, Row, Slice, Step
from crawler.platforms.retail.schema import CategoryParams, Listing, SearchListing, SearchParams
from crawler.platforms.retail.urls import DEFAULT_SORT, listing_request
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.target import Outcome, Scraper, Target
from crawler.targets.tracker import LimitReached, target_failing
from crawler.targets.warning import OutcomeWarning

logger = structlog.get_logger(__name__)


class RetailArguments(CrawlArguments, LimitedOptions):
    """The ``-a`` arguments of a retail crawl, and the params that are needed to validate these arguments."""

    query: str | None = None
    """Words to search for."""
    url: str | None = None
    """URL of a category page or of a search, instead of ``cat_id`` or ``query``."""

    @model_validator(mode="after")
    def _validate_category(self) -> Self:
        if self.exhaustive and (self.query or self._url_is_search):
            raise ValueError("only a category can be collected exhaustively: leave out exhaustive, or give cat_id")
        return self

    @property
    def _url_is_search(self) -> bool:
        try:
            return self.url is not None and read_link(self.url).kind == "search"
        except LinkError:
            return False  # the check of the target reports the error


class RetailSpider(PlatformSpider):
    """Scrapes category listings and search results on the retail platform."""

    name = "retail"
    metadata = {"title": "Retail", "description": "Category listings and search results with prices."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="retail-category-v4",
            platform="retail",
            summary="One page of a category listing: products with price, rating, seller and availability.",
            params=CategoryParams,
            data=Listing,
            item=RetailCategoryV4Item,
            example={"cat_id": "976759"},
            pages=(ListingPage,),
            requests=1,
        ),
        Scraper(
            name="retail-search-v4",
            platform="retail",
            summary="One page of search results, in the format of a category listing.",
            params=SearchParams,
            data=SearchListing,
            item=RetailSearchV4Item,
            example={"query": "mustard"},
            pages=(SearchPage,),
            requests=1,
        ),
    )
    arguments = RetailArguments
    args: RetailArguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plans: dict[str, Plan] = {}
        """Id of the requested target -> the plan of its exhaustive crawl, while this is in progress."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.target_failing, target_failing)
        return spider

    @property
    def sliced(self) -> bool:
        return self.args.exhaustive

    def request(self, target: Target) -> Request:
        params = target.params
        if not isinstance(params, CategoryParams):
            assert isinstance(params, SearchParams)
            arguments = {**params.model_dump(exclude={"url"}), "query": params.words}
            return self.for_page(SearchPage, listing_request(**arguments))
        if self.args.exhaustive:
            params = self._begin(target, params)
        arguments = {**params.model_dump(exclude={"url"}), "cat_id": params.category}
        request = listing_request(**arguments)
        if self.args.exhaustive:  # the plan itself compares the prices with the slice, over all of its pages
            for name in ("min_price", "max_price"):
                del request.meta["page_params"][name]
        return self.for_page(ListingPage, request)

    async def scrape(self, target: Target, first: First) -> Data | None:
        """Return a page of a category or of search results. The next page becomes a follow-up (see ``follow``)."""
        page = await first.page(ListingPage)
        data = await page.to_item()
        if plan := self._plans.get(target.root or ""):
            return self._new_products(target, plan, page, data)
        ids, is_first = page.own_ids, data["page"] == 1
        advertised, is_proven = data["returned"] - len(ids), not page.unproven
        self.count_rows(
            target, ids, data["total_results"], is_first=is_first, advertised=advertised, is_proven=is_proven
        )
        if not data["has_more"]:
            ended = bool(data["products"]) or data["total_results"] == 0  # a page after the last one has no products
            self.close_listing(target, page.source, ended=ended, ceiling=ALWAYS_SERVED)
        elif not self.follow(target, data, page=data["page"] + 1):
            self.close_listing(target, page.source, ended=None)
        return data

    # Exhaustive crawls

    def _begin(self, target: Target, params: CategoryParams) -> CategoryParams:
        """Return the params of the page to request for a target of an exhaustive crawl.

        For a requested target, begin its exhaustive crawl at the first page, in the default order.

        Raises:
            LimitReached: the target only reports the end of its crawl, which has reached ``max_requests``.
            ExtractionFailed: the target only reports the end of its crawl, which may lack products.
        """
        if target.parent is None:
            params = params.model_copy(update={"page": 1, "sort": DEFAULT_SORT})
            self._plans[target.root or target.id] = plan = self._new_plan(_step(params).part)
            plan.next()
        elif (running := self._plans.get(target.root or "")) and _is_report(target, running):
            self._report(target, running)
        return params

    def _new_plan(self, root: Slice) -> Plan:
        return Plan(root, self.settings.getint("LISTING_CEILING"), self.args.max_requests)

    def _report(self, target: Target, plan: Plan) -> NoReturn:
        """Raise the error of a crawl that may lack products: see ``_begin``."""
        coverage = plan.coverage
        self.tracker.warn(target, OutcomeWarning.of_coverage(ListingPage.source, coverage))
        if coverage.reasons == (MAX_REQUESTS,):
            found = f"{coverage.collected:,} of about {coverage.expected or 0:,} products found"
            raise LimitReached(f"max_requests={self.args.max_requests} reached: {found}.", reason=MAX_REQUESTS)
        details: list[Detail] = [{"loc": [*PAGE_PATH, "aggregatedCount"], "msg": str(coverage), "type": "incomplete"}]
        details += [{"loc": ["pages", str(step)], "msg": code, "type": "page_failed"} for step, code in plan.failed]
        lacks = "is" if coverage.collected < (coverage.expected or 0) else "may be"  # all stated products are no proof
        raise ExtractionFailed(f"The category {lacks} incomplete: {coverage}.", details=details, reason="incomplete")

    def _new_products(self, target: Target, plan: Plan, page: ListingPage, data: Data) -> Data | None:
        """Return the page with its new products only, and push the crawl's next pages as follow-up targets.

        Return None if no product is new, except for the requested target: an empty category has a record, too.
        """
        assert isinstance(target.params, CategoryParams)
        fact = plan.take(_step(target.params), _facts(page, data, target.params))
        self._push(target, plan, fact)
        if not fact.ids and target.parent is not None:
            return None
        by_id = {each["item_id"]: each for each in reversed(data["products"])}
        products = [by_id[item_id] for item_id in fact.ids]
        return {**data, "products": products, "returned": len(products)}

    def _push(self, target: Target, plan: Plan, fact: Fact) -> None:
        """Push the pages to request after the result of a page. If the crawl has ended incomplete, push its report."""
        self.tracker.note(target, fact.model_dump(mode="json"))
        steps = plan.next()
        if not plan.open and plan.coverage.reasons:
            steps = [Step(plan.root)]
        for step in steps:
            self.tracker.push(_followup(target, step))

    def target_failing(self, target: Target, error: ScrapeError, has_note: bool) -> bool:  # noqa: FBT001  # receives the signal
        """Continue an exhaustive crawl without a page that failed. Return whether the outcome is left to the category.

        The failures of the first page, of a report and of the product's own code remain the outcomes of their targets.
        """
        plan = self._plans.get(target.root or "")
        if plan is None or has_note or isinstance(error, ShuttingDown) or _is_report(target, plan):
            return False
        step = _step(target.params)
        logger.info("page_failed", page=str(step), code=error.code, reason=error.reason)
        self.lanes.remember(target, error)
        self._push(target, plan, plan.fail(step, error.code))
        return target.parent is not None and type(error) is not ServiceError

    def target_completed(self, outcome: Outcome) -> None:
        super().target_completed(outcome)
        target = outcome.target
        if not isinstance(target, Target) or (plan := self._plans.get(target.root or "")) is None:
            return
        if outcome.error is not None and outcome.note is not None:
            plan.release(outcome.note["ids"])
        if not plan.open and (_is_report(target, plan) or not plan.coverage.reasons):
            logger.info("exhaustive_done", category=str(plan.root), result=str(plan.coverage), requests=plan.requests)
            del self._plans[target.root or ""]

    def restore(self, root: str | None, notes: list[tuple[str, dict[str, Any]]], pending: list[Target]) -> list[Target]:
        if root is None or not notes:
            return pending
        facts = [(code, Fact.model_validate(note)) for code, note in notes]
        plan = self._plans[root] = self._new_plan(facts[0][1].step.part)
        for code, fact in facts:
            plan.add(fact, stored=code == "OK")
        reports = [target for target in pending if _is_report(target, plan)]
        pages = [target for target in pending if target not in reports]
        plan.open.update(_step(target.params) for target in pages)
        requested = Target(root, self.scrapers[0], CategoryParams(cat_id=plan.root.cat_id), batch=True, root=root)
        pages += [_followup(requested, step) for step in plan.next()]
        return pages + (reports[:1] if not plan.open and plan.coverage.reasons else [])

    @property
    def status_lines(self) -> list[str]:
        return [str(plan) for plan in self._plans.values() if plan.open]


def _is_report(target: Target, plan: Plan) -> bool:
    """Whether a follow-up requests no page, and only reports that an exhaustive crawl has ended without all products.

    Such a follow-up has the params of the category's first page.
    """
    return target.parent is not None and _step(target.params) == Step(plan.root)


def _step(params: BaseModel) -> Step:
    """Return the slice and the page number that a target's params select."""
    assert isinstance(params, CategoryParams)
    low, high = (_cents(price) for price in (params.min_price, params.max_price))
    return Step(Slice(params.category, low, high, params.sort), params.page)


def _followup(target: Target, step: Step) -> Target:
    """Return a follow-up target for a page of a slice."""
    part, page = step
    low, high = (None if cents is None else cents / 100 for cents in (part.low, part.high))
    return target.followup(page=page, cat_id=part.cat_id, url=None, sort=part.sort, min_price=low, max_price=high)


def _facts(page: ListingPage, data: Data, params: CategoryParams) -> Page:
    """Return the facts of a page that a plan needs."""
    requested = PriceFilter(params.min_price, params.max_price)
    return Page(
        rows=[
            Row(
                each["item_id"],
                _cents(each["price"]["current_price"]),
                each["category_path"].replace("/", "_"),
                each["is_sponsored"],
            )
            for each in data["products"]
        ],
        has_more=data["has_more"],
        total=data["total_results"],
        children=[cat_id for cat_id, _ in page.subcategories],
        ignores_filter=ignores(requested, page.stated_prices, data["products"]),
        is_proven=not page.unproven,
        lost_rows=sum(each.rows for each in page.unread if each.loses_rows),
    )


def _cents(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * 100)
