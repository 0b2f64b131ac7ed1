"""A Scrapy extension for the service's crawlers: writes the platform and source of each download to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

ENABLED = 'EXTENSIONS={"downloads_log.DownloadsLog": 500}'
"""The setting that enables the extension. The setting ``DOWNLOADS_LOG`` names the file to write."""


class DownloadsLog:
    """Appends the line ``<platform> <source>`` for each downloaded response, including redirects."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DownloadsLog:
        log = cls(Path(crawler.settings["DOWNLOADS_LOG"]))
        crawler.signals.connect(log.response_downloaded, signals.response_downloaded)
        return log

    def response_downloaded(self, request: Request, spider: Spider) -> None:
        with self.path.open("a") as file:
            file.write(f"{spider.name} {request.meta['source']}\n")
