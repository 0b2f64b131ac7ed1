"""Retail: category listings and searches. One page per target; further pages and slices are targets of their own."""

from __future__ import annotations

from typing import Any, Self

import structlog
from pydantic import Field, model_validator
from scrapy import Request
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.platforms.retail.exhaustive import ExhaustiveCrawl, Slice
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.platforms.retail.requests import listing_request
from crawler.platforms.retail.schema import CategoryParams, Listing, SearchListing, SearchParams, category_of_url
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.target import Outcome, Scraper, Target

logger = structlog.get_logger(__name__)


class RetailArguments(CrawlArguments):
    """The params of both scrapers, as text, and what only a crawl can do."""

    cat_id: str | None = None
    """Category id: numbers joined by underscores."""
    url: str | None = None
    """URL of a category page, instead of the id."""
    query: str | None = None
    """What to search for."""
    page: str | None = None
    """Page to start with, from 1."""
    sort: str | None = None
    """Order of the products."""
    min_price: str | None = None
    """Lowest price, inclusive."""
    max_price: str | None = None
    """Highest price, inclusive."""
    exhaustive: bool = Field(default=False, json_schema_extra={"group": "crawl"})
    """Collect the whole category, beyond what one listing serves; each product once."""

    @model_validator(mode="after")
    def _a_sweep_is_not_resumed(self) -> Self:
        if self.exhaustive and (self.resume or self.queue):
            raise ValueError(
                "what an exhaustive crawl has found is kept in memory: leave out exhaustive, or resume and queue"
            )
        if self.exhaustive and self.query:
            raise ValueError("only a category can be collected whole: leave out exhaustive, or give cat_id")
        return self


class RetailSpider(Args[RetailArguments], PlatformSpider):
    """Category listings and search results of the retail platform."""

    name = "retail"
    metadata = {"title": "Retail", "description": "Category listings and search results with prices."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="retail-category-v4",
            platform="retail",
            summary="One page of a category listing: products with price, rating, seller and availability.",
            params=CategoryParams,
            data=Listing,
            example={"cat_id": "976759"},
            pages=(ListingPage,),
        ),
        Scraper(
            name="retail-search-v4",
            platform="retail",
            summary="One page of search results, in the shape of a category listing.",
            params=SearchParams,
            data=SearchListing,
            example={"query": "mustard"},
            pages=(SearchPage,),
        ),
    )
    args: RetailArguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sweeps: dict[str, tuple[ExhaustiveCrawl, Slice]] = {}

    def request(self, target: Target) -> Request:
        params = target.params
        if self.args.exhaustive and target.parent is None and isinstance(params, CategoryParams):
            sweep = ExhaustiveCrawl(params.category, self.settings.getint("LISTING_CEILING"))
            self._sweeps[target.id] = (sweep, sweep.begin())
        if isinstance(params, CategoryParams):
            asked = {"cat_id": params.category, **params.model_dump(exclude={"cat_id", "url"})}
            return self.for_page(ListingPage, listing_request(self.origin(), **asked))
        return self.for_page(SearchPage, listing_request(self.origin(), **params.model_dump()))

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        asked = super().page_params(scraper, arguments)
        url = asked.pop("url", None)
        return asked if url is None else {**asked, "cat_id": category_of_url(url)}

    async def scrape(self, target: Target, first: First) -> Data:
        """A page of a category or of search results; what follows from it is pushed as further targets."""
        page = await first.page(ListingPage)
        data = await page.to_item()
        if target.id in self._sweeps:
            return self._sweep(target, data, page)
        if data["has_more"]:
            self.follow(target, data, page=data["page"] + 1)
        return data

    def _sweep(self, target: Target, data: Data, page: ListingPage) -> Data:
        """Hands the page's products out once each, and pushes the slice's next page or the slices it is cut into."""
        sweep, part = self._sweeps.pop(target.id)
        products = sweep.take(part, data["products"])
        if data["page"] > 1 or sweep.fits(part, data["total_results"] or 0):
            if data["has_more"] and not sweep.complete:
                following = target.followup(page=data["page"] + 1)
                self._sweeps[following.id] = (sweep, part)
                self.tracker.push(following)
            else:
                self._push(target, sweep, sweep.close(part))
        else:
            prices = [p["price"]["current_price"] for p in data["products"] if p["price"]["current_price"] is not None]
            children = [cat_id for cat_id, _ in page.subcategories]
            self._push(target, sweep, sweep.split(part, data["total_results"], prices, page.price_bounds, children))
        if sweep.finished:
            sweep.log_end()
        return {**data, "products": products, "returned": len(products)}

    @property
    def status_lines(self) -> list[str]:
        return [str(sweep) for sweep in {id(sweep): sweep for sweep, _ in self._sweeps.values()}.values()]

    def _push(self, target: Target, sweep: ExhaustiveCrawl, parts: list[Slice]) -> None:
        for part in parts:
            following = target.followup(
                page=1,
                cat_id=part.cat_id,
                url=None,
                sort=part.sort,
                min_price=None if part.low is None else part.low / 100,
                max_price=None if part.high is None else part.high / 100,
            )
            self._sweeps[following.id] = (sweep, part)
            self.tracker.push(following)

    def target_completed(self, outcome: Outcome) -> None:
        super().target_completed(outcome)
        if outcome.error is not None and isinstance(outcome.target, Target) and outcome.target.id in self._sweeps:
            sweep, part = self._sweeps.pop(outcome.target.id)
            self._push(outcome.target, sweep, sweep.fail(part))
            if sweep.finished:
                sweep.log_end()
