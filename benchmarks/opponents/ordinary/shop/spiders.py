"""An ordinary spider, as a user of scrapyrt writes it: Scrapy and JSON, nothing of this project."""

import json
from collections.abc import Iterator
from typing import Any

from scrapy import Spider
from scrapy.http import Response


class SearchSpider(Spider):
    """Yields the products of a page of search results."""

    name = "search"

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield one item per product."""
        data = json.loads(response.css("script#__NEXT_DATA__::text").get(""))
        for stack in data["props"]["pageProps"]["initialData"]["searchResult"]["itemStacks"]:
            for row in stack["items"]:
                if row["__typename"] == "Product" and stack["meta"]["subType"] != "SECONDARY_STACK":
                    price = row["priceInfo"]["priceDetails"] or {"priceLines": []}
                    yield {
                        "item_id": row["usItemId"],
                        "name": row["name"],
                        "url": response.urljoin(row["canonicalUrl"]),
                        "prices": {line["lineType"]: line["values"][0]["value"] for line in price["priceLines"]},
                        "rating": row["averageRating"],
                        "availability": row["availabilityStatusV2"]["value"],
                    }
