"""``scrapy targets``: checks targets files, and selects failed targets of crawls."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from crawler.configuration.command import CheckedCommand, Exit, wrong_use
from crawler.downloads.egress_setting import HOUR, egresses_of, platform_capacity
from crawler.monitoring.progress import clock
from crawler.registry import spiders
from crawler.targets.files.text import check_encoding
from crawler.targets.parser import TargetParser
from crawler.targets.sources import FetchedOnce, TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Scraper

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.targets.files.source import FileSource

MAX_SHOWN_ROWS = 10
"""Maximum number of invalid rows that ``check`` prints."""


class Command(CheckedCommand):
    """Check targets files, and retry failed targets of crawls.

    check: reads targets files (a path, glob or URL, as in -a targets=) without requests to the platforms. Prints the
    number of targets by scraper, the first rows that are not targets, and about how long a crawl takes. retry:
    prints the targets of a failures feed whose errors are retryable, as a targets file.

    Exit codes: 0 for success, 4 if rows are not targets or there are none, 2 for wrong use, 1 if a file cannot be read.
    """

    arguments = "check <file> | retry <file>"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--scraper", help="for check, the scraper of targets that do not name one")
        parser.add_argument("--spider", help="for check, the spider of the targets; all spiders without this option")
        parser.add_argument("--encoding", help="for check, the encoding of files that are not UTF-8, such as cp1252")
        parser.add_argument("--all", action="store_true", help="for retry, also targets whose errors are not retryable")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with wrong_use(ValueError):
            encoding = None if opts.encoding is None else check_encoding(opts.encoding)
        try:
            match args:
                case ["check", location]:
                    from crawler.targets.files.source import FileSource  # noqa: PLC0415  # the readers of all formats

                    parser = TargetParser(_scrapers(opts.spider), opts.scraper)
                    check = asyncio.run(Check.of(FileSource(parser, location, encoding=encoding)))
                    print(*check.lines(self.settings), sep="\n")
                    self.exitcode = check.exit_code
                    if check.error:
                        self.fail(check.error)
                case ["retry", location]:
                    self.exitcode = print_retries(location, retry_all=opts.all)
                case _:
                    raise self.wrong_arguments()
        except TargetsUnavailableError as error:
            self.fail(error, Exit.WRONG_USE if isinstance(error, WrongTargetsError) else Exit.RUN_FAILED)


def _scrapers(spider: str | None) -> tuple[Scraper, ...]:
    """Return the scrapers of a spider, or of all spiders.

    Raises:
        UsageError: the spider does not exist.
    """
    if spider is not None and spider not in spiders():
        raise UsageError(f"Unknown spider {spider!r}; known spiders are {', '.join(spiders())}")
    return tuple(each for name, found in spiders().items() if spider in {None, name} for each in found.scrapers)


@dataclass
class Check:
    """The result of ``scrapy targets check``: the number of targets of each scraper, and the invalid rows."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Platform and scraper -> the number of targets."""
    invalid: int = 0
    first_invalid: list[InvalidTarget] = field(default_factory=list)
    repeated: int = 0
    """Number of rows that repeat the target of an earlier row. ``counts`` does not include them."""
    error: TargetsUnavailableError | None = None
    """Why the rest of the files cannot be read. None: all rows were read."""

    @classmethod
    async def of(cls, files: FileSource) -> Check:
        """Read all rows.

        Raises:
            TargetsUnavailableError: no row can be read.
        """
        check, source = cls(), FetchedOnce(files)
        await source.open()
        check.repeated = source.repeated
        try:
            async for each in source:
                if isinstance(each, InvalidTarget):
                    check.invalid += 1
                    if check.invalid <= MAX_SHOWN_ROWS:
                        check.first_invalid.append(each)
                else:
                    check.counts[each.scraper.platform, each.scraper.name] += 1
        except TargetsUnavailableError as error:
            check.error = error
        return check

    @property
    def exit_code(self) -> int:
        """0 if all rows are targets, 4 if some are not or there are none, 1 if the files cannot be read completely."""
        if self.error:
            return Exit.RUN_FAILED
        return Exit.SOME_FAILED if self.invalid or not self.counts else Exit.ALL_HAVE_DATA

    def lines(self, settings: BaseSettings) -> Iterator[str]:
        """Yield the lines to print."""
        yield f"targets: {self.counts.total():,}; rows that are not targets: {self.invalid:,}"
        for (_, name), count in self.counts.most_common():
            yield f"  {name}: {count:,}"
        if self.repeated:
            yield f"rows that repeat a target, which is fetched once: {self.repeated:,}"
        for each in self.first_invalid:
            yield f"  {each.error.message}"
        if self.invalid > len(self.first_invalid):
            yield f"  ... and {self.invalid - len(self.first_invalid):,} more"
        platforms: Counter[str] = Counter()
        for (platform, _), count in self.counts.items():
            platforms[platform] += count
        for platform, count in platforms.items():
            yield duration(platform, count, settings)


def duration(platform: str, targets: int, settings: BaseSettings) -> str:
    """Return the estimated time of a crawl of these targets, within the budgets of the platform's egresses, as text."""
    budgets = [egress.budget(platform, settings) for egress in egresses_of(platform, settings)]
    hourly = sum(platform_capacity(platform, budget) for budget in budgets)
    return f"{platform}: about {clock(HOUR * targets / hourly)}, at the {hourly:,.0f} targets per hour of its budget"


def print_retries(location: str, *, retry_all: bool) -> int:
    """Print the failed targets of a failures feed as a targets file, and their number on stderr.

    ``retry_all``: also print targets whose errors are not retryable. Failures of rows that are not targets have no
    params, and are left out. Return the exit code.

    Raises:
        TargetsUnavailableError: the files cannot be read, or are not failures feeds.
    """
    printed: set[str] = set()
    left_out = without_params = 0
    from crawler.targets.files.source import read_json_objects  # noqa: PLC0415  # the other subcommand does not need it

    for where, failure in read_json_objects(location):
        has_keys = {"id", "scraper", "params", "code", "retryable"} <= failure.keys()
        if not has_keys or not isinstance(failure.get("columns", {}), dict):
            raise WrongTargetsError(f"{where}: this is not a line of a failures feed.")
        if not (retry_all or failure["retryable"]):
            left_out += 1
        elif not isinstance(failure["params"], dict):
            without_params += 1
        elif (line := _target_line(failure)) not in printed:
            printed.add(line)
            print(line)
    print(f"targets to retry: {len(printed):,}", file=sys.stderr)
    if left_out:
        print(f"left out, because a retry does not help: {left_out:,} (--all adds them)", file=sys.stderr)
    if without_params:
        print(f"left out, because they are not targets: {without_params:,} (correct these rows)", file=sys.stderr)
    return Exit.SOME_FAILED if without_params else Exit.ALL_HAVE_DATA


def _target_line(failure: dict[str, Any]) -> str:
    scraper = {"scraper": failure["scraper"]} if failure["scraper"] else {}
    return json.dumps({**failure.get("columns", {}), "id": failure["id"], **scraper, **failure["params"]})
