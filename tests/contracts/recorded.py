"""The recorded responses of this machine (``scripts/captures.py``), as ``scrapy extract`` reads them.

``<platform>/clean.txt`` lists the *clean* responses: they have data, and reading them gives no warning. Each line has
the name of the response and the scraper. The list is the measure of false warnings: a change of the code must not add a
warning to a response in it. The captures are not part of the repository, so the list names them only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawler.commands.extract import saved_pages
from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.reading.contract import Contract
from crawler.registry import find_scraper, scraper_names, spider_for
from scripts.captures import body_of, captures
from tests import saved_parts

FOLDER = Path(__file__).parent


class Answer(NamedTuple):
    """What a user gets for a response: validated data or the error, and the warnings."""

    data: dict[str, Any] | None
    error: ScrapeError | None
    warnings: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether the answer has data and no warning."""
        return self.data is not None and not self.warnings


@dataclass(frozen=True, order=True)
class Recorded:
    """A recorded response, and a scraper that may read it."""

    name: str
    """The name of the capture. A response of a bundle has its number behind it: ``0a1b2c3d4e5f#2``."""
    scraper: str
    body: bytes = field(compare=False, repr=False)

    @property
    def platform(self) -> str:
        return find_scraper(self.scraper).platform

    @property
    def page_class(self) -> str:
        """The name of the page object's class."""
        return type(self._page(self.body)).__qualname__

    def read(self, body: bytes | None = None) -> Answer:
        """Read the response, or another body in its place. An exception that is not a typed error is raised."""
        try:
            page = self._page(self.body if body is None else body)
        except ScrapeError as error:
            return Answer(None, error, ())
        try:
            data = validated(find_scraper(self.scraper).data, self._joined(page))
        except ScrapeError as error:
            return Answer(None, error, tuple(page.problems()))
        return Answer(data, None, tuple(page.problems()))

    def payloads(self) -> list[tuple[type[Contract], object]]:
        """Return the contracts that are read in the response, each with its data."""
        with suppress(ScrapeError):
            page = self._page(self.body)
            page.payloads = []
            with suppress(ScrapeError):
                self._joined(page)
            return page.payloads
        return []

    def _page(self, body: bytes) -> PlatformPage:
        scraper = find_scraper(self.scraper)
        params = spider_for(scraper).page_params(scraper, {})
        return saved_pages(scraper, [body], params, url=platforms()[scraper.platform].origin)[0]

    def _joined(self, page: PlatformPage) -> dict[str, Any]:
        """Return the record of one page. If the scraper has several page classes, its spider joins the pages."""
        scraper = find_scraper(self.scraper)
        return asyncio.run(spider_for(scraper).join([page]) if len(scraper.pages) > 1 else page.to_item())


def recorded(platform: str) -> Iterator[Recorded]:
    """Yield the recorded responses of a platform, each once with each scraper of the platform."""
    for name in _names_of(platform):
        for number, body in _bodies(platform, name):
            for scraper in map(find_scraper, scraper_names()):
                if scraper.platform == platform:
                    yield Recorded(f"{name}{number}", scraper.name, body)


def clean(platform: str) -> list[tuple[str, str]]:
    """Return a platform's list of clean responses: the names of the responses and of their scrapers."""
    return [(name, scraper) for name, scraper in map(str.split, _list_of(platform).read_text().splitlines())]


def add_clean(platform: str) -> int:
    """Add the responses that are clean now to a platform's list. Return how many were added. No line is removed."""
    listed = set(_list_of(platform).read_text().splitlines())
    found = {f"{each.name} {each.scraper}" for each in recorded(platform) if each.read().is_clean}
    _list_of(platform).write_text("".join(f"{line}\n" for line in sorted(listed | found)))
    return len(found - listed)


def no_longer_clean(platform: str) -> Iterator[str]:
    """Yield a line for each response of the list that has no data now, or a warning, or whose capture is gone."""
    bodies = {f"{name}{number}": body for name in _names_of(platform) for number, body in _bodies(platform, name)}
    for name, scraper in clean(platform):
        if name not in bodies:
            yield f"{name} {scraper}: no such capture"
            continue
        answer = Recorded(name, scraper, bodies[name]).read()
        problems = answer.warnings or ([f"{answer.error!r} {answer.error.details}"] if answer.error else [])
        yield from (f"{name} {scraper}: {problem}" for problem in problems)


def _list_of(platform: str) -> Path:
    return FOLDER / platform / "clean.txt"


def _names_of(platform: str) -> list[str]:
    return [name for name, file in captures().items() if platform in file.parts]


def _bodies(platform: str, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the responses of a capture: the suffix of the name, and the body. A bundle is a list of responses.

    If the capture is a part of a response, the rest is made up.
    """
    body = saved_parts.whole(platform, body_of(name))
    if not captures()[name].name.startswith("BUNDLE"):
        yield "", body
        return
    for number, each in enumerate(json.loads(body), 1):
        inside = each["body"]
        yield f"#{number}", inside.encode() if isinstance(inside, str) else orjson.dumps(inside)
