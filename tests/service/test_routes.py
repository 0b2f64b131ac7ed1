"""What each route answers, as one table: method, path, key, media type and body -> status, code, envelope."""

from __future__ import annotations

import asyncio
import re
import time
from typing import NamedTuple

import pytest
from pydantic import Field

from crawler.errors import InvalidRequest
from crawler.jobs.options import Int
from crawler.registry import scrapers
from crawler.service import openapi
from crawler.service.app import table
from crawler.service.envelope import Answer, json_response
from crawler.service.envelope import Call as Envelope
from crawler.service.parts import Parts
from crawler.service.route import Reply as Response
from crawler.service.route import Route
from tests.service.client import Reply, call
from tests.service.conftest import Service

JSON, CSV, LINES = "application/json", "text/csv", "application/x-ndjson"
CATEGORY = "/v1/scrapers/retail-category-v4"
TARGET = b'{"cat_id": "976759"}'
ENVELOPE = {"request_id", "success", "status", "data", "error", "meta"}


class Row(NamedTuple):
    """A request, and the answer to it. ``code``: the envelope's code, "" for an answer without an envelope."""

    method: str
    path: str
    status: int
    code: str = ""
    key: str | None = "sandbox"
    media_type: str | None = None
    body: bytes | None = None


PUBLIC = [
    *(Row("GET", path, 200, key=None) for path in ("/healthz", "/readyz", "/metrics", "/docs", "/llms.txt")),
    *(Row("GET", path, 200, key=None) for path in ("/openapi.json", "/v1/scrapers")),
    *(Row("HEAD", path, 200, key=None) for path in ("/healthz", "/v1/scrapers")),
    *(Row("POST", path, 405, "METHOD_NOT_ALLOWED", key=None) for path in ("/healthz", "/readyz", "/metrics", "/docs")),
    *(Row("DELETE", path, 405, "METHOD_NOT_ALLOWED") for path in ("/openapi.json", "/llms.txt", "/v1/scrapers")),
    *(Row("GET", path, 404, "SCRAPER_NOT_FOUND") for path in ("/v1", "/v2", "/docs/nothing.js", "/openapi.yaml")),
]
CALLS = [
    *(Row("POST", f"/v1/scrapers/{name}", 400, "INVALID_REQUEST", "sandbox", JSON, b"{}") for name in scrapers()),
    *(Row("GET", f"/v1/scrapers/{name}", 405, "METHOD_NOT_ALLOWED") for name in scrapers()),
    Row("POST", CATEGORY, 200, "OK", "sandbox", JSON, TARGET),
    Row("POST", CATEGORY, 200, "OK", "sandbox", f"{JSON}; charset=utf-8", TARGET),
    Row("POST", CATEGORY, 401, "MISSING_API_KEY", None, JSON, TARGET),
    Row("POST", CATEGORY, 401, "INVALID_API_KEY", "wrong", JSON, TARGET),
    Row("POST", CATEGORY, 401, "MISSING_API_KEY", None, CSV, b"cat_id\n1"),
    Row("POST", CATEGORY, 415, "UNSUPPORTED_MEDIA_TYPE", "sandbox", CSV, b"cat_id\n1"),
    Row("POST", CATEGORY, 415, "UNSUPPORTED_MEDIA_TYPE", "sandbox", None, TARGET),
    Row("POST", CATEGORY, 400, "INVALID_JSON", "sandbox", JSON, b"{"),
    Row("POST", CATEGORY, 400, "INVALID_JSON", "sandbox", JSON, b"[]"),
    Row("POST", CATEGORY, 400, "INVALID_JSON", "sandbox", JSON, b'{"cat_id": "1", "cat_id": "2"}'),
    Row("POST", CATEGORY, 400, "INVALID_REQUEST", "sandbox", JSON, b'{"catid": "1"}'),
    Row("POST", CATEGORY, 413, "PAYLOAD_TOO_LARGE", "sandbox", JSON, b" " * 65_537),
    Row("POST", f"{CATEGORY}/", 404, "SCRAPER_NOT_FOUND", "sandbox", JSON, TARGET),
    Row("POST", "/v1/scrapers/nothing", 404, "SCRAPER_NOT_FOUND", "sandbox", JSON, TARGET),
]
KEYED = ("/v1/usage", "/v1/jobs")
USAGE = [
    *(Row("GET", path, 401, "MISSING_API_KEY", None) for path in KEYED),
    *(Row("GET", path, 401, "INVALID_API_KEY", "wrong") for path in KEYED),
    *(Row("PATCH", path, 405, "METHOD_NOT_ALLOWED") for path in KEYED),
    *(Row("GET", f"{path}?colour=red", 400, "INVALID_REQUEST") for path in KEYED),
    *(Row("GET", path, 200) for path in KEYED),
    Row("GET", "/v1/usage?from=2026-01-01&to=2026-01-31", 200),
    Row("GET", "/v1/usage?from=2026-13-01", 400, "INVALID_REQUEST"),
    Row("GET", "/v1/usage?from=2026-02-01&to=2026-01-01", 400, "INVALID_REQUEST"),
    Row("GET", "/v1/usage/", 404, "SCRAPER_NOT_FOUND"),
]
NO_JOB = "/v1/jobs/987654"
JOBS = [
    Row("POST", "/v1/jobs", 401, "MISSING_API_KEY", None, CSV, b"cat_id\n1"),
    Row("POST", "/v1/jobs", 401, "INVALID_API_KEY", "wrong", CSV, b"cat_id\n1"),
    Row("POST", "/v1/jobs", 415, "UNSUPPORTED_MEDIA_TYPE", "sandbox", "image/png", b"cat_id\n1"),
    Row("POST", "/v1/jobs", 415, "UNSUPPORTED_MEDIA_TYPE", "sandbox", None, b"cat_id\n1"),
    Row("POST", "/v1/jobs", 400, "INVALID_REQUEST", "sandbox", CSV, b""),
    Row("POST", "/v1/jobs", 400, "INVALID_REQUEST", "sandbox", CSV, b"cat_id\nnot an id"),
    Row("POST", "/v1/jobs?max_pages=0", 400, "INVALID_REQUEST", "sandbox", CSV, b"cat_id\n976759"),
    Row("POST", "/v1/jobs?dry_run=yes", 400, "INVALID_REQUEST", "sandbox", CSV, b"cat_id\n976759"),
    Row("POST", "/v1/jobs?dryrun=true", 400, "INVALID_REQUEST", "sandbox", CSV, b"cat_id\n976759"),
    *(
        Row("POST", "/v1/jobs?dry_run=true", 200, "", "sandbox", media_type, body)
        for media_type, body in (
            (CSV, b"cat_id\n976759"),
            ("text/tab-separated-values", b"cat_id\tpage\n976759\t1"),
            (LINES, TARGET),
            (JSON, b"[" + TARGET + b"]"),
            (JSON, TARGET),
            ("text/plain", b"https://www.walmart.com/browse/976759"),
        )
    ),
    Row("POST", "/v1/jobs", 202, "", "sandbox", CSV, b"cat_id\n976759"),
    Row("GET", "/v1/jobs?limit=1", 200),
    Row("GET", "/v1/jobs?limit=0", 400, "INVALID_REQUEST"),
    Row("GET", "/v1/jobs?after=x", 400, "INVALID_REQUEST"),
    *(Row("GET", f"{NO_JOB}{part}", 404, "JOB_NOT_FOUND") for part in ("", "/records", "/failures", "/changes")),
    Row("GET", f"{NO_JOB}/nothing", 404, "JOB_NOT_FOUND"),
    *(Row("GET", f"{NO_JOB}{part}", 401, "MISSING_API_KEY", None) for part in ("", "/records", "/changes")),
    Row("DELETE", NO_JOB, 404, "JOB_NOT_FOUND"),
    Row("POST", f"{NO_JOB}/retry", 404, "JOB_NOT_FOUND"),
    Row("POST", f"{NO_JOB}/runs", 404, "JOB_NOT_FOUND"),
    Row("GET", "/v1/jobs/x", 404, "JOB_NOT_FOUND"),
]
JOB = [
    Row("GET", "", 200),
    Row("PUT", "", 405, "METHOD_NOT_ALLOWED"),
    Row("GET", "?colour=red", 400, "INVALID_REQUEST"),
    Row("GET", "/records", 200),
    Row("HEAD", "/records", 200),
    Row("POST", "/records", 405, "METHOD_NOT_ALLOWED"),
    *(Row("GET", f"/records?format={name}", 200) for name in ("jsonl", "json", "csv", "xlsx")),
    Row("GET", "/records?format=pdf", 400, "INVALID_REQUEST"),
    Row("GET", "/records?fields=name&explode=products&format=csv", 200),
    Row("GET", "/records?fields=nothing", 400, "INVALID_REQUEST"),
    Row("GET", "/records?code=OK&limit=1", 200),
    Row("GET", "/records?code=ok", 400, "INVALID_REQUEST"),
    Row("GET", "/records?after=1", 400, "INVALID_REQUEST"),
    Row("GET", "/failures", 200),
    Row("GET", "/failures?format=csv", 200),
    Row("GET", "/failures?format=xlsx", 400, "INVALID_REQUEST"),
    Row("GET", "/changes", 200),
    Row("HEAD", "/changes?format=csv", 200),
    Row("GET", "/changes?format=xlsx", 200),
    Row("GET", "/changes?format=sql", 400, "INVALID_REQUEST"),
    Row("GET", "/changes?after=1.0", 400, "INVALID_REQUEST"),
    Row("POST", "/changes", 405, "METHOD_NOT_ALLOWED"),
    Row("GET", "/retry", 405, "METHOD_NOT_ALLOWED"),
    Row("POST", "/retry", 202),
    Row("GET", "/nothing", 404, "JOB_NOT_FOUND"),
    Row("DELETE", "", 204),
]
"""Requests about a job that was made by an upload, with the rest of the path, in this order."""
GONE = [
    Row("GET", "/v1/calls", 404, "SCRAPER_NOT_FOUND"),
    Row("GET", "/v1/webhook", 404, "SCRAPER_NOT_FOUND"),
]
"""Routes of version 0.2."""
ROWS = [*PUBLIC, *CALLS, *USAGE, *JOBS, *GONE]


def answer(url: str, row: Row) -> Reply:
    headers = {"X-API-Key": row.key, "Content-Type": row.media_type}
    given = {name: value for name, value in headers.items() if value is not None}
    return call(url, row.path, row.body, method=row.method, headers=given)


def assert_answer(reply: Reply, row: Row) -> None:
    assert reply.status == row.status, reply.body
    assert reply.headers["x-request-id"].startswith("req_")
    if row.code and row.method != "HEAD":
        envelope = reply.body
        assert envelope.keys() == ENVELOPE
        assert (envelope["status"]["code"], envelope["success"]) == (row.code, row.code == "OK")
        assert (envelope["data"] is None, envelope["error"] is None) == (row.code != "OK", row.code == "OK")
        assert reply.headers["content-type"] == JSON
    if row.status == 405:
        assert row.method not in reply.headers["allow"].split(", ")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method}-{row.path}-{row.key}-{row.code or row.status}")
def test_a_route_answers_as_the_table_says(service: Service, row: Row) -> None:
    assert_answer(answer(service.url, row), row)


def test_the_routes_of_a_job_answer_as_the_table_says(service: Service) -> None:
    made = call(service.url, "/v1/jobs", b"cat_id\n976759", headers={"X-API-Key": "sandbox", "Content-Type": CSV})
    path = made.headers["location"]
    while call(service.url, path, method="GET").body["state"] != "done":
        time.sleep(0.05)
    for row in JOB:
        assert_answer(answer(service.url, row._replace(path=path + row.path)), row)


WRONG = [
    ("POST", f"{CATEGORY}?page=2", TARGET, "page: unknown query parameter"),
    ("POST", f"{CATEGORY}?cursor=", TARGET, "cursor: unknown query parameter"),
    ("POST", f"{CATEGORY}?field=name", TARGET, "field: unknown query parameter; did you mean fields?"),
    ("POST", f"{CATEGORY}?fields=breadcrumbs&fields=breadcrumbs", TARGET, "fields: expected at most once"),
    ("POST", CATEGORY, b'{"catid": "976759"}', "catid: unknown param; did you mean cat_id?"),
    ("GET", "/v1/scrapers?foo=1", None, "foo: unknown query parameter; this route has none"),
    ("GET", "/healthz?foo=1", None, "foo: unknown query parameter"),
    ("GET", "/v1/usage?form=2026-01-01", None, "form: unknown query parameter; did you mean from?"),
    ("GET", "/v1/usage?from=2026-1-1", None, "from: expected"),
    *(
        ("GET", f"/v1/jobs?limit={text}", None, "limit: ")
        for text in ("3.0", "1_000", "101", "%D9%A3", "", "-1", "1e1")
    ),
    ("POST", "/v1/jobs?dry_run=yes", TARGET, "dry_run: expected true or false"),
    ("POST", "/v1/jobs?dry-run=true", TARGET, "dry-run: unknown query parameter; did you mean dry_run?"),
    ("POST", "/v1/jobs?max_pages=2.0", TARGET, "max_pages: "),
    ("POST", "/v1/jobs?exhaustive=1", TARGET, "exhaustive: expected true or false"),
]


@pytest.mark.parametrize(("method", "path", "body", "named"), WRONG, ids=[row[1] for row in WRONG])
def test_an_unknown_repeated_or_wrong_input_is_refused_and_named(
    service: Service, method: str, path: str, body: bytes | None, named: str
) -> None:
    reply = call(service.url, path, body, method=method)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert named in reply.body["error"]["message"]
    (detail,) = reply.body["error"]["details"]
    assert named.partition(": ")[0] == detail["loc"][0]


@pytest.mark.parametrize("headers", [{"Prefer": "respond-async"}, {"X-Unknown": "1"}, {"Prefer": "wait=soon"}])
def test_other_headers_are_ignored(service: Service, headers: dict[str, str]) -> None:
    reply = call(service.url, CATEGORY, TARGET, headers={"X-API-Key": "sandbox", "Content-Type": JSON, **headers})
    assert (reply.status, "preference-applied" in reply.headers) == (200, False)


def test_an_unknown_path_is_compared_with_the_known_ones(service: Service) -> None:
    reply = call(service.url, "/v1/scrapers/retail-categry-v4", TARGET)
    assert (reply.status, f"Did you mean {CATEGORY}?" in reply.body["error"]["message"]) == (404, True)


class Echo(Route):
    """The words of a request.

    A route of this test.
    """

    path = "/v1/echo/{word}"
    operation = "echo"
    is_public = True
    errors = (InvalidRequest,)
    replies = {200: Response("Success.", list[str])}  # noqa: RUF012  # ``Route`` declares it with ClassVar

    word: str
    """The first word."""
    times: Int = Field(default=1, ge=1, le=9)
    """How often it is returned."""

    async def answer(self, call: Envelope, parts: Parts) -> Answer:
        return json_response(200, [self.word] * self.times, call)


def test_a_route_is_one_class_with_one_function() -> None:
    ((template, methods),) = table([Echo])[1].items()
    matched = template.fullmatch("/v1/echo/hello")
    assert matched
    assert methods == {"GET": Echo}
    found = methods["GET"].read(Envelope(), "times=2", matched.groupdict())
    made = asyncio.run(found.answer(Envelope(), None))  # type: ignore[arg-type]  # the route needs no parts
    assert made.body == b'["hello","hello"]'
    with pytest.raises(InvalidRequest, match="tims: unknown query parameter; did you mean times"):
        Echo.read(Envelope(), "tims=2", {"word": "hello"})
    operation = openapi.document(routes=[Echo])["paths"]["/v1/echo/{word}"]["get"]
    assert (operation["operationId"], operation["summary"]) == ("echo", "The words of a request.")
    assert [each["$ref"].rpartition("/")[2] for each in operation["parameters"]] == ["EchoWord", "EchoTimes"]


def test_every_operation_of_the_openapi_document_is_in_the_table() -> None:
    tried = {(row.method, row.path.partition("?")[0]) for row in ROWS}
    tried |= {(row.method, NO_JOB + row.path.partition("?")[0]) for row in JOB}
    for path, methods in openapi.document()["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        found = {method for method, other in tried if pattern.fullmatch(other)}
        assert {method.upper() for method in methods} <= found, path
