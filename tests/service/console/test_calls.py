"""Calls in the console: results, errors, next pages, background calls."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.changed_shop import CHANGED, RATING, UNKNOWN
from tests.service.conftest import ROOT
from tests.service.console.page import DESKTOP, OWN, OpenConsole, call


@pytest.mark.soak  # The fast tier shows whole records of all scrapers: test_every_known_field_is_shown.
@pytest.mark.parametrize("name", OWN)
def test_every_scraper_is_called_and_shown(console: OpenConsole, name: str) -> None:
    page = console(name)
    call(page)
    if (ROOT / "crawler" / "platforms" / OWN[name].platform / "view.js").exists():
        expect(page.locator(".own")).to_be_visible()
        expect(page.locator(".own .cards li, .own .posts li, .own .timeline li").first).to_be_visible()
        page.get_by_text("All fields", exact=True).click()
    expect(page.locator(".fields").first).to_be_visible()
    assert page.get_by_text("cannot show this record").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP[0]


@pytest.mark.parametrize("place", ["%", "constructor", "__proto__", "retail-search-v4%20"])
def test_any_address_shows_a_scraper(console: OpenConsole, place: str) -> None:
    page = console(place)
    assert page.locator("main h2").inner_text() in OWN
    assert page.get_by_role("button", name="Call", exact=True).count() == 1


def test_the_sandbox_is_called_with_its_own_key(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.evaluate("sessionStorage.setItem('api-key', 'of another service at the same address')")
    page.reload()
    call(page)


@pytest.mark.parametrize("answer", [{"json": {"error": {"code": 502}}}, {"body": "<html>proxy</html>"}])
def test_an_error_of_a_proxy_is_not_taken_for_one_of_the_service(console: OpenConsole, answer: dict[str, Any]) -> None:
    page = console("retail-search-v4")
    page.route("**/v1/scrapers/*", lambda route: route.fulfill(status=502, **answer))
    call(page, "No response")
    expect(page.get_by_role("alert")).to_contain_text("Check that it is still running.")


def test_a_wrong_key_is_sent_once(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    requests: list[str] = []
    error = {"code": "INVALID_API_KEY", "type": "auth", "message": "x", "details": [], "doc_url": "/docs"}
    status = {"code": error["code"], "message": "x", "retryable": False}
    envelope = {"request_id": "req_1", "success": False, "status": status, "data": None, "error": error, "meta": None}

    def refuse(route: Route) -> None:
        requests.append(route.request.url)
        route.fulfill(status=401, json=envelope)

    page.clock.install()
    page.route("**/v1/usage*", refuse)
    page.get_by_role("link", name="Status").click()
    expect(page.get_by_role("alert")).to_contain_text("Enter a valid API key")
    page.clock.run_for(60_000)
    assert len(requests) == 1
    page.unroute("**/v1/usage*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("The service accepts calls.")).to_be_visible()


@pytest.mark.parametrize("name", ["retail-search-v4", "microblog-profile", "videosite-profile"])
def test_the_next_page_follows_from_the_data(console: OpenConsole, name: str) -> None:
    page = console(name)
    call(page)
    first = page.locator(".own").inner_text()
    page.get_by_role("button", name="Next page").click()
    expect(page.locator(".pages span")).to_have_text("Page 2")
    expect(page.locator(".outcome strong")).to_have_text("OK")
    expect(page.locator(".own")).not_to_have_text(first, use_inner_text=True)
    page.get_by_role("button", name="Previous page").click()
    expect(page.locator(".pages span")).to_have_text("Page 1")
    expect(page.locator(".own")).to_have_text(first, use_inner_text=True)


def test_errors_are_shown_with_advice(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    call(page, "INVALID_REQUEST", page="0")
    expect(page.locator("#param-page")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#param-page-about .problem")).to_contain_text("1")
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("Correct the call, then send it again.")
    expect(notice).to_contain_text("when a param, query parameter or header is missing, unknown or invalid")
    expect(notice.get_by_role("link")).to_have_attribute("href", re.compile(r"docs#INVALID_REQUEST$"))
    assert notice.get_by_role("button", name="Try again").count() == 0
    page = console("retail-category-v4")
    call(page, "TARGET_NOT_FOUND", cat_id="1_2_3")
    expect(page.get_by_role("alert")).to_contain_text("Retrying does not help")


def test_a_blocked_platform_can_be_called_again(console: OpenConsole) -> None:
    page = console("microblog-profile")
    call(page, "UPSTREAM_BLOCKED", username="fault_02")
    expect(page.get_by_role("alert")).to_contain_text("The call is correct, but the platform")
    expect(page.get_by_role("alert")).to_contain_text("status 403")
    identifier = page.locator(".outcome code").inner_text()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".outcome code")).not_to_have_text(identifier)


def test_a_partial_record_has_a_warning(console: OpenConsole) -> None:
    page = console("microblog-profile")
    call(page, username="fault_52")
    expect(page.locator(".warning")).to_contain_text("timeline (refused, UPSTREAM_BLOCKED)")
    expect(page.locator(".own")).to_be_visible()


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


def test_quoted_names_of_sources_are_read(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    read = "async (header) => (await import('./console/api.js')).parsePartial(header)"
    header = '"web \\"results\\", all"; reason="a; b=c"; code=X, timeline; reason=late; code=Y'
    assert page.evaluate(read, header) == [
        {"source": 'web "results", all', "reason": "a; b=c", "code": "X"},
        {"source": "timeline", "reason": "late", "code": "Y"},
    ]
    unread = 'page; reason=unread; path="a[].b, c;d"; rows=2; of=30; loses_rows; more=4, "b c"; loses_rows'
    counts = {"rows": "2", "of": "30", "loses_rows": True, "more": "4"}
    assert page.evaluate(read, unread) == [
        {"source": "page", "reason": "unread", "path": "a[].b, c;d", **counts},
        {"source": "b c", "loses_rows": True},
    ]


def test_the_samples_make_the_same_call(console: OpenConsole) -> None:
    query = 'it\'s "quoted" $HOME `x` \\ – é'
    page = console("retail-search-v4")
    call(page, query=query, max_price="50")
    page.get_by_role("tab", name="Code").click()
    expect(page.locator(".sample pre")).to_have_count(3)
    curl, python, script = page.locator(".sample pre").all_text_contents()
    answers = [
        json.loads(subprocess.run(["bash", "-c", curl], capture_output=True, check=True, text=True).stdout),  # noqa: S607
        json.loads(subprocess.run([sys.executable, "-c", python], capture_output=True, check=True, text=True).stdout),
        page.evaluate(f"async () => {{ {script.rpartition('console.log')[0]} return answer; }}"),
    ]
    assert [answer["data"]["query"] for answer in answers] == [query] * 3
    assert all(answer["success"] for answer in answers)


def test_a_call_is_started_as_a_job_if_its_params_are_valid(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.locator("#param-page").fill("0")
    page.get_by_role("button", name="As a job").click()
    expect(page.locator(".failure")).to_contain_text("page")
    page.locator("#param-page").fill("")
    page.get_by_label("query").fill("mustard")
    page.get_by_role("button", name="As a job").click()
    expect(page.locator("main h2")).to_have_text(re.compile(r"^Job \d+"))
    expect(page.get_by_role("button", name="Excel")).to_be_enabled()


def test_a_call_that_waits_is_cancelled(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.get_by_label("query").fill("hang")
    with page.expect_event("requestfailed", lambda each: "/v1/scrapers/" in each.url):
        page.get_by_role("button", name="Call").click()
        page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".pending")).to_have_count(0)
