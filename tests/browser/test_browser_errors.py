"""An error of the browser is a crash only if its text says so. Any other text is quoted."""

from __future__ import annotations

import pytest

from crawler.browser.handler import browser_failed
from crawler.downloads.breaker import is_answer, is_block


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
