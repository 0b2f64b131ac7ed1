"""Writes the page objects' fixtures from the sandbox's pages: ``python -m tests.make_fixtures [PLATFORM ...]``.

A fixture is one response and the expected result of its page object, either data or a typed error. web-poet's pytest
plugin replays fixtures, with one test per field. No expectation is written by the page object: the cases of
``fixture_sources`` state the errors by hand, and their data is the sandbox's truth, with a few values set by hand.
Recorded pages are other people's data: one becomes a fixture by hand, with invented content. This program does not
change those fixtures. Run it after a change of the sandbox's pages or of the cases, and review the
difference.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from web_poet import HttpResponse, PageParams
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

from crawler.errors import ScrapeError
from crawler.platforms.page import PlatformPage

TESTS = Path(__file__).parent
TRANSCRIBED = "transcribed-"
"""Prefix of the fixtures that are made by hand, with the structure of a recorded page."""

Failure = tuple[type[ScrapeError], str]
"""The class and the reason of an expected error."""


@dataclass(frozen=True, eq=False)
class Case:
    """One response for a page object, with the page params of its request, and the result that it must give."""

    page: type[PlatformPage]
    name: str
    url: str
    status: int
    body: bytes
    page_params: dict[str, Any]
    expected: Failure | dict[str, Any] | None = None
    """An error, or an item. None: any item, but no error. Such a case is not saved as a fixture, but the tests of
    changed pages read its response."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def has_data(self) -> bool:
        """Whether the page object must return an item."""
        return not isinstance(self.expected, tuple)

    def inputs(self, body: bytes) -> tuple[HttpResponse, PageParams[str, Any]]:
        """Return the inputs of the page object, for the response's body or a changed copy of it."""
        headers = {"Content-Type": "text/html; charset=utf-8", **self.headers}
        return HttpResponse(self.url, body, status=self.status, headers=headers), PageParams(self.page_params)

    def page_object(self, body: bytes) -> PlatformPage:
        """Return the page object for the response's body, or for a changed copy of it."""
        response, params = self.inputs(body)
        return self.page(response=response, page_params=params)

    def check(self) -> None:
        """Check the page object's result.

        Raises:
            SystemExit: the page object does not give the expected result.
        """
        result: Failure | dict[str, Any]
        try:
            result = asyncio.run(self.page_object(self.body).to_item())
        except ScrapeError as error:
            result = type(error), error.reason
        expected = self.expected or "data"
        if result != self.expected and (self.expected or isinstance(result, tuple)):
            raise SystemExit(f"{self.page.__name__} {self.name}: expected {expected}, found {result}")

    def save(self) -> None:
        """Write the case as a fixture with its expected result. The message of an error in a fixture is its reason."""
        error = self.expected[0](self.expected[1]) if isinstance(self.expected, tuple) else None
        item = self.expected if self.has_data else None
        folder = TESTS / "fixtures" / get_fq_class_name(self.page)
        Fixture.save(folder, inputs=self.inputs(self.body), item=item, exception=error, fixture_name=self.name)


def cases(platform: str = "*") -> Iterator[Case]:
    """Yield the cases of a platform, by default of all.

    Each module of ``fixture_sources`` defines the ``cases()`` of a platform, or of one of its scrapers.
    """
    for source in sorted((TESTS / "fixture_sources").glob("[a-z]*.py")):
        if platform in {"*", source.stem.partition("_")[0]}:
            yield from import_module(f"tests.fixture_sources.{source.stem}").cases()


def main() -> None:
    """Replace the sandbox's fixtures, of all platforms or of the given ones.

    The fixtures of a platform are replaced only after all its cases have given the expected results.
    """
    for platform in sys.argv[1:] or ("*",):
        found = list(cases(platform))
        for case in found:
            case.check()
        for folder in (TESTS / "fixtures").glob(f"crawler.platforms.{platform}.*/*"):
            if not folder.name.startswith(TRANSCRIBED):
                shutil.rmtree(folder)
        for case in found:
            if case.expected is not None:
                case.save()


if __name__ == "__main__":
    main()
