"""``scrapy targets``: checks targets files, and selects failed targets of crawls."""

from __future__ import annotations

import argparse
import asyncio
import sys

from scrapy.exceptions import UsageError

from crawler.commands.exit_codes import RUN_FAILED, WRONG_USE
from crawler.commands.target_files import Check, print_retries
from crawler.configuration.command import CheckedCommand
from crawler.registry import spiders
from crawler.targets.files.text import check_encoding
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import Scraper


class Command(CheckedCommand):
    """Exit codes: 0 for success, 4 if rows are not targets, 2 for wrong use, 1 if a file cannot be read."""

    def syntax(self) -> str:
        return "check <file> | retry <file>"

    def short_desc(self) -> str:
        return "Check targets files, and retry failed targets of crawls"

    def long_desc(self) -> str:
        return (
            "check: reads targets files (a path, glob or URL, as in -a targets=) without requests to the platforms. It "
            "prints the number of targets by scraper, the first rows that are not targets, and how long a crawl takes "
            "at least. "
            "retry: prints the targets of a failures feed whose errors are retryable, as a targets file."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--scraper", help="for check, the scraper of targets that do not name one")
        parser.add_argument("--spider", help="for check, the spider of the targets; all spiders without this option")
        parser.add_argument("--encoding", help="for check, the encoding of files that are not UTF-8, such as cp1252")
        parser.add_argument("--all", action="store_true", help="for retry, also targets whose errors are not retryable")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            encoding = None if opts.encoding is None else check_encoding(opts.encoding)
        except ValueError as error:
            raise UsageError(str(error)) from None
        try:
            match args:
                case ["check", location]:
                    from crawler.targets.files.source import FileSource  # noqa: PLC0415  # the readers of all formats

                    parser = TargetParser(_scrapers(opts.spider), opts.scraper)
                    check = asyncio.run(Check.of(FileSource(parser, location, encoding=encoding)))
                    print(*check.lines(self.settings), sep="\n")
                    if check.error:
                        print(check.error, file=sys.stderr)
                    self.exitcode = check.exit_code
                case ["retry", location]:
                    self.exitcode = print_retries(location, retry_all=opts.all)
                case _:
                    raise UsageError(f"Use: scrapy targets {self.syntax()}")
        except TargetsUnavailableError as error:
            print(error, file=sys.stderr)
            self.exitcode = WRONG_USE if isinstance(error, WrongTargetsError) else RUN_FAILED


def _scrapers(spider: str | None) -> tuple[Scraper, ...]:
    """Return the scrapers of a spider, or of all spiders.

    Raises:
        UsageError: the spider does not exist.
    """
    if spider is not None and spider not in spiders():
        raise UsageError(f"Unknown spider {spider!r}; known spiders are {', '.join(spiders())}")
    return tuple(each for name, found in spiders().items() if spider in {None, name} for each in found.scrapers)
