"""Fixtures: a service with the sandbox, and its console in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.changed_shop import BEFORE
from tests.service.conftest import Service, running
from tests.service.console.page import DESKTOP, OpenConsole

PATIENCE_MS = 120_000
"""Milliseconds that a busy machine may take for what a test expects or does."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that no other module calls. Its shop changes the pages of some searches."""
    with running(tmp_path_factory.mktemp("service") / "log", before=BEFORE) as started:
        yield started


@pytest.fixture
def console(browser: Browser, service: Service) -> Iterator[OpenConsole]:
    """A function that opens a place of the console in a new page.

    Script errors, violations of the content security policy and requests to other hosts fail the test.
    """
    problems: list[str] = []
    opened: list[Page] = []
    failed = re.compile("Failed to load resource: the server responded with a status of [45]")  # an API call that fails

    def watch(page: Page) -> None:
        origin = urlsplit(service.url).netloc
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda said: problems.append(said.text) if said.type == "error" and not failed.match(said.text) else None,
        )
        page.on("request", lambda sent: problems.append(sent.url) if urlsplit(sent.url).netloc != origin else None)

    def open_console(place: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        watch(page)
        opened.append(page)
        page.goto(f"{service.url}/#{place}")
        page.locator("main h2").wait_for()
        return page

    yield open_console
    for page in opened:
        page.context.close()
    assert problems == []
