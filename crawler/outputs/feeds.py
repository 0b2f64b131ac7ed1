"""The feed exporter: writes the records and failures of targets to feeds.

If a feed cannot be written, the run's exit code is 1. If further lines would fail too, as on a full disk, the run ends
immediately.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

import structlog
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.extensions.feedexport import (
    FeedExporter,
    FeedSlot,
    FileFeedStorage,
    FTPFeedStorage,
    GCSFeedStorage,
    S3FeedStorage,
)
from scrapy.utils.conf import feed_complete_default_values_from_settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import without_none_values

from crawler.outputs.exporters import UnusableFileError, exploded_rows, failures_table
from crawler.outputs.feed_files import (
    AUTO,
    AUTO_URI,
    OF_BATCHES,
    VARYING,
    Failure,
    SqlStorage,
    WithoutFailures,
    absolute_path,
    failure_line,
    fixed_path,
    holds_lines,
    is_for_failures,
    kind_of,
    placeholders,
    repair_last_line,
)
from crawler.outputs.formats import NAMES
from crawler.outputs.selection import flat_columns
from crawler.storage.files import check_writable
from crawler.targets.reporter import target_completed
from crawler.targets.target import InvalidTarget, Outcome, Target
from crawler.targets.tracker import target_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from crawler.outputs.columns import RecordPath
    from crawler.outputs.selection import Selection
    from crawler.spiders.base import PlatformSpider

GZIP = "scrapy.extensions.postprocessing.GzipPlugin"
FAILED = "feedexport/failed_count/{}"
"""Name of the stats that count errors when feeds are written. Scrapy itself counts those of each kind of storage."""
BUCKETS = {S3FeedStorage: ("boto3", "s3"), GCSFeedStorage: ("google.cloud.storage", "gcs")}
"""The library that each storage of buckets needs, and the extra that installs it."""
logger = structlog.get_logger(__name__)


class Feeds(FeedExporter):
    """Extends Scrapy's feed exporter: writes the outcome of each target, and repairs files before it appends to them.

    If a feed cannot be written, the run's exit code is 1. Scrapy alone would only log the error.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.failed = False
        """Whether writing a feed has failed. After that, no more records are written."""
        self._outcomes: Counter[type] = Counter()
        self._of_failures = [*flat_columns(failures_table().fields)]
        """The columns of tables of failures. Those of the user are added when the targets are open."""
        self._ending: asyncio.Task[None] | None = None
        try:
            super().__init__(crawler)
        except NotConfigured:
            if self.settings["FEEDS"]:
                raise RuntimeError("The feeds cannot be written as configured; the log has the reason.") from None
            if cast("PlatformSpider", crawler.spider).on_demand:
                raise
        if self.settings["FAILURES_FEED"] == AUTO and _is_single(cast("PlatformSpider", crawler.spider)):
            self.feeds.pop(AUTO_URI, None)
        for uri, options in self.feeds.items():
            if uri.endswith(".gz"):
                options.setdefault("postprocessing", [GZIP])
            if not is_for_failures(options):
                self.filters[uri] = WithoutFailures(self.filters[uri])
            elif kind_of(options) in {"table", "book"} and not options["fields"]:
                options["fields"] = self._of_failures  # else these feeds would get the columns of records

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        feeds = super().from_crawler(crawler)
        crawler.signals.connect(feeds.target_completed, target_completed)
        return feeds

    def open_spider(self, spider: Spider) -> None:
        """Prepare the feeds. A database is opened now, the file of a feed when the feed gets its first item.

        Raises:
            CloseSpider: a feed cannot be written, because of an existing file or an unusable database.
        """
        super().open_spider(spider)
        for slot in self.slots:
            error = _problem(slot)
            if error:
                raise CloseSpider(error)
            if isinstance(slot.storage, SqlStorage):
                try:
                    slot.start_exporting()
                except OSError as unusable:
                    raise CloseSpider(str(unusable)) from None

    async def close_spider(self, spider: Spider, reason: str = "finished") -> None:
        """Close the feeds.

        A feed without items is written only if the run completed a valid target, or finished without any targets. This
        prevents a run that was refused from replacing the file of an earlier run with an empty file.
        """
        if self.failed or (not self._outcomes[Target] and (reason != "finished" or self._outcomes[InvalidTarget])):
            for slot in self.slots:
                slot.store_empty = False
        await super().close_spider(spider)

    def end_run(self, reason: str) -> None:
        """End the run with a reason. The feeds get no further records."""
        self.failed = True
        engine = self.crawler.engine
        if self._ending is None and engine is not None and engine.spider is not None:
            self._ending = asyncio.create_task(engine.close_spider_async(reason=reason))

    # Lines

    def target_completed(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Write the outcome of a target to the feeds: its record, its rows with ``-a explode=``, or its failure."""
        if not self._outcomes:
            self._of_failures[:] = flat_columns(failures_table(spider.source.own_columns).fields)
        self._outcomes[type(outcome.target)] += 1
        if self.failed:
            self._write_last_failure(outcome, spider)
            return
        try:
            self._export(_items(outcome, spider.row_path, spider.selection), spider)
        except BrokenPipeError:  # not raised: the run ends here, and Scrapy would log a traceback
            logger.error("output_closed", hint="the reader of the output, such as head, has closed it")  # noqa: TRY400
        except (OSError, UnusableFileError) as error:
            _log_failure(error)

    def _write_last_failure(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Write the failure of a target that was in flight when a feed could not be written and the run ended.

        In a job, nothing is written, because another worker scrapes the target later.
        """
        if outcome.error is None or spider.tracker.leave_unfinished:
            return
        with suppress(OSError):  # the run already ends with an error
            super().item_scraped(Failure(failure_line(outcome)), spider)

    def item_scraped(self, item: Any, spider: Spider, response: Response | None = None) -> None:
        """Write an item that belongs to no target. ``target_completed`` writes the items of targets."""
        if target_of(response) is None and not self.failed:
            self._export([item], spider)

    def _export(self, items: Iterable[Any], spider: Spider) -> None:
        """Write items, and flush local JSON Lines feeds."""
        accepted: dict[FeedSlot, None] = {}
        try:
            for item in items:
                for slot in self.slots:
                    if slot.file is None and slot.filter.accepts(item):
                        self._open(slot)
                before = {slot: slot.itemcount for slot in self.slots}
                try:
                    super().item_scraped(item, spider)
                finally:
                    accepted.update((slot, None) for slot, count in before.items() if slot.itemcount > count)
            for slot in accepted:
                if slot.file is not None and holds_lines(slot.uri, slot.feed_options):
                    slot.file.flush()
        except Exception as error:
            # After such an error (a full disk), later items would fail, too.
            lasting = isinstance(error, (OSError, UnusableFileError))
            self._count_failure("write" if lasting else "item")
            if lasting or accepted:
                self.end_run(f"a feed cannot be written: {error}")
            raise

    def _open(self, slot: FeedSlot) -> None:
        """Prepare a feed for its first line: complete or remove an incomplete last line of an earlier run."""
        if _is_appended(slot) and holds_lines(slot.uri, slot.feed_options):
            repair_last_line(Path(absolute_path(slot.uri)))

    async def _close_slot(self, slot: FeedSlot, spider: Spider) -> None:
        """Close a slot, and count an error of its exporter. Scrapy itself counts only errors of the storage."""
        try:
            await super()._close_slot(slot, spider)
        except (OSError, UnusableFileError) as error:
            self._count_failure("finish")
            _log_failure(error)
        except Exception:
            self._count_failure("finish")
            raise

    def _count_failure(self, what: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(FAILED.format(what))


def _log_failure(error: Exception) -> None:
    """Log why a feed cannot be written, without a traceback: the cause is the file, not the code."""
    logger.error("feed_failed", reason=str(error))


def _is_single(spider: PlatformSpider) -> bool:
    """Whether the crawl has only one target, and a user who sees its error. False for jobs of Scrapyd."""
    return not spider.batch and not hasattr(spider, "_job")


def _items(outcome: Outcome, row_path: RecordPath | None, selection: Selection | None) -> Iterable[Any]:
    """Return the items to write to the feeds for an outcome."""
    if outcome.error is not None:
        return [Failure(failure_line(outcome))]
    if outcome.record is None:
        return []
    if row_path is None:
        return [outcome.record if selection is None else selection.record(outcome.record)]
    rows = exploded_rows(outcome.record, row_path, outcome.new_entries)
    return rows if selection is None else map(selection.row, rows)


def _problem(slot: FeedSlot) -> str | None:
    """Return the reason why a feed cannot be written, or None if it can."""
    path = Path(absolute_path(slot.uri))
    if kind_of(slot.feed_options) == "book" and _is_appended(slot) and path.is_file() and path.stat().st_size:
        return f"nothing can be added to the {NAMES[slot.format].title} file {path}: use -O, or another name"
    return None


def _is_appended(slot: FeedSlot) -> bool:
    return isinstance(slot.storage, FileFeedStorage) and slot.storage.write_mode == "ab"


def uri_params(params: dict[str, Any], spider: Spider) -> dict[str, Any]:
    """Add the placeholder ``%(job)s`` for feed URIs: the id of the Scrapyd job, or, without Scrapyd, the start time."""
    return {**params, "job": getattr(spider, "_job", params["time"])}


def check_feeds(settings: BaseSettings, spider: Spider) -> None:
    """Check a crawl's feeds: their names, formats and storages, and whether local files can be written.

    Nothing is opened, created or connected. The default of ``FAILURES_FEED`` is not checked, because most crawls can do
    without it.

    Raises:
        ValueError: a feed's options are not a dictionary, its batches would have the same name, its placeholder, format
            or storage is unknown, the name of its host or bucket is missing, the library of its storage is not
            installed, or its file cannot be written.
    """
    for uri, given in settings.getdict("FEEDS").items():
        template = str(uri)
        if not isinstance(given, dict):
            problem = "expected the options of the feed, such as {'format': 'jsonl'}"
            raise ValueError(f"FEEDS: {template}: {problem}")  # noqa: TRY004  # a wrong setting, not a wrong call
        options = feed_complete_default_values_from_settings(given, settings, template)
        names = placeholders(template)
        if options["batch_item_count"] and not names & OF_BATCHES:
            raise ValueError(f"{template}: batches need different names: add %(batch_id)d or %(batch_time)s")
        unknown = sorted(name for name in names - VARYING if not hasattr(spider, name))
        if unknown and load_object(options["uri_params"]) is uri_params:
            known = ", ".join(f"%({name})s" for name in sorted(VARYING | {"name"}))
            raise ValueError(
                f"{template}: no placeholder is called {unknown[0]}; use {known}, or arguments of the crawl"
            )
        formats = without_none_values(settings.getwithbase("FEED_EXPORTERS"))
        if (chosen := options.get("format")) not in formats:
            problem = f"no feed format is called {chosen}; use" if chosen else "the option format is missing: use"
            raise ValueError(f"{template}: {problem} one of {', '.join(sorted(formats))}")
        _check_storage(template, without_none_values(settings.getwithbase("FEED_STORAGES")))
        if urlsplit(template).scheme not in {"", "file"} or template == AUTO_URI:
            continue
        try:
            check_writable(fixed_path(template, spider) or Path(absolute_path(template)))
        except OSError as error:
            raise ValueError(f"{template} cannot be written: {error}") from None


def _check_storage(uri: str, storages: Mapping[str, Any]) -> None:
    parts = urlsplit(uri)
    if (path := storages.get(parts.scheme or "file")) is None:
        known = ", ".join(filter(None, storages))
        raise ValueError(f"{uri}: files cannot be written to {parts.scheme}, only to {known}")
    storage = load_object(path)
    if storage in {*BUCKETS, FTPFeedStorage} and not parts.hostname:
        raise ValueError(f"{uri}: expected the name of a host or bucket after {parts.scheme}://")
    library, extra = BUCKETS.get(storage, (None, None))
    if library and not _is_installed(library):
        raise ValueError(f"{uri}: {parts.scheme} needs the library {library}: install the extra {extra!r}")


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # the package around it is not installed
        return False
