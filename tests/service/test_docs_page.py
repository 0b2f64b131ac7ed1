"""The documentation page in a real browser: it renders every operation, makes a call, and contacts no other host."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from crawler.errors import documented
from tests.openapi import DOCUMENT
from tests.service.client import call
from tests.service.conftest import Service


@pytest.fixture(scope="module")
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """The documentation, opened where an error links to. Script errors and requests to other hosts fail the tests."""
    opened = browser.new_page(viewport={"width": 1400, "height": 1000})
    opened.set_default_timeout(120_000)  # on a busy machine
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    allowed = {urlsplit(service.url).netloc, ""}
    opened.on("request", lambda sent: problems.append(sent.url) if urlsplit(sent.url).netloc not in allowed else None)
    opened.goto(service.url + call(service.url, "/v1/scrapers/none", {}).body["error"]["doc_url"])
    opened.wait_for_selector(".opblock")
    opened.wait_for_function(
        "code => Math.abs(document.getElementById(code).getBoundingClientRect().top - 450) < 460",
        arg="SCRAPER_NOT_FOUND",
    )
    yield opened
    opened.close()
    assert problems == []


@pytest.mark.parametrize("most", [pytest.param(1, id="one of each kind"), pytest.param(None, marks=pytest.mark.soak)])
def test_every_operation_and_every_error_is_rendered(page: Page, most: int | None) -> None:
    """All operations must be listed. ``most``: how many of each group (scrapers, others) are opened, 1.5 s each."""
    for error in documented():
        assert page.locator(f"tr#{error.code}").count() == 1
    named = DOCUMENT["paths"] | DOCUMENT["webhooks"]
    operations = {(method.upper(), path) for path, methods in named.items() for method in methods}
    blocks = {
        (
            block.locator(".opblock-summary-method").inner_text(),
            str(block.locator(".opblock-summary-path").get_attribute("data-path")),
        ): block
        for block in page.locator(".opblock").all()
    }
    assert blocks.keys() == operations
    of_scrapers = sorted(operation for operation in operations if operation[1].startswith("/v1/scrapers/"))
    others = sorted(operations - {*of_scrapers})
    for operation in [*of_scrapers[:most], *others[:most]]:
        block = blocks[operation]
        block.locator(".opblock-summary-control").click()
        block.locator(".responses-table").first.wait_for()
        block.locator(".opblock-summary-control").click()  # open operations slow down later clicks
        block.locator(".responses-table").first.wait_for(state="detached")
    assert page.locator(".errors-wrapper").count() == 0, "the viewer reports an error in the document"


def test_a_call_is_made_from_the_page(page: Page) -> None:
    page.locator("button.authorize").first.click()
    page.locator(".auth-container input#api_key_value").fill("sandbox")
    page.locator(".auth-btn-wrapper button[type=submit]").first.click()
    page.locator(".auth-btn-wrapper button.btn-done").first.click()
    block = page.locator("#operations-retail-retail-category-v4")
    block.locator(".opblock-summary-control").click()
    block.locator("button.execute").click()
    status = block.locator(".live-responses-table tbody .response-col_status").first
    status.wait_for()
    assert "200" in status.inner_text()
    response = block.locator(".live-responses-table tbody .response-col_description pre").first.inner_text()
    assert '"success": true' in response
