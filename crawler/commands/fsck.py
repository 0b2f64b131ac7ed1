"""``scrapy fsck``: checks the journal of a run, and the local feeds that it names. It changes no file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from scrapy.exceptions import UsageError

from crawler.configuration.command import CheckedCommand
from crawler.outputs.feed_files import LINE_FORMATS
from crawler.targets.journal import CannotResumeError, Journal

if TYPE_CHECKING:
    import argparse

    from crawler.targets.journal_feeds import JournalFeed

MAX_LINES = 10
"""Maximum number of line numbers in a message."""


class Command(CheckedCommand):
    """Prints the stored targets by code, and for each local feed its size and its problems.

    Exit codes: 0 if journal and feeds agree and all lines are valid, 1 if there is a problem, 2 for wrong use.
    """

    requires_crawler_process = False

    def syntax(self) -> str:
        return "<folder of -a resume=>"

    def short_desc(self) -> str:
        return "Check the journal and the feeds of a resumable run"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"Use: scrapy fsck {self.syntax()}")
        journal = Journal(Path(args[0]))
        if not journal.path.is_file():
            raise UsageError(f"{journal.path} does not exist: name the folder of -a resume=.")
        try:
            journal.open(_has_line_suffix)
        except CannotResumeError as error:
            print(f"The run cannot be resumed: {error}.")
            self.exitcode = 1
            return
        finally:
            journal.close()
        codes = "".join(f", {code} {number}" for code, number in sorted(journal.counts.items()))
        print(f"{journal.path}: {journal.counts.total()} targets are stored{codes}; {len(journal.pending)} are pending")
        for feed in journal.feeds:
            self._check(feed)

    def _check(self, feed: JournalFeed) -> None:
        problems = list(feed_problems(feed))
        print(f"{feed.path}: {feed.length} bytes, {'damaged' if problems else 'valid'}")
        for problem in problems:
            print(f"    {problem}")
            self.exitcode = 1


def feed_problems(feed: JournalFeed) -> Iterator[str]:
    """Yield the problems of a feed, and what happens to them when the run is resumed."""
    if feed.void:
        yield "lines of stored targets are missing: a resumed run scrapes their targets again"
    if feed.length > feed.end:
        yield f"{feed.length - feed.end} bytes follow the last stored target: a resumed run removes them"
    if feed.lines:
        yield from line_problems(feed.path, feed.end)


def line_problems(path: Path, end: int) -> Iterator[str]:
    """Check the first ``end`` bytes of a JSON Lines feed. Yield the problems, which a resumed run does not repair."""
    invalid, repeated = [], []
    seen: set[str] = set()
    last = None
    for number, line in enumerate(_lines(path, end), 1):
        try:
            target = _target_of(orjson.loads(line))
        except (orjson.JSONDecodeError, TypeError):
            invalid.append(number)
            continue
        if target is None:
            continue
        if target != last and target in seen:  # rows of the same target are consecutive
            repeated.append(number)
        seen.add(target)
        last = target
    if invalid:
        yield f"{_named(invalid)}: not a line of a feed"
    if repeated:
        yield f"{_named(repeated)}: an earlier line has the same target"


def _target_of(line: Any) -> str | None:
    """Return the id of a line's target. None if the line has none: it is a record alone, or has selected fields only.

    Raises:
        TypeError: the line is not an object.
    """
    if not isinstance(line, dict):
        raise TypeError("not an object")
    return line.get("target_id", line.get("id") if "scraper" in line else None)


def _lines(path: Path, end: int) -> Iterator[bytes]:
    read = 0
    if not end:
        return
    with path.open("rb") as file:
        for line in file:
            read += len(line)
            if read > end:
                return
            yield line


def _named(numbers: list[int]) -> str:
    """Return the numbers of lines as text.

    >>> _named([3]), _named(list(range(1, 13)))
    ('line 3', 'lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 others')
    """
    others = f" and {len(numbers) - MAX_LINES} others" if len(numbers) > MAX_LINES else ""
    return f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:MAX_LINES]))}{others}"


def _has_line_suffix(path: str) -> bool:
    """Whether the name of a feed is that of a JSON Lines file. The journal does not contain the formats."""
    return Path(path).suffix.removeprefix(".") in LINE_FORMATS
