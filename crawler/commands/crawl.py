"""``scrapy crawl``: Scrapy's own command, with an exit code that depends on the outcomes of the targets."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any, get_args, get_origin

import structlog
from pydantic import ValidationError
from scrapy import Spider
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__
from typing_extensions import get_original_bases

from crawler.commands import EXIT_INVALID_SETTINGS, settings_are_valid
from crawler.monitoring import summary
from crawler.monitoring.progress import stderr_is_terminal
from crawler.outputs.feeds import FAILED, UNSTORED
from crawler.platforms.model import validation_details
from crawler.spiders.base import PlatformSpider
from crawler.targets.sources import WrongTargetsError
from crawler.targets.tracker import outcomes_by_code

logger = structlog.get_logger(__name__)

ALL_HAVE_DATA, RUN_BROKE, SOME_FAILED = 0, 1, 4


class Command(CrawlCommand):
    """Exit codes: 0 if all targets have data, 4 if some failed, 1 if the run itself failed, 2 if a setting or the
    targets are wrong.
    """

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """On a terminal, print a summary instead of the log, unless the user has set a log level."""
        super().process_options(args, opts)
        assert self.settings is not None
        chosen = self.settings.getpriority("LOG_LEVEL") == SETTINGS_PRIORITIES["cmdline"]
        chosen = chosen or "CRAWLER_LOG_LEVEL" in os.environ or not self.settings.getbool("LOG_ENABLED")
        self.prints_summary = stderr_is_terminal() and not chosen
        if self.prints_summary and not self.settings["LOG_FILE"]:
            self.settings.set("LOG_LEVEL", "WARNING", priority="cmdline")
            logging.getLogger(summary.__name__).setLevel(logging.CRITICAL)  # the summary has the failed targets

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("Expected one spider: scrapy crawl <spider>")
        assert self.crawler_process is not None
        known = self.crawler_process.spider_loader.list()
        if args[0] not in known:
            raise UsageError(f"Unknown spider {args[0]!r}; known spiders are {', '.join(sorted(known))}")
        if not settings_are_valid(self.crawler_process.settings):
            self.exitcode = EXIT_INVALID_SETTINGS
            return
        crawler = self.crawler_process.create_crawler(args[0])
        problems = argument_problems(crawler.spidercls, opts.spargs)
        if problems:
            logger.error("invalid_arguments", spider=args[0], **problems)
            self.exitcode = RUN_BROKE
            return
        try:
            check_targets(crawler.spidercls, opts.spargs)
        except WrongTargetsError as error:
            print(error, file=sys.stderr)
            self.exitcode = EXIT_INVALID_SETTINGS
            return
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        if self.crawler_process.bootstrap_failed:
            self.exitcode = RUN_BROKE
            return
        self.exitcode = exit_code(crawler)
        collected = crawler.get_extension(summary.Summary) if self.prints_summary else None
        if collected is not None:
            print(*collected.lines(), sep="\n", file=sys.stderr)


def argument_problems(spider: type[Spider], arguments: dict[str, str]) -> dict[str, str]:
    """Return the name of each invalid ``-a`` argument with its error, so that a log line can replace a traceback."""
    models = [get_args(base)[0] for base in get_original_bases(spider) if get_origin(base) is Args]
    try:
        for model in models:
            model(**arguments)
    except ValidationError as error:
        details = validation_details(error)
        return {".".join(map(str, each["loc"])) or "arguments": each["msg"] for each in details}
    return {}


def check_targets(spider: type[Spider], arguments: dict[str, Any]) -> None:
    """Check the targets of a crawl, before a feed is opened, which would overwrite earlier output.

    Raises:
        WrongTargetsError: the crawl would have no targets.
    """
    if issubclass(spider, PlatformSpider):
        spider(**arguments).source.check()


def exit_code(crawler: Crawler) -> int:
    """Return the exit code for a crawler that has ended, from its stats."""
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    not_written = any(key.startswith(FAILED.format("")) for key in stats) or stats.get(UNSTORED)
    if stats.get("finish_reason") != "finished" or not_written:
        return RUN_BROKE
    codes = outcomes_by_code(stats).keys()
    if not codes and stats.get("log_count/ERROR"):  # no targets, no error: an empty file, shard or queue
        return RUN_BROKE
    return ALL_HAVE_DATA if codes <= {"OK"} else SOME_FAILED
