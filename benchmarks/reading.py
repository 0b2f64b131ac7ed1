"""The cost of parsing a response, by page object, compared with a lower bound.

What is measured: CPU time from the body's bytes to the item, validated if one page object returns a scraper's
whole record. The responses are those of the sandbox for each scraper's example, as ``scrapy probe --save`` saves them:
real structure and size. The floor, from the same bytes:

- pages with embedded JSON: finding each block that the page object decodes, by its first and last bytes, and
  ``orjson.loads`` on it;
- HTML: one lxml parse, and the page object's own XPath expressions, compiled, on the same nodes;
- feeds: the same with lxml's XML parser;
- other data (script literals) has no such floor: only its time is printed.

Each figure is the smallest of many rounds, floor and parsing in turn. Pages under 10 kB are left out: their time is
mostly the overhead of Python's calls.

Usage: .venv/bin/python -m benchmarks.reading [--rounds N] [scraper ...]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lxml.html
import orjson
from lxml import etree
from parsel import Selector
from pydantic import BaseModel
from web_poet import HttpResponse
from web_poet.serialization.api import load_class
from web_poet.testing import Fixture

from benchmarks.stack import BIN, ROOT
from crawler.errors import ExtractionFailed, ScrapeError
from crawler.pipelines import validated
from crawler.platforms.page import PlatformPage
from crawler.registry import scrapers
from crawler.targets.target import Scraper

MIN_PAGE_BYTES = 10_000
Query = tuple[Any, str, dict[str, str] | None]


def probed(scraper: Scraper, folder: Path) -> list[PlatformPage]:
    """Return the pages of a scraper's example, one of each page object."""
    command: list[str | Path] = [
        BIN / "scrapy",
        "probe",
        scraper.name,
        "--save",
        folder,
        "-s",
        "SANDBOX=1",
        "-s",
        "LOG_LEVEL=ERROR",
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    pages = []
    for kind in sorted(folder.iterdir()):
        page = Fixture(min(kind.iterdir())).get_page(load_class(kind.name))
        assert isinstance(page, PlatformPage)
        with contextlib.suppress(ScrapeError):  # a page without data, such as the first page in a browser
            reading(page, None)()
            pages.append(page)
    return pages


def reading(page: PlatformPage, model: type[BaseModel] | None) -> Callable[[], object]:
    """Return a function that parses a page's response to its item, and validates it if a model is given."""
    response, kind, body = page.response, type(page), bytes(page.response.body)

    def run() -> object:
        again = HttpResponse(response.url, body, status=response.status, headers=response.headers)
        item = kind(response=again, page_params=page.page_params).to_item()
        try:
            item.send(None)  # page objects do no I/O
        except StopIteration as finished:
            return validated(model, finished.value) if model else finished.value
        raise SystemExit(f"{kind.__name__}.to_item() must not await anything")

    return run


def full_record_model(page: PlatformPage, scraper: Scraper) -> type[BaseModel] | None:
    """Return the scraper's model if the page alone contains the whole record."""
    with contextlib.suppress(ExtractionFailed):
        reading(page, scraper.data)()
        return scraper.data
    return None


@contextlib.contextmanager
def recorded_reads() -> Iterator[tuple[list[bytes], list[Query]]]:
    """Record the decoded blocks of JSON, and the XPath expressions with their nodes."""
    blocks: list[bytes] = []
    queries: list[Query] = []
    loads, xpath = orjson.loads, Selector.xpath

    def recording_loads(data: Any) -> Any:
        blocks.append(data.encode() if isinstance(data, str) else bytes(data))
        return loads(data)

    def recording_xpath(self: Any, query: str, namespaces: Any = None, **kwargs: Any) -> Any:
        queries.append((self.root, query, namespaces))
        return xpath(self, query, namespaces=namespaces, **kwargs)

    with patch("crawler.reading.json.orjson.loads", recording_loads), patch.object(Selector, "xpath", recording_xpath):
        yield blocks, queries


@cache
def compiled(query: str, namespaces: tuple[tuple[str, str], ...]) -> etree.XPath:
    """Compile an expression with parsel's namespaces."""
    known = {"re": "http://exslt.org/regular-expressions", "set": "http://exslt.org/sets", **dict(namespaces)}
    return etree.XPath(query, namespaces=known)


def floor(page: PlatformPage) -> tuple[str, Callable[[], object] | None]:
    """Return the kind of the data, and a function with the lower bound of its cost."""
    body = bytes(page.response.body)
    with recorded_reads() as (blocks, queries):
        reading(page, None)()
    embedded = [block for block in blocks if block in body]
    if not embedded and not queries:
        return "", None
    expressions = [(node, compiled(query, tuple((spaces or {}).items()))) for node, query, spaces in queries]
    markup = "" if not queries else "XML" if body.lstrip().startswith(b"<?xml") else "HTML"
    parser = etree.XMLParser(recover=True) if markup == "XML" else lxml.html.HTMLParser(recover=True, huge_tree=True)

    def least() -> object:
        if markup:
            etree.fromstring(body, parser=parser)
        results = [expression(node) for node, expression in expressions if not isinstance(node, str)]
        return results, [orjson.loads(_located(body, block[:80], block[-10:], len(block))) for block in embedded]

    return markup or "JSON", least


def _located(body: bytes, head: bytes, tail: bytes, length: int) -> bytes:
    start = body.find(head)
    end = body.find(tail, start + length - len(tail))
    return body[start : end + len(tail)]


def fastest(runs: tuple[Callable[[], object], ...], rounds: int) -> list[float]:
    """Return the fastest run of each function in milliseconds. They run in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            start = time.process_time()
            run()
            best[number] = min(best[number], (time.process_time() - start) * 1000)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Parsing time by page object, compared with a lower bound.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("scraper", nargs="*", help="default: all")
    options = parser.parse_args()
    print(f"{'page object':30} {'':4} {'size':>7} {'floor':>8} {'reading':>8}  ratio")
    for scraper in {scraper.name: scraper for scraper in scrapers().values()}.values():
        if options.scraper and scraper.name not in options.scraper:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for page in probed(scraper, Path(folder)):
                size = len(page.response.body)
                if size < MIN_PAGE_BYTES:
                    continue
                kind, least = floor(page)
                runs = (reading(page, full_record_model(page, scraper)), *([least] if least else []))
                time_ms, *lowest = fastest(runs, options.rounds)
                name = f"{scraper.platform} {type(page).__qualname__}"
                figures = (
                    f"{lowest[0]:5.2f} ms {time_ms:5.2f} ms  {time_ms / lowest[0]:5.2f}"
                    if lowest
                    else f"{time_ms:17.2f} ms"
                )
                print(f"{name:30} {kind:4} {size / 1000:4.0f} kB {figures}", flush=True)


if __name__ == "__main__":
    main()
