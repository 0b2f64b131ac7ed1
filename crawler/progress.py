"""How far a crawl is: a bar on a terminal, a line a minute in the log."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, TextIO

import structlog
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call

from crawler.outcomes import Accounting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from twisted.internet.task import LoopingCall

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)

REDRAWN = 0.5
"""Seconds between two drawings of the bar."""
RECENT = 60.0
"""Seconds over which the rate is taken."""


class Progress:
    """Draws the bar where stderr is a terminal, and logs a line each ``LOGSTATS_INTERVAL`` where the log is none.

    ``LOGSTATS_INTERVAL`` 0: neither.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if not self.interval:
            raise NotConfigured
        # Not where something has taken stderr's place: Scrapy Cloud's has no isatty().
        self.on_terminal = sys.__stderr__ is not None and sys.stderr is sys.__stderr__ and sys.__stderr__.isatty()
        self.in_log = not self.on_terminal or crawler.settings["LOG_FILE"] is not None
        self._live: Live | None = None
        self._handlers: list[logging.StreamHandler[TextIO]] = []
        self._calls: list[LoopingCall | AsyncioLoopingCall] = []
        self._settled: deque[tuple[float, int]] = deque()
        """Moments, and how many targets were settled by then."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Progress:
        progress = cls(crawler)
        crawler.signals.connect(progress.spider_opened, signals.spider_opened)
        crawler.signals.connect(progress.spider_closed, signals.spider_closed)
        return progress

    def spider_opened(self) -> None:
        """Starts to draw and to log."""
        self._settled.append((time.monotonic(), sum(self.counts().values())))
        if self.on_terminal:
            self._live = Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=False, transient=True)
            self._live.start()
            self._take_log_lines()
            self._every(REDRAWN, self._draw)
        if self.in_log:
            self._every(self.interval, self._log)

    def spider_closed(self) -> None:
        """Clears the terminal and says a last time how far it came."""
        for call in self._calls:
            call.stop()
        if self._live:
            self._draw()
            self._live.transient = False
            self._live.stop()
            for handler in self._handlers:
                handler.setStream(sys.stderr)
        if self.in_log:
            self._log()

    def _every(self, seconds: float, function: object) -> None:
        call = create_looping_call(function)  # type: ignore[arg-type]  # bound methods without arguments
        call.start(seconds, now=False)
        self._calls.append(call)

    def _take_log_lines(self) -> None:
        """Lets the log's lines go through the terminal that the bar is on, else they would break it."""
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.__stderr__:
                handler.setStream(sys.stderr)  # what Live put there
                self._handlers.append(handler)

    # What there is to say

    def counts(self) -> dict[str, int]:
        """Targets settled, by code."""
        assert self.crawler.stats is not None
        stats: Mapping[str, int] = self.crawler.stats.get_stats()
        return {key.removeprefix("targets/"): n for key, n in sorted(stats.items()) if key.startswith("targets/")}

    @property
    def expected(self) -> int | None:
        """How many targets there will have been, as far as it can be told."""
        spider: PlatformSpider = self.crawler.spider  # type: ignore[assignment]  # all of ours are
        rows = spider.source.expected
        accounting = self.crawler.get_spider_middleware(Accounting)
        return rows if rows is None or accounting is None else rows + accounting.pushed

    def rate(self) -> float:
        """Targets a second, over the last minute."""
        now, done = time.monotonic(), sum(self.counts().values())
        self._settled.append((now, done))
        while len(self._settled) > 2 and now - self._settled[1][0] >= RECENT:
            self._settled.popleft()
        since, before = self._settled[0]
        return (done - before) / (now - since) if now > since else 0.0

    def _log(self) -> None:
        counts, rate, expected = self.counts(), self.rate(), self.expected
        done = sum(counts.values())
        left = None if expected is None else max(expected - done, 0)
        logger.info(
            "progress",
            done=done,
            left=left,
            failed=done - counts.get("OK", 0),
            per_second=round(rate, 2),
            seconds_left=round(left / rate) if left is not None and rate else None,
            **{code: count for code, count in counts.items() if code != "OK"},
        )

    def _draw(self) -> None:
        assert self._live is not None
        counts, rate, expected = self.counts(), self.rate(), self.expected
        done = sum(counts.values())
        whole = "?" if expected is None else f"{max(expected, done):,}"
        left = (max(expected - done, 0) / rate) if expected is not None and rate else None
        line = Table.grid(padding=(0, 1))
        line.add_row(
            self.crawler.spider.name if self.crawler.spider else "",
            ProgressBar(total=None if expected is None else max(expected, done, 1), completed=done, width=30),
            f"{done:,}/{whole}",
            f"{rate:,.1f}/s",
            "" if left is None else f"{clock(left)} left",
        )
        failed = "  ".join(f"{code} {count:,}" for code, count in counts.items() if code != "OK")
        spider: PlatformSpider = self.crawler.spider  # type: ignore[assignment]  # all of ours are
        lines = [Text(text, overflow="ellipsis", no_wrap=True) for text in spider.doing]
        if failed:
            lines.insert(0, Text(f"failed: {failed}", style="red", overflow="ellipsis", no_wrap=True))
        self._live.update(Group(line, *lines), refresh=True)


def clock(seconds: float) -> str:
    """Seconds as people read them.

    >>> clock(75), clock(7384)
    ('1:15', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
