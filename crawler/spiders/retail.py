"""Retail: the spider for category listings and searches. Each target is one page; further pages become new targets."""

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
    """The spider arguments: the params of both scrapers as text, and arguments that only crawls have."""

    cat_id: str | None = None
    """Category id: numbers joined by underscores."""
    url: str | None = None
    """URL of a category page, instead of the id."""
    query: str | None = None
    """Words to search for."""
    page: str | None = None
    """Page to start with, from 1."""
    sort: str | None = None
    """Order of the products."""
    min_price: str | None = None
    """Lowest price, inclusive."""
    max_price: str | None = None
    """Highest price, inclusive."""
    exhaustive: bool = Field(default=False, json_schema_extra={"group": "crawl"})
    """Collect all products in a category, each once, even if a listing serves only some of them."""

    @model_validator(mode="after")
    def _exhaustive_is_not_resumed(self) -> Self:
        if self.exhaustive and (self.resume or self.queue):
            raise ValueError(
                "an exhaustive crawl keeps its progress in memory: leave out exhaustive, or resume and queue"
            )
        if self.exhaustive and self.query:
            raise ValueError("only a category can be collected exhaustively: leave out exhaustive, or give cat_id")
        return self


class RetailSpider(Args[RetailArguments], PlatformSpider):
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
            example={"cat_id": "976759"},
            pages=(ListingPage,),
        ),
        Scraper(
            name="retail-search-v4",
            platform="retail",
            summary="One page of search results, in the format of a category listing.",
            params=SearchParams,
            data=SearchListing,
            example={"query": "mustard"},
            pages=(SearchPage,),
        ),
    )
    args: RetailArguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._exhaustive: dict[str, tuple[ExhaustiveCrawl, Slice]] = {}

    def request(self, target: Target) -> Request:
        params = target.params
        if self.args.exhaustive and target.parent is None and isinstance(params, CategoryParams):
            crawl = ExhaustiveCrawl(params.category, self.settings.getint("LISTING_CEILING"))
            self._exhaustive[target.id] = (crawl, crawl.begin())
        if isinstance(params, CategoryParams):
            arguments = {"cat_id": params.category, **params.model_dump(exclude={"cat_id", "url"})}
            return self.for_page(ListingPage, listing_request(self.origin(), **arguments))
        return self.for_page(SearchPage, listing_request(self.origin(), **params.model_dump()))

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        url = params.pop("url", None)
        return params if url is None else {**params, "cat_id": category_of_url(url)}

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape one page of a category or of search results. Further pages become separate targets."""
        page = await first.page(ListingPage)
        data = await page.to_item()
        if target.id in self._exhaustive:
            return self._scrape_slice(target, data, page)
        if data["has_more"]:
            self.follow(target, data, page=data["page"] + 1)
        return data

    def _scrape_slice(self, target: Target, data: Data, page: ListingPage) -> Data:
        """Return the page's new products. Push the slice's next page, or the slices into which it is split."""
        crawl, part = self._exhaustive.pop(target.id)
        products = crawl.take(part, data["products"])
        if data["page"] > 1 or crawl.fits(part, data["total_results"] or 0):
            if data["has_more"] and not crawl.complete:
                following = target.followup(page=data["page"] + 1)
                self._exhaustive[following.id] = (crawl, part)
                self.tracker.push(following)
            else:
                self._push(target, crawl, crawl.close(part))
        else:
            prices = [p["price"]["current_price"] for p in data["products"] if p["price"]["current_price"] is not None]
            children = [cat_id for cat_id, _ in page.subcategories]
            self._push(target, crawl, crawl.split(part, data["total_results"], prices, page.price_bounds, children))
        if crawl.finished:
            crawl.log_end()
        return {**data, "products": products, "returned": len(products)}

    @property
    def status_lines(self) -> list[str]:
        return [str(crawl) for crawl in {id(crawl): crawl for crawl, _ in self._exhaustive.values()}.values()]

    def _push(self, target: Target, crawl: ExhaustiveCrawl, parts: list[Slice]) -> None:
        for part in parts:
            following = target.followup(
                page=1,
                cat_id=part.cat_id,
                url=None,
                sort=part.sort,
                min_price=None if part.low is None else part.low / 100,
                max_price=None if part.high is None else part.high / 100,
            )
            self._exhaustive[following.id] = (crawl, part)
            self.tracker.push(following)

    def target_completed(self, outcome: Outcome) -> None:
        super().target_completed(outcome)
        if outcome.error is not None and isinstance(outcome.target, Target) and outcome.target.id in self._exhaustive:
            crawl, part = self._exhaustive.pop(outcome.target.id)
            self._push(outcome.target, crawl, crawl.fail(part))
            if crawl.finished:
                crawl.log_end()
