"""The endpoint's HTTP contract: errors, envelope, headers, routes."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from crawler.registry import scrapers
from crawler.sandbox.retail.site import FAULTS, Site
from tests.service.client import CATEGORY, HEADERS, SEARCH, Reply, call
from tests.service.conftest import Service

ENVELOPE = ["request_id", "success", "status", "data", "error", "meta"]


def assert_envelope(reply: Reply, status: int, code: str, *, retryable: bool) -> None:
    body = reply.body
    assert (reply.status, reply.code) == (status, code)
    assert list(body) == ENVELOPE
    assert reply.headers["content-type"] == "application/json"
    assert re.fullmatch(r"req_[0-9A-HJKMNP-TV-Z]{26}", body["request_id"])
    assert reply.headers["x-request-id"] == body["request_id"]
    assert set(body["status"]) == {"code", "message", "retryable"}
    assert body["status"]["retryable"] is retryable
    assert body["status"]["message"]
    assert set(body["meta"]) == {"client_id", "scraper", "billable", "duration_ms"}
    assert isinstance(body["meta"]["duration_ms"], int)
    if code == "OK":
        assert body["success"] is True
        assert body["error"] is None
        assert body["meta"]["billable"] is True
    else:
        assert body["success"] is False
        assert body["data"] is None
        assert body["meta"]["billable"] is False
        keys = {"code", "type", "message", "details", "retry_after", "upstream", "doc_url"}
        assert set(body["error"]) == keys
        assert body["error"]["code"] == code


def test_a_successful_call_has_the_envelope(service: Service) -> None:
    reply = call(service.url, CATEGORY, {"cat_id": "976759"})
    assert_envelope(reply, 200, "OK", retryable=False)
    assert reply.body["data"] == Site().expected_record({"cat_id": "976759"})
    assert reply.body["meta"]["client_id"] == "sandbox"
    assert reply.body["meta"]["scraper"] == "retail-category-v4"


@pytest.mark.parametrize(
    "params",
    [
        {"cat_id": "976759", "page": 2, "sort": "price_low", "min_price": 10, "max_price": 30.5},
        {"cat_id": "4044", "page": 11},
        {"cat_id": "4044", "page": 12},
        {"cat_id": "4044", "sort": "new"},
    ],
)
def test_categories_equal_the_expected_records(service: Service, params: dict[str, Any]) -> None:
    reply = call(service.url, CATEGORY, params)
    assert reply.body["data"] == Site().expected_record(params)


@pytest.mark.parametrize(
    "params", [{"query": "mustard"}, {"query": "honey", "page": 3}, {"query": "nothing like this"}]
)
def test_searches_equal_the_expected_records(service: Service, params: dict[str, Any]) -> None:
    reply = call(service.url, SEARCH, params)
    assert reply.body["data"] == Site().expected_record(params)


def test_a_page_past_the_end_is_empty_and_not_an_error(service: Service) -> None:
    reply = call(service.url, CATEGORY, {"cat_id": "4044", "page": 12})
    assert_envelope(reply, 200, "OK", retryable=False)
    assert (reply.body["data"]["products"], reply.body["data"]["has_more"]) == ([], False)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_platform_faults_have_their_error_codes(service: Service, fault: str) -> None:
    code = FAULTS[fault].code
    status = {
        "OK": 200,
        "TARGET_NOT_FOUND": 404,
        "UPSTREAM_BLOCKED": 502,
        "UPSTREAM_ERROR": 502,
        "EXTRACTION_FAILED": 502,
        "UPSTREAM_RATE_LIMITED": 503,
        "UPSTREAM_TIMEOUT": 504,
    }[code]
    retryable = code not in {"OK", "TARGET_NOT_FOUND", "EXTRACTION_FAILED"}
    (cat_id,) = (cat_id for cat_id, name in Site().faults.items() if name == fault)
    headers = HEADERS | ({"Prefer": "wait=3"} if fault == "hang" else {})
    reply = call(service.url, CATEGORY, {"cat_id": cat_id}, headers=headers)
    assert_envelope(reply, status, code, retryable=retryable)
    if code == "UPSTREAM_RATE_LIMITED":
        assert reply.headers["retry-after"] == "7"
    if code == "EXTRACTION_FAILED":
        assert reply.body["error"]["details"] or reply.body["error"]["upstream"]["reason"]


@pytest.mark.parametrize(
    ("params", "loc"),
    [
        ({}, []),
        ({"cat_id": "976759", "url": "https://www.walmart.com/browse/976759"}, []),
        ({"cat_id": "food"}, ["cat_id"]),
        ({"cat_id": "976759", "page": 0}, ["page"]),
        ({"cat_id": "976759", "sort": "cheapest"}, ["sort"]),
        ({"cat_id": "976759", "min_price": 9, "max_price": 1}, []),
        ({"cat_id": "976759", "colour": "red"}, ["colour"]),
        ({"url": "https://www.walmart.com/ip/x/1"}, ["url"]),
    ],
)
def test_invalid_params_are_refused_with_the_field(service: Service, params: dict[str, Any], loc: list[str]) -> None:
    reply = call(service.url, CATEGORY, params)
    assert_envelope(reply, 400, "INVALID_REQUEST", retryable=False)
    assert reply.body["error"]["details"][0]["loc"] == loc


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"[" * 10_000 + b"]" * 10_000,
    ],
)
def test_bodies_other_than_a_json_object_are_refused(service: Service, body: bytes) -> None:
    assert_envelope(call(service.url, CATEGORY, body), 400, "INVALID_JSON", retryable=False)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Type": "application/json"}, "MISSING_API_KEY"),
        ({"Content-Type": "application/json", "X-API-Key": ""}, "MISSING_API_KEY"),
        ({"Content-Type": "application/json", "X-API-Key": "wrong"}, "INVALID_API_KEY"),
    ],
)
def test_missing_and_unknown_keys_are_refused(service: Service, headers: dict[str, str], code: str) -> None:
    reply = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=headers)
    assert_envelope(reply, 401, code, retryable=False)
    assert reply.headers["www-authenticate"].startswith("ApiKey")


@pytest.mark.parametrize("declared", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_other_media_types_are_refused(service: Service, declared: str | None) -> None:
    headers = {"X-API-Key": "sandbox"} | ({"Content-Type": declared} if declared else {})
    reply = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=headers)
    assert_envelope(reply, 415, "UNSUPPORTED_MEDIA_TYPE", retryable=False)


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/scrapers/nothing", "/v1/scrapers/", "/v1/scrapers/retail-category-v4/", "/%00", "/" + "a" * 8_000],
)
def test_unknown_routes_are_not_found(service: Service, path: str) -> None:
    assert_envelope(call(service.url, path, {}), 404, "SCRAPER_NOT_FOUND", retryable=False)


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [
        *[(CATEGORY, "GET", "POST"), (CATEGORY, "PUT", "POST")],
        *[("/v1/scrapers", "POST", "GET, HEAD"), ("/", "POST", "GET, HEAD")],
    ],
)
def test_other_methods_are_refused(service: Service, path: str, method: str, allow: str) -> None:
    reply = call(service.url, path, method=method)
    assert_envelope(reply, 405, "METHOD_NOT_ALLOWED", retryable=False)
    assert reply.headers["allow"] == allow


@pytest.mark.parametrize(
    ("preference", "applied"), [("wait=5", "5"), ("respond-async, wait=0", "1"), ("wait=9999", "120")]
)
def test_prefer_wait_is_clamped_and_confirmed(service: Service, preference: str, applied: str) -> None:
    reply = call(service.url, CATEGORY, {"cat_id": "976759"}, headers={**HEADERS, "Prefer": preference})
    assert reply.headers["preference-applied"] == f"wait={applied}"


def test_co_11_a_call_ends_at_its_deadline(service: Service) -> None:
    reply = call(service.url, SEARCH, {"query": "hang"}, headers={**HEADERS, "Prefer": "wait=1"})
    assert_envelope(reply, 504, "UPSTREAM_TIMEOUT", retryable=True)
    assert reply.body["error"]["upstream"]["status"] is None
    assert reply.body["error"]["upstream"]["reason"] in {"deadline", "timeout"}  # either can end the download
    assert reply.body["meta"]["duration_ms"] >= 900, "the deadline is after one second"


def test_the_catalogue_lists_every_scraper_with_a_working_example(service: Service) -> None:
    reply = call(service.url, "/v1/scrapers", method="GET", headers={})
    listed = {entry["name"]: entry for entry in reply.body["scrapers"]}
    assert set(listed) == {scraper.name for scraper in scrapers().values()}
    for name, entry in listed.items():
        assert set(entry) == {"name", "aliases", "platform", "summary", "params_schema", "example"}
        assert call(service.url, f"/v1/scrapers/{name}", entry["example"]).code == "OK"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_probes_succeed(service: Service, path: str) -> None:
    assert call(service.url, path, method="GET", headers={}).status == 200


def resident_kb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found.group(1))


def raw(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=300)


@pytest.mark.parametrize(("key", "client"), [("sandbox", "sandbox"), ("wrong", "")])
def test_fi3_8_a_refused_method_names_the_scraper_and_the_client(service: Service, key: str, client: str) -> None:
    reply = call(service.url, CATEGORY, method="PUT", headers={**HEADERS, "X-API-Key": key})
    assert_envelope(reply, 405, "METHOD_NOT_ALLOWED", retryable=False)
    assert (reply.body["meta"]["scraper"], reply.body["meta"]["client_id"]) == ("retail-category-v4", client)


def test_fi3_8_a_large_body_is_refused_with_the_name_of_the_scraper(service: Service) -> None:
    """The client is unknown at this point: the body is rejected before the API key is checked."""
    with raw(service.url) as connection:
        head = "POST /v1/scrapers/microblog-profile-v4 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 60000000\r\n\r\n".encode())
        body = connection.recv(65_536).partition(b"\r\n\r\n")[2]
    assert json.loads(body)["meta"]["scraper"] == "microblog-profile"


def test_fi3_7_a_count_above_the_limit_is_limited_and_the_message_says_so(service: Service) -> None:
    params = {"keywords": "whales", "count": 100}
    reply = call(service.url, "/v1/scrapers/shortvideo-photo-search-v4", params)
    assert reply.code == "OK"
    assert reply.body["status"]["message"] == (
        "The scrape is complete. count=30 was used instead of 100: it is the limit."
    )
    allowed = call(service.url, "/v1/scrapers/shortvideo-photo-search-v4", {**params, "count": 30})
    assert allowed.body["status"]["message"] == "The scrape is complete."


def test_a_large_declared_body_is_refused(service: Service) -> None:
    with raw(service.url) as connection:
        head = f"POST {CATEGORY} HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 60000000\r\n\r\n".encode())
        answer = connection.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"PAYLOAD_TOO_LARGE" in answer


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_not_read(service: Service, chunked: bool) -> None:  # noqa: FBT001  # a parameter
    before = resident_kb(service.pid)
    kind = "Transfer-Encoding: chunked" if chunked else "Content-Length: 60000000"
    sent = 0
    answer = b""
    with raw(service.url) as connection:
        connection.sendall(f"POST {CATEGORY} HTTP/1.1\r\nHost: x\r\n{kind}\r\n\r\n".encode())
        piece = b" " * 60_000
        try:
            while sent < 60_000_000:
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                sent += len(piece)
        except OSError:
            pass
        with suppress(OSError):
            answer = connection.recv(65_536)
    assert sent < 20_000_000, "the connection was closed long before the end"
    assert not answer or answer.startswith(b"HTTP/1.1 413 ")
    assert resident_kb(service.pid) - before < 8_000


def test_a_disconnected_client_is_logged_without_effect_on_other_calls(service: Service) -> None:
    body = b'{"query": "slow"}'
    with raw(service.url) as connection:
        head = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.2)
    assert call(service.url, CATEGORY, {"cat_id": "976759"}).code == "OK"
    for _ in range(600):
        if "CLIENT_GONE" in service.logged():
            break
        time.sleep(0.1)
    assert "status=499" in service.logged()
    assert "Traceback" not in service.logged()


def test_the_log_contains_no_key_and_no_traceback(service: Service) -> None:
    call(service.url, CATEGORY, {"cat_id": "976759"}, headers={**HEADERS, "X-API-Key": "sk_secret_value"})
    assert "sk_secret_value" not in service.logged()
    assert "Traceback" not in service.logged()
