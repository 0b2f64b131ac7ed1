"""The console shows every field of every record, including malicious and large records."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.service.conftest import Service
from tests.service.console.page import (
    DESKTOP,
    IMAGE,
    OWN,
    OpenConsole,
    answer_with,
    call,
    emptied,
    full_record,
    open_everything,
    paths,
    serve_page_of_real_platforms,
    shown_fields,
)


@pytest.mark.parametrize("name", OWN)
def test_every_known_field_is_shown(console: OpenConsole, name: str) -> None:
    """Fields that are shown only in the tab "JSON" do not count."""
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


def test_values_are_shown_as_what_they_are_and_are_not_changed(console: OpenConsole) -> None:
    """Long ids keep all digits. Times without a time zone and prices without a currency are shown without one."""
    page = console("retail-search-v4")
    record = {"title": "x", "url": "https://shop.example/1", "created": "2026-01-02T03:04:05Z", "total_results": 12345}
    record |= {"price": {"current_price": 1234.5, "currency": "EUR"}, "tags": ["a", "b"], "has_more": False}
    record |= {"id": 2**60 + 1, "latitude": 52.5200066, "list_price": 1234.5, "updated": "2026-01-02T03:04:05"}
    answer_with(page, {**record, "joined": "Jan 5, 2012"})
    call(page)
    open_everything(page)
    expect(page.locator("[data-field=url] dd a")).to_have_attribute("href", "https://shop.example/1")
    expect(page.locator("[data-field=url] dd a")).to_have_attribute("rel", "noopener noreferrer")
    expect(page.locator("[data-field=created] dd time")).to_have_text("2026-01-02 03:04")
    expect(page.locator("[data-field=tags] dd li")).to_have_text(["a", "b"])
    for field, text in {
        "total_results": "12,345",
        "price.current_price": "€1,234.50",
        "has_more": "no",
        "id": "1152921504606846977",
        "latitude": "52.5200066",
        "list_price": "1,234.5",
        "updated": "2026-01-02T03:04:05",
        "joined": "Jan 5, 2012",
    }.items():
        expect(page.locator(f"[data-field='{field}'] dd")).to_have_text(text)
    assert page.get_by_role("button", name="Next page").count() == 0
    # The special view for this platform needs products. Without them, the fields must still be shown.
    expect(page.get_by_text("The view of this platform cannot show this record.")).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator(".json")).to_contain_text('"id": 1152921504606846977,')


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


def test_with_real_platforms_images_load_only_after_a_click(browser: Browser, service: Service) -> None:
    """The service uses the sandbox, but its page is the one that a service with real platforms serves."""
    page = browser.new_page()
    serve_page_of_real_platforms(page, service.url)
    images: list[str] = []
    keys: list[str | None] = []

    def image(route: Route) -> None:
        images.append(route.request.url)
        assert "referer" not in route.request.headers
        route.fulfill(status=200, content_type="image/svg+xml", body='<svg xmlns="http://www.w3.org/2000/svg"/>')

    page.route("https://**/*", image)
    page.goto(f"{service.url}/#retail-search-v4")
    page.on("request", lambda sent: keys.append(sent.headers.get("x-api-key")) if sent.method == "POST" else None)
    host = urlsplit(IMAGE).netloc
    others = [f"https://{host}.other.example/", f"https://{host}@other.example/", f"https://other.example/?{host}"]
    photos = [{"image": each} for each in ("http://plain.example/not-loaded.png", *others)]
    answer_with(page, {"products": [], "image": IMAGE, "photos": photos})
    page.get_by_label("API key").fill("of-the-client")
    page.locator("#param-query").fill("x")
    call(page)
    open_everything(page)
    assert images == []
    page.get_by_role("button", name="Load 5 images").click()
    expect(page.locator("img.picture")).to_have_count(5)
    for picture in page.locator("img.picture").all():
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", value=True)  # loaded, or refused by the policy
    assert images == [IMAGE], "the policy allows the platform's hosts only, and https only"
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
