"""``-a resume=DIR``: checkpoints. A run that is killed can be started again without missing or duplicate targets.

A target is finished when the feeds have stored it (signal ``target_stored``). A target that was in flight when the run
was killed is fetched again, but its line is in the feeds only once. ``journal.py`` stores the checkpoint on disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import structlog
from scrapy import signals
from scrapy.exceptions import CloseSpider

from crawler.outputs.failures import is_for_failures
from crawler.outputs.feed_files import CLOSED_FORMATS, holds_lines, is_local
from crawler.outputs.feeds import FAILED, Feeds, target_buffered, target_stored
from crawler.targets.exceptions import LimitReached
from crawler.targets.journal import CannotResumeError, Journal
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, Target, TargetParser
from crawler.targets.tracker import TargetTracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)


@dataclass
class ResumedSource(TargetSource):
    """A source of the targets that earlier starts of the run have not stored, including their pending follow-ups."""

    source: TargetSource
    journal: Journal
    parser: TargetParser
    feeds: Callable[[], list[tuple[str, int]]]
    """Returns the path of each local feed, and how many bytes of the file are kept when it is opened."""
    on_begin: Callable[[], None]
    """Called before the first target, after the journal has accepted the run."""
    restore: Callable[[list[tuple[str, dict[str, Any]]], list[Target]], list[Target]]
    """Gets the (code, note) pairs of the stored targets that have a note, and the pending follow-ups. Returns the
    follow-ups to scrape."""

    _pending: list[Target | InvalidTarget] = field(default_factory=list)

    async def open(self) -> None:
        await self.source.open()
        try:
            self.journal.begin(self.source.identity, self.feeds)
        except CannotResumeError as error:
            raise TargetsUnavailableError(f"cannot resume: {error}") from error
        pending = [self.parser.load(each) for each in self.journal.pending.values()]
        followups = self.restore(self.journal.notes, [each for each in pending if isinstance(each, Target)])
        self._pending = [*followups, *(each for each in pending if isinstance(each, InvalidTarget))]
        self.on_begin()

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        for each in self._pending:
            yield each
        async for candidate in self.source:
            if candidate.row not in self.journal:
                yield candidate

    def completed(self, outcome: Outcome) -> None:
        self.source.completed(outcome)

    @property
    def expected(self) -> int | None:
        rows = self.source.expected
        return None if rows is None else rows + self.journal.discovered

    @property
    def own_columns(self) -> tuple[str, ...]:
        return self.source.own_columns

    @property
    def identity(self) -> dict[str, Any]:
        return self.source.identity


class Resume:
    """Writes the journal, and replaces the spider's source with ``ResumedSource``. Does nothing without ``resume=``."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.journal: Journal | None = None
        self.writing = False
        """Whether entries are written to the journal: from the start of the run until a write fails."""
        self._buffered: dict[int | str, list[str]] = {}
        self._complete: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Resume:
        resume = cls(crawler)
        crawler.signals.connect(resume.spider_opened, signals.spider_opened)
        crawler.signals.connect(resume.spider_closed, signals.spider_closed)
        crawler.signals.connect(resume.engine_stopped, signals.engine_stopped)
        crawler.signals.connect(resume.target_buffered, target_buffered)
        crawler.signals.connect(resume.target_stored, target_stored)
        return resume

    @property
    def feeds(self) -> Feeds:
        """The extension that writes the feeds."""
        feeds = self.crawler.get_extension(Feeds)
        assert feeds is not None, "the setting EXTENSIONS contains crawler.outputs.feeds.Feeds"
        return feeds

    def spider_opened(self, spider: PlatformSpider) -> None:
        """Read the journal that earlier starts of this run have written.

        Raises:
            CloseSpider: the folder cannot be used, or a feed cannot be resumed.
        """
        if spider.args.resume is None:
            return
        journal = Journal(Path(spider.args.resume))
        try:
            _check_feeds(self.feeds)
            journal.open(self._is_lines)
        except CannotResumeError as error:
            journal.close()
            raise CloseSpider(f"cannot resume: {error}") from error
        assert self.crawler.stats is not None
        for code, count in journal.counts.items():
            self.crawler.stats.inc_value(f"targets/{code}", count)
        self.journal = journal
        spider.source = ResumedSource(
            spider.source, journal, TargetParser(spider.scrapers), self.feeds.local_files, self._begin, spider.restore
        )
        cast("TargetTracker", self.crawler.get_spider_middleware(TargetTracker)).leave_unfinished = True

    def _is_lines(self, path: str) -> bool | None:
        options = self.feeds.options_of(path)
        return None if options is None else holds_lines(path, options)

    def _begin(self) -> None:
        assert self.journal is not None
        self.feeds.append_to(
            [str(each.path) for each in self.journal.feeds]
        )  # even with -O: the files contain lines of earlier starts
        self.feeds.before_open.append(self._open_feed)
        self.writing = True
        if self.journal.counts:
            counts = self.journal.counts
            logger.info("resumed", folder=str(self.journal.folder), finished=counts.total(), **counts)

    def _open_feed(self, uri: str, size: int | None) -> None:
        assert self.journal is not None
        if size is not None:
            self.journal.feed(uri, size)
        elif uri in self.journal.arrived:
            logger.error("feed_overwritten", uri=uri, hint="an earlier start stored it: put %(time)s into its name")

    def target_buffered(self, outcome: Outcome, uris: list[str]) -> None:
        """Write to the journal that the target's line is in files that are not complete yet."""
        if self.journal is not None and _is_final(outcome):
            self._buffered[_key(outcome)] = uris
            self._write(self.journal.buffer, *_entry_fields(outcome), uris, outcome.note)

    def target_stored(self, outcome: Outcome, files: list[tuple[str, int]]) -> None:
        """Write to the journal that a target is stored.

        For a buffered target, the entry names its complete file. One entry is enough for all targets of a file.
        """
        if self.journal is None or not _is_final(outcome):
            return
        uris = self._buffered.pop(_key(outcome), None)
        if uris is None:
            self._write(self.journal.store, *_entry_fields(outcome), files, outcome.note)
            return
        for uri in uris:
            if uri not in self._complete:
                self._complete.add(uri)
                self._write(self.journal.complete, uri, dict(files).get(uri))

    def _write(self, note: Callable[..., None], *entry: Any) -> None:
        if not self.writing:
            return
        try:
            note(*entry)
        except OSError as error:  # further entries must not be written, because they would follow a partial one
            self.writing = False
            assert self.crawler.stats is not None
            assert self.journal is not None
            self.crawler.stats.inc_value(FAILED.format("journal"))
            logger.exception("journal_not_written", journal=str(self.journal.path))
            self.feeds.end_run(f"the journal in {self.journal.folder} cannot be written: {error}")

    def spider_closed(self, spider: Spider) -> None:
        """Release the folder of a run that was refused: ``engine_stopped`` is not sent, as its engine never started."""
        if self.journal is not None and not self.writing and not self.feeds.failed:
            self.journal.close()

    def engine_stopped(self) -> None:
        """Release the folder. All feeds have been closed before this signal."""
        if self.journal is not None:
            self.journal.close()


def _is_final(outcome: Outcome) -> bool:
    """Whether no later start can change the outcome. A target that reached a limit stays pending."""
    return not isinstance(outcome.error, LimitReached)


def _key(outcome: Outcome) -> int | str:
    return outcome.target.id if outcome.target.row is None else outcome.target.row


def _entry_fields(outcome: Outcome) -> tuple[int | str, str, list[dict[str, Any]]]:
    """Return the fields of the journal's entry for an outcome: row number or id, code and follow-ups."""
    return _key(outcome), outcome.code, [each.dump() for each in outcome.followups]


def _check_feeds(feeds: Feeds) -> None:
    """Check that the feeds can be resumed: any number of local JSON Lines feeds, or one feed of another kind.

    The feeds for failures are checked separately, by the same rule.

    Raises:
        CannotResumeError: the feeds cannot be resumed.
    """
    for of_failures in (False, True):
        _check_kinds({uri: each for uri, each in feeds.feeds.items() if is_for_failures(each) == of_failures})


def _check_kinds(feeds: dict[str, dict[str, Any]]) -> None:
    kinds = {uri: holds_lines(uri, options) for uri, options in feeds.items()}
    for uri, lines in kinds.items():
        if urlsplit(uri).scheme == "stdout":
            raise CannotResumeError("standard output cannot be truncated: write the feed to a file")
        if not lines and not is_local(uri) and "%(time)s" not in uri and "%(batch_time)s" not in uri:
            raise CannotResumeError(f"{uri} would be overwritten by the next start: put %(time)s into its name")
    if len(kinds) > 1 and not all(kinds.values()):
        raise CannotResumeError("use any number of JSON Lines feeds in local files, or one feed of another kind")
    for uri, options in feeds.items():
        closed = CLOSED_FORMATS.get(options["format"])
        if closed and "%(time)s" not in uri and "%(batch_time)s" not in uri:
            raise CannotResumeError(f"nothing can be added to the {closed.name} file {uri}: put %(time)s into its name")
