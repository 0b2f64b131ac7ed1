"""Hostile requests get the right error or a closed connection, and never make the service contact another host."""

from __future__ import annotations

import json
import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawler.platforms import platforms
from crawler.registry import scrapers
from crawler.service.keys import KeyStore
from tests.service.client import CATEGORY, HEADERS, SEARCH, call
from tests.service.conftest import Service, running
from tests.service.hostile_platform import Served, hostile_platform

GOOD_BODY = b'{"cat_id": "976759"}'
HEAD = f"POST {CATEGORY} HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: application/json\r\n".encode()
SMUGGLED = b"GET /v1/usage HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\n\r\n"


@pytest.fixture(scope="module")
def foreign() -> Iterator[Served]:
    with hostile_platform([]) as served:
        yield served


# URLs. {host}: the platform's host; {path}: one of its pages; {port}: the canary's port on this machine

URLS = [
    "http://127.0.0.1:{port}{path}",
    "http://localhost:{port}{path}",
    "http://{host}@127.0.0.1:{port}{path}",
    "http://{host}:80@127.0.0.1:{port}{path}",
    "http://user:{host}@127.0.0.1:{port}{path}",
    "http://127.0.0.1:{port}#@{host}{path}",
    "http://127.0.0.1:{port}?@{host}{path}",
    "http://127.0.0.1:{port}/{host}{path}",
    "http://127.0.0.1:{port}\\@{host}{path}",
    "http://{host}\\@127.0.0.1:{port}{path}",
    "http://{host}\\.127.0.0.1:{port}{path}",
    "http://{host}%40127.0.0.1:{port}{path}",
    "http://{host};127.0.0.1:{port}{path}",
    "http://{host},127.0.0.1:{port}{path}",
    "http://{host} 127.0.0.1:{port}{path}",
    "http://{host}\t@127.0.0.1:{port}{path}",
    "http://{host}\r\nHost: 127.0.0.1:{port}\r\n{path}",
    "http://{host}\x00@127.0.0.1:{port}{path}",
    "http://2130706433:{port}{path}",
    "http://0x7f000001:{port}{path}",
    "http://0x7f.0.0.1:{port}{path}",
    "http://0177.0.0.1:{port}{path}",
    "http://127.1:{port}{path}",
    "http://0:{port}{path}",
    "http://[::1]:{port}{path}",
    "http://[::ffff:127.0.0.1]:{port}{path}",
    "http://[::ffff:7f00:1]:{port}{path}",
    "http://①②⑦.⓪.⓪.①:{port}{path}",
    "http://[{host}]{path}",
    "http://[::1{path}",
    "http://169.254.169.254{path}",
    "https://user@{host}{path}",
    "https://{host}.{path}",
    "https://{host}:8443{path}",
    "https://{host}:22{path}",
    "https://{host}:{port}{path}",
    "https://{host}:99999{path}",
    "https://{host}:x{path}",
    "https://{host}.evil.example{path}",
    "https://evil{host}{path}",
    "https://evil-{host}{path}",
    "https://evil.example{path}",
    "https://evil.example/{host}{path}",
    "https://evil.example?{host}{path}",
    "https://{host}%2eevil.example{path}",
    "https://{host}%00.evil.example{path}",
    "https://{host}%2f@evil.example{path}",
    "https://{host}。evil.example{path}",
    "https://xn--{host}{path}",
    "https://{wide}{path}",
    "https://{cyrillic}{path}",
    "http:/{host}{path}",
    "https:///{host}{path}",
    "file:///etc/passwd",
    "file://{host}/etc/passwd",
    "ftp://{host}{path}",
    "gopher://127.0.0.1:{port}/_GET{path}",
    "dict://127.0.0.1:{port}/",
    "data:text/html,{host}{path}",
    "javascript:alert(1)//{host}{path}",
    "jar:http://127.0.0.1:{port}!{path}",
    "view-source:https://{host}{path}",
    "https://{host}/../../127.0.0.1:{port}/",
    "https://{host}//127.0.0.1:{port}/",
    "https://{host}/i/redirect?url=http://127.0.0.1:{port}{path}",
    "https://{host}{path}%0d%0aHost:%20127.0.0.1:{port}/..",
    "https://{host}",
    "",
    "…",
]
TAKE_URLS = {scraper.name: scraper for scraper in scrapers().values()}
PAGES = {
    "microblog-profile": "/quiet_harbor",
    "photoapp-post-v4": "/p/DaSandbox01/",
    "professional-profile": "/in/mara-lindqvist",
    "professional-profile-v4": "/in/mara-lindqvist",
    "retail-category-v4": "/browse/976759",
    "retail-search-v4": "/search?q=mustard",
    "shortvideo-photo-search-v4": "/search?q=whales",
    "videosite-profile": "/@harborlights",
    "videosite-profile-v3": "/@harborlights",
}
"""The path of a page of each scraper."""


@pytest.mark.parametrize("scraper", sorted(TAKE_URLS))
def test_hostile_urls_are_refused_without_a_request(service: Service, foreign: Served, scraper: str) -> None:
    host = urlsplit(platforms()[TAKE_URLS[scraper].platform].origin).netloc
    forms = {
        "host": host,
        "path": PAGES[scraper],
        "port": foreign.port,
        "wide": "".join(chr(ord(letter) + 0xFEE0) if letter.isalpha() else letter for letter in host),
        "cyrillic": host.replace("o", "о").replace("a", "а").replace("e", "е").replace("i", "і"),
    }
    for form in URLS:
        url = form.format_map(forms)
        reply = call(service.url, f"/v1/scrapers/{scraper}", {"url": url})
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), url
        assert reply.body["error"]["details"][0]["loc"] == ["url"], url
    assert foreign.requested_paths == []


# Redirects and downloads of a hostile platform


def test_redirects_and_downloads_of_a_hostile_platform_fail(tmp_path: Path, foreign: Served) -> None:
    redirects = [
        f"http://127.0.0.1:{foreign.port}/",
        f"//127.0.0.1:{foreign.port}/",
        f"http://localhost:{foreign.port}/",
        f"http://[::1]:{foreign.port}/",
        f"http://user@127.0.0.1:{foreign.port}/",
        f"http://127.1:{foreign.port}/",
        f"http://2130706433:{foreign.port}/",
        f"HTTP://127.0.0.1:{foreign.port}/",
        f"http://127.0.0.1:{foreign.port}\\/",
        "http://169.254.169.254/latest/meta-data/",
        "https://evil.example/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1/",
        "data:text/html,x",
        "",
        "//[::1",
        "http://[x]/",
    ]
    keys = tmp_path / "keys.sqlite3"
    key = KeyStore(keys).create("acme")
    headers = {**HEADERS, "X-API-Key": key}
    with hostile_platform(redirects) as platform:
        settings = (
            f"KEYS_FILE={keys}",
            f'PLATFORM_ORIGINS={{"retail": "{platform.origin}"}}',
            'PLATFORM_BUDGETS={"retail": {"concurrency": 4, "delay": 0}}',
            "DOWNLOAD_MAXSIZE=1000000",
            "RETRY_TIMES=0",
        )
        with running(tmp_path / "log", *settings, sandbox=False) as service:
            for number in [*range(len(redirects)), 1000, 1001, 1002, 1003, 1004, 1005]:
                reply = call(service.url, CATEGORY, {"cat_id": str(number)}, headers=headers)
                assert reply.status == 502, (number, reply.body)
                assert reply.code in {"UPSTREAM_BLOCKED", "UPSTREAM_ERROR", "EXTRACTION_FAILED"}, (number, reply.body)
            assert "Traceback" not in service.logged()
            assert key not in service.logged()
            assert len(platform.requested_paths) >= len(redirects) + 6
            assert "all headers were read" not in platform.requested_paths
    assert foreign.requested_paths == []


# Malformed and unusual HTTP: the bytes that are sent, and the allowed statuses (0: the connection is closed)


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


WITHOUT_KEY = f"POST {CATEGORY} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
REQUESTS: dict[str, tuple[bytes, set[int]]] = {
    "length and chunked": (
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SMUGGLED,
        {400},
    ),
    "TLS": (bytes.fromhex("16030100a5010000a10303") + b"\x00\r\n\r\n", {400, 0}),
    "a trace": (b"TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "an unknown method": (b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "a method of bytes": (b"G\xff /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {400, 405}),
    "up a folder": (b"GET /docs/../../settings.py HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "up a folder, encoded": (b"GET /docs/%2e%2e%2f%2e%2e%2fsettings.py HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "a folder": (b"GET /docs/ HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "a key of bytes": (WITHOUT_KEY + b"X-API-Key: \xff\xfe\r\n" + length(GOOD_BODY), {401}),
    "two keys": (HEAD + b"X-API-Key: other\r\n" + length(GOOD_BODY), {401}),
    "the same key twice": (HEAD + b"X-API-Key: sandbox\r\n" + length(b"[]"), {400}),
    "a key of 10 KB": (WITHOUT_KEY + b"X-API-Key: " + b"k" * 10_000 + b"\r\n" + length(GOOD_BODY), {401}),
    "a type of bytes": (HEAD.replace(b"application/json", b"\xff") + length(GOOD_BODY), {415}),
    "an empty idempotency key": (HEAD + b"Idempotency-Key: \r\n" + length(GOOD_BODY), {400}),
    "an idempotency key of 256": (HEAD + b"Idempotency-Key: " + b"k" * 256 + b"\r\n" + length(GOOD_BODY), {400}),
    "a large body that is announced": (HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", {413}),
    "an end in the middle": (HEAD + b"Content-Length: 1000\r\n\r\n" + GOOD_BODY, {0}),
    "nothing": (b"", {0}),
}


def exchange(service: Service, sent: bytes, ends: str = "with the response") -> bytes:
    """Send bytes, and return all received bytes until the service closes the connection.

    ``ends``: when the client closes its sending side, after which the service begins no response: "at once", "with the
    response", or "never".
    """
    parts = urlsplit(service.url)
    received = b""
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=300) as connection:
        with suppress(OSError):  # rejected before everything was sent
            connection.sendall(sent)
            if ends == "with the response":
                select.select([connection], [], [], 60)
            if ends != "never":
                connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while piece := connection.recv(65_536):
                received += piece
    return received


@pytest.mark.parametrize("name", REQUESTS)
def test_unusual_http_is_refused_with_the_envelope(service: Service, name: str) -> None:
    sent, expected = REQUESTS[name]
    answer = exchange(service, sent, "at once" if 0 in expected else "with the response")
    received = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
    assert set(statuses or [0]) <= expected, received[:300]
    assert len(statuses) <= 1, "a smuggled request got a response"
    if statuses:
        head, _, body = received.partition(b"\r\n\r\n")
        assert b"Content-Type: application/json" in head
        assert b"Server:" not in head
        assert json.loads(body)["success"] is False
    assert b"<html" not in received.lower()
    assert b"Traceback" not in received


def test_pipelined_requests_get_their_responses_in_order(service: Service) -> None:
    """Also of an earlier version without a host, and with a body that is named as not compressed."""
    head, slow = HEAD.replace(CATEGORY.encode(), SEARCH.encode()), b'{"query": "slow"}'
    plain = HEAD + b"Content-Encoding: identity\r\n" + length(GOOD_BODY)
    last = b"GET /healthz HTTP/1.0\r\n\r\n"
    received = exchange(service, head + length(slow) + head + length(b"{}") + plain + last, "never")
    assert re.findall(rb"HTTP/1\.[01] (\d{3}) ", received) == [b"200", b"400", b"200", b"200"]


def test_the_service_still_works_afterwards(service: Service) -> None:
    """Must run after the other tests: all connections are closed, the log contains no traceback, and calls succeed."""
    for _ in range(5):
        assert call(service.url, CATEGORY, {"cat_id": "976759"}).code == "OK"
    for _ in range(300):
        if b"crawler_connections 0.0" in exchange(service, b"GET /metrics HTTP/1.0\r\n\r\n"):
            break
        time.sleep(0.1)
    else:
        pytest.fail("connections were left open")
    log = service.logged()
    assert "Traceback" not in log, log[log.index("Traceback") :][:3_000]
    assert "code=INTERNAL_ERROR" not in log
