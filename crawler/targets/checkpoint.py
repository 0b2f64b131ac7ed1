"""``-a resume=DIR``: a run that was killed at any moment, and started again, loses no target and shows none twice.

A target is finished when its line is flushed to a local file, or when the file that holds its line is closed (gzip,
Parquet, batches for a bucket). It may be fetched twice; it appears once. ``ledger.py`` is what is kept on disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import structlog
from scrapy import signals
from scrapy.exceptions import CloseSpider
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage

from crawler.outputs.feeds import FailuresFeed
from crawler.targets.journal import CannotResumeError, Ledger
from crawler.targets.target import Admission, Rejected, Target, TargetSource, TargetsUnavailableError, check_params
from crawler.targets.tracker import Accounting, Outcome, target_settled

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

LINES = {"jsonlines", "jsonl", "jl"}
"""Formats of which each line stands by itself."""


@dataclass
class Resumed(TargetSource):
    """A source without what earlier starts have finished, and with what they were led to and did not."""

    source: TargetSource
    ledger: Ledger
    admission: Admission
    resume: Resume

    async def open(self) -> None:
        await self.source.open()
        try:
            self.ledger.begin(self.source.identity)
        except CannotResumeError as error:
            raise TargetsUnavailableError(f"cannot resume: {error}") from error

    async def __aiter__(self) -> AsyncIterator[Target | Rejected]:
        for each in list(self.ledger.further.values()):
            scraper = self.admission.scraper(each["scraper"], {})
            params = check_params(scraper, each["params"])
            yield Target(each["id"], scraper, params, parent=each["parent"], hop=each["hop"], batch=each["batch"])
        async for candidate in self.source:
            if candidate.row not in self.ledger:
                yield candidate

    def settled(self, outcome: Outcome) -> None:
        self.resume.finish(outcome)
        self.source.settled(outcome)

    @property
    def expected(self) -> int | None:
        rows = self.source.expected
        return None if rows is None else rows + self.ledger.met

    @property
    def identity(self) -> dict[str, Any]:
        return self.source.identity


class Resume:
    """Watches the feeds, and notes which targets are finished. Idle without ``-a resume=``.

    Its receivers must come before those of the feed exporters: a feed's size is noted before its first line.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.ledger: Ledger | None = None
        self._known: set[str] = set()
        self._slots: dict[bool, list[FeedSlot]] = {False: [], True: []}
        """The open files of the feeds: of data (False), and of failures (True), as the last line found them."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Resume:
        resume = cls(crawler)
        connect = crawler.signals.connect  # here: what is connected once the spider is open comes after the exporters
        connect(resume.spider_opened, signals.spider_opened)
        connect(resume.target_settled, target_settled)
        connect(resume.slot_closed, signals.feed_slot_closed)
        return resume

    def spider_opened(self, spider: PlatformSpider) -> None:
        """Reads what earlier starts left, and takes their place.

        Raises:
            CloseSpider: the folder cannot be used, or a feed is of a kind that cannot be resumed.
        """
        if spider.args.resume is None:
            return
        ledger = Ledger(Path(spider.args.resume))
        self.crawler.signals.connect(ledger.close, signals.engine_stopped)
        try:
            ledger.open()
            for exporter, _ in exporters(self.crawler):
                _check_feeds(exporter)
        except CannotResumeError as error:
            self._keep_feeds()
            raise CloseSpider(f"cannot resume: {error}") from error
        self.ledger = ledger
        self._go_on(spider, ledger)

    def _go_on(self, spider: PlatformSpider, ledger: Ledger) -> None:
        assert self.crawler.stats is not None
        for code, count in ledger.counts.items():
            self.crawler.stats.inc_value(f"targets/{code}", count)
        spider.source = Resumed(spider.source, ledger, Admission(spider.scrapers), self)
        cast("Accounting", self.crawler.get_spider_middleware(Accounting)).unfinished_stays = True
        if ledger.counts:
            self._keep_feeds()
            logger.info("resumed", folder=str(ledger.folder), finished=ledger.counts.total(), **ledger.counts)

    def _keep_feeds(self) -> None:
        """Also with ``-O`` the lines of earlier starts stay, and those of another run that is still writing."""
        for exporter, _ in exporters(self.crawler):
            for options in exporter.feeds.values():
                options["overwrite"] = False

    def target_settled(self, outcome: Outcome) -> None:
        """A line is about to be written."""
        self._announce(failures=outcome.error is not None)

    def slot_closed(self, slot: FeedSlot) -> None:
        """A file is complete. Whether one that was sent somewhere has arrived is looked up at the next start."""
        if self.ledger and isinstance(slot.storage, FileFeedStorage) and not by_line(slot):
            self.ledger.closed(place(slot))

    def finish(self, outcome: Outcome) -> None:
        """Notes that a target is finished: its line is in the feeds by now."""
        assert self.ledger is not None
        sizes: dict[str, int] = {}
        held: list[str] = []
        for slot in self._slots[outcome.error is not None]:
            if not by_line(slot):
                held.append(place(slot))
            elif slot.file:
                slot.file.flush()
                sizes[place(slot)] = slot.file.tell()
        target = outcome.target
        further = [
            {**each.as_dict(), "parent": each.parent, "hop": each.hop, "batch": each.batch} for each in outcome.further
        ]
        self.ledger.finish(
            target.id if target.row is None else target.row, outcome.code, further, sizes=sizes, held=held
        )

    def _announce(self, *, failures: bool) -> None:
        if self.ledger is None:
            return
        self._slots[failures] = [
            slot
            for exporter, of_failures in exporters(self.crawler)
            if of_failures == failures
            for slot in exporter.slots
        ]
        for slot in self._slots[failures]:
            where = place(slot)
            if where in self._known:
                continue
            self._known.add(where)
            if isinstance(slot.storage, FileFeedStorage):
                path = Path(where)
                kept = path.is_file() and slot.storage.write_mode == "ab"
                self.ledger.feed(where, path.stat().st_size if kept else 0)
            elif where in self.ledger.stored:
                logger.error(
                    "feed_overwritten", uri=where, hint="put %(time)s into its name: an earlier start stored it"
                )


def exporters(crawler: Crawler) -> list[tuple[FeedExporter, bool]]:
    """A crawl's feed exporters, and whether each is that of the failures."""
    assert crawler.extensions is not None
    found = [each for each in crawler.extensions.middlewares if isinstance(each, FeedExporter)]
    return [(each, isinstance(each, FailuresFeed)) for each in found]


def _check_feeds(exporter: FeedExporter) -> None:
    """What can be resumed: feeds of lines on this machine, or one feed of another kind.

    Raises:
        CannotResumeError: it is neither.
    """
    kinds = {uri: _by_line_options(uri, options) for uri, options in exporter.feeds.items()}
    for uri, by_line in kinds.items():
        if urlsplit(uri).scheme == "stdout":
            raise CannotResumeError("what was printed cannot be taken back: give the feed a file")
        if not by_line and not _on_this_machine(uri) and "%(time)s" not in uri and "%(batch_time)s" not in uri:
            raise CannotResumeError(f"{uri} would be overwritten by the next start: put %(time)s into its name")
    if len(kinds) > 1 and not all(kinds.values()):
        raise CannotResumeError("there may be several feeds of JSON Lines in files, or one feed of another kind")
    for uri, options in exporter.feeds.items():
        if options["format"] == "parquet" and "%(time)s" not in uri and "%(batch_time)s" not in uri:
            raise CannotResumeError(f"nothing can be added to a Parquet file: put %(time)s into its name, {uri}")


def _on_this_machine(uri: str) -> bool:
    return "://" not in uri or uri.startswith("file:")


def _by_line_options(uri: str, options: dict[str, Any]) -> bool:
    return _on_this_machine(uri) and options["format"] in LINES and "postprocessing" not in options


def by_line(slot: FeedSlot) -> bool:
    """Whether each line of a feed counts as soon as it is flushed."""
    return _by_line_options(slot.uri, slot.feed_options)


def place(slot: FeedSlot) -> str:
    """A local feed's path, from anywhere; else its URI."""
    return str(Path(slot.storage.path).absolute()) if isinstance(slot.storage, FileFeedStorage) else slot.uri
