"""What a crawl writes: the data of its targets, one line for each target without data, and when a target is stored.

A feed that cannot be written is never a matter of the log alone: it ends the run, or makes the exit code say so.
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

from crawler.outputs.exporters import exploded_rows
from crawler.outputs.failures import Failure, WithoutFailures, failure_line, is_for_failures
from crawler.outputs.feed_files import absolute, holds_lines, is_local, mend, pattern
from crawler.targets.target import InvalidTarget, Outcome, Target
from crawler.targets.tracker import TargetTracker, target_completed, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawler.outputs.columns import RecordPath
    from crawler.spiders.base import PlatformSpider

GZIP = "scrapy.extensions.postprocessing.GzipPlugin"
FAILED = "feedexport/failed_count/{}"
"""Scrapy's stat for what a feed could not write."""
UNSTORED = "feeds/unstored"
"""Stat: targets with an outcome of which a line is not in every feed that should have it."""

logger = structlog.get_logger(__name__)

target_buffered = object()
"""Signal: a target's line is in files that must be closed first. Arguments: ``outcome``, ``uris``."""
target_stored = object()
"""Signal: a target's outcome cannot be lost any more. Sent once for each target.

Arguments: ``outcome``, and ``files``: a list of (path, end), the local files with its line and where the line ends.
"""


@dataclass
class _Buffered:
    """A target whose line is in files that are not closed yet."""

    outcome: Outcome
    ends: list[tuple[str, int]]
    slots: set[FeedSlot]


class Feeds(FeedExporter):
    """Scrapy's feed exporter, which knows when a target is stored.

    A target is stored when each feed that took its line has flushed it (lines in local files) or has stored the file
    that holds it (all else). A feed that cannot be written ends the run, or makes the exit code 1: Scrapy logs it,
    and ends as if all were well.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.failed = False
        """Whether a feed, or the journal of the run, could not be written: nothing is written any more."""
        self.before_open: list[Callable[[str, int | None], None]] = []
        """Called before a feed gets its first line: with the path of a local file and how many of its bytes stay, or
        with another URI and None."""
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
                raise RuntimeError("The feeds cannot be written as they are set; the log says why.") from None
            if cast("PlatformSpider", crawler.spider).on_demand:
                raise
            # A crawl without feeds: each target is stored when its pipelines have returned.
        for uri, options in self.feeds.items():
            if uri.endswith(".gz"):
                options.setdefault("postprocessing", [GZIP])
            if not is_for_failures(options):
                self.filters[uri] = WithoutFailures(self.filters[uri])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        feeds = super().from_crawler(crawler)
        crawler.signals.connect(feeds.target_completed, target_completed)
        crawler.signals.connect(feeds.slot_closed, signals.feed_slot_closed)
        return feeds

    def open_spider(self, spider: Spider) -> None:
        """Prepare the feeds. Their files are opened with their first items.

        Raises:
            CloseSpider: one of them cannot be written at all.
        """
        super().open_spider(spider)
        for slot in self.slots:
            problem = _problem(slot)
            if problem:
                raise CloseSpider(problem)

    async def close_spider(self, spider: Spider, reason: str = "finished") -> None:
        """Close the feeds, and report targets that are not stored.

        An empty feed is written only by a run that did its work: one that was refused leaves yesterday's file alone.
        """
        if not self._outcomes[Target] and (reason != "finished" or self._outcomes[InvalidTarget]):
            for slot in self.slots:
                slot.store_empty = False
        await super().close_spider(spider)
        unstored = self._outcomes.total() - self._stored
        if unstored:
            assert self.crawler.stats is not None
            self.crawler.stats.set_value(UNSTORED, unstored)
            logger.error("targets_not_stored", count=unstored, hint="their lines are not in all feeds: see above")

    def give_up(self, reason: str) -> None:
        """End the run, once: nothing is written any more."""
        self.failed = True
        self._damaged.update(self.slots)
        engine = self.crawler.engine
        if self._ending is None and engine is not None and engine.spider is not None:
            self._ending = asyncio.create_task(engine.close_spider_async(reason=reason))

    def append_to(self, paths: Iterable[str]) -> None:
        """Append to these files, also where the feeds are set to overwrite them: they hold lines of earlier starts."""
        self._appended = frozenset(paths)
        for slot in self.slots:
            self._prepare(slot)

    def local_files(self) -> list[tuple[str, int]]:
        """The paths of the feeds on this machine, and how many bytes of their files stay when they are opened."""
        return [
            (absolute(slot.uri), _kept(slot, slot.storage))
            for slot in self.slots
            if isinstance(slot.storage, FileFeedStorage)
        ]

    def options_of(self, path: str) -> dict[str, Any] | None:
        """The options of the feed of this run to which a local file belongs, None where it belongs to none."""
        assert self.crawler.spider is not None
        for uri, options in self.feeds.items():
            if is_local(uri) and pattern(uri, self.crawler.spider).fullmatch(path):
                return options
        return None

    # Lines

    def target_completed(self, outcome: Outcome, spider: PlatformSpider) -> None:
        """Write what a target gave: its record, the rows that ``-a explode=`` names, or its failure."""
        self._outcomes[type(outcome.target)] += 1
        if self.failed:
            self._write_last_failure(outcome, spider)
            return
        slots = self._export(_items(outcome, spider.exploded), spider)
        lines = [slot for slot in slots if holds_lines(slot.uri, slot.feed_options)]
        ends = [
            (absolute(slot.uri), slot.file.tell())
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
        """Write the failure of a target that a run leaves undone because one of its feeds cannot be written.

        Not where the run is resumed, or others take over its targets: they have their outcome then.
        """
        tracker = self.crawler.get_spider_middleware(TargetTracker)
        if outcome.error is None or tracker is None or tracker.unfinished_stays:
            return
        with suppress(OSError):  # the run already ends with a reason, and counts the targets that are not stored
            super().item_scraped(Failure(failure_line(outcome)), spider)

    def item_scraped(self, item: Any, spider: Spider, response: Response | None = None) -> None:
        """Write an item of a spider that has no targets. A target's record is written when its outcome is known."""
        if target_of(response) is None and not self.failed:
            self._export([item], spider)

    def _export(self, items: Iterable[Any], spider: Spider) -> list[FeedSlot]:
        """Write items, and return the feeds that took one of them, with their lines flushed."""
        took: dict[FeedSlot, None] = {}
        try:
            for item in items:
                for slot in self.slots:
                    if slot.file is None and slot.filter.accepts(item):
                        self._open(slot)
                before = {slot: slot.itemcount for slot in self.slots}
                try:
                    super().item_scraped(item, spider)
                finally:
                    took.update((slot, None) for slot, count in before.items() if slot.itemcount > count)
            for slot in took:
                if slot.file is not None and holds_lines(slot.uri, slot.feed_options):
                    slot.file.flush()
        except Exception as error:
            disk = isinstance(error, OSError)  # no space, no right: it would be the same with all that come
            self._count_failure("write" if disk else "item")
            if disk or took:
                self.give_up(f"a feed cannot be written: {error}")
            raise
        return list(took)

    def _prepare(self, slot: FeedSlot) -> None:
        if isinstance(slot.storage, FileFeedStorage) and absolute(slot.uri) in self._appended:
            slot.storage.write_mode = "ab"

    def _open(self, slot: FeedSlot) -> None:
        """What comes before a feed is opened for its first line."""
        self._prepare(slot)
        size = _kept(slot, slot.storage) if isinstance(slot.storage, FileFeedStorage) else None
        for call in self.before_open:
            call(_location(slot), size)

    # Files

    def _watch(self, slot: FeedSlot) -> None:
        """Learn whether the slot's file is stored: ``feed_slot_closed`` is sent on failure, too."""
        store = slot.storage.store
        local = isinstance(slot.storage, FileFeedStorage)

        async def watched(file: IO[bytes]) -> None:
            if local:
                _sync(file)
            await ensure_awaitable(store(file))
            self._closed.add(slot)

        slot.storage.store = watched  # type: ignore[method-assign, assignment]  # what Scrapy awaits may be a coroutine

    def slot_closed(self, slot: FeedSlot) -> None:
        """Report the targets whose last open file this was as stored, if it was stored."""
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
        """Scrapy's own counts what a storage refuses, but not what the exporter cannot finish."""
        try:
            await super()._close_slot(slot, spider)
        except Exception:
            self._count_failure("finish")
            raise

    def _count_failure(self, what: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(FAILED.format(what))


def _items(outcome: Outcome, place: RecordPath | None) -> Iterable[Any]:
    """What the feeds are given of an outcome."""
    if outcome.error is not None:
        return [Failure(failure_line(outcome))]
    if outcome.record is None:
        return []
    return [outcome.record] if place is None else exploded_rows(outcome.record, place)


def _location(slot: FeedSlot) -> str:
    """A local feed's absolute path, else its URI."""
    return absolute(slot.uri) if isinstance(slot.storage, FileFeedStorage) else slot.uri


def _kept(slot: FeedSlot, storage: FileFeedStorage) -> int:
    """How many bytes of a local feed stay when it is opened; what is appended to ends with a whole line."""
    path = Path(storage.path)
    if storage.write_mode != "ab" or not path.is_file():
        return 0
    if holds_lines(slot.uri, slot.feed_options):
        mend(path)
    return path.stat().st_size


def _sync(file: IO[bytes]) -> None:
    """Bring a complete file to the disk, so that no power cut takes what was reported as stored."""
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


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


def uri_params(params: dict[str, Any], spider: Spider) -> dict[str, Any]:
    """Scrapy's placeholders of feed URIs, and ``%(job)s``: the job's id on Scrapyd, else the time."""
    return {**params, "job": getattr(spider, "_job", params["time"])}
