"""For crawls of many targets: a download handler that uses no network, and an extension that records memory use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import HtmlResponse

from crawler.targets.reporter import target_completed

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

PRODUCT = {"__typename": "Product", "usItemId": "1", "id": "A", "name": "Invented", "canonicalUrl": "/ip/invented/1"}


class InstantHandler(BaseDownloadHandler):
    """Responds to every listing request immediately with a page of one product."""

    async def download_request(self, request: Request) -> Response:
        found = re.search(r"/browse/([\d_]+)", request.url)
        page = {
            "cat_id": found.group(1) if found else "0",
            "page": 1,
            "sort": "best_match",
        }
        listing = {
            "paginationV2": {"maxPage": 1, "pageProperties": page},
            "aggregatedCount": 1,
            "itemStacks": [{"layoutEnum": "GRID", "items": [PRODUCT]}],
        }
        data = {"props": {"pageProps": {"initialData": {"searchResult": listing}}}}
        body = b'<html><script id="__NEXT_DATA__" type="application/json">' + orjson.dumps(data) + b"</script></html>"
        return HtmlResponse(request.url, body=body, encoding="utf-8")


class MemoryLog:
    """Appends ``<targets completed> <resident kB>`` to the file in the setting ``MEMORY_LOG``, every 10,000 targets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.completed = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MemoryLog:
        log = cls(Path(crawler.settings["MEMORY_LOG"]))
        crawler.signals.connect(log.target_completed, target_completed)
        return log

    def target_completed(self) -> None:
        """Count a target, and write a line at intervals."""
        self.completed += 1
        if self.completed % 10_000 == 0:
            resident = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
            assert resident
            with self.path.open("a") as file:
                file.write(f"{self.completed} {resident.group(1)}\n")
