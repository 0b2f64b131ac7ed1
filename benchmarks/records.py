"""Records for benchmarks of what stores them: those of a fixture, with an id of its own for each product."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

from benchmarks.stack import ROOT
from crawler.registry import find_scraper
from crawler.targets.target import Record, Target

SCRAPER = find_scraper("retail-search-v4")
PRODUCTS = "products"
FIXTURE = "search"
RECORD = ROOT / "tests/fixtures/crawler.platforms.retail.pages.SearchPage" / FIXTURE / "output.json"


def records(products: int, first: int = 0) -> Iterator[Record]:
    """Yield records until they have the given number of products in all.

    ``first``: the number from which the products' ids are counted.
    """
    data = orjson.loads(RECORD.read_bytes())
    params = SCRAPER.params(query="mustard")
    for start in range(first, first + products, len(data[PRODUCTS])):
        listed = data[PRODUCTS][: first + products - start]
        rows = [{**product, "item_id": str(start + number)} for number, product in enumerate(listed)]
        target = Target(f"page-{start}", SCRAPER, params, batch=True)
        yield SCRAPER.item({**data, PRODUCTS: rows}, target, datetime.now(UTC))
