"""How long the worst pages of 2 MB block the event loop: ``python -m benchmarks.worst_pages [PLATFORM ...]``.

The pages are the sandbox's responses, with one part of each repeated or nested until the response has the size: a list
or an object of the payload, with and without a change of its rows' types, a text, or text that is put into the page.
Small pages of each shape are read first, then the slowest shapes in the full size. Takes less than a minute, and prints
a line for each platform. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson

from crawler.errors import ScrapeError
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.runtime import tune_garbage_collector
from tests.mutations import PageFixture, fixtures
from tests.parsers import Nested
from tests.test_parsers import TEXTS

SIZE = 2_000_000
"""Bytes of a page."""
PART = 16
"""The size of a small page, as a part of ``SIZE``."""
SLOWEST = 3
"""Number of shapes of a page class that are read in the full size."""
SECONDS = 35.0
"""Seconds for small pages. If they are not enough for all shapes, a random choice is read."""
MARK = "@@pumped@@"
PLACES = (b"<head>", b"<body", b"</body>", b"<entry>", b"<script")

Path = tuple[str | int, ...]


class WorstPage(NamedTuple):
    """A page, by its name, and the function that makes its body with a number of bytes."""

    name: str
    body: Callable[[int], bytes]


def worst_pages(fixture: PageFixture) -> Iterator[WorstPage]:
    """Yield the pages that are made from a response."""
    body = fixture.body
    ends = [(mark.decode(), body.find(mark)) for mark in PLACES if mark in body] + [("end", len(body))]
    for name, text in TEXTS.items():
        for place, at in ends:
            yield WorstPage(f"{name}, {place}", partial(_with_text, body, at, text))
        yield WorstPage(f"{name}, alone", partial(_with_text, b"", 0, text))
    for payload in payloads(fixture):
        for path, is_list in paths(orjson.loads(payload)):
            for is_changed in (False, True) if is_list else (False,):
                name = f"{'.'.join(map(str, path))}{', changed' if is_changed else ''}"
                yield WorstPage(name, partial(_with_payload, body, payload, path, is_changed))


def _with_text(body: bytes, at: int, text: Nested, size: int) -> bytes:
    return body[:at] + text.of(size - len(body)).encode() + body[at:]


def _with_payload(body: bytes, payload: bytes, path: Path, is_changed: bool, size: int) -> bytes:  # noqa: FBT001
    return body.replace(payload, pumped(payload, path, size - len(body), is_changed=is_changed))


def payloads(fixture: PageFixture) -> list[bytes]:
    """Return the JSON documents of a response that are read by contracts."""
    found: list[bytes] = []

    def noted(_page: PlatformPage, _kind: Any, body: bytes, **_options: Any) -> Any:
        found.append(bytes(body))
        return read(_page, _kind, body, **_options)

    read = PlatformPage.payload
    with patch.object(PlatformPage, "payload", noted):
        fixture.read(fixture.body)
    documents = []
    for each in dict.fromkeys(found):
        with suppress(orjson.JSONDecodeError):  # code follows the JSON
            orjson.loads(each)
            documents += [each] * (each in fixture.body)
    return documents


def paths(data: Any) -> Iterator[tuple[Path, bool]]:
    """Yield the paths of a payload's texts, lists and objects, and whether it is a list of objects.

    Of each list, at most two entries are used.
    """
    waiting: list[tuple[Any, Path]] = [(data, ())]
    for value, path in waiting:
        if isinstance(value, dict):
            waiting += [(each, (*path, key)) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [(each, (*path, index)) for index, each in enumerate(value[:2])]
        if value if isinstance(value, dict | list) else isinstance(value, str):
            yield path, isinstance(value, list) and isinstance(value[0], dict)


def pumped(payload: bytes, path: Path, size: int, *, is_changed: bool) -> bytes:
    """Return a payload whose value at a path has about so many bytes. ``is_changed``: its rows' texts are objects."""
    data = orjson.loads(payload)
    value, owner = data, None
    for step in path:
        value, owner = value[step], value
    match value:
        case [first, *_]:
            if is_changed and isinstance(first, dict):
                first = {key: {"other": each} if isinstance(each, str) else each for key, each in first.items()}
            row = orjson.dumps(first)
            text = b"[%b]" % b",".join([row] * (size // (len(row) + 1) + 1))
        case dict() if value:
            member = orjson.dumps(next(iter(value.values())))
            more = (b',"k%d":%b' % (number, member) for number in range(size // (len(member) + 8)))
            text = orjson.dumps(value)[:-1] + b"".join(more) + b"}"
        case _:
            text = orjson.dumps((value or " a") * (size // len(value or " a")))
    if owner is None:
        return text
    owner[path[-1]] = MARK
    return orjson.dumps(data).replace(f'"{MARK}"'.encode(), text)


def seconds(fixture: PageFixture, body: bytes, runs: int = 1) -> float:
    """Return the shortest seconds of processor time in which the page object reads a body."""
    found = []
    for _ in range(runs):
        page = fixture.case.page_object(body)
        start = time.thread_time()
        with suppress(ScrapeError):
            asyncio.run(page.to_item())
        found.append(time.thread_time() - start)
    return min(found)


class Worst(NamedTuple):
    """The page of a page class that is read slowest."""

    seconds: float
    kind: str
    page: str
    shapes: int
    """How many shapes were read."""
    known: int
    """How many shapes there are."""


def worst(fixture: PageFixture, pages: list[WorstPage], limit: float) -> Worst:
    """Return the page that is read slowest. ``limit``: the seconds for small pages."""
    random.Random(0).shuffle(pages)  # noqa: S311  # the same order each time
    small: list[tuple[float, int]] = []
    end = time.monotonic() + limit
    for index, page in enumerate(pages):
        if time.monotonic() > end and small:
            break
        small.append((seconds(fixture, page.body(SIZE // PART)), index))
    slowest = [pages[index] for _, index in sorted(small, reverse=True)[:SLOWEST]]
    longest, name = max((seconds(fixture, page.body(SIZE), runs=2), page.name) for page in slowest)
    return Worst(longest, fixture.case.page.__name__, name, len(small), len(pages))


def main() -> None:
    """Print a line for each platform."""
    parser = argparse.ArgumentParser(description="Measure how long the worst pages block the event loop.")
    parser.add_argument("platforms", nargs="*", default=[*platforms()], help="by default all")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for small pages of all shapes")
    options = parser.parse_args()
    pages: dict[str, list[tuple[PageFixture, list[WorstPage]]]] = {}
    for platform in options.platforms:
        largest = {each.case.page: each for each in sorted(fixtures(platform), key=lambda each: len(each.body))}
        pages[platform] = [(each, list(worst_pages(each))) for each in largest.values()]
    total = sum(len(shapes) for found in pages.values() for _, shapes in found)
    tune_garbage_collector()  # as in the endpoint: the default collector takes most of the time
    for platform, found in pages.items():
        results = [worst(each, shapes, options.seconds * len(shapes) / total) for each, shapes in found]
        longest = max(results)
        counted = f"{sum(each.shapes for each in results)} of {sum(each.known for each in results)} shapes"
        print(
            f"{platform:12} {longest.seconds * 1000:4.0f} ms  {longest.kind}: {longest.page}  ({counted})", flush=True
        )


if __name__ == "__main__":
    main()
