"""Writes the page objects' fixtures from the sandbox's pages: ``python -m tests.make_fixtures [PLATFORM ...]``.

A fixture is one response and the expected result of its page object, either data or a typed error. web-poet's pytest
plugin replays fixtures, with one test per field. Recorded pages are other people's data: they become fixtures only with
invented content (``tests.transcribe``). This program does not change those fixtures. Run it after a change of the
sandbox's pages or of the page objects, and review the difference.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
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
"""Prefix of the fixtures that ``tests.transcribe`` writes."""


@dataclass(frozen=True)
class Case:
    """One response for a page object, with the page params of its request."""

    page: type[PlatformPage]
    name: str
    url: str
    status: int
    body: bytes
    page_params: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def save(case: Case) -> None:
    """Write a case with the result of its page object."""
    headers = {"Content-Type": "text/html; charset=utf-8", **case.headers}
    response = HttpResponse(case.url, case.body, status=case.status, headers=headers)
    params = PageParams(case.page_params)
    item, error = None, None
    try:
        item = asyncio.run(case.page(response=response, page_params=params).to_item())
    except ScrapeError as raised:
        error = raised
    folder = TESTS / "fixtures" / get_fq_class_name(case.page)
    Fixture.save(folder, inputs=[response, params], item=item, exception=error, meta={}, fixture_name=case.name)


def main() -> None:
    """Replace the sandbox's fixtures, of all platforms or of the given ones.

    Each module of ``fixture_sources`` defines the ``cases()`` of a platform, or of one of its scrapers.
    """
    for platform in sys.argv[1:] or ("*",):
        for folder in (TESTS / "fixtures").glob(f"crawler.platforms.{platform}.*/*"):
            if not folder.name.startswith(TRANSCRIBED):
                shutil.rmtree(folder)
        for source in sorted((TESTS / "fixture_sources").glob("[a-z]*.py")):
            if platform in {"*", source.stem.partition("_")[0]}:
                for case in import_module(f"tests.fixture_sources.{source.stem}").cases():
                    save(case)


if __name__ == "__main__":
    main()
