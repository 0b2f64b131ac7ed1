"""The console shows which parts of a platform's payload could not be read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.changed_shop import BEFORE, CHANGED, RATING, UNKNOWN
from tests.service.conftest import Service, running
from tests.service.console.page import OpenConsole, call


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log", before=BEFORE) as started:
        yield started


def test_a_record_names_the_unread_paths(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    call(page, query=CHANGED)
    shown = page.locator(".warning")
    expect(shown).to_contain_text("Parts of the platform's response could not be read:")
    expect(shown).not_to_contain_text("that failed")
    expect(shown.locator("li")).to_have_text(
        [
            f"{UNKNOWN.replace('…', '...')} of search: unknown in 2 of 58, not collected",
            f"{RATING} of search: missing in 53 of 53",
        ]
    )
