"""``scrapy targets check`` and ``scrapy targets retry``, which read files and start no crawl."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawler.commands.exit_codes import ALL_HAVE_DATA, RUN_FAILED, SOME_FAILED
from crawler.downloads.egress_setting import HOUR, egresses_of, platform_capacity
from crawler.monitoring.progress import clock
from crawler.targets.repeats import FetchedOnce
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Scraper

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.targets.files.source import FileSource

MAX_SHOWN_ROWS = 10
"""Maximum number of invalid rows that ``check`` prints."""


@dataclass
class Check:
    """The result of ``scrapy targets check``: the number of targets of each scraper, and the invalid rows."""

    scrapers: dict[str, Scraper] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
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
                    check.scrapers[each.scraper.name] = each.scraper
                    check.counts[each.scraper.name] += 1
        except TargetsUnavailableError as error:
            check.error = error
        return check

    @property
    def exit_code(self) -> int:
        """0 if all rows are targets, 4 if some are not or there are none, 1 if the files cannot be read completely."""
        if self.error:
            return RUN_FAILED
        return SOME_FAILED if self.invalid or not self.counts else ALL_HAVE_DATA

    def lines(self, settings: BaseSettings) -> Iterator[str]:
        """Yield the lines to print."""
        yield f"targets: {self.counts.total():,}; rows that are not targets: {self.invalid:,}"
        for name, count in self.counts.most_common():
            yield f"  {name}: {count:,}"
        if self.repeated:
            yield f"rows that repeat a target, which is fetched once: {self.repeated:,}"
        for each in self.first_invalid:
            yield f"  {each.error.message}"
        if self.invalid > len(self.first_invalid):
            yield f"  ... and {self.invalid - len(self.first_invalid):,} more"
        platforms: Counter[str] = Counter()
        for name, count in self.counts.items():
            platforms[self.scrapers[name].platform] += count
        for platform, count in platforms.items():
            yield duration(platform, count, settings)


def duration(platform: str, targets: int, settings: BaseSettings) -> str:
    """Say how long a crawl of these targets takes within the budgets of the platform's egresses."""
    budgets = [egress.budget(platform, settings) for egress in egresses_of(platform, settings)]
    hourly = sum(platform_capacity(platform, budget) for budget in budgets)
    return f"{platform}: about {clock(HOUR * targets / hourly)}, at the {hourly:,.0f} targets per hour of its budget"


def print_retries(location: str, *, retry_all: bool) -> int:
    """Print the failed targets of a failures feed as a targets file, and their number on stderr.

    ``retry_all``: also print targets whose errors are not retryable. Rows that could not be parsed have no params, and
    are left out. Return the exit code.

    Raises:
        TargetsUnavailableError: the files cannot be read, or are not failures feeds.
    """
    printed: set[str] = set()
    left_out = without_params = 0
    from crawler.targets.files.find import read_json_objects  # noqa: PLC0415  # only this command reads files

    for where, failure in read_json_objects(location):
        if not {"id", "scraper", "params", "code", "retryable"} <= failure.keys():
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
    return SOME_FAILED if without_params else ALL_HAVE_DATA


def _target_line(failure: dict[str, Any]) -> str:
    scraper = {"scraper": failure["scraper"]} if failure["scraper"] else {}
    return json.dumps({"id": failure["id"], **scraper, **failure["params"]})
