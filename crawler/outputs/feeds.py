"""The feed exporter: writes records and failures to feeds, and sends a signal when a target is stored.

If a feed cannot be written, the run's exit code is 1. If further lines would fail too, as on a full disk, the run ends
at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

import structlog
from scrapy import signals
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage
from scrapy.utils.defer import ensure_awaitable

from crawler.outputs.csv_exporter import UnusableFileError, check_columns
from crawler.outputs.exporters import exploded_rows
from crawler.outputs.failures import (
    AUTO,
    AUTO_URI,
    FAILURE_KEYS,
    Failure,
    WithoutFailures,
    failure_line,
    is_for_failures,
)
from crawler.outputs.feed_files import (
    CLOSED_FORMATS,
    absolute_path,
    holds_lines,
    is_local,
    path_pattern,
    repair_last_line,
)
from crawler.targets.target import InvalidTarget, Outcome, Target
from crawler.targets.tracker import TargetTracker, target_completed, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawler.outputs.columns import RecordPath
    from crawler.outputs.selection import Selection
    from crawler.spiders.base import PlatformSpider

GZIP = "scrapy.extensions.postprocessing.GzipPlugin"
FAILED = "feedexport/failed_count/{}"
"""Name of Scrapy's stat that counts errors when a feed is written."""
UNSTORED = "feeds/unstored"
"""Name of the stat that counts targets that have an outcome and are not stored."""
logger = structlog.get_logger(__name__)

target_buffered = object()
"""Signal: a target's line is in files that are not closed yet. Arguments: ``outcome``, ``uris``."""
target_stored = object()
"""Signal: a target is stored, so that a restart does not repeat it. Sent once for each target.

Arguments: ``outcome``, and ``files``: a list of (path, end), the local files that contain its line and the offset after
the line.
"""


@dataclass
class _Buffered:
    """A target whose line is in files that are not closed yet, and the feed slots of these files."""

    outcome: Outcome
    ends: list[tuple[str, int]]
    slots: set[FeedSlot]


class Feeds(FeedExporter):
    """Extends Scrapy's feed exporter: tracks when a target is stored.

    A target is stored when its line is stored in each feed that accepted it. A local JSON Lines feed has stored a line
    when it has flushed it. Any other feed has stored a line when the file with the line is closed and its storage has
    accepted it.

    If a feed cannot be written, the run's exit code is 1. Scrapy alone would only log the error.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.failed = False
        """Whether writing a feed or the journal has failed. After that, no more records are written."""
        self.before_open: list[Callable[[str, int | None], None]] = []
        """Functions that are called before the first line of a feed is written.

        Their arguments are the path of a local feed and the number of bytes to keep, or a remote URI and None.
        """
        self._appended: frozenset[str] = frozenset()
        self._buffered: dict[FeedSlot, list[_Buffered]] = {}
        self._damaged: set[FeedSlot] = set()
        self._closed: set[FeedSlot] = set()
        self._outcomes: Counter[type] = Counter()
        self._stored = 0
        self._ending: asyncio.Task[None] | None = None
        try:
            super().__init__(crawler)
        except NotConfigured:
            if self.settings["FEEDS"]:
                raise RuntimeError("The feeds cannot be written as configured; the log has the reason.") from None
            if cast("PlatformSpider", crawler.spider).on_demand:
                raise
            # In a crawl without feeds, a target is stored when its pipelines have returned its item.
        if self.settings["FAILURES_FEED"] == AUTO and _is_single(cast("PlatformSpider", crawler.spider)):
            self.feeds.pop(AUTO_URI, None)
        for uri, options in self.feeds.items():
            if uri.endswith(".gz"):
                options.setdefault("postprocessing", [GZIP])
            if not is_for_failures(options):
                self.filters[uri] = WithoutFailures(self.filters[uri])
            elif options["format"] in {"csv", "xlsx"} and not options["fields"]:
                options["fields"] = list(FAILURE_KEYS)  # not those of records, as in other tables

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        feeds = super().from_crawler(crawler)
        crawler.signals.connect(feeds.target_completed, target_completed)
        crawler.signals.connect(feeds.slot_closed, signals.feed_slot_closed)
        return feeds

    def open_spider(self, spider: Spider) -> None:
        """Prepare the feeds. The file of a feed is opened when the feed gets its first item.

        Raises:
            CloseSpider: a feed cannot be written, because of a missing library or an existing file.
        """
        super().open_spider(spider)
        for slot in self.slots:
            error = _problem(slot)
            if error:
                raise CloseSpider(error)

    async def close_spider(self, spider: Spider, reason: str = "finished") -> None:
        """Close the feeds, and log how many targets are not stored.

        A feed without items is written only if the run completed a valid target, or finished without any targets. This
        prevents a run that was refused from replacing the file of an earlier run with an empty file.
        """
        if not self._outcomes[Target] and (reason != "finished" or self._outcomes[InvalidTarget]):
            for slot in self.slots:
                slot.store_empty = False
        await super().close_spider(spider)
        unstored = self._outcomes.total() - self._stored
        if unstored:
            assert self.crawler.stats is not None
            self.crawler.stats.set_value(UNSTORED, unstored)
            logger.error(
                "targets_not_stored", count=unstored, hint="lines are missing from feeds: see the errors above"
            )

    def end_run(self, reason: str) -> None:
        """End the run with a reason. The feeds get no further records."""
        self.failed = True
        self._damaged.update(self.slots)
        engine = self.crawler.engine
        if self._ending is None and engine is not None and engine.spider is not None:
            self._ending = asyncio.create_task(engine.close_spider_async(reason=reason))

    def append_to(self, paths: Iterable[str]) -> None:
        """Append to these files even if the feeds are set to overwrite them: they contain lines of earlier starts."""
        self._appended = frozenset(paths)
        for slot in self.slots:
            self._prepare(slot)

    def local_files(self) -> list[tuple[str, int]]:
        """Return the path of each local feed, and how many bytes of its file are kept when it is opened."""
        return [
            (absolute_path(slot.uri), _retained_bytes(slot, slot.storage))
            for slot in self.slots
            if isinstance(slot.storage, FileFeedStorage)
        ]

    def options_of(self, path: str) -> dict[str, Any] | None:
        """Return the options of the feed that writes to this local file, or None if it is not a feed of this run."""
        assert self.crawler.spider is not None
        for uri, options in self.feeds.items():
            if is_local(uri) and path_pattern(uri, self.crawler.spider).fullmatch(path):
                return options
        return None

    # Lines

    def target_completed(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Write the outcome of a target to the feeds: its record, its rows with ``-a explode=``, or its failure."""
        self._outcomes[type(outcome.target)] += 1
        if self.failed:
            self._write_last_failure(outcome, spider)
            return
        try:
            slots = self._export(_items(outcome, spider.row_path, spider.selection), spider)
        except BrokenPipeError:  # the run ends, and Scrapy would log a traceback
            logger.error("output_closed", hint="the reader of the output, such as head, has closed it")  # noqa: TRY400
            return
        lines = [slot for slot in slots if holds_lines(slot.uri, slot.feed_options)]
        ends = [
            (absolute_path(slot.uri), slot.file.tell())
            for slot in lines
            if slot.file is not None and isinstance(slot.storage, FileFeedStorage)
        ]
        waiting = set(slots).difference(lines)
        if not waiting:
            self._send_stored(outcome, ends)
            return
        buffered = _Buffered(outcome, ends, waiting)
        for slot in waiting:
            if slot not in self._buffered:
                self._watch(slot)
            self._buffered.setdefault(slot, []).append(buffered)
        uris = [_location(slot) for slot in waiting]
        self.crawler.signals.send_catch_log(target_buffered, outcome=outcome, uris=uris)

    def _write_last_failure(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Write the failure of a target that was in flight when a feed could not be written and the run ended.

        Nothing is written if the run can be resumed or its targets are from a queue: they get another outcome later.
        """
        tracker = self.crawler.get_spider_middleware(TargetTracker)
        if outcome.error is None or tracker is None or tracker.leave_unfinished:
            return
        with suppress(OSError):  # the run already ends with an error, and the target is counted as not stored
            super().item_scraped(Failure(failure_line(outcome)), spider)

    def item_scraped(self, item: Any, spider: Spider, response: Response | None = None) -> None:
        """Write an item that belongs to no target. ``target_completed`` writes the items of targets."""
        if target_of(response) is None and not self.failed:
            self._export([item], spider)

    def _export(self, items: Iterable[Any], spider: Spider) -> list[FeedSlot]:
        """Write items and flush local JSON Lines feeds. Return the slots of the feeds that accepted an item."""
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
            lasting = isinstance(
                error, (OSError, UnusableFileError)
            )  # such as a full disk: later items would fail, too
            self._count_failure("write" if lasting else "item")
            if lasting or accepted:
                self.end_run(f"a feed cannot be written: {error}")
            raise
        return list(accepted)

    def _prepare(self, slot: FeedSlot) -> None:
        if isinstance(slot.storage, FileFeedStorage) and absolute_path(slot.uri) in self._appended:
            slot.storage.write_mode = "ab"

    def _open(self, slot: FeedSlot) -> None:
        """Prepare a feed for its first line, and call the functions in ``before_open``."""
        self._prepare(slot)
        size = _retained_bytes(slot, slot.storage) if isinstance(slot.storage, FileFeedStorage) else None
        for call in self.before_open:
            call(_location(slot), size)

    # Files

    def _watch(self, slot: FeedSlot) -> None:
        """Track whether the slot's file is stored. ``feed_slot_closed`` is sent even if storing the file has failed."""
        store = slot.storage.store
        local = isinstance(slot.storage, FileFeedStorage)

        async def watched(file: IO[bytes]) -> None:
            if local:
                _sync(file)
            await ensure_awaitable(store(file))
            self._closed.add(slot)

        slot.storage.store = watched  # type: ignore[method-assign, assignment]  # Scrapy awaits coroutines here

    def slot_closed(self, slot: FeedSlot) -> None:
        """Send ``target_stored`` for each target whose line was waiting only for this file, if the file is stored."""
        buffered = self._buffered.pop(slot, [])
        if slot not in self._closed:
            return
        self._closed.remove(slot)
        if slot in self._damaged:
            return
        path = _location(slot)
        size = Path(path).stat().st_size if isinstance(slot.storage, FileFeedStorage) else None
        for each in buffered:
            if size is not None:
                each.ends.append((path, size))
            each.slots.discard(slot)
            if not each.slots:
                self._send_stored(each.outcome, each.ends)

    def _send_stored(self, outcome: Outcome, files: list[tuple[str, int]]) -> None:
        self._stored += 1
        self.crawler.signals.send_catch_log(target_stored, outcome=outcome, files=files)

    async def _close_slot(self, slot: FeedSlot, spider: Spider) -> None:
        """Close a slot, and count an error of its exporter. Scrapy itself counts only errors of the storage."""
        try:
            await super()._close_slot(slot, spider)
        except Exception:
            self._count_failure("finish")
            raise

    def _count_failure(self, what: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(FAILED.format(what))


def _is_single(spider: PlatformSpider) -> bool:
    """Whether the crawl has a single target whose error its user sees. False for jobs of Scrapyd: nobody sees it."""
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


def _location(slot: FeedSlot) -> str:
    """Return a local feed's absolute path, or a remote feed's URI."""
    return absolute_path(slot.uri) if isinstance(slot.storage, FileFeedStorage) else slot.uri


def _retained_bytes(slot: FeedSlot, storage: FileFeedStorage) -> int:
    """Repair the last line of a local feed, and return how many bytes of the file are kept when it is opened."""
    path = Path(storage.path)
    if storage.write_mode != "ab" or not path.is_file():
        return 0
    if holds_lines(slot.uri, slot.feed_options):
        repair_last_line(path)
    return path.stat().st_size


def _sync(file: IO[bytes]) -> None:
    """Sync a complete file to disk: after a power cut it must still contain the targets that are reported as stored."""
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


def _problem(slot: FeedSlot) -> str | None:
    """Return the reason why a feed cannot be written, or None if it can."""
    is_appended = isinstance(slot.storage, FileFeedStorage) and slot.storage.write_mode == "ab"
    if is_appended:
        try:
            check_columns(Path(absolute_path(slot.uri)), slot.feed_options, cast("PlatformSpider", slot.spider))
        except UnusableFileError as error:
            return str(error)
    closed = CLOSED_FORMATS.get(slot.format)
    if closed is None:
        return None
    if find_spec(closed.library) is None:
        return f"{closed.name} feeds need {closed.library}: install the extra {closed.extra!r}"
    if is_appended:
        path = Path(absolute_path(slot.uri))
        if path.is_file() and path.stat().st_size:
            return f"nothing can be added to the {closed.name} file {path}: use -O, or another name"
    return None


def uri_params(params: dict[str, Any], spider: Spider) -> dict[str, Any]:
    """Add the placeholder ``%(job)s`` for feed URIs: the id of the Scrapyd job, or the time without Scrapyd."""
    return {**params, "job": getattr(spider, "_job", params["time"])}
