"""Information that the service gives about itself: links, redirect to the documentation, ``/llms.txt``, rate limits."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from twisted.web.resource import Resource

from crawler.errors import documented
from crawler.registry import scrapers
from crawler.service.edge import EdgeSite
from crawler.service.openapi import describe_error
from crawler.service.status import entries
from tests.openapi import DOCUMENT
from tests.service.client import CATEGORY, call
from tests.service.conftest import Service, running
from tests.service.test_edge import Transport

URL = "https://data.example.com/scrape"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = (f"SERVICE_URL={URL}/", "KEY_RATE=1000/minute")
    with running(tmp_path_factory.mktemp("service") / "log", *settings) as started:
        yield started


def get(url: str, path: str) -> tuple[int, dict[str, str], str]:
    """Return the status, headers and text of a response. Redirects are not followed."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, dict(response.getheaders()), text


def raw(url: str, sent: bytes) -> str:
    """Send bytes on a new connection, and return everything received until the service closes it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    connection.connect()
    connection.sock.sendall(sent)
    received = b"".join(iter(lambda: connection.sock.recv(65_536), b""))
    connection.close()
    return received.decode()


def test_co_15_doc_url_is_a_url(service: Service) -> None:
    assert call(service.url, CATEGORY, {}).body["error"]["doc_url"] == f"{URL}/docs#INVALID_REQUEST"
    assert call(service.url, "/none", {}).body["error"]["doc_url"] == f"{URL}/docs#SCRAPER_NOT_FOUND"


def test_co_15_doc_url_is_a_url_where_the_request_is_not_valid_http(service: Service) -> None:
    assert f'"doc_url":"{URL}/docs#' in raw(service.url, b"GET / HTTP/1.1\r\nExpect: more\r\n\r\n")


def test_co_15_doc_url_is_a_url_where_a_connection_is_refused() -> None:
    transport = Transport()
    EdgeSite(Resource(), 0, service_url=URL).buildProtocol(None).makeConnection(transport)
    assert f'"doc_url":"{URL}/docs#OVERLOADED"' in transport.value().decode()


def test_co_15_the_document_names_the_server(service: Service) -> None:
    assert call(service.url, "/openapi.json", method="GET").body["servers"] == [{"url": URL}]
    assert DOCUMENT["servers"] == [{"url": "/"}]


def test_co_12_the_rate_limit_headers_are_documented(service: Service) -> None:
    sent = call(service.url, CATEGORY, {"cat_id": "976759"}).headers
    named = re.findall(r"`((?:X-)?RateLimit[\w-]*)`", DOCUMENT["info"]["description"])
    assert {name for name in sent if "ratelimit" in name} == {name.lower() for name in named}


def test_us_27_the_root_leads_to_the_documentation(service: Service) -> None:
    status, headers, _ = get(service.url, "/")
    assert (status, headers["Location"]) == (302, "docs")
    assert get(service.url, "/docs")[0] == 200


def test_us_26_no_double_backticks_are_shown(service: Service) -> None:
    for path in ("/docs", "/llms.txt", "/openapi.json", "/v1/scrapers"):
        assert "``" not in get(service.url, path)[2], path
    row = re.search(r'<tr id="ITEM_DROPPED">.*', get(service.url, "/docs")[2])
    assert row
    assert "`" not in get(service.url, "/docs")[2], "code is shown as code"


def test_llms_txt_describes_each_scraper_and_error(service: Service) -> None:
    status, headers, text = get(service.url, "/llms.txt")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert text.startswith("# ")
    assert f"{URL}/openapi.json" in text
    for entry in entries():
        section = text.split(f"### {entry['name']}\n")[1].split("###")[0]
        assert entry["summary"] in section
        for name, param in entry["params_schema"]["properties"].items():
            assert f"- `{name}` (" in section
            assert param["description"].split(".")[0].splitlines()[0] in section
        for alias in entry["aliases"]:
            assert f"`{alias}`" in section
    for error in documented():
        assert f"- `{error.code}` ({error.http_status}): {describe_error(error)}" in text
    assert {name for name in scrapers() if name not in text} == set()
