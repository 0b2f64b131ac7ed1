"""``ZYTE_API_KEY`` routes all downloads through Zyte API: here a local server with the same interface."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from crawler.downloads.handlers import moved
from crawler.downloads.zyte import refusal
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.crawls import command, lines, sandbox
from tests.http_server import Handler, served

http = build_opener(ProxyHandler({}))
KEY = "stand-in"


@contextmanager
def zyte_api(shop: str, status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve ``POST /v1/extract`` with the pages of a simulated shop, or respond with an error status.

    Yields its URL, and the received requests.
    """
    received: list[dict[str, Any]] = []

    class Api(Handler):
        def do_POST(self) -> None:  # noqa: N802  # http.server's name
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.append({**query, "path": self.path, "authorization": self.headers["Authorization"]})
            error = {"status": status, "type": "/stand-in", "title": "no"}
            body = json.dumps(extract(query["url"], shop) if status == 200 else error).encode()
            self.answer(body, status, {"Content-Type": "application/json"})

    with served(Api) as origin:
        yield f"{origin}/v1/", received


def extract(url: str, shop: str) -> dict[str, Any]:
    """Zyte API's response for ``httpResponseBody``, with a page of the sandbox."""
    try:
        page = http.open(moved(url, shop))
    except HTTPError as error:
        page = error
    with page:
        return {
            "url": url,
            "statusCode": page.status,
            "httpResponseBody": base64.b64encode(page.read()).decode(),
            "httpResponseHeaders": [{"name": name, "value": value} for name, value in page.headers.items()],
        }


def crawl(tmp_path: Path, settings: dict[str, Any]) -> tuple[list[Any], list[Any], str]:
    out, failed = tmp_path / "out.jsonl", tmp_path / "failed.jsonl"
    start = command("retail", {"cat_id": "976759"}, {**settings, "FAILURES_FEED": failed}, "-O", str(out))
    run = forks.run(start)
    return lines(out), lines(failed), run.stderr


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox() as found:
        yield found


@pytest.fixture(scope="module")
def shop(settings: dict[str, Any]) -> str:
    return str(json.loads(settings["PLATFORM_ORIGINS"])["retail"])


def with_key(settings: dict[str, Any], url: str) -> dict[str, Any]:
    """The settings of a crawl through Zyte API, which excludes local servers."""
    return {**settings, "PLATFORM_ORIGINS": "{}", "ZYTE_API_KEY": KEY, "ZYTE_API_URL": url}


def test_with_a_key_all_downloads_use_zyte_api(tmp_path: Path, settings: dict[str, Any], shop: str) -> None:
    with zyte_api(shop) as (url, received):
        out, failed, log = crawl(tmp_path, with_key(settings, url))
    assert out == [Site().expected_record({"scraper": "retail-category-v4", "cat_id": "976759"})], log
    assert failed == []
    assert [(each["path"], each["httpResponseBody"]) for each in received] == [("/v1/extract", True)]
    assert base64.b64decode(received[0]["authorization"].removeprefix("Basic ")).decode() == f"{KEY}:"


@pytest.mark.parametrize("own", [{"ZYTE_API_KEY": ""}, {"PLATFORM_ORIGINS": "{}", "SANDBOX": 1, "ZYTE_API_KEY": KEY}])
def test_without_a_key_and_in_the_sandbox_no_download_uses_zyte_api(
    tmp_path: Path, settings: dict[str, Any], shop: str, own: dict[str, Any]
) -> None:
    with zyte_api(shop) as (url, received):
        out, _, log = crawl(tmp_path, {**settings, "ZYTE_API_URL": url, **own})
    assert len(out) == 1, log
    assert received == []


@pytest.mark.parametrize(
    ("status", "code"), [(451, "BLOCKED_BY_POLICY"), pytest.param(401, "INTERNAL_ERROR", marks=pytest.mark.soak)]
)
def test_refusals_of_zyte_api_are_typed_errors(
    tmp_path: Path, settings: dict[str, Any], shop: str, status: int, code: str
) -> None:
    with zyte_api(shop, status) as (url, _):
        _, failed, log = crawl(tmp_path, with_key(settings, url))
    assert [failure["code"] for failure in failed] == [code], log
    assert "Zyte API does not" in failed[0]["message"]


@pytest.mark.parametrize(
    ("statuses", "code", "reason"),
    [
        ([520], "UPSTREAM_BLOCKED", "zyte_ban"),
        ([429, 503], "UPSTREAM_RATE_LIMITED", "zyte_rate_limit"),
        ([451], "BLOCKED_BY_POLICY", "zyte_forbidden"),
        ([401, 402, 403], "INTERNAL_ERROR", "zyte_account"),
        ([400, 404, 500, 521], "UPSTREAM_ERROR", "zyte"),
    ],
)
def test_each_error_status_of_zyte_api_has_its_code_and_reason(statuses: list[int], code: str, reason: str) -> None:
    assert {(each.code, each.reason) for each in map(refusal, statuses)} == {(code, reason)}


def test_local_servers_and_zyte_api_exclude_each_other(tmp_path: Path, settings: dict[str, Any]) -> None:
    out, _, log = crawl(tmp_path, {**settings, "ZYTE_API_KEY": KEY})
    assert out == []
    assert "ZYTE_API_KEY and PLATFORM_ORIGINS exclude each other" in log
