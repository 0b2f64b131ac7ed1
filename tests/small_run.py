"""A run of ten targets in this process, without downloads, with the real feeds, journal and tracker."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from crawler.commands.crawl import exit_code
from crawler.errors import TargetNotFound
from crawler.outputs.feeds import Feeds
from crawler.spiders.retail import RetailSpider
from crawler.targets.checkpoint import Resume
from crawler.targets.sources import TargetsUnavailableError
from crawler.targets.target import Record, Target
from crawler.targets.tracker import TargetTracker

COUNT = 10


def targets_file(folder: Path) -> Path:
    """Write a file of ten targets: every third has no data, every fourth has a second page."""
    file = folder / "targets.jsonl"
    file.write_text("".join(f'{{"id": "t{n}", "cat_id": "1_{n}"}}\n' for n in range(COUNT)))
    return file


def has_data(number: int) -> bool:
    return number % 3 != 2


def has_more(number: int) -> bool:
    return has_data(number) and number % 4 == 0


EXPECTED = (
    Counter(
        [(f"1_{n}", 1) for n in range(COUNT) if has_data(n)] + [(f"1_{n}", 2) for n in range(COUNT) if has_more(n)]
    ),
    Counter((f"1_{n}", 1) for n in range(COUNT) if not has_data(n)),
)
"""Category and page of each line in the final feeds of data and failures."""


def outputs(folder: Path) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """Category and page of each line in the feeds. An incomplete line raises an exception."""
    found: list[Counter[tuple[str, int]]] = []
    for name in ("out", "failed"):
        counts: Counter[tuple[str, int]] = Counter()
        for file in folder.glob(f"{name}*"):
            text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            assert not text or text.endswith(b"\n")
            for line in text.splitlines():
                params = json.loads(line)["params"]
                counts[params["cat_id"], params["page"]] += 1
        found.append(counts)
    return found[0], found[1]


class _Engine:
    """The part of Scrapy's engine that the components use."""

    def __init__(self, spider: RetailSpider, tracker: TargetTracker) -> None:
        self.spider = spider
        self.scraper = SimpleNamespace(spidermw=SimpleNamespace(middlewares=(tracker,)))
        self.reason = ""

    async def close_spider_async(self, *, reason: str) -> None:
        self.reason = self.reason or reason


class SmallRun:
    """One start of the run."""

    def __init__(self, folder: Path, targets: Path, feed: str = "out.jsonl", *, resume: bool = True) -> None:
        self.folder = folder
        self.reason = ""
        settings = Settings()
        settings.setmodule("crawler.settings", priority="project")
        settings.set("FEEDS", {str(folder / feed): {"format": "jsonlines"}}, priority="cmdline")
        settings.set("FAILURES_FEED", str(folder / "failed.jsonl"), priority="cmdline")
        self.crawler = Crawler(RetailSpider, settings)
        self.crawler.addons.load_settings(self.crawler.settings)
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        arguments = {"targets": str(targets)} | ({"resume": str(folder / "state")} if resume else {})
        self.spider = RetailSpider.from_crawler(self.crawler, **arguments)
        self.crawler.spider = self.spider

    def start(self) -> int:
        """Run, and return the exit code of the command."""
        return asyncio.run(self._start())

    async def _start(self) -> int:
        self.feeds = Feeds.from_crawler(self.crawler)
        resume = Resume.from_crawler(self.crawler)
        tracker = TargetTracker.from_crawler(self.crawler)
        self.crawler.extensions = cast("Any", SimpleNamespace(middlewares=(self.feeds, resume)))
        self.engine = _Engine(self.spider, tracker)
        self.crawler.engine = cast("Any", self.engine)
        try:
            self.reason = await self._crawl(tracker)
            await self.crawler.signals.send_catch_log_async(
                signals.spider_closed, spider=self.spider, reason=self.reason
            )
            assert self.crawler.stats is not None
            self.crawler.stats.set_value("finish_reason", self.reason)
            await self.crawler.signals.send_catch_log_async(signals.engine_stopped)
        finally:
            if resume.journal is not None:
                resume.journal.close()  # as the end of a process would release its locks
        return exit_code(self.crawler)

    async def _crawl(self, tracker: TargetTracker) -> str:
        opened = await self.crawler.signals.send_catch_log_async(
            signals.spider_opened, spider=self.spider, dont_log=CloseSpider
        )
        for _, result in opened:
            if isinstance(result, CloseSpider):
                return result.reason
        try:
            async for target in tracker.release(self.spider.source):
                self._scrape(tracker, target)
                await asyncio.sleep(0)
                if self.engine.reason:
                    return self.engine.reason
        except TargetsUnavailableError as error:
            return str(error)
        return self.engine.reason or "finished"

    @staticmethod
    def _scrape(tracker: TargetTracker, target: Target) -> None:
        params = cast("Any", target.params)
        number = int(params.cat_id.removeprefix("1_"))
        if not has_data(number):
            tracker.complete(target, error=TargetNotFound("not found"))
            return
        if has_more(number) and params.page == 1:
            tracker.push(target.followup(page=2))
        record = Record({"text": "invented " * (number + 1)}, target, datetime.now(UTC))
        tracker.complete(target, record=record.as_line())
