"""The browser's handler without a browser: which requests of pages it aborts, and what an error's text says.

An error is a crash only if its text says so. Any other text is quoted.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector
from scrapy.utils.project import get_project_settings

from crawler.browser.handler import BrowserHandler, browser_failed
from crawler.downloads.breaker import is_answer, is_block
from crawler.downloads.shared_state import SharedState


@pytest.mark.parametrize(
    ("message", "has_crashed", "reason", "seen"),
    [
        ("Page.goto: Page crashed", False, "browser_gone", None),
        ("Page.evaluate: Target page, context or browser has been closed", False, "browser_gone", None),
        ("Page.goto: Navigation failed because page crashed!", False, "browser_gone", None),
        ("Connection closed while reading from the driver", False, "browser_gone", None),
        ("The browser crashed.", False, "browser_gone", None),
        ("The browser did not respond within 30 s.", False, "browser_gone", None),
        ("Page.content: Unknown", True, "browser_gone", None),
        (
            "Page.route: Protocol error (Fetch.enable)",
            False,
            "browser_error",
            "Page.route: Protocol error (Fetch.enable)",
        ),
        (
            'Page.goto: Cannot navigate to "https://shop.test/search?q=private"\nCall log:\n  - waiting',
            False,
            "browser_error",
            'Page.goto: Cannot navigate to "…',
        ),
        ("x" * 500, False, "browser_error", "x" * 200),
    ],
)
def test_an_error_of_the_browser_is_what_its_text_says(
    message: str,
    has_crashed: bool,  # noqa: FBT001  # a column of the table
    reason: str,
    seen: str | None,
) -> None:
    error = browser_failed(message, has_crashed=has_crashed)
    assert (error.code, error.reason, error.retryable) == ("UPSTREAM_ERROR", reason, True)
    assert [each["msg"] for each in error.details] == ([] if seen is None else [seen])
    assert (is_block(error), is_answer(error)) == (False, False), "neutral for the circuit breaker"
    assert "private" not in error.message


@pytest.mark.parametrize(
    ("kind", "url", "aborted"),
    [
        ("image", "https://www.tiktok.com/a.png", True),
        ("media", "https://www.tiktok.com/a.mp4", True),
        ("font", "https://www.tiktok.com/a.woff2", True),
        ("document", "https://www.tiktok.com/search?q=tea", False),
        ("script", "https://www.tiktok.com/a.js", False),
        ("script", "https://www.google-analytics.com/a.js", True),
        ("xhr", "https://doubleclick.net/collect", True),
        ("xhr", "https://notdoubleclick.net/collect", False),
        ("script", "blob:null", False),
    ],
)
async def test_pages_load_no_pictures_and_no_trackers(
    kind: str,
    url: str,
    aborted: bool,  # noqa: FBT001  # a column of the table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrapy_playwright.handler.verify_installed_reactor", lambda _: None)  # no page is opened
    crawler = Crawler(Spider, get_project_settings())
    crawler.stats = StatsCollector(crawler)
    crawler.spider = SimpleNamespace(shared=SharedState())  # type: ignore[assignment]  # as PlatformSpider has it
    request: Any = SimpleNamespace(resource_type=kind, url=url)
    assert BrowserHandler(crawler).abort_request(request) is aborted
