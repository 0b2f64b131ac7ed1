"""Shows the progress of a crawl: a progress bar on a terminal, or log lines at regular intervals."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, cast

import structlog
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call

from crawler.downloads.lanes import suspensions, waiting_for
from crawler.targets.reporter import outcomes_by_code

if TYPE_CHECKING:
    from rich.progress import TaskID
    from scrapy.crawler import Crawler
    from twisted.internet.task import LoopingCall

    from crawler.monitoring.bar import Bar
    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

REFRESH_INTERVAL = 0.5
"""Seconds between refreshes of the progress bar."""
RATE_WINDOW = 60.0
"""The rate is the average over this many seconds."""


class Progress:
    """Extension that shows a progress bar if stderr is a terminal.

    Otherwise, or if the log is written to a file, it logs the progress every ``LOGSTATS_INTERVAL`` seconds. With
    ``LOGSTATS_INTERVAL`` 0 it does neither.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if not self.interval:
            raise NotConfigured
        self.on_terminal = stderr_is_terminal()
        self.in_log = not self.on_terminal or crawler.settings["LOG_FILE"] is not None
        self._bar: Bar | None = None
        self._task: TaskID
        self._calls: list[LoopingCall | AsyncioLoopingCall] = []
        self._completed: deque[tuple[float, int]] = deque()
        """Pairs of a time, and the number of targets that had been completed by then."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Progress:
        progress = cls(crawler)
        crawler.signals.connect(progress.spider_opened, signals.spider_opened)
        crawler.signals.connect(progress.spider_closed, signals.spider_closed)
        return progress

    def spider_opened(self) -> None:
        """Start the progress bar, or the log lines."""
        self._completed.append((time.monotonic(), sum(self.counts().values())))
        if self.on_terminal:
            from crawler.monitoring.bar import Bar  # noqa: PLC0415  # importing rich takes a twentieth of a crawl's start

            self._bar, self._task = Bar.join(self.spider.name)
            self._every(REFRESH_INTERVAL, self._refresh)
        if self.in_log:
            self._every(self.interval, self._log)

    def spider_closed(self) -> None:
        """Show the final progress on the bar, in the log, or both."""
        for call in self._calls:
            call.stop()
        if self._bar:
            self._refresh()
            self._bar.leave(self._task)
        if self.in_log:
            self._log()

    def _every(self, seconds: float, function: object) -> None:
        call = create_looping_call(function)  # type: ignore[arg-type]  # the functions are bound methods without arguments
        call.start(seconds, now=False)
        self._calls.append(call)

    def counts(self) -> dict[str, int]:
        """Return the number of completed targets by outcome code."""
        assert self.crawler.stats is not None
        return outcomes_by_code(self.crawler.stats.get_stats())

    @property
    def spider(self) -> PlatformSpider:
        """The crawl's spider: all of the project's spiders are platform spiders."""
        return cast("PlatformSpider", self.crawler.spider)

    @property
    def expected(self) -> int | None:
        """The total number of targets, or None while it is unknown."""
        rows = self.spider.source.expected
        return None if rows is None else rows + self.spider.tracker.pushed

    def rate(self) -> float:
        """Return the number of targets completed per second, averaged over the last ``RATE_WINDOW`` seconds."""
        now, done = time.monotonic(), sum(self.counts().values())
        self._completed.append((now, done))
        while len(self._completed) > 2 and now - self._completed[1][0] >= RATE_WINDOW:
            self._completed.popleft()
        since, before = self._completed[0]
        return (done - before) / (now - since) if now > since else 0.0

    def _log(self) -> None:
        counts, rate, expected = self.counts(), self.rate(), self.expected
        done = sum(counts.values())
        left = None if expected is None else max(expected - done, 0)
        waiting = suspensions(self.spider.lanes)
        logger.info(
            "progress",
            done=done,
            left=left,
            failed=done - counts.get("OK", 0),
            per_second=round(rate, 2),
            seconds_left=round(left / rate) if left is not None and rate else None,
            **({"waiting": math.ceil(waiting[0].seconds), "waiting_for": waiting_for(waiting)} if waiting else {}),
            **{code: count for code, count in counts.items() if code != "OK"},
        )

    def _refresh(self) -> None:
        assert self._bar is not None
        counts, rate, expected = self.counts(), self.rate(), self.expected
        done = sum(counts.values())
        left = (max(expected - done, 0) / rate) if expected is not None and rate else None
        lines = [(text, "") for text in self.spider.status_lines]
        if waiting := suspensions(self.spider.lanes):
            lines.insert(0, (f"waiting {math.ceil(waiting[0].seconds)} s for {waiting_for(waiting)}", "yellow"))
        failed = "  ".join(f"{code} {count:,}" for code, count in counts.items() if code != "OK")
        if failed:
            lines.insert(0, (f"failed: {failed}", "red"))
        self._bar.show(
            self._task,
            lines,
            total=None if expected is None else max(expected, done, 1),
            completed=done,
            expected="?" if expected is None else f"{max(expected, done):,}",
            rate=rate,
            left="" if left is None else f"{clock(left)} left",
        )


def stderr_is_terminal() -> bool:
    """Whether stderr is a terminal. Scrapy Cloud replaces it with an object that has no ``isatty()``."""
    return sys.__stderr__ is not None and sys.stderr is sys.__stderr__ and sys.__stderr__.isatty()


def clock(seconds: float) -> str:
    """Format a duration in seconds as minutes and seconds, or as hours, minutes and seconds.

    >>> clock(75), clock(7384)
    ('1:15', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, which has the plural "-s" unless the number is 1.

    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
