"""Writes the fixtures of the page objects from the sandbox's pages: ``python -m tests.make_fixtures``.

A fixture is one response and what its page object must say of it, as data or as the typed error. What is written is
replayed by web-poet's pytest plugin, one test a field. Only pages of the sandbox become fixtures: recorded pages are
other people's data. Run it after a change of the sandbox's pages or of the page objects, and read the difference.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from web_poet import HttpResponse, PageParams
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

from crawler.errors import ScrapeError
from crawler.platforms.page import PlatformPage

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One response, for the page object that reads it. ``asked`` are its page params."""

    page: type[PlatformPage]
    name: str
    url: str
    status: int
    body: bytes
    asked: dict[str, Any]


def save(case: Case) -> None:
    """Writes a case with what its page object says of it."""
    response = HttpResponse(
        case.url, case.body, status=case.status, headers={"Content-Type": "text/html; charset=utf-8"}
    )
    params = PageParams(case.asked)
    item, error = None, None
    try:
        item = asyncio.run(case.page(response=response, page_params=params).to_item())
    except ScrapeError as refused:
        error = refused
    folder = TESTS / "fixtures" / get_fq_class_name(case.page)
    Fixture.save(folder, inputs=[response, params], item=item, exception=error, meta={}, fixture_name=case.name)


def main() -> None:
    """Writes all fixtures anew: each module of ``fixture_sources`` has a platform's ``cases()``."""
    shutil.rmtree(TESTS / "fixtures", ignore_errors=True)
    for source in sorted((TESTS / "fixture_sources").glob("[a-z]*.py")):
        for case in import_module(f"tests.fixture_sources.{source.stem}").cases():
            save(case)


if __name__ == "__main__":
    main()
