"""``scrapy probe``: fetches one live target and reports its requests and fields, to diagnose a scraper."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from crawler.commands.crawl import check_arguments
from crawler.configuration.command import CheckedCommand, Exit, add_values, named_values, scraper_named, wrong_use
from crawler.downloads.egress_setting import egresses_of, use_only
from crawler.platforms import platforms
from crawler.probe.recorder import Download, Recorder
from crawler.probe.report import EmptyField, budget_lines, empty_fields, is_good, load_targets, table
from crawler.registry import find_scraper, spider_for
from crawler.storage.scrub import Scrubber
from crawler.targets.sources import WrongTargetsError
from crawler.targets.target import Scraper


class Command(CheckedCommand):
    """Fetch one live target through each egress: report sources, times and empty fields; save responses as fixtures.

    Exit codes: 0 if the target has data, 4 for a typed error, 2 for wrong use, 1 if the run itself failed. With --all:
    0 if all targets have all of their data, 4 if a target or a source failed, or a part of a page was unread.
    """

    requires_crawler_process = True
    arguments = "<scraper> | --all | --budgets [<platform> ...]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_values(parser, "params", "a param of the target (default is the scraper's example)")
        parser.add_argument("--save", metavar="DIR", type=Path, help="save the responses as scrubbed fixtures")
        parser.add_argument(
            "--keep", metavar="NAME", action="append", default=[], help="with --save, a key whose value is not scrubbed"
        )
        parser.add_argument(
            "--all", action="store_true", dest="every", help="probe one known target per scraper, and print a table"
        )
        parser.add_argument(
            "--targets", metavar="FILE", type=Path, help="for --all, a JSON object of params by scraper"
        )
        parser.add_argument(
            "--budgets", action="store_true", help="print the budgets of each egress and source, without a request"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        self.settings.setdict({"FEEDS": {}, "FAILURES_FEED": None}, priority="cmdline")
        if self.settings.getpriority("LOG_LEVEL") != SETTINGS_PRIORITIES["cmdline"]:
            self.settings.set("LOG_LEVEL", "WARNING", priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.budgets:
            self._print_budgets(args or list(platforms()))
            return
        if opts.every:
            self._run_all(args, opts)
            return
        if len(args) != 1:
            raise UsageError("Expected one scraper: scrapy probe <scraper>")
        scraper = scraper_named(args[0])
        params = named_values(opts.params, "Params") or _as_arguments(scraper.example)
        recorders = self._crawl(scraper, params)
        self.crawler_process.start()
        self.exitcode = Exit.ALL_HAVE_DATA
        for recorder in recorders:
            if recorder.outcome is None:
                self.fail("The run failed before the target had an outcome; see the log.")
                return
            print("\n".join(report(recorder, params)))
            if opts.save:
                self._save(recorder, opts)
            if recorder.outcome.error:
                self.exitcode = Exit.SOME_FAILED

    def _save(self, recorder: Recorder, opts: argparse.Namespace) -> None:
        for path, note in recorder.save(opts.save, Scrubber(keep=opts.keep)):
            print(f"saved      {path}{f' ({note})' if note else ''}")
        print("Review the fixtures before you share them: they still contain names and texts of people.")

    def _crawl(self, scraper: Scraper, params: dict[str, str]) -> list[Recorder]:
        """Prepare the crawls of one target, one through each egress of its platform.

        The crawls run when ``crawler_process`` is started.

        Raises:
            UsageError: the params are not valid for the scraper.
        """
        with wrong_use(ValueError, WrongTargetsError):
            check_arguments(spider_for(scraper), {"scraper": scraper.name, **params}, self.settings)
        recorders = []
        for egress in egresses_of(scraper.platform, self.settings):
            crawler = self.crawler_process.create_crawler(spider_for(scraper))
            use_only(egress, crawler.settings)
            recorders.append(Recorder(crawler, scraper, egress))
            self.crawler_process.crawl(crawler, scraper=scraper.name, **params)
        return recorders

    def _print_budgets(self, names: list[str]) -> None:
        if unknown := set(names) - platforms().keys():
            raise UsageError(f"No platform is called {min(unknown)}; use {', '.join(platforms())}.")
        with wrong_use(ValueError):
            print("\n".join(budget_lines(names, self.settings)))
        self.exitcode = Exit.ALL_HAVE_DATA

    def _run_all(self, args: list[str], opts: argparse.Namespace) -> None:
        if args or opts.params or opts.save:
            raise UsageError("--all takes neither a scraper, -a nor --save: name the targets with --targets FILE.")
        with wrong_use(OSError, ValueError):
            targets = load_targets(opts.targets, sandbox=self.settings.getbool("SANDBOX"))
        each = (self._crawl(find_scraper(name), _as_arguments(params)) for name, params in targets.items())
        recorders = list(chain.from_iterable(each))
        self.crawler_process.start()
        for recorder in recorders:
            print("\n".join(table(recorder)))
        good = [is_good(recorder) for recorder in recorders]
        print(f"{sum(good)} of {len(good)} targets have all of their data.")
        self.exitcode = Exit.ALL_HAVE_DATA if all(good) else Exit.SOME_FAILED


def _as_arguments(params: Mapping[str, Any]) -> dict[str, str]:
    """Return params in the form of spider arguments."""
    return {name: each if isinstance(each, str) else orjson.dumps(each).decode() for name, each in params.items()}


def report(recorder: Recorder, params: dict[str, Any]) -> list[str]:
    """Return the lines of the report about a recorded crawl."""
    outcome, scraper = recorder.outcome, recorder.scraper
    assert outcome is not None
    arguments = " ".join(f"{name}={value}" for name, value in params.items())
    lines = [f"{scraper.name}  {arguments}", f"egress     {recorder.egress}"]
    lines.append(f"outcome    {outcome.code} after {outcome.duration_ms / 1000:.2f} s")
    sources = [download.page.source for download in recorder.downloads if download.page]
    lines.append(f"sources    {', '.join(sources) or 'none'}")
    lines += [f"request {n}  {_line(download)}" for n, download in enumerate(recorder.downloads, 1)]
    lines += [f"WARNING    {warning}" for warning in outcome.warnings]
    lines += [f"STALE ID   {name}: {reason}" for name, reason in recorder.stale_ids.items()]
    if outcome.error is not None:
        lines.append(f"error      {outcome.error.message}")
        lines += [f"           {'.'.join(map(str, each['loc']))}: {each['msg']}" for each in outcome.error.details]
    else:
        lines += _fields(scraper, outcome.data or {})
    return lines


def _line(download: Download) -> str:
    time = "unfinished" if download.seconds is None else f"{download.seconds:.2f} s"
    if download.response is None:
        return f"no response  {time}  {download.request.url}"
    kilobytes = f"{len(download.response.body) / 1000:.0f} kB"
    source = download.page.source if download.page else "not read"
    return (
        f"{download.response.status}  {time}  {kilobytes}  {source}  {download.request.method} {download.request.url}"
    )


def _fields(scraper: Scraper, data: dict[str, Any]) -> list[str]:
    empty, filled = empty_fields(scraper, data)

    def block(title: str, fields: list[EmptyField]) -> list[str]:
        return [f"{title:11}{fields[0]}", *(f"{'':11}{each}" for each in fields[1:])] if fields else []

    unexpected = [each for each in empty if not each.documented]
    always_empty = [each for each in empty if each.documented and each.count.filled == 0 and each.count.rows > 1]
    documented = [each for each in empty if each not in unexpected and each not in always_empty]
    counts = f"{len(documented)} empty as documented, {len(always_empty)} in every row, {len(unexpected)} undocumented"
    return [
        f"fields     {filled} filled, {counts}",
        *block("documented", documented),
        *block("EVERY ROW", always_empty),
        *block("UNEXPECTED", unexpected),
    ]
