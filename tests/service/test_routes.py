"""What each route answers in each state of the endpoint and of the request, as the OpenAPI document says."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from openapi_schema_validator import OAS31Validator
from prometheus_client import REGISTRY

from crawler.errors import documented
from crawler.registry import spiders
from crawler.service import usage
from crawler.service.envelope import Call as Envelope
from crawler.service.open_crawlers import OpenCrawler
from crawler.service.route import Route
from crawler.targets.target import Outcome, Target
from tests.openapi import DOCUMENT, resolved
from tests.service.client import Reply
from tests.service.in_process import ACME, RECORDED, endpoint
from tests.service.states import NOW, ROUTES, STATES, State

ENVELOPE = ["request_id", "success", "status", "data", "error", "meta"]
META = {"client_id", "scraper", "billable", "duration_ms"}
ERROR = {"code", "type", "message", "details", "retry_after", "upstream", "doc_url"}


@cache
def validator(path: str, method: str, status: str) -> OAS31Validator:
    """Return a validator of the JSON body of a response."""
    response = resolved(DOCUMENT["paths"][path][method]["responses"][status])
    schema = response["content"]["application/json"]["schema"]
    return OAS31Validator({**schema, "components": DOCUMENT["components"]})


def assert_envelope(reply: Reply, code: str, scraper: str, retry_after: int | None) -> None:
    body = reply.body
    assert (list(body), set(body["meta"])) == (ENVELOPE, META)
    assert re.fullmatch(r"req_[0-9A-HJKMNP-TV-Z]{26}", body["request_id"])
    is_success = code == "OK"
    assert (body["success"], body["meta"]["billable"], body["error"] is None) == (is_success,) * 3
    assert (body["status"]["code"], body["meta"]["scraper"]) == (code, scraper)
    if is_success:
        return
    error = body["error"]
    assert (set(error), error["code"], body["data"]) == (ERROR, code, None)
    assert (error["message"], error["doc_url"]) == (body["status"]["message"], f"/docs#{code}")
    (kind,) = (each for each in documented() if each.code == code)
    assert (error["type"], body["status"]["retryable"]) == (kind.type, kind.retryable)
    assert error["retry_after"] == retry_after
    assert reply.headers.get("retry-after") == (retry_after and str(retry_after))
    assert ("www-authenticate" in reply.headers) == (kind.http_status == 401)


def assert_documented(route: type[Route], reply: Reply) -> None:
    """Assert that the document has the status of a response, and the schema of its body."""
    assert str(reply.status) in DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
    if reply.headers.get("content-type") == "application/json" and reply.body is not None:
        validator(route.path, route.method.lower(), str(reply.status)).validate(reply.body)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
async def test_each_route_answers_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    for name in ("BUSY_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(f"crawler.jobs.store.{name}", 0.0)
    monkeypatch.setattr(usage, "store_time", lambda: NOW)
    monkeypatch.setattr("crawler.downloads.facts.Facts.now", lambda _: NOW)
    async with endpoint(tmp_path, replace(ACME, **state.limits), **state.settings) as at:
        job_id, at.error = await state.job_id(at), state.error
        found = {}
        async with state.given(at):
            for route in state.routes():
                reply = await state.send(at, route, job_id)
                code = reply.headers.get("content-type") == "application/json" and reply.body.get("status")
                found[route] = reply.status, code["code"] if isinstance(code, dict) else "OK"
                assert_documented(route, reply)
                if isinstance(code, dict):
                    assert_envelope(reply, found[route][1], route.calls, state.retry_after)
                if route.operation == "readyz" and reply.status in {200, 503}:
                    unhealthy = [*spiders()] if state.readiness == "broken" else []
                    assert reply.body == {"status": state.readiness, "broken": unhealthy}
        jobs = [job async for job in at.endpoint.parts.jobs.jobs.every()]
    assert found == {route: state.expected(route) for route in found}
    assert [job.id for job in jobs if job.state == "loading"] == [], "a refused upload leaves no job"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_each_error_and_each_status_of_a_route_has_a_state(route: type[Route]) -> None:
    provoked = {state.code for state in STATES if state.on(route)}
    assert provoked == {error.code for error in route.errors}
    statuses = {str(state.expected(route)[0]) for state in STATES} | {str(each) for each in route.replies}
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    assert statuses == operation["responses"].keys()
    assert operation["operationId"] == route.operation
    assert operation["summary"] in (route.__doc__ or "")
    assert operation["summary"].endswith(".")


CATEGORY, TARGET = "/v1/scrapers/retail-category-v4", b'{"cat_id": "976759"}'
WRONG = [
    ("POST", f"{CATEGORY}?page=2", TARGET, "page: unknown query parameter"),
    ("POST", f"{CATEGORY}?field=name", TARGET, "field: unknown query parameter; did you mean fields?"),
    ("POST", f"{CATEGORY}?fields=breadcrumbs&fields=breadcrumbs", TARGET, "fields: expected at most once"),
    *(
        ("POST", f"{CATEGORY}?fields={fields}", TARGET, "fields: ")
        for fields in ("nosuch", "products.nosuch", "", "scraper", "returned&fields=page")
    ),
    ("POST", CATEGORY, b'{"catid": "976759"}', "catid: unknown param; did you mean cat_id?"),
    ("POST", CATEGORY, b'{"cat_id": "976759", "page": 0}', "page: Input should be greater than or equal to 1"),
    ("POST", CATEGORY, b'{"cat_id": "1", "min_price": 19.999}', "min_price: expected at most two decimals, not 19.999"),
    *(
        (
            "POST",
            "/v1/scrapers/retail-search-v4",
            json.dumps({"query": f"a{each}"}).encode(),
            f"query: contains .*{code}",
        )
        for each, code in (("\0", r"U\+0000"), ("\x1b", r"U\+001B"), ("\ufffd", r"U\+FFFD"))
    ),
    *(
        ("POST", f"/v1/scrapers/{scraper}", json.dumps({"url": url}).encode(), f"url: .*{text}")
        for scraper, url, text in (
            ("retail-category-v4", "https://www.walmart.com/ip/x/1", ""),
            ("retail-category-v4", "https://www.walmart.com/search?q=a", "which retail-search-v4 can read"),
            ("videosite-profile", "https://x.com/nasa", r"which microblog-profile can read \(spider microblog\)"),
            ("videosite-profile", "https://youtu.be/dQw4w9WgXcQ", "this is a short link to a video"),
            ("microblog-profile", "https://t.co/aB3dE5fG7h", "t.co has short links"),
            ("shortvideo-photo-search-v4", "https://vm.tiktok.com/ZMhKq3xYz/", "vm.tiktok.com has short links"),
            ("professional-profile", "https://www.linkedin.com/company/x", "/in/<name>"),
            ("professional-profile-v4", "https://user:secret@www.linkedin.com/in/a", "a user name or a password"),
        )
    ),
    ("GET", "/v1/scrapers?foo=1", b"", "foo: unknown query parameter; this route has none"),
    ("GET", "/v1/usage?form=2026-01-01", b"", "form: unknown query parameter; did you mean from?"),
    *(
        ("GET", f"/v1/usage?from={day}", b"", "from: expected a day as")
        for day in ("2026-1-1", "2026-02-30", "20260101", "")
    ),
    ("GET", "/v1/usage?from=2026-02-01&to=2026-01-01", b"", "from must not be after to"),
    *(
        ("GET", f"/v1/jobs?limit={text}", b"", "limit: ")
        for text in ("3.0", "1_000", "0", "101", "%D9%A3", "", "-1", "1e1")
    ),
    ("GET", "/v1/jobs?after=x", b"", "after: expected"),
    ("POST", "/v1/jobs?dry_run=yes", TARGET, "dry_run: expected true or false"),
    ("POST", "/v1/jobs?dry-run=true", TARGET, "dry-run: unknown query parameter; did you mean dry_run?"),
    ("POST", "/v1/jobs?dry_run=true", b"[{}", "body: "),
    ("POST", "/v1/jobs?max_pages=2.0", TARGET, "max_pages: "),
    ("POST", "/v1/jobs?exhaustive=1", TARGET, "exhaustive: expected true or false"),
    ("POST", "/v1/jobs?max_pages=2", b'{"cat_id": "1", "max_pages": 3}', "max_pages: give it in the body or"),
    ("POST", "/v1/jobs?scraper=retail-category", TARGET, "scraper: unknown; did you mean retail-"),
    *(("POST", f"/v1/jobs?name={name}", TARGET, "name: ") for name in ("a%00b", "%20")),
    *(
        ("GET", f"{{job}}/records?{query}", b"", text)
        for query, text in [
            ("format=yaml", "'jsonl', 'json', 'csv' or 'xlsx'"),
            ("fields=nosuch", "nosuch"),
            ("explode=nosuch", "nosuch"),
            ("scraper=nosuch", "retail-search-v4"),
            ("after=9999.1", "a different job"),
            ("after=1", "X-Next-Cursor"),
            ("limit=0", "limit: "),
            ("code=ok", "code: "),
        ]
    ),
    ("GET", "{job}/failures?format=xlsx", b"", "format: "),
    ("GET", "{job}/changes?format=sql", b"", "format: "),
    ("GET", "{job}/changes?after=9.0", b"", "a different job"),
]


async def test_a_wrong_input_is_refused_and_named(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        job = f"/v1/jobs/{await at.finished_job()}"
        for method, path, body, named in WRONG:
            reply = await at.send(method, path.replace("{job}", job), body)
            assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), path
            message = reply.body["error"]["message"]
            assert re.search(named, message) or named in message, path
            assert "secret" not in message
            name = re.match(r"(\w[\w-]*): ", named)
            assert name is None or [name[1]] == reply.body["error"]["details"][0]["loc"], path


LISTING, LINK = {"scraper": "retail-category-v4", "cat_id": "4044_28310"}, {"url": "https://x.com/quiet_harbor"}
COLUMNS = ",".join(f"column{number}" for number in range(1_000))
WRONG_UPLOADS = [
    ("", "text/csv", b"", "no valid target"),
    ("", "text/csv", b"id,scraper,query\n1,retail-search-v4,\n", "Line 2 of upload:"),
    ("", "text/csv", f"{COLUMNS}\n1\n".encode(), "and 995 more"),
    ("", "text/csv", b"PK\x03\x04", "a spreadsheet or an archive"),
    ("", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"PK\x03\x04", ""),
    ("", "text/plain", b"\xff\xfe\xfd", "body: upload"),
    ("", "text/plain; charset=klingon", LINK["url"].encode(), "klingon"),
    *(
        (query, "application/json", json.dumps(body).encode(), text)
        for body, query, text in (
            (LISTING | {"max_pages": 0}, "", "max_pages: Input should be greater than or equal to 1"),
            (LISTING | {"exhaustive": "yes"}, "", "exhaustive: expected true or false"),
            (LISTING | {"exhaustive": [True]}, "", "exhaustive: expected true or false"),
            (LISTING | {"max_pages": {"a": 1}}, "", "max_pages: Input should be a valid integer"),
            (LISTING | {"max_pages": True}, "", "max_pages: Input should be a valid integer"),
            (LISTING | {"since": 5}, "", "since: Input should be a valid string"),
            (LISTING | {"max_pages": 2, "since": "last"}, "", "since: retail-category-v4: since requires a listing "),
            (LISTING | {"exhaustive": True, "max_pages": 2}, "", "leave out max_pages"),
            (LISTING | {"x": "y" * 70_000}, "", "send an array"),
            ([LISTING], "?max_pages=%EF%BC%93", "max_pages: Input should be a valid integer"),
            ([LISTING], "?since=", "since: '' is not a day"),
            ({"": 10**30}, "", "cannot be stored"),
            (LINK, "?since=2026-01-01&exhaustive=true", "exhaustive: microblog-profile has no option exhaustive"),
            (LINK | {"since": "2026-13-01"}, "", "is not a day"),
        )
    ),
]


async def test_an_upload_without_a_target_is_refused_and_leaves_no_job(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        for query, media_type, body, text in WRONG_UPLOADS:
            reply = await at.send("POST", f"/v1/jobs{query}", body, {"Content-Type": media_type})
            assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), body[:80]
            assert text in reply.body["error"]["message"]
            answer = json.dumps(reply.body)
            assert not re.search("(tmp|shm)/", answer), "a path of the server"
            assert len(answer) < 2_000, "an error repeats little of the upload"
        assert (await at.send("GET", "/v1/jobs")).body["jobs"] == []


BODIES = [
    b'"text"',
    b"null",
    b"[]",
    b'{"cat_id": "\xff\xfe"}',
    b'{"cat_id": "\xed\xa0\x80"}',
    b'{"cat_id": "\\ud800"}',
    b'{"cat_id": "\\udc00\\ud800"}',
    b'{"\\ud800": 1}',
    b'\xef\xbb\xbf{"cat_id": "1"}',
    '{"cat_id": "1"}'.encode("utf-16"),
    b'{"cat_id": "1", "cat_id": "1"}',
    b'{"cat_id": "1", "\\u0063at_id": "1"}',
    b'{"cat_id": {"a": 1, "a": 2}}',
    b'{"cat_id": "1", "min_price": NaN}',
    b'{"cat_id": "1", "min_price": -Infinity}',
    b"{'cat_id': '1'}",
    b"\x00",
    b'{"cat_id": "1", "page": ' + b"9" * 5_000 + b"}",
    b'{"cat_id": "1",}',
    b'{"cat_id": "1"} {"cat_id": "2"}',
    b'{"cat_id": "1" /* no */}',
    b'{"cat_id": "a\nb"}',
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"[" * 60_000,
]
PARAMS: list[dict[str, Any]] = [
    {},
    {"cat_id": "976759", "url": "https://www.walmart.com/browse/976759"},
    {"cat_id": "food"},
    {"cat_id": "1", "sort": "cheapest"},
    {"cat_id": "1", "min_price": 9, "max_price": 1},
    {"cat_id": "1", "page": 10**300},
    {"cat_id": "1", "page": -(10**18)},
    {"cat_id": "1", "page": 1.5},
    {"cat_id": "1", "min_price": 10**300},
    {"cat_id": "1", "min_price": -1e-300},
    {"cat_id": "9" * 60_000},
    {"cat_id": "1\x00"},
    {"cat_id": "../../etc/passwd"},
    {"cat_id": "1?q=x"},
    {"cat_id": "1#x"},
    {"cat_id": "1/../2"},
    {"cat_id": "1%2f2"},
    {"cat_id": ["1"]},
    {"cat_id": {"$ne": 1}},
    {"cat_id": True},
    {"cat_id": "1", "__proto__": {}},
    {"cat_id": "1", "": ""},
    {f"k{n}": n for n in range(4_000)},
]


async def test_hostile_bodies_are_refused(tmp_path: Path) -> None:
    sent = [*((body, "INVALID_JSON") for body in BODIES), (b'{"cat_id": "1", "min_price": 1e999}', "INVALID_REQUEST")]
    sent += [(json.dumps(params).encode(), "INVALID_REQUEST") for params in PARAMS]
    async with endpoint(tmp_path) as at:
        for body, code in sent:
            reply = await at.send("POST", CATEGORY, body)
            assert (reply.status, reply.code) == (400, code), body[:80]
            assert "sys." not in reply.body["error"]["message"]


OTHER = [
    *(("HEAD", path, 200, "") for path in ("/healthz", "/v1/scrapers", "/docs", "{job}/records")),
    *(("GET", path, 200, "") for path in ("/metrics", "/docs", "/llms.txt", "/openapi.json")),
    *(("GET", path, 404, "SCRAPER_NOT_FOUND") for path in ("/v1", "/%00", "/" + "a" * 8_000, "/docs/nothing.js")),
    *(("GET", path, 404, "SCRAPER_NOT_FOUND") for path in ("/v1/calls", "/v1/usage/", f"{CATEGORY}/")),
    *(("GET", path, 404, "JOB_NOT_FOUND") for path in ("/v1/jobs/x", "/v1/jobs//records", "{job}/nothing")),
    *(("PATCH", path, 405, "GET, HEAD") for path in ("/", "/healthz", "/metrics", "/openapi.json", "/v1/scrapers")),
    *(("PATCH", f"{{job}}/{part}", 405, "GET, HEAD") for part in ("records", "failures", "changes")),
    *(("GET", f"{{job}}/{part}", 405, "POST") for part in ("retry", "runs")),
    ("PUT", "{job}", 405, "DELETE, GET, HEAD"),
    ("PUT", "/v1/jobs", 405, "GET, HEAD, POST"),
    ("PUT", CATEGORY, 405, "POST"),
]
"""Methods and paths, the status, and the code of the error or the allowed methods."""


async def test_other_paths_and_methods(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        job = f"/v1/jobs/{await at.finished_job()}"
        for method, path, status, code in OTHER:
            reply = await at.send(method, path.replace("{job}", job))
            assert reply.status == status, path
            assert reply.headers["x-request-id"].startswith("req_")
            if status == 405:
                assert (reply.headers["allow"], reply.code) == (code, "METHOD_NOT_ALLOWED"), path
            elif status == 404:
                assert reply.code == code, path
        assert (reply.body["meta"]["scraper"], reply.body["meta"]["client_id"]) == ("retail-category-v4", "acme")
        reply = await at.send("POST", "/v1/scrapers/retail-categry-v4", TARGET)
        assert (reply.status, f"Did you mean {CATEGORY}?" in reply.body["error"]["message"]) == (404, True)


async def test_a_preference_is_limited_and_confirmed(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        for sent, applied in (
            ("wait=5", "wait=5"),
            ("wait=0", "wait=1"),
            ("wait=9999", "wait=120"),
            ("respond-async, wait=7", "wait=7"),
            ("respond-async", None),
            ("wait=soon", None),
            ("", None),
        ):
            reply = await at.send("POST", CATEGORY, TARGET, {"Prefer": sent})
            assert (reply.status, reply.headers.get("preference-applied")) == (200, applied), sent


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        pytest.param({"SERVICE_MAX_WAITING": 3}, 7, id="four in progress and three in the queue of a platform"),
        pytest.param({"SERVICE_MAX_CALLS": 4}, 4, id="all platforms"),
        pytest.param({"KEY_CONCURRENCY": 2}, 2, id="of a key"),
    ],
)
async def test_calls_beyond_a_limit_are_refused_at_once(
    tmp_path: Path, settings: dict[str, Any], accepted: int
) -> None:
    budgets = {"retail": {"concurrency": 1, "delay": 0}}
    async with endpoint(tmp_path, PLATFORM_BUDGETS=budgets, **settings) as at:
        at.held = []
        calls = [asyncio.ensure_future(at.send("POST", CATEGORY, TARGET)) for _ in range(10)]
        await at.until(lambda: sum(each.done() for each in calls) == 10 - accepted)
        refused = [each.result() for each in calls if each.done()]
        for complete in at.held:
            complete()
        statuses = sorted(reply.status for reply in await asyncio.gather(*calls))
        assert statuses == [200] * accepted + [429 if "KEY_CONCURRENCY" in settings else 503] * len(refused)
        assert all(reply.headers["retry-after"] for reply in refused)
        at.held = None
        assert (await at.send("POST", CATEGORY, TARGET)).status == 200, "the places are free again"


async def test_a_count_above_the_limit_is_reduced_and_the_message_says_so(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        for count, note in ((100, " count=30 was used instead of 100: it is the limit."), (30, "")):
            body = json.dumps({"keywords": "whales", "count": count}).encode()
            reply = await at.send("POST", "/v1/scrapers/shortvideo-photo-search-v4", body)
            assert reply.body["status"]["message"] == f"The scrape is complete.{note}"


async def test_an_upload_counts_once_toward_the_rate_of_its_key_also_if_it_is_refused(tmp_path: Path) -> None:
    links = b"https://x.com/quiet_harbor"
    async with endpoint(tmp_path, KEY_RATE="3/hour") as at:
        for media_type, at_once, status, left in (
            ("text/html", False, 415, "2"),
            ("text/plain", False, 202, "1"),
            ("text/plain", True, 202, "0"),
            ("text/plain", False, 429, "0"),
        ):
            reply = await at.send("POST", "/v1/jobs", links, {"Content-Type": media_type}, at_once=at_once)
            assert (reply.status, reply.headers["x-ratelimit-remaining"]) == (status, left)
            assert reply.headers["ratelimit-policy"] == '"key";q=3;w=3600'


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_upload_is_refused_while_the_endpoint_shuts_down(tmp_path: Path, *, at_once: bool) -> None:
    """It is refused before its body arrives if possible: the body is not a valid chunk, and would be refused itself."""
    headers = {"Content-Type": "text/plain"} | (
        {} if at_once else {"Content-Length": "", "Transfer-Encoding": "chunked"}
    )
    async with endpoint(tmp_path) as at:
        at.endpoint.parts.crawlers.draining = True
        reply = await at.send("POST", "/v1/jobs", b"https://x.com/a\r\n", headers, at_once=at_once)
        assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "SHUTTING_DOWN", "5")


async def test_seconds_leave_the_endpoint_as_milliseconds_and_as_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of eleven days, by a clock that is set forward: the seconds of a slow machine do not count."""
    sums = {"scraper": "retail-category-v4"}
    before = REGISTRY.get_sample_value("crawler_call_duration_seconds_sum", sums) or 0.0
    async with endpoint(tmp_path) as at:
        monotonic = time.monotonic
        forward = SimpleNamespace(monotonic=lambda: monotonic() + 1e6, time_ns=time.time_ns)
        monkeypatch.setattr("crawler.service.envelope.time", forward)
        with structlog.testing.capture_logs() as logs:
            reply = await at.send("POST", CATEGORY, TARGET)
    counted = (REGISTRY.get_sample_value("crawler_call_duration_seconds_sum", sums) or 0.0) - before
    logged = next(each["duration_ms"] for each in logs if each["event"] == "call")
    for found in (reply.body["meta"]["duration_ms"], logged, counted * 1_000):
        assert found == pytest.approx(1e9, rel=1e-3)


async def test_the_timeout_of_a_call_begins_when_the_call_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, 20 seconds before it is known."""
    left, scrape = [], OpenCrawler.scrape

    async def noted(crawler: OpenCrawler, target: Target, patience: float) -> Outcome:
        left.append(patience)
        return await scrape(crawler, target, patience)

    monkeypatch.setattr(Envelope, "duration_ms", 20_000)
    monkeypatch.setattr(OpenCrawler, "scrape", noted)
    async with endpoint(tmp_path) as at:
        await at.send("POST", CATEGORY, TARGET, {"Prefer": "wait=30"})
    assert left == [10.0]


async def test_a_call_returns_the_selected_fields(tmp_path: Path) -> None:
    whole = RECORDED["successes"]["retail-category-v4"]["data"]
    async with endpoint(tmp_path) as at:
        reply = await at.send(
            "POST", f"{CATEGORY}?fields=heading,products.name", TARGET, {"Content-Type": "application/json"}
        )
        products = [{"name": each["name"]} for each in whole["products"]]
        assert reply.body["data"] == {"heading": whole["heading"], "products": products}
