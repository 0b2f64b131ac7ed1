"""``scrapy crawl``: Scrapy's own, with an exit code that says how the targets ended."""

from __future__ import annotations

import argparse

from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

ALL_HAVE_DATA, RUN_BROKE, SOME_FAILED = 0, 1, 4


class Command(CrawlCommand):
    """Exits 0 when every target has data, 4 when some failed, 1 when the run itself broke."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("Name one spider: scrapy crawl <spider>")
        assert self.crawler_process is not None
        crawler = self._create_crawler(args[0])
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        self.exitcode = RUN_BROKE if self.crawler_process.bootstrap_failed else exit_code(crawler)


def exit_code(crawler: Crawler) -> int:
    """The exit code that a finished crawler's stats stand for."""
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    if stats.get("finish_reason") != "finished" or any(key.startswith("feedexport/failed_count/") for key in stats):
        return RUN_BROKE
    codes = {key.removeprefix("targets/") for key in stats if key.startswith("targets/")}
    if not codes:
        return RUN_BROKE
    return ALL_HAVE_DATA if codes == {"OK"} else SOME_FAILED
