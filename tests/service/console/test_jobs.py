"""Jobs in the console: starting, progress, errors, downloads of records, retry, cancel, delete."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import openpyxl
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.service.client import call
from tests.service.conftest import Service
from tests.service.console.page import PASTE, OpenConsole, drop, saved, serve_page_of_real_platforms, start

LINKS = [
    "https://www.walmart.com/browse/976759",
    "https://www.walmart.com/search?q=mustard",
    "https://www.walmart.com/search?q=tea+pot&sort=price_low",
    "x.com/old_lantern",
    "https://x.com/nosuchhandle99",
    "https://x.com/iron_meadow?s=20",
    "https://www.instagram.com/p/DaSandbox01/",
    "https://www.linkedin.com/in/mara-lindqvist",
    "https://www.youtube.com/@tinychannel1109",
    "https://www.youtube.com/@onlyshorts",
]
TEN_LINKS = "\n".join(LINKS)
SEARCHES = "https://www.walmart.com/search?q=mustard\nhttps://www.walmart.com/search?q=soap\n"
MISSING = "https://x.com/nosuchhandle98\n"
BLOCKED = "https://www.walmart.com/search?q=challenge\n"


def job(service: Service, job_id: str) -> Any:
    return call(service.url, f"/v1/jobs/{job_id}", method="GET")


def in_progress(done: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a job that is done as it was before the end of its last target."""
    return {**done, "state": "open", "ended_at": None, "targets": {**done["targets"], "done": 1, "running": 1}}


def test_a_reader_pastes_ten_links_and_gets_an_excel_file(console: OpenConsole) -> None:
    page = console("")
    page.get_by_role("link", name="start a job").click()
    start(page, TEN_LINKS, "Done: 9 with a record, 1 failed.")
    expect(page.locator("summary")).to_have_text("TARGET_NOT_FOUND 1")
    name, content = saved(page, "Excel")
    assert re.fullmatch(r"job-\d+\.xlsx", name)
    expect(page.get_by_text(f"The browser has saved {name}.")).to_be_visible()
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.active is not None
    assert book.active.title != "failures", "a reader who opens the file sees records"
    assert sum(sheet.max_row - 1 for sheet in book) == len(LINKS)
    assert book["failures"]["A2"].value == "upload:5"


PASTED = [
    ("https://x.com/a https://x.com/b", ["https://x.com/a", "https://x.com/b"]),
    ("https://x.com/a,https://x.com/b", ["https://x.com/a", "https://x.com/b"]),
    ("- https://x.com/a\r\n2. <https://x.com/b>;", ["https://x.com/a", "https://x.com/b"]),
    ("Name\thttps://x.com/a", ["https://x.com/a"]),
    ("\n\nx.com/a \nhttps://shop.example/s?q=a,b&c=d;e\n", ["x.com/a", "https://shop.example/s?q=a,b&c=d;e"]),
    ("id,url\n1,https://x.com/a", ["id,url", "1,https://x.com/a"]),
]


def test_links_are_found_in_what_is_pasted(console: OpenConsole) -> None:
    page = console("jobs")
    tidy = "async (text) => (await import('./console/jobs.js')).tidy(text)"
    for pasted, expected in PASTED:
        assert page.evaluate(tidy, pasted).split("\n") == expected, pasted


@pytest.mark.soak
def test_lines_are_checked_without_a_job(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    before = call(service.url, "/v1/jobs", method="GET").body["jobs"]
    page.get_by_label(PASTE).fill("https://x.com/iron_meadow\nhello world\nhttps://shop.example/1")
    page.get_by_role("button", name="Check only").click()
    notice = page.locator(".notice")
    expect(notice).to_contain_text("1 line is a target, 2 are not. At most 1 record is billed.")
    expect(notice.locator("li")).to_contain_text(["Line 2 of", "Line 3 of"])
    page.get_by_label(PASTE).fill("hello world")
    expect(notice).to_have_count(0)
    page.get_by_role("button", name="Start job").click()
    expect(page.get_by_role("alert")).to_contain_text("The upload has no valid target.")
    assert call(service.url, "/v1/jobs", method="GET").body["jobs"] == before


@pytest.mark.soak
def test_a_file_is_dropped_or_chosen(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    drop(page, "searches.csv", "id,query,shelf\n007,mustard,=1+1\n008,soap,b\n")
    page.get_by_role("button", name="Remove").click()
    page.locator("input[type=file]").set_input_files(
        {"name": "Searches.CSV", "mimeType": "application/vnd.ms-excel", "buffer": b"id,query,shelf\n007,mustard,b\n"}
    )
    expect(page.locator(".file")).to_contain_text("Searches.CSV")
    page.locator(".default select").select_option("retail-search-v4")
    page.get_by_role("button", name="Start job").click()
    expect(page.locator(".summary")).to_contain_text("Done: 1 with a record")
    name, content = saved(page, "JSON Lines")
    line = json.loads(content)
    assert (line["id"], line["columns"], name[-6:]) == ("007", {"shelf": "b"}, ".jsonl")
    page.goto(f"{service.url}/#jobs")
    drop(page, "old.xls", "not a workbook")
    page.get_by_role("button", name="Check only").click()
    expect(page.get_by_role("alert")).to_contain_text("save the spreadsheet as .xlsx")


@pytest.mark.soak
def test_each_format_is_the_file_of_the_endpoint(browser: Browser, service: Service) -> None:
    """The API key is sent in a header and never in a URL. The page is that of a service with real platforms."""
    page = browser.new_page()
    serve_page_of_real_platforms(page, service.url)
    page.goto(f"{service.url}/#jobs")
    page.get_by_label("API key").fill("sandbox")
    page.reload()
    sent: list[tuple[str, str | None]] = []
    page.on("request", lambda each: sent.append((each.url, each.headers.get("x-api-key"))))
    job_id = start(page, SEARCHES)
    for button, form in {"CSV": "csv", "JSON": "json", "JSON Lines": "jsonl", "Excel": "xlsx"}.items():
        name, content = saved(page, button)
        url = f"{service.url}/v1/jobs/{job_id}/records?format={form}"
        assert name == f"job-{job_id}.{form}"
        assert content == page.request.get(url, headers={"X-API-Key": "sandbox"}).body()
    page.get_by_label("One row for each").select_option("products")
    name, content = saved(page, "CSV")
    assert name == f"job-{job_id}-products.csv"
    assert content.count(b"\nupload:") > 40
    own = [each for each in sent if not each[0].startswith("blob:")]
    assert len(own) > 8
    assert {key for _, key in own} == {"sandbox"}
    assert [url for url, _ in sent if "sandbox" in url] == []
    page.close()


@pytest.mark.soak
def test_a_table_of_scrapers_with_different_columns_is_refused_with_what_to_choose(console: OpenConsole) -> None:
    page = console("jobs")
    start(page, "https://www.walmart.com/browse/976759\nhttps://x.com/iron_meadow\n")
    csv = page.get_by_role("button", name="CSV")
    csv.click()
    expect(page.get_by_role("alert")).to_contain_text("choose a scraper, fields, or one of jsonl, json, xlsx")
    page.get_by_label("One row for each").select_option("products")
    expect(page.get_by_text("Only records of retail-category-v4 have this list.")).to_be_visible()
    expect(csv).to_have_attribute("aria-disabled", "false")
    page.get_by_label("Records of").select_option("microblog-profile")
    expect(page.get_by_label("One row for each")).to_have_value("")
    name, content = saved(page, "CSV")
    assert name.endswith("-microblog-profile.csv")
    assert b",params.username," in content


@pytest.mark.soak
def test_a_file_that_breaks_off_or_is_too_large_is_not_saved(console: OpenConsole) -> None:
    page = console("jobs")
    job_id = start(page, SEARCHES)
    page.route("**/records?*", lambda route: route.fulfill(status=503, json={"error": "proxy"}))
    page.get_by_role("button", name="Excel").click()
    expect(page.get_by_role("alert")).to_contain_text("No response")
    page.unroute("**/records?*")
    page.route("**/records?*", lambda _: None)  # this request never gets a response
    page.get_by_role("button", name="Excel").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("button", name="Excel")).to_have_attribute("aria-disabled", "false")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.unroute("**/records?*")
    read = f"""async () => (await import('./console/api.js')).download('v1/jobs/{job_id}/records', 'x.jsonl', {{
        onSize: () => null, most: 1000 }})"""
    assert page.evaluate(read)["problem"] == "The file has more than 1,000 bytes: read it with curl instead."


@pytest.mark.soak
def test_errors_are_shown_by_code_and_retried(console: OpenConsole) -> None:
    page = console("jobs")
    start(page, f"{SEARCHES}hello world\n{MISSING}{BLOCKED}")
    expect(page.locator("summary")).to_have_text(["INVALID_REQUEST 1", "TARGET_NOT_FOUND 1", "UPSTREAM_BLOCKED 1"])
    page.locator("summary", has_text="TARGET").click()
    failure = page.locator(".failures li")
    expect(failure).to_contain_text("The profile does not exist.")
    expect(failure).to_contain_text("line 4 · microblog-profile username=nosuchhandle98")
    with page.expect_response(lambda each: each.url.endswith("/retry")) as retried:
        page.get_by_role("button", name="Retry 1 failed").click()
    assert retried.value.json()["retried"] == 1, "only the error that may pass is retried"
    expect(page.get_by_role("button", name="Retry 1 failed")).to_be_visible()


def test_a_job_is_cancelled_and_deleted(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    drop(page, "searches.txt", "".join(f"slow {number}\n" for number in range(300)))
    page.locator(".default select").select_option("retail-search-v4")
    page.get_by_role("button", name="Start job").click()
    expect(page.locator(".summary")).to_have_text("In progress.")
    job_id = page.locator("main h2").inner_text().removeprefix("Job ")
    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator(".summary")).to_contain_text("Cancelled")
    assert job(service, job_id).body["state"] == "cancelled"
    page.get_by_role("button", name="Delete job").click()
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Delete job").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("main h2")).to_have_text("Jobs")
    expect(page.get_by_role("link", name=f"Job {job_id}", exact=True)).to_have_count(0)
    assert job(service, job_id).status == 404
    page.goto(f"{service.url}/#jobs/{job_id}")
    expect(page.get_by_role("alert")).to_contain_text("JOB_NOT_FOUND")


@pytest.mark.soak
def test_cancel_does_not_delete_a_job_that_is_done_in_the_meantime(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    job_id = start(page, SEARCHES)
    running = in_progress(job(service, job_id).body)
    page.route(f"**/v1/jobs/{job_id}", lambda route: route.fulfill(json=running), times=1)
    page.clock.install()
    page.reload()
    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator(".summary")).to_contain_text("Done")
    assert job(service, job_id).status == 200


@pytest.mark.soak
def test_a_job_stays_on_the_page_while_the_service_does_not_respond(console: OpenConsole) -> None:
    page = console("jobs")
    job_id = start(page, f"{SEARCHES}{BLOCKED}")
    page.locator("summary").click()
    page.route(f"**/v1/jobs/{job_id}/retry", lambda route: route.fulfill(status=202, json={}))
    page.route(f"**/v1/jobs/{job_id}", lambda route: route.fulfill(status=502, body="<html>proxy</html>"))
    page.get_by_role("button", name="Retry 1 failed").click()
    expect(page.get_by_role("alert")).to_contain_text("No response")
    expect(page.locator(".failures li")).to_be_visible()
    page.unroute(f"**/v1/jobs/{job_id}")
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.soak
def test_a_job_whose_response_is_lost_is_not_made_twice(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    before = len(call(service.url, "/v1/jobs", method="GET").body["jobs"])

    def lose(route: Route) -> None:
        route.fetch()
        route.fulfill(status=502, body="<html>proxy</html>")

    page.route("**/v1/jobs?*", lose, times=1)
    page.get_by_label(PASTE).fill(SEARCHES)
    page.get_by_role("button", name="Start job").click()
    expect(page.get_by_role("alert")).to_contain_text("No response")
    page.get_by_role("button", name="Start job").click()
    expect(page.locator(".summary")).to_contain_text("Done")
    assert len(call(service.url, "/v1/jobs", method="GET").body["jobs"]) == before + 1


@pytest.mark.soak
def test_a_second_click_cancels_nothing_more(console: OpenConsole, service: Service) -> None:
    """A second DELETE would delete the job that the first one has cancelled."""
    page = console("jobs")
    job_id = start(page, SEARCHES)
    running = in_progress(job(service, job_id).body)
    deleted: list[str] = []

    def answer(route: Route) -> None:
        if route.request.method == "DELETE":
            deleted.append(route.request.url)
            route.fulfill(status=204)
        else:
            route.fulfill(json=running)

    page.route(f"**/v1/jobs/{job_id}", answer)
    page.reload()
    page.get_by_role("button", name="Cancel job").click(click_count=2)
    expect(page.get_by_role("button", name="Cancel job")).to_have_attribute("aria-disabled", "false")
    wait_for_requests(page)
    assert len(deleted) == 1


def wait_for_requests(page: Page) -> None:
    """Wait until Playwright has reported all requests that the page has started."""
    page.evaluate("fetch('healthz').then(() => null)")


@pytest.mark.soak
def test_the_page_polls_only_what_changes_and_only_while_it_is_visible(console: OpenConsole, service: Service) -> None:
    page = console("jobs")
    job_id = start(page, SEARCHES)
    done = job(service, job_id).body
    shown = in_progress(done)
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json=shown)

    page.clock.install()
    page.route(f"**/v1/jobs/{job_id}", answer)
    page.reload()
    expect(page.locator(".summary")).to_have_text("In progress.")
    page.clock.run_for(10_000)
    expect(page.locator(".summary")).to_have_text("In progress.")
    assert 2 <= len(asked) <= 6, "at most every two seconds"
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => window.away, configurable: true })")
    page.evaluate("window.away = true")
    asked.clear()
    page.clock.run_for(60_000)
    wait_for_requests(page)
    assert asked == []
    page.evaluate("window.away = false")
    shown = done
    page.clock.run_for(4_000)
    expect(page.locator(".summary")).to_contain_text("Done")
    asked.clear()
    page.clock.run_for(60_000)
    wait_for_requests(page)
    assert asked == [], "a job that has ended does not change"
