"""The job pages of the console: malicious texts, keyboard, phone screens, accessibility, screenshots."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.service.console.page import (
    DESKTOP,
    PASTE,
    PHONE,
    OpenConsole,
    drop,
    start,
    violations,
)
from tests.service.console.test_jobs import MISSING

PAYLOADS = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<svg onload=window.hacked=1>",
    "<svg><script>window.hacked = 1</script></svg>",
    "'\"><script>window.hacked = 1</script>",
    "javascript:window.hacked=1",
    "\x01javascript:window.hacked=1",
    "data:text/html,<script>parent.hacked = 1</script>",
    '<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe>',
    "<a href='javascript:window.hacked=1'>https://x.com</a>",
    "</textarea></title><script>window.hacked = 1</script>",
    "<details open ontoggle=window.hacked=1>x</details>",
    "<math><mtext><style><img src=x onerror=window.hacked=1></style></mtext></math>",
    "${window.hacked = 1}{{constructor.constructor('window.hacked = 1')()}}",
    "\u202e<b onclick=window.hacked=1>\u2066https://x.com/\u200f",
]


def assert_nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("main :is(script, iframe, img, math, style, object, base)").count() == 0
    hrefs = page.eval_on_selector_all("a", "all => all.map((each) => each.protocol)")
    assert set(hrefs) <= {"http:", "https:"}
    assert page.locator("main :is(b, title)").count() == 0


def test_scripts_in_a_targets_file_do_not_run(console: OpenConsole) -> None:
    """The scripts are in the names of the file, columns and scrapers, in ids and params, and so in error messages."""
    cells = [each.replace('"', '""') for each in PAYLOADS]
    names = ",".join(f'"{each}"' for each in cells if each.isprintable())
    rows = [f'"{each}",retail-search-v4,"{each}",{names}' for each in cells]
    rows += [f'x,"{each}",soap,{names}' for each in cells]
    page = console("jobs")
    drop(page, f"{PAYLOADS[1]}.csv", "\n".join([f"id,scraper,query,{names}", *rows]))
    page.get_by_role("button", name="Check only").click()
    expect(page.locator(".notice li")).not_to_have_count(0)
    assert_nothing_ran(page)
    page.get_by_role("button", name="Start job").click()
    expect(page.locator(".summary")).to_contain_text("Done")
    for summary in page.locator("summary").all():
        summary.click()
    expect(page.locator(".failures").first).to_contain_text("<script>window.hacked")
    assert_nothing_ran(page)


@pytest.mark.soak
def test_the_keyboard_is_enough_for_a_job(console: OpenConsole) -> None:
    page = console("jobs")
    focused = page.locator(":focus")

    def go_to(text: str) -> None:
        """Press Tab until an element with the text has the focus."""
        for _ in range(30):
            page.keyboard.press("Tab")
            if text in page.evaluate("document.activeElement.textContent + (document.activeElement.id || '')"):
                return
        raise AssertionError(f"Tab does not reach {text}")

    go_to("targets")
    page.keyboard.insert_text(f"https://www.walmart.com/search?q=soap\n{MISSING}")
    page.keyboard.press("Tab")
    expect(focused).to_have_attribute("type", "file")
    assert page.evaluate("getComputedStyle(document.activeElement.parentElement).outlineStyle") == "solid"
    go_to("Start job")
    page.keyboard.press("Enter")
    expect(page.locator(".summary")).to_contain_text("Done")
    expect(focused).to_have_id("main")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("All jobs")
    go_to("Excel")
    with page.expect_download():
        page.keyboard.press("Enter")
    go_to("TARGET_NOT_FOUND")
    page.keyboard.press("Enter")
    expect(page.locator(".failures li")).to_contain_text("The profile does not exist.")


@pytest.mark.parametrize(
    ("size", "dark"),
    [
        pytest.param(DESKTOP, False, marks=pytest.mark.soak, id="light desktop"),
        pytest.param(PHONE, True, id="dark phone"),
    ],
)
def test_axe_finds_no_serious_violations_on_the_pages_of_jobs(
    console: OpenConsole, size: tuple[int, int], *, dark: bool
) -> None:
    page = console("jobs", size, dark=dark)
    page.get_by_label(PASTE).fill("https://x.com/iron_meadow\nhello world")
    page.get_by_role("button", name="Check only").click()
    page.locator(".notice").wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    start(page, f"https://www.walmart.com/search?q=soap\nhttps://x.com/iron_meadow\n{MISSING}")
    page.locator("summary").click()
    expect(page.locator(".failures li")).to_be_visible()
    page.get_by_role("button", name="Delete job").click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.get_by_role("link", name="All jobs").click()
    page.locator("table.jobs").wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
