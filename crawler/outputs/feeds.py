"""What a crawl writes: the data of its targets, and one line for each target that has none.

A feed that cannot be written is never a matter of the log alone: it ends the run, or makes the exit code say so.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

import orjson
from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.exporters import BaseItemExporter, CsvItemExporter
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage

from crawler.outputs.columns import Fields, shape_of_models
from crawler.targets.target import Record, Rejected
from crawler.targets.tracker import Outcome, target_of, target_settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import Settings

    from crawler.outputs.columns import Place
    from crawler.spiders.base import PlatformSpider

GZIP = "scrapy.extensions.postprocessing.GzipPlugin"
FAILED = "feedexport/failed_count/{}"
"""Scrapy's stat for what a feed could not write."""


class JsonLinesExporter(BaseItemExporter):
    """JSON Lines as UTF-8, the same bytes for ``data`` as the endpoint's (Scrapy's own escapes what is not ASCII)."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.file = file

    def export_item(self, item: Any) -> None:
        line = item if isinstance(item, dict) else ItemAdapter(item).asdict()
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


class CsvExporter(CsvItemExporter):
    """CSV whose columns come from the data model, not from the first item; lists and objects are cells of JSON."""

    def __init__(self, file: Any, *, fields: Fields | None = None, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.fields = fields

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> CsvExporter:
        spider = cast("PlatformSpider", crawler.spider)
        place = spider.exploded
        fields = place.fields if place else shape_of_models([scraper.data for scraper in spider.scrapers])
        return cls(file, fields=fields, **kwargs)

    def export_item(self, item: Any) -> None:
        if not self.fields_to_export and self.fields and not (isinstance(item, Record) and item.is_line):
            self.fields_to_export = list(dict.fromkeys([*item, *self.fields.of]))
        super().export_item(item)

    def serialize_field(self, field: Any, name: str, value: Any) -> Any:
        if isinstance(value, dict | list | bool):
            return orjson.dumps(value).decode()
        return super().serialize_field(field, name, value)


def exploded_rows(record: Record, place: Place) -> Iterator[dict[str, Any]]:
    """One row for each row of a list in the record's data, with what joins it to its target."""
    target = record.target.as_dict()
    for position, row in enumerate(place.rows(record.data)):
        yield {
            "target_id": target["id"],
            "scraper": target["scraper"],
            "params": target["params"],
            "fetched_at": record.fetched_at.isoformat(),
            "position": position,
            **row,
        }


class Feeds(FeedExporter):
    """Scrapy's feed exporter, gzipped where the name ends in ``.gz``, and with failures that are seen.

    Scrapy logs what could not be written and ends as if all were well; here the exit code is that of a broken run.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._ending: asyncio.Task[None] | None = None
        try:
            super().__init__(crawler)
        except NotConfigured:
            if self.settings["FEEDS"]:
                raise RuntimeError("The feeds cannot be written as they are set; the log says why.") from None
            raise
        for uri, options in self.feeds.items():
            if uri.endswith(".gz"):
                options.setdefault("postprocessing", [GZIP])

    def open_spider(self, spider: Spider) -> None:
        """Opens the feeds.

        Raises:
            CloseSpider: one of them cannot be written at all.
        """
        super().open_spider(spider)
        for slot in self.slots:
            problem = _problem(slot)
            if problem:
                self.slots.remove(slot)  # an empty feed would be written in the end
                raise CloseSpider(problem)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        feeds = super().from_crawler(crawler)
        crawler.signals.connect(feeds.target_settled, target_settled)
        return feeds

    def target_settled(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Writes a target's record, as one item or as the rows that ``-a explode=`` names."""
        if outcome.record is None:
            return
        rows = [outcome.record] if spider.exploded is None else exploded_rows(outcome.record, spider.exploded)
        for row in rows:
            self._export(row, spider)

    def item_scraped(self, item: Any, spider: Spider, response: Response | None = None) -> None:
        """Writes an item of a spider that has no targets. A target's record is written when its outcome is known."""
        if target_of(response) is None:
            self._export(item, spider)

    def _export(self, item: Any, spider: Spider) -> None:
        try:
            super().item_scraped(item, spider)
        except OSError as error:  # no space, no right: it would be the same with all that come
            self._count_failure("write")
            assert self.crawler.engine is not None
            if self._ending is None:
                end = self.crawler.engine.close_spider_async(reason=f"a feed cannot be written: {error}")
                self._ending = asyncio.create_task(end)
            raise
        except Exception:
            self._count_failure("item")
            raise

    async def _close_slot(self, slot: FeedSlot, spider: Spider) -> None:
        """Scrapy's own counts what a storage refuses, but not what the exporter cannot finish."""
        try:
            await super()._close_slot(slot, spider)
        except Exception:
            self._count_failure("finish")
            raise

    def _count_failure(self, what: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(FAILED.format(what))


def _problem(slot: FeedSlot) -> str | None:
    """Why a feed cannot be written at all."""
    if slot.format != "parquet":
        return None
    if find_spec("pyarrow") is None:
        return "Parquet feeds need pyarrow: install the extra 'parquet'"
    if isinstance(slot.storage, FileFeedStorage) and slot.storage.write_mode == "ab":
        path = Path(slot.storage.path)
        if path.is_file() and path.stat().st_size:
            return f"nothing can be added to a Parquet file: use -O, or another name than {path}"
    return None


class FailuresFeed(Feeds):
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
        feed = {"format": "jsonlines", "store_empty": False, "batch_item_count": 0}
        self._settings.set("FEEDS", {settings["FAILURES_FEED"]: feed}, priority="cmdline")

    def target_settled(self, outcome: Outcome, spider: Spider) -> None:
        """Writes the line of a failed target."""
        if outcome.error is not None:
            self._export(failure_line(outcome), spider)


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


def uri_params(params: dict[str, Any], spider: Spider) -> dict[str, Any]:
    """Scrapy's placeholders of feed URIs, and ``%(job)s``: the job's id on Scrapyd, else the time."""
    return {**params, "job": getattr(spider, "_job", params["time"])}
