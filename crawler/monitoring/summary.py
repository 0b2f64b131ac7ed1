"""Reports on a crawl for people: a log line for each failed target, and a short summary at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import structlog
from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawler.monitoring.progress import clock, counted
from crawler.outputs.feed_files import is_for_failures
from crawler.outputs.feeds import FAILED
from crawler.targets.reporter import PARTIAL, REPEATED, outcomes_by_code, target_completed
from crawler.targets.target import Outcome, Target
from crawler.targets.warning import FAILED_SOURCES, UNREAD_PATHS, UNREAD_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

MAX_INCOMPLETE = 5
"""Maximum number of incomplete listings that the summary describes."""
MAX_NOTES = 5
"""Maximum number of notes that the summary lists."""
MAX_UNREAD = 8
"""Maximum number of unread paths that the summary lists."""
UNREAD_ADVICE = "the platform may have changed its pages: scrapy extract --unread --suggest (docs/repair.md)"


@dataclass
class _Files:
    """The files of one feed. With ``FEED_EXPORT_BATCH_ITEM_COUNT``, a feed has several."""

    uris: list[str] = field(default_factory=list)
    lines: int = 0
    has_failures: bool = False


class Summary:
    """Extension that logs failed targets, and collects the data of the summary.

    ``scrapy crawl`` prints the summary if it runs on a terminal. The endpoint's crawlers have none.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.first: dict[str, Outcome] = {}
        """Error code -> the first failed outcome with this code."""
        self.incomplete: list[str] = []
        """The first incomplete listings, with the numbers of rows and the reasons."""
        self.notes: Counter[str] = Counter()
        """The note of targets (``Target.note``) -> the number of targets with this note."""
        self.retryable = 0
        """Number of failed targets for which a retry can help."""
        self._files: dict[str, _Files] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Summary:
        if cast("PlatformSpider", crawler.spider).on_demand:
            raise NotConfigured
        summary = cls(crawler)
        crawler.signals.connect(summary.target_completed, target_completed)
        crawler.signals.connect(summary.feed_slot_closed, signals.feed_slot_closed)
        return summary

    @property
    def _spider(self) -> PlatformSpider:
        return cast("PlatformSpider", self.crawler.spider)

    def target_completed(self, outcome: Outcome) -> None:
        """Log a failed target: at the level INFO in a batch, else at the level ERROR. Log each note once.

        Collect notes and incomplete listings.
        """
        if outcome.error is None:
            if isinstance(outcome.target, Target) and (note := outcome.target.note):
                self.notes[note] += 1
                if self.notes[note] == 1:
                    logger.info("note", id=outcome.target.id, note=note)
            for each in outcome.warnings:
                if each.coverage is not None and len(self.incomplete) < MAX_INCOMPLETE:
                    self.incomplete.append(f"{each.coverage} ({outcome.target.label})")
            return
        self.first.setdefault(outcome.code, outcome)
        self.retryable += outcome.error.retryable
        target = outcome.target
        log = logger.info if self._spider.batch else logger.error
        log(
            "target_failed",
            id=target.id,
            line=target.line,
            scraper=target.as_dict()["scraper"],
            params=target.label,
            code=outcome.code,
            message=outcome.error.message,
        )

    def feed_slot_closed(self, slot: FeedSlot) -> None:
        """Record the name and the number of lines of a file of a feed that has just been completed."""
        files = self._files.setdefault(slot.uri_template, _Files())
        files.uris.append(slot.uri)
        files.lines += slot.itemcount
        files.has_failures = is_for_failures(slot.feed_options)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary, when the crawl has ended."""
        assert self.crawler.stats is not None
        stats = self.crawler.stats.get_stats()
        has_data = "OK" in outcomes_by_code(stats)
        examples = {code: self._example(outcome) for code, outcome in self.first.items()}
        outputs = [*self._outputs(stats, has_data=has_data)]
        yield from Report(
            self._spider.name, stats, examples, self.notes, self.incomplete, outputs, [*self._next_steps()]
        ).lines()

    def _example(self, outcome: Outcome) -> str:
        assert outcome.error is not None
        if not self._spider.batch:
            return outcome.error.message
        return example(outcome.error.message, outcome.target.id, outcome.target.line, outcome.target.label)

    def _outputs(self, stats: dict[str, Any], *, has_data: bool) -> Iterator[tuple[str, str]]:
        written = False
        for files in self._files.values():
            written = written or not files.has_failures
            more = f" to {files.uris[-1]}" if len(files.uris) > 1 else ""
            kind = "failures" if files.has_failures else "data"
            yield kind, f"{files.uris[0]}{more} ({counted(files.lines, 'line')})"
        if has_data and not written:
            yield "data", "not written: add -O out.csv, -O out.jsonl or -O out.xlsx"
        if any(key.startswith(FAILED.format("")) for key in stats):
            yield "incomplete", "lines are missing from the data: see the errors above"

    def _next_steps(self) -> Iterator[str]:
        failures = next((files.uris for files in self._files.values() if files.has_failures), [])
        if self.retryable and failures:
            yield from (f"scrapy targets retry {uri}" for uri in failures)
        elif self.retryable:
            yield "run the command again: the error may be temporary"


@dataclass(frozen=True)
class Report:
    """What a crawl or a job has collected, for people.

    ``stats``: as those of a crawl. ``examples``: error code -> the text of an example. ``incomplete``: texts about
    incomplete listings. ``outputs``: the names and texts of lines about what was written.
    """

    name: str
    stats: Mapping[str, Any]
    examples: Mapping[str, str]
    notes: Counter[str] = field(default_factory=Counter)
    incomplete: Sequence[str] = ()
    outputs: Sequence[tuple[str, str]] = ()
    next_steps: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        stats, counts = self.stats, outcomes_by_code(self.stats)
        total, seconds = sum(counts.values()), stats.get("elapsed_time_seconds", 0.0)
        yield f"{self.name}: {counted(total, 'target')}, {counts.get('OK', 0):,} with data, in {clock(seconds)}"
        for code, count in counts.items():
            if code != "OK":  # without an example, all targets with this code ended in earlier starts of the job
                text = self.examples.get(code, "see the failures feed of the earlier start")
                yield _row("failed", f"{count:,} {code}: {text}")
        if repeated := stats.get(REPEATED):
            have = "has" if repeated == 1 else "have"
            text = f"{counted(repeated, 'row')} {have} the target of an earlier row, which was fetched once"
            yield _row("repeated", text)
        if partial := stats.get(PARTIAL):
            lack = "lacks a part of it, as its" if partial == 1 else "lack a part of it, as their"
            yield _row("partial", f"{partial:,} with data {lack} warnings say")
        for key, count in stats.items():
            if key.startswith(FAILED_SOURCES):
                source, reason = key.removeprefix(FAILED_SOURCES).split("/", 1)
                yield _row("warnings", f"{count:,} without {source} ({reason})")
        yield from (_row("note", f"{count:,} with: {note}") for note, count in self.notes.most_common(MAX_NOTES))
        yield from (_row("incomplete", text) for text in self.incomplete)
        yield from _unread(stats)
        if stats.get("finish_reason") != "finished":
            yield _row("stopped", str(stats.get("finish_reason")))
        yield from (_row(*each) for each in self.outputs)
        if any(key.startswith(UNREAD_PATHS) for key in stats):
            yield _row("next", UNREAD_ADVICE)
        yield from (_row("next", text) for text in self.next_steps)


def example(message: str, target_id: str, line: int | None, label: str) -> str:
    """Return the text of an example of a failure: its message, and where the target is."""
    return f"{message} ({target_id if line is None else f'line {line}'}, {label})"


def _row(name: str, text: str) -> str:
    return f"  {name + ':':<11} {text}"


def _unread(stats: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each unread path, the most frequent first."""
    targets = {key.removeprefix(UNREAD_PATHS): count for key, count in stats.items() if key.startswith(UNREAD_PATHS)}
    ordered = sorted(targets.items(), key=lambda each: (-each[1], each[0]))
    for name, count in ordered[:MAX_UNREAD]:
        source, path = name.split("/", 1)
        rows = stats.get(UNREAD_ROWS + name)
        lost = f" ({counted(rows, 'row')} not collected)" if rows else ""
        yield _row("unread", f"{count:,} with {path} of {source}{lost}")
    if len(ordered) > MAX_UNREAD:
        yield _row("unread", f"and {len(ordered) - MAX_UNREAD} more paths")
