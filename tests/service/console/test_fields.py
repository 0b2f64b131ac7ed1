"""The console in a real browser: calls, results, hostile records, accessibility, no requests to other hosts."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from scrapy.settings import Settings

from crawler.commands import serve
from crawler.registry import scrapers
from crawler.service.console import pages
from tests.openapi import DOCUMENT
from tests.service.conftest import ROOT, Service, running

FOLDER = ROOT / "crawler" / "service" / "console"
VENDORED = json.loads((ROOT / "tests" / "service" / "console.json").read_text())
OWN = {name: scraper for name, scraper in scrapers().items() if name == scraper.name}
MAX_LINES = 1_500
DESKTOP, PHONE = (1280, 900), (375, 812)
IMAGE = "https://images.example/1.png"
OPENED = "details:not([open]) > summary, button.open[aria-expanded=false]"
"""Everything on the page that is closed, and shows further fields once it is clicked."""

OpenConsole = Callable[..., Page]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log", "DOWNLOAD_TIMEOUT=60") as started:
        yield started


@pytest.fixture
def console(browser: Browser, service: Service, request: pytest.FixtureRequest) -> Iterator[OpenConsole]:
    """Opens the console. The test fails on script errors, violations of the policy, and requests to other hosts.

    If the environment variable CONSOLE_SHOTS names a folder, it gets a picture of each page at the end of its test.
    """
    problems: list[str] = []
    opened: list[Page] = []
    failed = re.compile("Failed to load resource: the server responded with a status of [45]")  # a call that fails

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
        watch(page)
        opened.append(page)
        page.goto(f"{service.url}/#{place}")
        page.locator("main h2").wait_for()
        return page

    yield open_console
    shots = os.environ.get("CONSOLE_SHOTS")
    for number, page in enumerate(opened):
        name = re.sub(r"\W+", "-", f"{request.node.name}-{number}").strip("-")
        if shots:
            page.screenshot(path=Path(shots) / f"{name}.png")
        page.context.close()
    assert problems == []


def call(page: Page, code: str = "OK", /, **params: str) -> None:
    """Fill in the form, make the call, and wait for the response."""
    for name, value in params.items():
        page.locator(f"#param-{name}").fill(value)
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.locator(".outcome strong")).to_have_text(code, timeout=60_000)


def open_everything(page: Page) -> None:
    page.locator("details.all").wait_for()
    while page.locator(OPENED).count():
        page.evaluate("opened => document.querySelectorAll(opened).forEach((each) => each.click())", OPENED)
        page.wait_for_timeout(50)


def paths(value: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Yield the dotted path of each value in JSON data. Lists add nothing to the path."""
    if isinstance(value, dict) and value:
        return set().union(*(paths(each, (*path, key)) for key, each in value.items()))
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return set().union(*(paths(each, path) for each in value))
    return {".".join(path)}


def shown_fields(page: Page) -> set[str]:
    return set(page.eval_on_selector_all("[data-field]", "all => all.map((each) => each.dataset.field)"))


def answer_with(page: Page, data: Any, headers: dict[str, str] | None = None) -> None:
    """Let each call of the page be answered with a record, without the service."""
    meta = {"client_id": "sandbox", "scraper": "", "billable": True, "duration_ms": 1}
    status = {"code": "OK", "message": "The scrape is complete.", "retryable": False}
    envelope = {"request_id": "req_1", "success": True, "status": status, "data": data, "error": None, "meta": meta}

    def fulfil(route: Route) -> None:
        route.fulfill(status=200, headers=headers, content_type="application/json", body=json.dumps(envelope))

    page.route("**/v1/scrapers/*", fulfil)


def sample(schema: dict[str, Any], key: str = "") -> Any:  # noqa: PLR0911  # one return per type
    """Return a value that fits a schema, with all keys and without nulls."""
    if "$ref" in schema:
        return sample(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]], key)
    if "anyOf" in schema:
        return sample(next(each for each in schema["anyOf"] if each != {"type": "null"}), key)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [""])[0])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: sample(each, name) for name, each in schema["properties"].items()}
        case "array":
            return [sample(schema.get("items", {}), key)]
        case "integer" | "number":
            return 1_700_000_000
        case "boolean":
            return True
        case "null":
            return None
    return f"text of {key}"


def full_record(scraper: str) -> dict[str, Any]:
    """Return a record of a scraper with all fields of its schema."""
    answer = DOCUMENT["paths"][f"/v1/scrapers/{scraper}"]["post"]["responses"]["200"]
    record: dict[str, Any] = sample(answer["content"]["application/json"]["schema"])["data"]
    return record


def emptied(value: Any) -> Any:
    """Return the same record with nulls and empty lists in place of values."""
    if isinstance(value, dict):
        return {key: emptied(each) for key, each in value.items()}
    return [] if isinstance(value, list) else None


def violations(page: Page, *rules: str) -> list[str]:
    """Return the serious violations that axe finds on the page: `rule: element`. ``rules``: check only these."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


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


@pytest.mark.parametrize("name", OWN)
def test_every_known_field_is_shown(console: OpenConsole, name: str) -> None:
    """A field that only the tab "JSON" shows would be missing here."""
    record = full_record(name)
    page = console(name)
    answer_with(page, record)
    call(page)
    open_everything(page)
    assert page.get_by_text("cannot show this record").count() == 0
    assert paths(record) - shown_fields(page) == set()
    assert "{" not in page.locator("details.all").inner_text()


def test_fields_without_a_value_are_named(console: OpenConsole) -> None:
    record = emptied(full_record("professional-profile-v4"))
    page = console("professional-profile-v4")
    answer_with(page, record)
    call(page)
    open_everything(page)
    assert paths(record) - shown_fields(page) == set()


def test_values_are_shown_as_what_they_are(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    record = {"title": "x", "url": "https://shop.example/1", "created": "2026-01-02T03:04:05Z", "total_results": 12345}
    record |= {"price": {"current_price": 1234.5, "currency": "EUR"}, "tags": ["a", "b"], "has_more": False}
    answer_with(page, record)
    call(page)
    open_everything(page)

    def value(field: str) -> str:
        return page.locator(f"[data-field='{field}'] dd").inner_html()

    expect(page.locator("[data-field=url] dd a")).to_have_attribute("href", "https://shop.example/1")
    expect(page.locator("[data-field=url] dd a")).to_have_attribute("rel", "noopener noreferrer")
    expect(page.locator("[data-field=created] dd time")).to_have_text("2026-01-02 03:04")
    expect(page.locator("[data-field=total_results] dd")).to_have_text("12,345")
    expect(page.locator("[data-field='price.current_price'] dd")).to_have_text("€1,234.50")
    expect(page.locator("[data-field=tags] dd li")).to_have_text(["a", "b"])
    expect(page.locator("[data-field=has_more] dd")).to_have_text("no")
    assert page.get_by_role("button", name="Next page").count() == 0
    # The platform's own view needs products, which this record lacks: the fields are shown nevertheless.
    expect(page.get_by_text("The view of this platform cannot show this record.")).to_be_visible()


def test_values_are_not_changed(console: OpenConsole) -> None:
    """Long ids keep their digits. A time without a zone and a price without a currency get none."""
    page = console("retail-search-v4")
    record = {"id": 2**60 + 1, "latitude": 52.5200066, "list_price": 1234.5, "created": "2026-01-02T03:04:05"}
    answer_with(page, {**record, "joined": "Jan 5, 2012", "has_more": False})
    call(page)
    open_everything(page)
    shown = {name: page.locator(f"[data-field={name}] dd").inner_text() for name in record}
    assert shown == {
        "id": "1152921504606846977",
        "latitude": "52.5200066",
        "list_price": "1,234.5",
        "created": "2026-01-02T03:04:05",
    }
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator(".json")).to_contain_text('"id": 1152921504606846977,')


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


def test_an_error_of_a_proxy_is_not_taken_for_one_of_the_service(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.route("**/v1/scrapers/*", lambda route: route.fulfill(status=502, json={"error": {"code": 502}}))
    call(page, "No response")
    expect(page.get_by_role("alert")).to_contain_text("Check that it is still running.")


def test_opened_texts_stay_open_while_the_form_changes(console: OpenConsole) -> None:
    page = console("microblog-profile")
    record = full_record("microblog-profile")
    record["data"]["main"][0]["caption"] = "word " * 1_000
    answer_with(page, record)
    call(page)
    page.locator(".own").get_by_role("button", name="Show all 5,000 characters").click()
    page.locator("#param-username").fill("another")
    expect(page.locator(".own").get_by_role("button", name="Show less")).to_be_visible()


def test_a_post_with_an_unsafe_url_has_no_word_that_looks_like_a_link(console: OpenConsole) -> None:
    page = console("microblog-profile")
    record = full_record("microblog-profile")
    record["data"]["main"][0]["post_url"] = "javascript:window.hacked=1"
    answer_with(page, record)
    call(page)
    expect(page.locator(".own .posts li").first).to_be_visible()
    assert page.locator(".own .posts").get_by_text("Open", exact=True).count() == 0


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
    page.route("**/v1/status", refuse)
    page.get_by_role("link", name="Platform status").click()
    expect(page.get_by_role("alert")).to_contain_text("Enter a valid API key")
    page.clock.run_for(60_000)
    assert len(requests) == 1
    page.unroute("**/v1/status")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".platform").first).to_be_visible()


@pytest.mark.parametrize("name", ["retail-search-v4", "microblog-profile", "videosite-profile"])
def test_the_next_page_follows_from_the_data(console: OpenConsole, name: str) -> None:
    page = console(name)
    call(page)
    first = page.locator(".own").inner_text()
    page.get_by_role("button", name="Next page").click()
    expect(page.locator(".pages span")).to_have_text("Page 2", timeout=60_000)
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
    expect(notice).to_contain_text("when a param is missing or unknown")
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


def test_quoted_names_of_sources_are_read(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    header = '"web \\"results\\", all"; reason="a; b=c"; code=X, timeline; reason=late; code=Y'
    read = page.evaluate("async (header) => (await import('./console/api.js')).parsePartial(header)", header)
    assert read == [
        {"source": 'web "results", all', "reason": "a; b=c", "code": "X"},
        {"source": "timeline", "reason": "late", "code": "Y"},
    ]


HOSTILE = {
    "title": "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "url": "javascript:window.hacked=1",
    "link": "data:text/html,<script>window.hacked = 1</script>",
    "name": "\u202eevil\u2066 \u200f",
    "text": "x" * 100_000,
    "vnode": {"type": "script", "props": {"dangerouslySetInnerHTML": {"__html": "hacked"}}, "constructor": None},
    "rows": [{"caption": "<b onclick='window.hacked = 1'>bold</b>", "__proto__": {"polluted": 1}, "href": "vbscript:x"}]
    * 2,
    "<img src=x onerror='window.hacked = 1'>": "a key",
}


def test_a_hostile_record_is_shown_as_text(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    answer_with(page, HOSTILE)
    call(page)
    open_everything(page)
    text = page.locator("details.all").inner_text()
    for expected in ("<script>window.hacked", "javascript:window.hacked=1", "<b onclick=", "vbscript:x"):
        assert expected in text
    expect(page.get_by_role("button", name="Show all 100,000 characters")).to_be_visible()
    assert len(text) < 10_000
    page.get_by_role("button", name="Show all 100,000 characters").click()
    expect(page.locator("details.all")).to_contain_text("x" * 100_000)
    assert page.locator("#panel a").count() == 0
    assert page.locator("#panel img, #panel script").count() == 0
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator(".json")).to_contain_text(r"\u202eevil\u2066 \u200f")
    assert page.evaluate("[window.hacked, {}.polluted]") == [None, None]
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP[0]


def test_a_large_result_is_laid_out_in_parts(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    rows = [{"name": f"row {number}", "text": "word " * 20, "number": number} for number in range(8_000)]
    answer_with(page, {"products": rows, "has_more": False})
    call(page)
    expect(page.locator("table tbody tr")).to_have_count(25)
    page.get_by_role("button", name="Show 500 more of 8,000").click()
    expect(page.locator("table tbody tr")).to_have_count(525)
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator(".json pre").nth(50)).to_be_attached()
    assert json.loads("".join(page.locator(".json pre").all_text_contents()))["data"]["products"] == rows


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


def test_usage_is_shown_by_day(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    call(page)
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("img", name=re.compile(r"^Calls by day: \d+ in all"))).to_be_visible()
    expect(page.get_by_role("cell", name="retail-search-v4", exact=True)).to_be_visible()
    assert page.locator(".plot rect.billable").count() > 0


def test_a_call_in_the_background_shows_its_state(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.get_by_role("button", name="Call in the background").click()
    expect(page.locator(".outcome strong")).to_have_text("OK", timeout=60_000)
    identifier = page.locator(".outcome code").inner_text()
    expect(page.locator(".own .cards li").first).to_be_visible()
    page.get_by_role("link", name="Background calls").click()
    page.get_by_role("button", name="Open").first.click()
    expect(page.locator(".outcome code")).to_have_text(identifier)
    expect(page.locator(".own .cards li").first).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Delete").first.click()
    expect(page.locator(".outcome")).to_have_count(0)


def test_a_call_in_the_background_is_cancelled(console: OpenConsole) -> None:
    page = console("shortvideo-photo-search-v4")
    page.get_by_role("button", name="Call in the background").click()
    expect(page.locator(".pending")).to_contain_text(re.compile("Waiting: position 1|Running"), timeout=60_000)
    with page.expect_response(lambda each: each.request.method == "DELETE") as deleted:
        page.get_by_role("button", name="Cancel").click()
    assert deleted.value.status == 204
    expect(page.locator(".pending")).to_have_count(0)


def test_a_call_in_the_background_is_not_polled_from_other_pages(console: OpenConsole) -> None:
    page = console("shortvideo-photo-search-v4")
    page.route("**/v1/calls/*", lambda _: None)  # the request stays without a response
    with page.expect_request("**/v1/calls/*"):
        page.get_by_role("button", name="Call in the background").click()
    with page.expect_event("requestfailed", lambda each: "/v1/calls/" in each.url):
        page.get_by_role("link", name="Usage").click()


def test_the_status_of_platforms_is_shown(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    call(page)
    page.get_by_role("link", name="Platform status").click()
    retail = page.get_by_role("region", name="retail")
    expect(retail).to_contain_text("with a record")
    expect(retail.get_by_role("img", name=re.compile("^Outcomes by minute: .*OK"))).to_be_visible()
    page.locator(".platform summary").first.click()
    expect(page.locator(".egresses strong").first).to_have_text("direct")
    expect(page.locator(".platform")).to_have_count(len({scraper.platform for scraper in OWN.values()}))
    assert violations(page) == []


def test_pages_without_a_route_are_not_shown(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    own: dict[str, Any] = {path: {"post": {}} for path in DOCUMENT["paths"] if path not in {"/v1/calls", "/v1/status"}}
    page.route("**/openapi.json", lambda route: route.fulfill(json={**DOCUMENT, "paths": own}))
    page.reload()
    page.locator("main h2").wait_for()
    assert page.locator(".top nav a").all_inner_texts() == ["Scrapers", "Usage", "Documentation"]
    assert page.get_by_role("button", name="Call in the background").count() == 0


@pytest.mark.parametrize("name", ["retail-category-v4", "professional-profile"])
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
    expect(focused).to_have_id("param-query")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".outcome strong")).to_have_text("OK", timeout=60_000)
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
    expect(page.locator(".pages span")).to_have_text("Page 2", timeout=60_000)


def test_axe_finds_no_serious_violations(console: OpenConsole) -> None:
    page = console("professional-profile")
    call(page)
    open_everything(page)
    assert violations(page) == []
    for tab in ("JSON", "Code"):
        page.get_by_role("tab", name=tab).click()
        assert violations(page) == []
    page = console("retail-search-v4", PHONE)
    call(page, "INVALID_REQUEST", page="0")
    assert violations(page) == []
    page.goto(f"{page.url.partition('#')[0]}#usage")
    page.locator(".plot").wait_for()
    assert violations(page) == []


def test_axe_finds_enough_contrast_in_the_dark(console: OpenConsole) -> None:
    page = console("microblog-profile", dark=True)
    call(page, username="fault_52")
    assert violations(page, "color-contrast") == []
    call(page, "UPSTREAM_BLOCKED", username="fault_02")
    assert violations(page, "color-contrast") == []


def test_with_real_platforms_images_load_only_after_a_click(browser: Browser, service: Service) -> None:
    """The service runs the sandbox here, but its page is that of a service with real platforms."""
    real = pages(sandbox=False)["/"]
    page = browser.new_page()
    images: list[str] = []
    keys: list[str | None] = []

    def image(route: Route) -> None:
        images.append(route.request.url)
        assert "referer" not in route.request.headers
        route.fulfill(status=200, content_type="image/svg+xml", body='<svg xmlns="http://www.w3.org/2000/svg"/>')

    page.route(IMAGE, image)
    page.route(
        f"{service.url}/",
        lambda route: route.fulfill(headers=dict(real.headers) | {"Content-Type": real.media_type}, body=real.body),
    )
    page.goto(f"{service.url}/#retail-search-v4")
    page.on("request", lambda sent: keys.append(sent.headers.get("x-api-key")) if sent.method == "POST" else None)
    answer_with(page, {"products": [], "image": IMAGE, "thumbnail": "http://plain.example/not-loaded.png"})
    page.get_by_label("API key").fill("of-the-client")
    page.locator("#param-query").fill("x")
    call(page)
    open_everything(page)
    assert images == []
    page.get_by_role("button", name="Load 2 images").click()
    expect(page.locator("img.picture").first).to_be_visible()
    assert images == [IMAGE], "the policy allows https only"
    assert keys == ["of-the-client"]
    assert page.evaluate("[localStorage.length, sessionStorage.getItem('api-key'), document.cookie]") == [
        0,
        "of-the-client",
        "",
    ]
    page.get_by_role("tab", name="Code").click()
    page.locator(".sample").first.wait_for()
    assert "of-the-client" not in page.locator("#panel").inner_text(), "samples read the key from the environment"
    page.close()


def test_a_service_that_does_not_respond_is_reported(console: OpenConsole) -> None:
    page = console("retail-search-v4")
    page.route("**/v1/scrapers/*", lambda route: route.fulfill(status=502, body="<html>proxy</html>"))
    call(page, "No response")
    expect(page.get_by_role("alert")).to_contain_text("Check that it is still running")


SERVED = [
    pytest.param({}, "127.0.0.1", True, id="loopback"),
    pytest.param({}, "::1", True, id="loopback-6"),
    pytest.param({}, "0.0.0.0", False, id="all-addresses"),
    pytest.param({"SERVICE_URL": "https://data.example.com"}, "127.0.0.1", False, id="behind-a-proxy"),
    pytest.param({"CONSOLE": True}, "0.0.0.0", True, id="on"),
    pytest.param({"CONSOLE": False}, "127.0.0.1", False, id="off"),
]


@pytest.mark.parametrize(("own", "host", "is_served"), SERVED)
def test_where_the_console_is_served(own: dict[str, object], host: str, *, is_served: bool) -> None:
    settings = Settings({"CONSOLE": "auto", "SERVICE_URL": None, **own})
    served = serve.console_pages(settings, argparse.Namespace(host=host, sandbox=False))
    assert bool(served) == is_served
    assert ("/" in served) == is_served


def test_without_its_package_there_is_no_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: find_spec(f"{name}_removed"))
    opts = argparse.Namespace(host="127.0.0.1", sandbox=True)
    assert serve.console_pages(Settings({"CONSOLE": True}), opts) == {}


def test_nothing_else_imports_the_console() -> None:
    naming = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "crawler").rglob("*.py"))
        if FOLDER not in path.parents and "service.console" in path.read_text()
    ]
    assert naming == ["crawler/commands/serve.py"]


def test_the_page_loads_nothing_from_elsewhere_and_evaluates_no_text() -> None:
    for sandbox in (True, False):
        policy = pages(sandbox=sandbox)["/"].headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "unsafe" not in policy
        assert ("https:" in policy) != sandbox, "the sandbox has no images"
    own = "".join(content.body.decode() for path, content in pages(sandbox=False).items() if path.endswith(".js"))
    assert re.findall(r"\beval\(|new Function|innerHTML\s*=|document\.write", own.replace(vendored(), "")) == []
    assert re.findall(r"\beval\(|new Function", vendored()) == []


def vendored() -> str:
    return "".join((FOLDER / "static" / name).read_text() for name in VENDORED)


def test_the_console_is_small() -> None:
    own = [path for path in FOLDER.rglob("*.*") if path.suffix in {".py", ".js", ".css", ".html", ".svg"}]
    assert sum(len(path.read_text().splitlines()) for path in own if path.name not in VENDORED) <= MAX_LINES


def test_the_vendored_file_has_the_pinned_hash() -> None:
    """A change of the vendored file must be deliberate, and be repeated in ``console.json``."""
    folder = FOLDER / "static"
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in VENDORED} == VENDORED
