"""What a crawl writes: the data of its targets, and one line for each target that has none."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import orjson
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.exporters import BaseItemExporter
from scrapy.extensions.feedexport import FeedExporter

from crawler.items import Record
from crawler.outcomes import Outcome, target_settled
from crawler.targets import Rejected

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings


class JsonLinesExporter(BaseItemExporter):
    """JSON Lines as UTF-8, the same bytes for ``data`` as the endpoint's (Scrapy's own escapes what is not ASCII)."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.file = file

    def export_item(self, item: Record | dict[str, Any]) -> None:
        line = item.feed_line() if isinstance(item, Record) else item
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


class FailuresFeed(FeedExporter):
    """A second feed exporter, for the outcomes that are errors: ``FAILURES_FEED`` is the only feed that it knows."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FailuresFeed:
        if not crawler.settings["FAILURES_FEED"]:
            raise NotConfigured
        feed = cls(crawler)
        crawler.signals.connect(feed.open_spider, signals.spider_opened)
        crawler.signals.connect(feed.close_spider, signals.spider_closed)
        crawler.signals.connect(feed.target_settled, target_settled)
        return feed

    @property
    def settings(self) -> Settings:
        """The crawler's settings, in which the failures feed is the only feed."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings.copy()
        self._settings.set("FEED_URI", None, priority="cmdline")
        feed = {"format": "jsonlines", "store_empty": False}
        self._settings.set("FEEDS", {settings["FAILURES_FEED"]: feed}, priority="cmdline")

    def target_settled(self, outcome: Outcome, spider: Spider) -> None:
        """Writes the line of a failed target."""
        if outcome.error is not None:
            self.item_scraped(failure_line(outcome), spider)


def failure_line(outcome: Outcome) -> dict[str, Any]:
    """What is known of a failed target, so that it can be understood, mended and sent again."""
    target, error = outcome.target, outcome.error
    assert error is not None
    return {
        **target.as_dict(),
        "parent": None if isinstance(target, Rejected) else target.parent,
        "line": target.line,
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "details": error.details,
        "upstream": error.as_dict()["upstream"],
    }
