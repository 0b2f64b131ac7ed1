"""``scrapy crawl``: Scrapy's own command, with a check of its arguments and an exit code for the outcomes."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Collection, Mapping
from typing import Any

import structlog
from scrapy import Spider
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import feed_process_params_from_cli

from crawler.components import install
from crawler.configuration.command import CheckedCommand, Exit, wrong_use
from crawler.jobs.extension import argument_problems
from crawler.monitoring import summary
from crawler.monitoring.progress import stderr_is_terminal
from crawler.outputs.exporters import UnusableFileError, check_existing_files
from crawler.outputs.feed_files import check_databases
from crawler.outputs.feeds import FAILED, check_feeds
from crawler.outputs.formats import scheme_format, suffix_of
from crawler.runtime import tune_garbage_collector
from crawler.spiders.base import PlatformSpider
from crawler.targets.reporter import outcomes_by_code
from crawler.targets.sources import WrongTargetsError
from crawler.targets.warning import MISSING_ROWS, UNREAD_ROWS

logger = structlog.get_logger(__name__)


class Command(CheckedCommand, CrawlCommand):
    """Run a spider of the project, by name.

    Exit codes: 0 if all targets have data, 4 if some failed, 1 if the run itself failed, 2 for wrong use.

    The exit code is also 4 if a record lacks rows because they could not be read, or if a listing lacks rows that the
    platform would have served.

    Wrong use is an invalid setting, argument, target or feed format. All of them are checked before the log starts and
    any feed is opened. The rows of targets files are not checked: an invalid row is a failed target.
    """

    requires_crawler_process = True
    arguments = "<spider>"

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        given = opts.output, opts.overwrite_output
        opts.output = opts.overwrite_output = None  # read below: the feed formats depend on the spider
        super().process_options(args, opts)
        if len(args) != 1:
            raise UsageError("Expected one spider: scrapy crawl <spider>")
        loader = get_spider_loader(self.settings)
        if args[0] not in loader.list():
            raise UsageError(f"Unknown spider {args[0]!r}; known spiders are {', '.join(sorted(loader.list()))}")
        spider = loader.load(args[0])
        if issubclass(spider, PlatformSpider):
            install(self.settings)
        with wrong_use(ValueError, WrongTargetsError, UnusableFileError):
            if any(given):
                formats = self.settings.getwithbase("FEED_EXPORTERS").keys()
                appended, replaced = ([with_format(each, formats) for each in uris or ()] for uris in given)
                feeds = feed_process_params_from_cli(self.settings, appended, overwrite_output=replaced)
                self.settings.set("FEEDS", feeds, priority="cmdline")
            check_arguments(spider, opts.spargs, self.settings)
        self.prints_summary = replace_log(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        crawler = self.crawler_process.create_crawler(args[0])
        self.crawler_process.crawl(crawler, **opts.spargs)
        tune_garbage_collector(collect=False)
        self.crawler_process.start()
        has_run = not self.crawler_process.bootstrap_failed
        self.exitcode = exit_code(crawler) if has_run else Exit.RUN_FAILED
        # The last line of the log. Scrapyd and Scrapy Cloud show no exit code, and call each ended crawl "finished".
        log = logger.error if self.exitcode == Exit.RUN_FAILED else logger.info
        log("crawl_ended", exit_code=self.exitcode)
        collected = crawler.get_extension(summary.Summary) if self.prints_summary and has_run else None
        if collected is not None:
            print(*collected.lines(), sep="\n", file=sys.stderr)


def replace_log(settings: BaseSettings) -> bool:
    """Return whether to print a summary: on a terminal, unless the user has set a log level or disabled the log.

    If so, and without ``LOG_FILE``, hide log records below ``WARNING``. The summary replaces them.
    """
    chosen = settings.getpriority("LOG_LEVEL") == SETTINGS_PRIORITIES["cmdline"]
    chosen = chosen or "CRAWLER_LOG_LEVEL" in os.environ or not settings.getbool("LOG_ENABLED")
    prints_summary = stderr_is_terminal() and not chosen
    if prints_summary and not settings["LOG_FILE"]:
        settings.set("LOG_LEVEL", "WARNING", priority="cmdline")
        logging.getLogger(summary.__name__).setLevel(logging.CRITICAL)  # the summary shows failed targets
    return prints_summary


def check_arguments(spider: type[Spider], arguments: dict[str, str], settings: BaseSettings) -> None:
    """Check the ``-a`` arguments of a crawl, and its targets, without requests to the platform.

    Raises:
        ValueError: arguments are invalid, or contradict each other or the settings, or a feed cannot be written.
        WrongTargetsError: the targets are wrong.
        UnusableFileError: the crawl would append to a file whose columns differ.
        UsageError: the arguments require a store or a project folder, or the settings disable an essential component.
    """
    if issubclass(spider, PlatformSpider):
        if problems := argument_problems(spider, arguments):
            raise ValueError(with_values(problems, arguments))
        own_settings = settings.copy()
        spider.update_settings(own_settings)
        own: dict[str, Any] = {**arguments}
        made = spider(**own)
        made.check(settings)
        check_feeds(own_settings, made)
        check_databases(settings, whole_records=made.row_path is None and made.selection is None)
        check_existing_files(made, settings)


def with_values(problems: Mapping[str, str], arguments: Mapping[str, str]) -> str:
    """Return the problems with arguments as text, with the values of the arguments."""
    return "; ".join(f"{name}={arguments.get(name, '')}: {each}" if name else each for name, each in problems.items())


def with_format(output: str, known: Collection[str]) -> str:
    """Return a value of ``-o`` or ``-O`` with its format, as in ``out.csv.gz:csv``, if Scrapy would not find it.

    Scrapy takes the format from the last suffix. ``known``: the names of all feed formats.

    Raises:
        ValueError: the suffix before ``.gz`` is not a feed format, or files of this format are already compressed.
    """
    if output.rpartition(":")[2] in known:
        return output
    if (found := scheme_format(output)) is not None:
        return f"{output}:{found.name}"
    if not output.endswith(".gz"):
        return output
    suffix = suffix_of(output)
    if suffix not in known:
        names = ", ".join(sorted(set(known) - {"gz"}))
        raise ValueError(f"{output}: no feed format is called {suffix}; write {output}:FORMAT, with one of {names}")
    return f"{output}:{suffix}"


def exit_code(crawler: Crawler) -> int:
    """Return the exit code for a crawler that has ended, from its stats."""
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    not_written = any(key.startswith(FAILED.format("")) for key in stats)
    if stats.get("finish_reason") != "finished" or not_written:
        return Exit.RUN_FAILED
    codes = outcomes_by_code(stats).keys()
    if not codes and stats.get("log_count/ERROR"):  # no outcome and no error: the file or shard was empty
        return Exit.RUN_FAILED
    lacks_rows = any(key.startswith((UNREAD_ROWS, MISSING_ROWS)) for key in stats)
    return Exit.ALL_HAVE_DATA if codes <= {"OK"} and not lacks_rows else Exit.SOME_FAILED
