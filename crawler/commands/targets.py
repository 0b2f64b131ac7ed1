"""``scrapy targets``: checks targets files, selects failed targets, and fills a queue in Redis."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import sys
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

import orjson
from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from scrapy.exceptions import UsageError

from crawler.commands.target_files import Check, print_retries
from crawler.configuration.command import CheckedCommand
from crawler.configuration.exit_codes import ALL_HAVE_DATA, RUN_FAILED, SOME_FAILED, WRONG_USE
from crawler.monitoring.progress import clock
from crawler.outputs.failures import failure_line
from crawler.registry import spiders
from crawler.targets.files import FileSource, check_encoding
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Outcome, Scraper, Target, TargetParser

if TYPE_CHECKING:
    from crawler.targets.redis_queue.stream import Status, TargetStream

TARGETS_PER_PUSH = 500
"""Number of targets that are added to the queue in one transaction."""
REFRESH_SECONDS = 1.0
"""Seconds between two refreshes of the status on a terminal."""


class Command(CheckedCommand):
    """Exit codes: 0 for success, 4 if rows are not targets, 2 for wrong use, 1 if Redis or a file cannot be used."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "check <file> | retry <file> | push <file> | status | dead  [--queue NAME]"

    def short_desc(self) -> str:
        return "Check targets files, retry failed targets, and fill a queue of targets in Redis"

    def long_desc(self) -> str:
        return (
            "check: reads targets files (a path, glob or URL, as in -a targets=) without requests to the platforms. It "
            "prints the number of targets by scraper, the first rows that are not targets, and how long a crawl takes "
            "at least. "
            "retry: prints the targets of a failures feed whose errors are retryable, as a targets file. "
            "push: adds the targets in a file (a path, glob or URL, as in -a targets=) to the queue. To continue an "
            "interrupted push, run the same command again. Invalid lines are printed as in a failures feed. "
            "status: shows the numbers of waiting, running, completed and failed targets, refreshed on a terminal, "
            "else as one line of JSON. "
            "dead: prints the dead letters (targets that were given up) as a targets file, and their reasons on stderr."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--queue", default="default", help="the queue's name, as in -a queue= ('default' without this option)"
        )
        parser.add_argument("--scraper", help="for check and push, the scraper of targets that do not name one")
        parser.add_argument("--spider", help="for check, the spider of the targets; all spiders without this option")
        parser.add_argument("--encoding", help="for check and push, the encoding of files that are not UTF-8 (cp1252)")
        parser.add_argument("--all", action="store_true", help="for retry, also targets whose errors are not retryable")
        parser.add_argument(
            "--json", action="store_true", help="for status, print one line of JSON, also on a terminal"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        try:
            encoding = None if opts.encoding is None else check_encoding(opts.encoding)
        except ValueError as error:
            raise UsageError(str(error)) from None
        try:
            match args:
                case ["check", location]:
                    parser = TargetParser(_scrapers(opts.spider), opts.scraper)
                    check = asyncio.run(Check.of(FileSource(parser, location, encoding=encoding)))
                    print(*check.lines(self.settings), sep="\n")
                    if check.error:
                        print(check.error, file=sys.stderr)
                    self.exitcode = check.exit_code
                case ["retry", location]:
                    self.exitcode = print_retries(location, retry_all=opts.all)
                case _:
                    self._run_queue(args, opts, encoding)
        except TargetsUnavailableError as error:
            print(error, file=sys.stderr)
            self.exitcode = WRONG_USE if isinstance(error, WrongTargetsError) else RUN_FAILED

    def _run_queue(self, args: list[str], opts: argparse.Namespace, encoding: str | None) -> None:
        assert self.settings is not None
        url = self.settings["REDIS_URL"]
        if not url:
            raise UsageError("REDIS_URL is not set: use -s REDIS_URL=redis://...")
        try:
            from redis.exceptions import RedisError  # noqa: PLC0415  # an extra

            from crawler.targets.redis_queue.stream import TargetStream  # noqa: PLC0415  # likewise
        except ImportError:
            raise UsageError("A queue needs the Redis client: install the extra 'redis'.") from None
        streams = {name: TargetStream(url, opts.queue, name) for name in spiders()}
        work: Coroutine[Any, Any, int]
        match args:
            case ["push", location]:
                work = push(streams, location, opts.scraper, encoding)
            case ["status"]:
                as_json = opts.json or not sys.stdout.isatty()
                work = print_status(streams, opts.queue) if as_json else show_status(streams, opts.queue)
            case ["dead"]:
                work = print_dead(streams)
            case _:
                raise UsageError(f"Use: scrapy targets {self.syntax()}")
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self.exitcode = asyncio.run(_closing(streams, work))
        except RedisError as error:
            print(error, file=sys.stderr)
            self.exitcode = RUN_FAILED


async def _closing(streams: dict[str, TargetStream], work: Coroutine[Any, Any, int]) -> int:
    try:
        return await work
    finally:
        for stream in streams.values():
            await stream.close()


def _scrapers(spider: str | None) -> tuple[Scraper, ...]:
    """Return the scrapers of a spider, or of all spiders.

    Raises:
        UsageError: the spider does not exist.
    """
    if spider is not None and spider not in spiders():
        raise UsageError(f"Unknown spider {spider!r}; known spiders are {', '.join(spiders())}")
    return tuple(each for name, found in spiders().items() if spider in {None, name} for each in found.scrapers)


async def push(
    streams: dict[str, TargetStream], location: str, scraper: str | None, encoding: str | None = None
) -> int:
    """Add the targets in a file to the queue, each for its platform. Print the failures of invalid lines."""
    source = FileSource(TargetParser(_scrapers(None), scraper), location, encoding=encoding)
    await source.open()
    name = hashlib.sha256(orjson.dumps([source.identity, scraper], option=orjson.OPT_SORT_KEYS)).hexdigest()
    done = {platform: await stream.pushed(name) for platform, stream in streams.items()}
    pushed, rejected = dict.fromkeys(streams, 0), 0
    async for chunk in _chunks(source):
        parts: dict[str, list[Target]] = {}
        for each in chunk:
            if isinstance(each, InvalidTarget):
                rejected += 1
                print(orjson.dumps(failure_line(Outcome(each, None, each.error, 0))).decode())
            elif each.row is not None and each.row >= done[each.scraper.platform]:
                parts.setdefault(each.scraper.platform, []).append(each)
        for platform, targets in parts.items():
            if not pushed[platform]:
                await streams[platform].open()
            await streams[platform].push(
                (orjson.dumps(each.dump()) for each in targets), (name, (targets[-1].row or 0) + 1)
            )
            pushed[platform] += len(targets)
    for platform, stream in streams.items():
        if pushed[platform] or done[platform]:
            await stream.forget_push(name)
            before = " (continuing an interrupted push)" if done[platform] else ""
            print(f"{platform}: {pushed[platform]:,} targets pushed{before}", file=sys.stderr)
    if rejected:
        print(f"{rejected:,} lines are not targets", file=sys.stderr)
    return SOME_FAILED if rejected else ALL_HAVE_DATA


async def _chunks(source: FileSource) -> AsyncIterator[list[Target | InvalidTarget]]:
    chunk: list[Target | InvalidTarget] = []
    async for each in source:
        chunk.append(each)
        if len(chunk) == TARGETS_PER_PUSH:
            yield chunk
            chunk = []
    yield chunk


async def _all(streams: dict[str, TargetStream]) -> dict[str, Status]:
    """Return the status of each platform that has or had targets in the queue."""
    found = {platform: await stream.status() for platform, stream in streams.items()}
    return {
        platform: each for platform, each in found.items() if each.waiting + each.running + each.buffered + each.done
    }


async def print_status(streams: dict[str, TargetStream], queue: str) -> int:
    """Print the status as one line of JSON."""
    platforms = {platform: each.as_dict() for platform, each in (await _all(streams)).items()}
    print(orjson.dumps({"queue": queue, "platforms": platforms}).decode())
    return ALL_HAVE_DATA


async def show_status(streams: dict[str, TargetStream], queue: str) -> int:
    """Show the status as a table, refreshed until Ctrl-C."""
    with Live(console=Console(), auto_refresh=False) as live:
        while True:
            live.update(status_table(await _all(streams), queue), refresh=True)
            await asyncio.sleep(REFRESH_SECONDS)


def status_table(platforms: dict[str, Status], queue: str) -> Table:
    """Return the status of each platform as a table."""
    table = Table(box=box.SIMPLE, title=f"queue {queue}", caption="Ctrl-C ends this view, not the workers")
    for head in ("platform", "waiting", "running", "workers", "done", "failed", "dead", "per s", "left"):
        table.add_column(head, justify="left" if head in {"platform", "failed"} else "right", no_wrap=True)
    for platform, each in platforms.items():
        left = each.seconds_left
        table.add_row(
            platform,
            f"{each.waiting:,}",
            f"{each.running:,}",
            f"{each.workers:,}",
            f"{each.done:,}" + (f" ({each.buffered:,} in open files)" if each.buffered else ""),
            "\n".join(f"{code} {count:,}" for code, count in each.failed.items()),
            f"{each.dead:,}",
            f"{each.per_second:,.1f}",
            "?" if left is None else clock(left),
        )
    return table


async def print_dead(streams: dict[str, TargetStream]) -> int:
    """Print the dead letters as a targets file, which can be pushed again. Print their reasons on stderr."""
    for stream in streams.values():
        for letter in await stream.dead_letters():
            target = orjson.loads(letter["target"])
            line = {"id": target["id"], "scraper": target["scraper"], **target["params"]}
            print(orjson.dumps(line).decode())
            print(f"{target['id']}: {letter['reason']}", file=sys.stderr)
    return ALL_HAVE_DATA
