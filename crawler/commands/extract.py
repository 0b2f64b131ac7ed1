"""``scrapy extract``: runs the page objects on saved responses, without any network."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import orjson
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, InvalidRequest, ScrapeError
from crawler.pipelines import validated
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.registry import find_scraper, scraper_names, spider_for
from crawler.targets.target import Scraper, check_params

FAILED, WRONG_USAGE = 2, 3


class Command(ScrapyCommand):
    """Prints ``data`` as JSON; or the typed error, with exit code 2. Wrong usage: 3."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "<scraper> <file> [<file> ...] [--url URL] [-a NAME=VALUE ...]"

    def short_desc(self) -> str:
        return "Run the extraction on saved responses (HTML, JSON or XML, gzip too, - for stdin)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.error = _refuse  # type: ignore[method-assign]  # its own exit code is the one of a typed error
        parser.add_argument("--url", help="where the responses came from")
        parser.add_argument(
            "-a", dest="params", action="append", default=[], metavar="NAME=VALUE", help="what was asked for"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            scraper, bodies = _inputs(args)
            asked = _asked(scraper, opts.params)
            url = opts.url or platforms()[scraper.platform].origin
            data = asyncio.run(extract(scraper, bodies, asked, url=url))
        except (UsageError, InvalidRequest, OSError, EOFError, zlib.error) as error:
            print(error, file=sys.stderr)
            self.exitcode = WRONG_USAGE
        except ScrapeError as error:
            _print(error.as_dict())
            self.exitcode = FAILED
        else:
            _print(data)


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(WRONG_USAGE)


def _inputs(args: list[str]) -> tuple[Scraper, list[bytes]]:
    if len(args) < 2:
        raise UsageError("Name a scraper and at least one file: scrapy extract <scraper> <file>")
    try:
        scraper = find_scraper(args[0])
    except KeyError:
        raise UsageError(f"There is no scraper {args[0]!r}; there are {', '.join(scraper_names())}.") from None
    return scraper, [_read(name) for name in args[1:]]


def _asked(scraper: Scraper, arguments: list[str]) -> dict[str, Any]:
    """What the page objects are told of the params. Params may be missing, but none may be wrong.

    Raises:
        UsageError: an argument that is no ``name=value``.
        InvalidRequest: a param that the scraper does not take, or not with this value.
    """
    try:
        given = arglist_to_dict(arguments)
    except ValueError:
        raise UsageError("Give params as -a name=value.") from None
    try:
        check_params(scraper, given, text=True)
    except InvalidRequest as error:
        if any(detail["loc"] and detail["type"] != "missing" for detail in error.details):
            raise
    return spider_for(scraper).page_params(scraper, given)


def _read(name: str) -> bytes:
    body = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


async def extract(scraper: Scraper, bodies: list[bytes], asked: dict[str, Any], *, url: str) -> dict[str, Any]:
    """The scraper's data from saved bodies, as its spider would give it.

    Raises:
        ScrapeError: as the page objects do; ``ExtractionFailed`` where a body is no response of this scraper's.
        UsageError: two bodies of the same kind: a target has one of each.
    """
    pages = [_page(scraper, body, asked, url) for body in bodies]
    for kind, number in Counter(page.source for page in pages).items():
        if number > 1:
            raise UsageError(f"{number} of the files are a {kind} each; give the files of one target at a time.")
    return validated(scraper.data, await spider_for(scraper).join(pages))


def _page(scraper: Scraper, body: bytes, asked: dict[str, Any], url: str) -> PlatformPage:
    response = HttpResponse(url, body, headers={"Content-Type": "text/html; charset=utf-8"})
    for page in scraper.pages:
        if page.recognise(response.text):
            return page(response=response, page_params=PageParams(asked))
    kinds = ", ".join(page.source for page in scraper.pages)
    raise ExtractionFailed(f"A file is no response that {scraper.name} reads ({kinds}).", reason="unknown_response")


def _print(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
