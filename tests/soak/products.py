"""Many products in pages of search results, and a program that writes them to a database.

``python -m tests.soak.products NUMBER URL`` writes each page in a transaction of its own, and prints the peak of the
process's memory in MB, and its processor seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

from crawler.outputs.feed_files import open_database, split_password
from crawler.registry import find_scraper
from crawler.targets.target import Target
from tests.crawls import ROOT

SCRAPER = find_scraper("retail-search-v4")
OF_PAGE = 40
RECORD = ROOT / "tests/fixtures/crawler.platforms.retail.pages.SearchPage/search/output.json"


def pages(number: int) -> Iterator[dict[str, Any]]:
    """Yield the data of pages, until they have so many products. Each product has an id of its own."""
    data = json.loads(RECORD.read_bytes())
    for start in range(0, number, OF_PAGE):
        products = zip(range(start, start + OF_PAGE), cycle(data["products"]))
        yield {
            **data,
            "products": [{**each, "item_id": str(item_id), "is_sponsored": False} for item_id, each in products],
        }


def write(number: int, url: str) -> None:
    """Write products to a database."""
    database = open_database(*split_password(url))
    database.prepare([SCRAPER])
    params = SCRAPER.params.model_validate({"query": "mustard"})
    for page, data in enumerate(pages(number)):
        record = SCRAPER.item(data, Target(f"page-{page}", SCRAPER, params, batch=True), datetime.now(UTC))
        database.write([{**record.provenance(), "data": record.data}])
    database.close()


def peak_megabytes() -> float:
    """The peak of this process's memory. ``ru_maxrss`` would include the memory of the process that has started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
    sys.stdout.write(f"{peak_megabytes()} {time.process_time()}")
