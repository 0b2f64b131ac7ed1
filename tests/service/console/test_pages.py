"""The other pages of the console (usage and status), small screens, keyboard, accessibility."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.openapi import DOCUMENT
from tests.service.console.page import (
    OWN,
    PHONE,
    OpenConsole,
    answer_with,
    call,
    full_record,
    open_everything,
    violations,
)


def test_the_usage_and_the_status_are_shown(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    call(page)
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("img", name=re.compile(r"^Calls by day: \d+ in all"))).to_be_visible()
    expect(page.get_by_role("cell", name="retail-search-v4", exact=True)).to_be_visible()
    assert page.locator(".plot rect.billable").count() > 0
    assert violations(page) == []
    page.get_by_role("link", name="Status").click()
    expect(page.get_by_role("status")).to_contain_text("The service accepts calls.")
    expect(page.get_by_role("row", name=re.compile(r"^retail-search-v4 \d+ .*OK \d+"))).to_be_visible()
    assert violations(page) == []


def test_a_service_that_shuts_down_is_shown(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.route("**/readyz", lambda route: route.fulfill(status=503, json={"status": "draining", "broken": ["retail"]}))
    page.get_by_role("link", name="Status").click()
    expect(page.get_by_role("status")).to_contain_text("accepts no calls")
    expect(page.get_by_role("status")).to_contain_text("These crawlers fail to start: retail.")


def test_pages_without_a_route_are_not_shown(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    hidden = {"/v1/jobs", "/readyz"}
    own: dict[str, Any] = {path: {"post": {}} for path in DOCUMENT["paths"] if path not in hidden}
    page.route("**/openapi.json", lambda route: route.fulfill(json={**DOCUMENT, "paths": own}))
    page.reload()
    page.locator("main h2").wait_for()
    assert page.locator(".top nav a").all_inner_texts() == ["Scrapers", "Usage", "Documentation"]
    assert page.get_by_role("button", name="As a job").count() == 0
    assert page.get_by_role("link", name="start a job").count() == 0


@pytest.mark.parametrize("name", ["retail-category-v4", pytest.param("professional-profile", marks=pytest.mark.soak)])
def test_the_page_fits_a_phone(console: OpenConsole, name: str) -> None:
    page = console(OWN["retail-search-v4"].name, PHONE)
    page.locator(".scrapers-narrow select").select_option(name)
    expect(page.locator("main h2")).to_have_text(name)
    call(page)
    for tab in ("View", "JSON", "Code"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], tab
    page.get_by_role("tab", name="View").click()
    open_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    page.locator(".result").scroll_into_view_if_needed()


def test_the_keyboard_is_enough(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    focused = page.locator(":focus")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("To the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("start a job")
    page.keyboard.press("Tab")
    expect(focused).to_have_id("param-query")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".outcome strong")).to_have_text("OK")
    expect(page.get_by_role("status").first).to_contain_text("The scrape is complete")
    while page.evaluate("document.activeElement.id") != "tab-View":
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_id("tab-JSON")
    expect(page.get_by_role("tab", name="JSON")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("Copy JSON")
    while page.evaluate("document.activeElement.textContent") != "Next page":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".pages span")).to_have_text("Page 2")


def test_axe_finds_no_serious_violations(console: OpenConsole) -> None:
    page = console("microblog-profile", PHONE)
    call(page, "INVALID_REQUEST", username="")
    assert violations(page) == []
    answer_with(page, full_record("microblog-profile"))
    call(page)
    open_everything(page)
    assert violations(page) == []


@pytest.mark.soak
def test_axe_finds_no_serious_violations_in_a_large_record_and_its_other_tabs(console: OpenConsole) -> None:
    page = console("professional-profile")
    call(page)
    open_everything(page)
    assert violations(page) == []
    for tab in ("JSON", "Code"):
        page.get_by_role("tab", name=tab).click()
        assert violations(page) == []


def test_axe_finds_enough_contrast_in_the_dark(console: OpenConsole) -> None:
    page = console("microblog-profile", dark=True)
    call(page, username="fault_52")
    assert violations(page, "color-contrast") == []
    call(page, "UPSTREAM_BLOCKED", username="fault_02")
    assert violations(page, "color-contrast") == []
