"""Calls from web pages of other origins: which responses the browser lets them read."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

from crawler.browser.chromium import executable
from crawler.service.calls.envelope import Call
from crawler.service.headers import HEADERS
from crawler.service.http.cors import Cors
from tests.browsers import own_chromium, require_chromium
from tests.service.client import CATEGORY, Reply, call
from tests.service.client import HEADERS as CALL_HEADERS
from tests.service.conftest import Service, running

PAGE = "https://app.example.com"
OTHER = "https://evil.example.com"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-api-key"}


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    """Run a web server with another origin than the service. Yields its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class EmptyPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def service(pages: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("cors")
    with running(folder / "log", f"SERVICE_CORS_ORIGINS={PAGE},http://127.0.0.1:{pages}") as started:
        yield started


FETCH = """async ([url, key]) => {
    try {
        const headers = {"Content-Type": "application/json", "X-API-Key": key, "Prefer": "wait=60"};
        const response = await fetch(url, {method: "POST", headers, body: '{"cat_id": "976759"}'});
        return [response.status, response.headers.get("X-Request-Id"), (await response.json()).status.code];
    } catch (error) { return error.name; }
}"""


def test_a_browser_lets_only_pages_of_listed_origins_call(pages: int, service: Service) -> None:
    require_chromium()
    program = executable({}, own_chromium())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        listed, other = browser.new_page(), browser.new_page()
        listed.goto(f"http://127.0.0.1:{pages}/")
        status, request_id, code = listed.evaluate(FETCH, [service.url + CATEGORY, "sandbox"])
        assert (status, code) == (200, "OK")
        assert request_id.startswith("req_")
        assert listed.evaluate(FETCH, [service.url + CATEGORY, "wrong"])[0] == 401  # the page can read errors
        other.goto(f"http://localhost:{pages}/")
        assert other.evaluate(FETCH, [service.url + CATEGORY, "sandbox"]) == "TypeError"
        browser.close()


def cors_headers(reply: Reply) -> dict[str, str]:
    return {name: value for name, value in reply.headers.items() if name.startswith("access-control-")}


def test_a_page_of_a_listed_origin_may_call_and_read_the_headers(service: Service) -> None:
    reply = call(service.url, CATEGORY, {"cat_id": "976759"}, headers=CALL_HEADERS | {"Origin": PAGE})
    assert reply.code == "OK"
    assert reply.headers["access-control-allow-origin"] == PAGE
    exposed = set(reply.headers["access-control-expose-headers"].split(", "))
    assert {"Location", "Retry-After", "X-Partial", *HEADERS} == exposed
    assert reply.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in reply.headers


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        (CATEGORY, {"Content-Type": "application/json"}, "MISSING_API_KEY"),
        ("/v1/scrapers/nothing", CALL_HEADERS, "SCRAPER_NOT_FOUND"),
    ],
)
def test_a_page_may_read_errors(service: Service, path: str, headers: dict[str, str], code: str) -> None:
    reply = call(service.url, path, {}, headers=headers | {"Origin": PAGE})
    assert reply.code == code
    assert reply.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize(
    ("media_type", "length", "code"),
    [("text/html", 1_000, "UNSUPPORTED_MEDIA_TYPE"), ("text/plain", 1_000_000_000, "PAYLOAD_TOO_LARGE")],
)
def test_a_page_may_read_why_its_upload_was_refused_before_its_body(
    service: Service, media_type: str, length: int, code: str
) -> None:
    for origin, allowed in ((PAGE, PAGE), (OTHER, None)):
        connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
        connection.putrequest("POST", "/v1/jobs")
        sent = {"X-API-Key": "sandbox", "Content-Type": media_type, "Content-Length": length, "Origin": origin}
        for name, value in sent.items():
            connection.putheader(name, str(value))
        connection.endheaders()  # the body is not sent
        response = connection.getresponse()
        assert json.loads(response.read())["error"]["code"] == code
        assert (response.headers["Vary"], response.headers["Access-Control-Allow-Origin"]) == ("Origin", allowed)
        connection.close()


def test_a_preflight_request_needs_no_key_and_names_what_is_allowed(service: Service) -> None:
    before = call(service.url, "/v1/usage", method="GET").body["calls"]
    reply = call(service.url, CATEGORY, method="OPTIONS", headers=PREFLIGHT | {"Origin": PAGE})
    assert (reply.status, reply.body) == (204, None)
    assert "content-length" not in reply.headers
    allowed = cors_headers(reply)
    assert allowed.pop("access-control-expose-headers")
    assert allowed == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-methods": "DELETE, GET, HEAD, POST, PUT",
        "access-control-allow-headers": "Content-Type, X-API-Key, Idempotency-Key, Prefer",
        "access-control-max-age": "600",
    }
    assert call(service.url, "/v1/usage", method="GET").body["calls"] == before


@pytest.mark.parametrize(
    "origin", [OTHER, "null", "http://app.example.com", f"{PAGE}.evil.example.com", f"{PAGE}:8443"]
)
def test_pages_of_other_origins_get_no_headers(service: Service, origin: str) -> None:
    preflight = call(service.url, CATEGORY, method="OPTIONS", headers=PREFLIGHT | {"Origin": origin})
    assert preflight.code == "METHOD_NOT_ALLOWED"
    reply = call(service.url, "/v1/scrapers", method="GET", headers={"Origin": origin})
    assert cors_headers(preflight) == cors_headers(reply) == {}
    assert reply.headers["vary"] == "Origin"


@pytest.mark.parametrize("path", ["/metrics", "/docs", "/healthz", "/llms.txt"])
def test_other_routes_are_not_for_pages(service: Service, path: str) -> None:
    assert "access-control-allow-origin" not in call_headers(service, path, {"Origin": PAGE})
    preflight = call(service.url, path, method="OPTIONS", headers=PREFLIGHT | {"Origin": PAGE})
    assert preflight.code == "METHOD_NOT_ALLOWED"
    assert cors_headers(preflight) == {}


def test_caches_distinguish_origins_and_encodings(service: Service) -> None:
    headers = call_headers(service, "/openapi.json", {"Origin": PAGE})
    assert headers["vary"] == "Accept-Encoding, Origin"
    assert headers["access-control-allow-origin"] == PAGE


def test_options_requests_that_are_not_preflight_requests_are_refused(service: Service) -> None:
    assert call(service.url, CATEGORY, method="OPTIONS", headers={}).code == "METHOD_NOT_ALLOWED"
    assert call(service.url, CATEGORY, method="OPTIONS", headers={"Origin": PAGE}).code == "METHOD_NOT_ALLOWED"


def preflight_of(origin: str) -> Call:
    """Return a preflight request for ``/v1/scrapers/x`` of a page of this origin."""
    headers = {name.lower(): value for name, value in (PREFLIGHT | {"Origin": origin}).items()}
    return Call(method="OPTIONS", path="/v1/scrapers/x", request_headers=headers)


def test_by_default_no_page_is_allowed() -> None:
    call = preflight_of(PAGE)
    assert Cors().preflight(call) is None
    assert Cors().headers(call.path, call.request_headers) == {}


def test_all_origins_are_allowed_only_by_an_asterisk() -> None:
    call = preflight_of(OTHER)
    headers = Cors(["*"]).headers(call.path, call.request_headers)
    assert headers.keys() == {"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"}
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert Cors(["*"]).preflight(call) is not None


def call_headers(service: Service, path: str, headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a response, with names in lower case. Repeated headers are joined."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)
    connection.request("GET", path, headers=headers)
    received = connection.getresponse().headers
    connection.close()
    return {name.lower(): ", ".join(received.get_all(name, [])) for name in received}
