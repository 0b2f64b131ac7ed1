"""Helpers for the tests of the console: actions on its page, and records for it to show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page, Route, expect

from crawler.registry import scrapers
from crawler.service.console import pages
from tests.openapi import DOCUMENT, resolved

OWN = {name: scraper for name, scraper in scrapers().items() if name == scraper.name}
DESKTOP, PHONE = (1280, 900), (375, 812)
IMAGE = "https://i5.walmartimages.com/1.png"
OPENED = "details:not([open]) > summary, button.open[aria-expanded=false]"
"""Selects everything collapsed on the page: a click on it shows more fields."""

PASTE = "Links, one in each line"
DROP = """([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
}"""
OpenConsole = Callable[..., Page]


def call(page: Page, code: str = "OK", /, **params: str) -> None:
    """Fill in the form, submit it, and wait for the response."""
    for name, value in params.items():
        page.locator(f"#param-{name}").fill(value)
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.locator(".outcome strong")).to_have_text(code)


def open_everything(page: Page) -> None:
    page.locator("details.all").wait_for()
    while page.locator(OPENED).count():
        page.evaluate("opened => document.querySelectorAll(opened).forEach((each) => each.click())", OPENED)
        page.wait_for_timeout(50)


def paths(value: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Return the dotted path of each value in JSON data. Lists add nothing to the path."""
    if isinstance(value, dict) and value:
        return set().union(*(paths(each, (*path, key)) for key, each in value.items()))
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return set().union(*(paths(each, path) for each in value))
    return {".".join(path)}


def shown_fields(page: Page) -> set[str]:
    return set(page.eval_on_selector_all("[data-field]", "all => all.map((each) => each.dataset.field)"))


def answer_with(page: Page, data: Any, headers: dict[str, str] | None = None) -> None:
    """Intercept the page's calls, and respond with a record in place of the service."""
    meta = {"client_id": "sandbox", "scraper": "", "billable": True, "duration_ms": 1}
    status = {"code": "OK", "message": "The scrape is complete.", "retryable": False}
    envelope = {"request_id": "req_1", "success": True, "status": status, "data": data, "error": None, "meta": meta}

    def fulfil(route: Route) -> None:
        route.fulfill(status=200, headers=headers, content_type="application/json", body=json.dumps(envelope))

    page.route("**/v1/scrapers/*", fulfil)


def serve_page_of_real_platforms(page: Page, url: str) -> None:
    """Replace the page of a service with the sandbox by the page that a service with real platforms serves."""
    real = pages(sandbox=False)["/"]
    headers = dict(real.headers) | {"Content-Type": real.media_type}
    page.route(f"{url}/", lambda route: route.fulfill(headers=headers, body=real.body))


def sample(schema: dict[str, Any], key: str = "") -> Any:  # noqa: PLR0911  # one return per type
    """Return a value that fits a schema, with all keys and without nulls."""
    if "$ref" in schema:
        return sample(resolved(schema), key)
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
    answer = resolved(DOCUMENT["paths"][f"/v1/scrapers/{scraper}"]["post"]["responses"]["200"])
    record: dict[str, Any] = sample(answer["content"]["application/json"]["schema"])["data"]
    return record


def emptied(value: Any) -> Any:
    """Return the record with nulls and empty lists in place of its values."""
    if isinstance(value, dict):
        return {key: emptied(each) for key, each in value.items()}
    return [] if isinstance(value, list) else None


def violations(page: Page, *rules: str) -> list[str]:
    """Return the serious accessibility violations that axe finds, as `rule: element`. ``rules``: check only these."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


def start(page: Page, text: str, ending: str = "Done") -> str:
    """Paste targets, start the job, wait until the page shows that it has ended, and return its id."""
    page.get_by_label(PASTE).fill(text)
    page.get_by_role("button", name="Start job").click()
    expect(page.locator("main h2")).to_have_text(re.compile(r"Job \d+"))
    expect(page.locator(".summary")).to_contain_text(ending)
    return page.locator("main h2").inner_text().removeprefix("Job ")


def drop(page: Page, name: str, text: str) -> None:
    """Simulate dropping a file on the page."""
    page.get_by_label(PASTE).wait_for()
    page.evaluate(DROP, [name, text])
    expect(page.locator(".file")).to_contain_text(name)


def saved(page: Page, button: str) -> tuple[str, bytes]:
    """Click a button that downloads a file, and return the file's name and content."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    return download.value.suggested_filename, download.value.path().read_bytes()
