"""Retail: the spider for category listings and searches. Each target is one page; the next pages are follow-ups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn, Self

from pydantic import Field, model_validator
from scrapy import Request
from scrapy.crawler import Crawler

from crawler.errors import ExtractionFailed, ScrapeError, ShuttingDown
from crawler.items import RetailCategoryV4Item, RetailSearchV4Item
from crawler.platforms.links import LinkError, read_link
from crawler.platforms.retail.exhaustive import ExhaustiveCrawl
from crawler.platforms.retail.pages import ALWAYS_SERVED, PAGE_PATH, ListingPage, SearchPage
from crawler.platforms.retail.requests import listing_request
from crawler.platforms.retail.schema import DEFAULT_SORT, CategoryParams, Listing, SearchListing, SearchParams
from crawler.platforms.retail.slices import PageRead, Row, Slice, Step, Taken
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.exceptions import LimitReached
from crawler.targets.target import Outcome, Scraper, Target
from crawler.targets.tracker import target_failing
from crawler.targets.warning import OutcomeWarning


class RetailArguments(CrawlArguments):
    """The ``-a`` arguments of a retail crawl, and the params that are needed to validate these arguments."""

    query: str | None = None
    """Words to search for."""
    url: str | None = None
    """URL of a category page or of a search, instead of ``cat_id`` or ``query``."""
    exhaustive: bool = Field(default=False, json_schema_extra={"group": "crawl"})
    """Whether to collect all products in a category, each once, although one listing contains only some of them."""

    max_requests: int | None = Field(default=None, ge=1, json_schema_extra={"group": "crawl"})
    """Maximum number of pages of an exhaustive crawl, per category."""

    @model_validator(mode="after")
    def _validate_exhaustive(self) -> Self:
        if self.exhaustive and "max_pages" in self.model_fields_set:
            raise ValueError("an exhaustive crawl reads all pages: leave out max_pages")
        if self.exhaustive and (self.query or self._url_is_search):
            raise ValueError("only a category can be collected exhaustively: leave out exhaustive, or give cat_id")
        if self.max_requests is not None and not self.exhaustive:
            raise ValueError("max_requests limits exhaustive crawls: add exhaustive=true, or use max_pages")
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
        self._crawls: dict[str, ExhaustiveCrawl] = {}
        """Id of the requested target -> its exhaustive crawl, while this is in progress."""

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
            return self.for_page(SearchPage, listing_request(self.origin(), **arguments))
        if self.args.exhaustive:
            params = self._begin(target, params)
        arguments = {"cat_id": params.category, **params.model_dump(exclude={"cat_id", "url"})}
        request = listing_request(self.origin(), **arguments)
        if self.args.exhaustive:  # the plan itself compares the prices with the slice, over all of its pages
            for name in ("min_price", "max_price"):
                del request.meta["page_params"][name]
        return self.for_page(ListingPage, request)

    def _begin(self, target: Target, params: CategoryParams) -> CategoryParams:
        """Return the params of the page to request for a target of an exhaustive crawl.

        For a requested target, begin its exhaustive crawl at the first page, in the default order.

        Raises:
            LimitReached: the target only reports the end of its crawl, which has reached ``max_requests``.
            ExtractionFailed: the target only reports the end of its crawl, which has not found all products.
        """
        if target.parent is None:
            root = replace(slice_of(params), sort=DEFAULT_SORT)
            self._crawls[target.root or target.id] = new = self._new_crawl(root)
            new.begin()
            return params.model_copy(update={"page": 1, "sort": DEFAULT_SORT})
        crawl = self._crawls.get(target.root or "")
        if crawl and _is_report(target, crawl):
            self._report(target, crawl)
        return params

    def _report(self, target: Target, crawl: ExhaustiveCrawl) -> NoReturn:
        """Raise the error of a crawl that has ended without all products: see ``_begin``."""
        coverage = crawl.coverage
        self.tracker.warn(target, OutcomeWarning.of_coverage(ListingPage.source, coverage))
        if crawl.left_out:
            found = f"{coverage.collected:,} of about {coverage.expected or 0:,} products found"
            raise LimitReached(f"max_requests={self.args.max_requests} reached: {found}.", reason="max_requests")
        raise ExtractionFailed(
            f"The category is incomplete: {coverage}.",
            details=[{"loc": [*PAGE_PATH, "aggregatedCount"], "msg": str(coverage), "type": "incomplete"}],
            reason="incomplete",
        )

    def _new_crawl(self, root: Slice) -> ExhaustiveCrawl:
        return ExhaustiveCrawl(root, self.settings.getint("LISTING_CEILING"), self.args.max_requests)

    def restore(self, root: str | None, notes: list[tuple[str, dict[str, Any]]], pending: list[Target]) -> list[Target]:
        if root is None or not notes:
            return pending
        crawl = self._crawls[root] = self._new_crawl(Slice(*notes[0][1]["slice"]))  # the slice of the first page
        for code, note in notes:
            crawl.restore(note, stored=code == "OK")
        return self._resumed(crawl, root, pending)

    def _resumed(self, crawl: ExhaustiveCrawl, root: str, pending: list[Target]) -> list[Target]:
        """Return targets for a category's pending pages, and for the pages that ``max_requests`` excluded before.

        If no page is left and products are missing, return the pending target that reports this.
        """
        mine = [(target, _step(target, crawl)) for target in pending]
        steps = crawl.resume([step for _, step in mine])
        requested = Target(root, self.scrapers[0], CategoryParams(cat_id=crawl.root.cat_id), batch=True, root=root)
        pages = [target for target, step in mine if not crawl.is_report(step)]
        pages += [_followup(requested, step) for step in steps]
        reports = [target for target, step in mine if crawl.is_report(step)]
        return pages + (reports[:1] if crawl.reported else [])

    async def scrape(self, target: Target, first: First) -> Data | None:
        """Return a page of a category or of search results. The next page becomes a follow-up (see ``follow``)."""
        crawl = self._crawls.get(target.root or "")
        if crawl and isinstance(target.params, CategoryParams):
            return await self._scrape_slice(target, crawl, first)
        page = await first.page(ListingPage)
        data = await page.to_item()
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

    async def _scrape_slice(self, target: Target, crawl: ExhaustiveCrawl, first: First) -> Data | None:
        """Return the page with its new products only, and push the crawl's next pages as follow-up targets.

        Return None if no product is new, except for the requested target: an empty category has a record, too.
        """
        part, number = _step(target, crawl)
        try:
            page = await first.page(ListingPage)
            data = await page.to_item()
        except ShuttingDown:
            raise
        except ScrapeError:
            self._push(target, crawl.fail(part, number))
            raise
        taken = crawl.take(part, _read(page, data, number))
        self._push(target, taken)
        if not taken.fresh and target.parent is not None:
            return None
        by_id = {each["item_id"]: each for each in reversed(data["products"])}
        products = [by_id[item_id] for item_id in taken.fresh]
        return {**data, "products": products, "returned": len(products)}

    def _push(self, target: Target, taken: Taken) -> None:
        self.tracker.note(target, taken.note)
        for step in taken.steps:
            self.tracker.push(_followup(target, step))

    @property
    def status_lines(self) -> list[str]:
        return [str(crawl) for crawl in self._crawls.values() if not crawl.finished]

    def target_failing(self, target: Target, error: ScrapeError, has_note: bool) -> None:  # noqa: FBT001  # receives the signal
        """Continue the exhaustive crawl without a target that failed outside ``scrape()``, by a deadline or a bug."""
        crawl = self._crawls.get(target.root or "")
        if crawl is None or has_note or isinstance(error, ShuttingDown):
            return
        if isinstance(target.params, CategoryParams) and not _is_report(target, crawl):
            self._push(target, crawl.fail(*_step(target, crawl)))

    def target_completed(self, outcome: Outcome) -> None:
        super().target_completed(outcome)
        target = outcome.target
        if not isinstance(target, Target) or target.root not in self._crawls:
            return
        crawl = self._crawls[target.root]
        reported = isinstance(target.params, CategoryParams) and _is_report(target, crawl)
        if outcome.error is not None and outcome.note is not None:
            crawl.release(outcome.note.get("ids", ()))
        if crawl.finished and (reported or not crawl.reported):
            crawl.log_end()
            del self._crawls[target.root]


def _is_report(target: Target, crawl: ExhaustiveCrawl) -> bool:
    """Whether a target requests no page, and only reports that an exhaustive crawl has ended without all products."""
    return target.parent is not None and crawl.is_report(_step(target, crawl))


def _step(target: Target, crawl: ExhaustiveCrawl) -> Step:
    """Return the slice and the page number that a target of an exhaustive crawl requests."""
    assert isinstance(target.params, CategoryParams)
    return Step(crawl.root) if target.parent is None else Step(slice_of(target.params), target.params.page)


def _read(page: ListingPage, data: Data, number: int) -> PageRead:
    """Return the values of a page that an exhaustive crawl needs."""
    low, high = (_cents(price) for price in page.stated_prices)
    return PageRead(
        number=number,
        total=data["total_results"] or 0,
        has_more=data["has_more"],
        rows=[
            Row(each["item_id"], _cents(each["price"]["current_price"]), each["is_sponsored"])
            for each in data["products"]
        ],
        children=[cat_id for cat_id, _ in page.subcategories],
        selected=(low, high),
        lost_rows=sum(each.rows for each in page.unread if each.loses_rows),
    )


def _cents(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * 100)


def _followup(target: Target, step: Step) -> Target:
    """Return a follow-up target for a page of a slice."""
    part, page = step
    return target.followup(
        page=page,
        cat_id=part.cat_id,
        url=None,
        sort=part.sort,
        min_price=None if part.low is None else part.low / 100,
        max_price=None if part.high is None else part.high / 100,
    )


def slice_of(params: CategoryParams) -> Slice:
    """Return the slice that a target's params describe."""
    low, high = (_cents(price) for price in (params.min_price, params.max_price))
    return Slice(params.category, low, high, params.sort)
