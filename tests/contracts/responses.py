"""The responses on which contracts are tested: captures, and the sandbox's responses (``tests.fixture_sources``).

``<platform>/captures.json`` lists the captures that are read by contracts: the name, the scraper, and whether the
payload is whole. Somebody removed keys from the payloads that are not whole, so an absent key proves nothing there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.reading import careful, strict
from crawler.reading.contract import Contract, Unread
from crawler.reading.json import decode
from crawler.registry import find_scraper
from scripts.captures import body_of, captures
from tests import saved_parts
from tests.mutations import fixtures

FOLDER = Path(__file__).parent

Change = Callable[[type[Contract], Any], Any]
"""Maps a contract and the data that it reads to a changed copy of the data, or to the data itself."""


class Payload(NamedTuple):
    """Data that a page object has read by a contract."""

    kind: type[Contract]
    data: Any


@dataclass
class Result:
    """The result of a page object: its item or error, the unread parts, and the payloads before any change."""

    item: Any = None
    error: ScrapeError | None = None
    unread: list[Unread] = field(default_factory=list)
    payloads: list[Payload] = field(default_factory=list)


@dataclass(frozen=True)
class Response:
    """A response that a page object can read."""

    name: str
    platform: str
    make: Callable[[], PlatformPage] = field(compare=False)
    whole: bool = True

    def read(self, change: Change = lambda _kind, data: data) -> Result:
        """Read the response, with its payloads changed."""
        page, result = self.make(), Result()
        with _payloads_changed(change, result.payloads):
            try:
                result.item = asyncio.run(page.to_item())
            except ScrapeError as error:
                result.error = error
        result.unread = page.unread
        return result

    @cached_property
    def original(self) -> Result:
        """The result for the unchanged response."""
        return self.read()


def listed(name: str, platform: str = "") -> dict[str, Any]:
    """Return the entries of a JSON file such as ``retail/captures.json``, of all platforms or of one."""
    files = sorted(FOLDER.glob(f"{platform or '*'}/{name}.json"))
    return {key: value for file in files for key, value in json.loads(file.read_bytes()).items()}


@contextmanager
def _payloads_changed(change: Change, payloads: list[Payload]) -> Iterator[None]:
    """In this context, change the data of all contracts that are read, and append the original data to ``payloads``."""
    decoded, read_plain = strict.decoded, careful.read_plain

    def changed(kind: type[Contract], body: bytes) -> bytes:
        data = decode(body, what="payload")
        other = change(kind, data)
        return body if other is data else orjson.dumps(other)

    def strictly(kind: type[Contract], body: bytes) -> Any:
        payloads.append(Payload(kind, decode(body, what="payload")))
        return decoded(kind, changed(kind, body))

    def carefully(kind: type[Contract], body: bytes, *, what: str, code_after: bool) -> Any:
        return read_plain(kind, change(kind, decode(body, what=what, code_after=code_after)))

    def plainly(kind: type[Contract], data: Any) -> Any:
        if not any(each.data is data for each in payloads):
            payloads.append(Payload(kind, data))
        return read_plain(kind, change(kind, data))

    with (
        patch.object(strict, "decoded", strictly),
        patch.object(careful, "read_changed", carefully),
        patch.object(careful, "read_plain", plainly),
    ):
        yield


def _page(scraper_name: str, capture: str) -> PlatformPage:
    scraper = find_scraper(scraper_name)
    body = saved_parts.whole(scraper.platform, body_of(capture))
    response = HttpResponse(
        platforms()[scraper.platform].origin, body, headers={"Content-Type": "text/html; charset=utf-8"}
    )
    kind = next(each for each in scraper.pages if each.recognise(response.text))
    return kind(response=response, page_params=PageParams({}))


@cache
def captured(platform: str = "") -> tuple[Response, ...]:
    """Return the listed captures that exist on this machine, of all platforms or of one."""
    return tuple(
        Response(name, find_scraper(each["scraper"]).platform, partial(_page, each["scraper"], name), each["whole"])
        for name, each in listed("captures", platform).items()
        if name in captures()
    )


def _is_complete(result: Result) -> bool:
    return bool(result.payloads) and result.error is None and not result.unread


@cache
def of_fixtures(platform: str = "") -> tuple[Response, ...]:
    """Return the sandbox's responses that are read without an error or unread parts, of all platforms or of one."""
    found = (
        Response(each.name, each.platform, partial(each.case.page_object, each.body)) for each in fixtures(platform)
    )
    return tuple(each for each in found if _is_complete(each.original))
