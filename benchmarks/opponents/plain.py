"""A crawl with Scrapy alone: one file that reads the JSON of the page without checks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from scrapy import Request, Spider
from scrapy.http import Response


class PlainSpider(Spider):
    """Requests the pages of a targets file, and reads the JSON in them."""

    name = "plain"
    targets: str
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each line."""
        with Path(self.targets).open() as lines:  # noqa: ASYNC230  # as plain spiders do
            for line in lines:
                target = json.loads(line)
                page = f"page={target['page']}&" if target["page"] > 1 else ""
                url = f"{self.origin}/browse/{target['cat_id']}?{page}max_price={target['max_price']:.2f}"
                yield Request(url, dont_filter=True, callback=self.parse_page, cb_kwargs={"page": target["page"]})

    def parse_page(self, response: Response, page: int) -> Iterator[dict[str, Any]]:
        """Yield the listing of a page."""
        data = json.loads(response.css("script#__NEXT_DATA__::text").get(""))
        listing: dict[str, Any] = data["props"]["pageProps"]["initialData"]["searchResult"]
        last = listing["paginationV2"]["maxPage"]
        yield {
            "breadcrumbs": listing.get("breadCrumb", []),
            "cat_id": listing["catInfo"]["catId"],
            "category_name": listing["catInfo"]["name"],
            "has_more": page < last,
            "heading": response.css("h1::text").get(),
            "max_page": last,
            "page": page,
            "products": [
                product(row)
                for stack in listing["itemStacks"]
                for row in stack.get("items") or stack.get("itemsV2") or []
                if row["__typename"] == "Product"
            ],
            "sort": listing["paginationV2"]["pageProperties"].get("sort"),
            "title": response.css("title::text").get(),
            "total_results": listing["aggregatedCount"],
            "url": response.url,
        }


def product(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a product."""
    groups = row.get("badges", {}).get("groupsV2") or []
    contents = [part for group in groups for member in group["members"] for part in member.get("content") or []]
    return {
        "availability": row.get("availabilityStatusV2"),
        "badges": [part["value"] for part in contents if part["type"] == "TEXT"],
        "category_path": (row.get("category") or {}).get("categoryPathId"),
        "condition": (row.get("conditionV2") or {}).get("code"),
        "fulfillment_type": row.get("fulfillmentType"),
        "image": (row.get("imageInfo") or {}).get("thumbnailUrl"),
        "is_preowned": row.get("isPreowned"),
        "is_sponsored": row.get("isSponsoredFlag"),
        "item_id": row["usItemId"],
        "name": row["name"],
        "offer_id": row.get("offerId"),
        "price": price(row.get("priceInfo") or {}),
        "product_id": row.get("id"),
        "rating": {"average": row.get("averageRating"), "review_count": row.get("numberOfReviews")},
        "seller": {"id": row.get("sellerId"), "name": row.get("sellerName")},
        "short_description": row.get("shortDescription"),
        "url": urljoin("https://www.example.com", row.get("canonicalUrl")),
        "variant_count": len(row.get("variantList") or []),
    }


def price(info: dict[str, Any]) -> dict[str, Any]:
    """Return the prices of one of the page's three layouts."""
    lines = (info.get("priceDetails") or {}).get("priceLines")
    if lines:
        return {f"{line['lineType']} {each['key']}": each["value"] for line in lines for each in line["values"]}
    current = info.get("linePrice") or (info.get("currentPrice") or {}).get("price")
    return {"current_price": current, "price_range": info.get("priceRangeString")}
