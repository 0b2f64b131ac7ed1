"""``scrapy extract``: extracts data from saved responses, without network access."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from scrapy.exceptions import UsageError
from web_poet import HttpResponse, PageParams

from crawler.configuration.command import CheckedCommand, Exit, add_values, named_values, scraper_named, wrong_use
from crawler.errors import InvalidRequest, ScrapeError
from crawler.logs import one_line
from crawler.pipelines import validated
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage, mismatch_error
from crawler.probe.recorder import MAX_LINE, overrides_for, read, reread
from crawler.probe.suggest import suggestions
from crawler.registry import spider_for
from crawler.storage.kept import KeptError, folder_of, kept
from crawler.targets.parser import check_params
from crawler.targets.target import Scraper
from crawler.targets.warning import OutcomeWarning

HEADERS = {"Content-Type": "text/html; charset=utf-8"}
"""The headers that are assumed for all saved responses, because files contain only the body."""


class Command(CheckedCommand):
    """Run the extraction on saved responses (HTML, JSON or XML, gzip too, - for stdin).

    Prints the data as JSON. Exit codes: 0 for data, 4 if the extraction has failed, 2 for wrong use. With --unread or
    --suggest: 0 if everything is read, 4 otherwise.
    """

    arguments = "<scraper> <file> ... | --unread [<platform> ...]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--url", help="URL of the responses")
        add_values(parser, "params", "a param of the request")
        parser.add_argument(
            "--unread", action="store_true", help="read the responses that were kept because they were unread or failed"
        )
        parser.add_argument(
            "--suggest", action="store_true", help="print the declarations that may read the unread parts"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.unread:
            self._reread(args, suggest=opts.suggest)
            return
        try:
            with wrong_use(InvalidRequest, OSError, EOFError, zlib.error):
                self._extract(args, opts)
        except ScrapeError as error:
            _print(error.as_dict())
            self.exitcode = Exit.SOME_FAILED

    def _extract(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) < 2:
            raise UsageError("Expected a scraper and at least one file: scrapy extract <scraper> <file>")
        scraper, bodies = scraper_named(args[0]), [_read(name) for name in args[1:]]
        params = _page_params(scraper, opts.params)
        url = opts.url or platforms()[scraper.platform].origin
        pages = saved_pages(scraper, bodies, params, url=url, overrides=overrides_for(url, self.settings))
        if opts.suggest:
            problems = [problem for page in pages for problem in read(page).problems]
            print(*(problems or ["read"]), *suggestions(pages), sep="\n")
            self.exitcode = Exit.SOME_FAILED if problems else Exit.ALL_HAVE_DATA
        else:
            _print(asyncio.run(_record(scraper, pages)))

    def _reread(self, names: list[str], *, suggest: bool) -> None:
        """Read the kept responses of some or all platforms again."""
        if unknown := ", ".join(each for each in names if each not in platforms()):
            raise UsageError(f"No platform is called {unknown}; the platforms are {', '.join(platforms())}.")
        folder, pages, unread = folder_of(self.settings), [], []
        for path in kept(folder, names or platforms()):
            try:
                found = reread(path, self.settings)
                pages.append(found.page)
                problems = found.problems
            except (KeptError, OSError) as error:
                problems = [one_line(str(error), MAX_LINE)]
            unread.append(bool(problems))
            print(one_line(str(path.relative_to(folder)), MAX_LINE), *(problems or ["read"]), sep="\n  ")
        print(f"kept responses: {len(unread)}, still not read completely: {sum(unread)}")
        if suggest:
            print(*suggestions(pages), sep="\n")
        self.exitcode = Exit.SOME_FAILED if any(unread) else Exit.ALL_HAVE_DATA


def _page_params(scraper: Scraper, arguments: list[str]) -> dict[str, Any]:
    """Convert the ``-a`` arguments to the params of page objects. Required params of the scraper may be missing.

    Raises:
        UsageError: an argument is not ``name=value``.
        InvalidRequest: an argument is not a param of the scraper, or its value is invalid.
    """
    given = named_values(arguments, "Params")
    try:
        check_params(scraper, given, text=True)
    except InvalidRequest as error:
        if any(detail["loc"] and detail["type"] != "missing" for detail in error.details):
            raise
    return spider_for(scraper).page_params(scraper, given)


def _read(name: str) -> bytes:
    body = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


async def extract(
    scraper: Scraper,
    bodies: list[bytes],
    params: dict[str, Any],
    *,
    url: str,
    overrides: Mapping[type, type] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the data of one target from the bodies of saved responses.

    ``overrides``: as in ``saved_pages``. Warnings about unread and skipped parts are printed to stderr.

    Raises:
        ScrapeError: a page object has raised an error.
        ExtractionFailed: a body is not a page that the scraper recognises, or the data does not match the schema.
        UsageError: two bodies have the same page type.
    """
    return await _record(scraper, saved_pages(scraper, bodies, params, url=url, overrides=overrides))


def saved_pages(
    scraper: Scraper,
    bodies: list[bytes],
    params: dict[str, Any],
    *,
    url: str,
    overrides: Mapping[type, type] = MappingProxyType({}),
) -> list[PlatformPage]:
    """Return the page objects of the bodies of saved responses for one target.

    ``overrides``: page object class -> the class that is used instead.

    Raises:
        ExtractionFailed: a body is not a page that the scraper recognises.
        UsageError: two bodies have the same page type, but a target has only one page of each type.
    """
    classes = [overrides.get(page, page) for page in scraper.pages]
    pages = [_page(scraper, classes, HttpResponse(url, body, headers=HEADERS), params) for body in bodies]
    for kind, number in Counter(page.source for page in pages).items():
        if number > 1:
            raise UsageError(f"{number} files are of the page type {kind}; pass the files of one target at a time.")
    return pages


async def _record(scraper: Scraper, pages: Sequence[PlatformPage]) -> dict[str, Any]:
    """Return the validated data of one target, and print warnings about unread and skipped parts to stderr.

    If the scraper has several page classes, its spider joins the pages.
    """
    item = await (spider_for(scraper).join(pages) if len(scraper.pages) > 1 else pages[0].to_item())
    data = validated(scraper.data, item)
    for page in pages:
        for error in page.skipped:
            paths = ", ".join(".".join(map(str, detail["loc"])) for detail in error.details)
            print(f"Warning: {page.source}: {error} {paths}", file=sys.stderr)
        for unread in page.unread:
            print(f"Warning: {OutcomeWarning.of_unread(page.source, unread)}", file=sys.stderr)
    return data


def _page(
    scraper: Scraper, classes: list[type[PlatformPage]], response: HttpResponse, params: dict[str, Any]
) -> PlatformPage:
    for page in classes:
        if page.recognise(response.text):
            return page(response=response, page_params=PageParams(params))
    kinds = ", ".join(page.source for page in classes)
    raise mismatch_error(
        f"A file is not a response that {scraper.name} recognises ({kinds}).",
        ["file"],
        kinds,
        reason="unknown_form",
    )


def _print(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
