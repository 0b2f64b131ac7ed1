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
from tests.service.hostile_platform import Served, canary, harmful_platform

GOOD_BODY = b'{"cat_id": "976759"}'
HEAD = f"POST {CATEGORY} HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: application/json\r\n".encode()
SMUGGLED = b"GET /v1/usage HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\n\r\n"


@pytest.fixture(scope="module")
def foreign() -> Iterator[Served]:
    with canary() as served:
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
    with harmful_platform(redirects) as platform:
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


# Bodies


# Malformed HTTP: the bytes that are sent, and the allowed statuses (0: the connection is closed)


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


REQUESTS: dict[str, tuple[bytes, set[int]]] = {
    "length and chunked": (
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SMUGGLED,
        {400},
    ),
    "chunked and length": (
        HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        {400},
    ),
    "two lengths": (HEAD + b"Content-Length: 20\r\nContent-Length: 0\r\n\r\n" + GOOD_BODY + SMUGGLED, {400}),
    "the same length twice": (HEAD + b"Content-Length: 20\r\nContent-Length: 20\r\n\r\n" + GOOD_BODY, {400}),
    "a list of lengths": (HEAD + b"Content-Length: 20, 20\r\n\r\n" + GOOD_BODY, {400}),
    "a length with a sign": (HEAD + b"Content-Length: +20\r\n\r\n" + GOOD_BODY, {400}),
    "a negative length": (HEAD + b"Content-Length: -1\r\n\r\n" + GOOD_BODY, {400}),
    "a hexadecimal length": (HEAD + b"Content-Length: 0x14\r\n\r\n" + GOOD_BODY, {400}),
    "a length in other digits": (HEAD + "Content-Length: ٢٠\r\n\r\n".encode() + GOOD_BODY, {400}),
    "an empty length": (HEAD + b"Content-Length: \r\n\r\n" + GOOD_BODY, {400}),
    "a space before the colon": (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "an unknown encoding": (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "two encodings": (HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED, {400}),
    "identity and a length": (HEAD + b"Transfer-Encoding: identity\r\n" + length(GOOD_BODY), {400}),
    "chunked twice": (
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        {400},
    ),
    "a control character in the encoding": (
        HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        {400},
    ),
    "a chunk of negative size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n", {400}),
    "a chunk size with a prefix": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x14\r\n" + GOOD_BODY + b"\r\n0\r\n\r\n",
        {400},
    ),
    "a chunk size with an underscore": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1_4\r\n" + GOOD_BODY + b"\r\n0\r\n\r\n",
        {400},
    ),
    "an endless chunk size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40_000, {400}),
    "a chunk without an end": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n" + SMUGGLED, {400}),
    "a header without a colon": (b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n", {400}),
    "a header without a name": (b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n", {400}),
    "a header with a NUL": (b"GET /healthz HTTP/1.1\r\nX: a\x00b\r\n\r\n", {400}),
    "a header with a bare line feed": (b"GET /healthz HTTP/1.1\r\nX: a\nY: b\r\n\r\n", {400}),
    "a header with a bare return": (b"GET /healthz HTTP/1.1\r\nX: a\rY: b\r\n\r\n", {400}),
    "a header name of 20 KB": (b"GET /healthz HTTP/1.1\r\n" + b"a" * 20_000 + b": x\r\n\r\n", {400}),
    "a path of 100 KB": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", {400}),
    "501 headers": (b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 501 + b"\r\n", {400}),
    "no version": (b"GET /healthz\r\n\r\n", {400}),
    "another protocol": (b"GET /healthz SIP/2.0\r\n\r\n", {400}),
    "HTTP/2 before TLS": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404}),
    "TLS": (bytes.fromhex("16030100a5010000a10303") + b"\x00\r\n\r\n", {400, 0}),
    "one long line": (b"a" * 60_000, {400}),
    "spaces in the path": (b"GET /health z HTTP/1.1\r\n\r\n", {400}),
    "a NUL in the path": (b"GET /\x00 HTTP/1.1\r\n\r\n", {400}),
    "a trace": (b"TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "options of a URL without a path": (b"OPTIONS ? HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "an unknown method": (b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "a method of bytes": (b"G\xff /healthz HTTP/1.1\r\nHost: x\r\n\r\n", {400, 405}),
    "up a folder": (b"GET /docs/../../settings.py HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "up a folder, encoded": (b"GET /docs/%2e%2e%2f%2e%2e%2fsettings.py HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "a folder": (b"GET /docs/ HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "a key of bytes": (
        b"POST "
        + CATEGORY.encode()
        + b" HTTP/1.1\r\nHost: x\r\nX-API-Key: \xff\xfe\r\nContent-Type: application/json\r\n"
        + length(GOOD_BODY),
        {401},
    ),
    "two keys": (HEAD + b"X-API-Key: other\r\n" + length(GOOD_BODY), {401}),
    "a key of 10 KB": (
        b"POST "
        + CATEGORY.encode()
        + b" HTTP/1.1\r\nHost: x\r\nX-API-Key: "
        + b"k" * 10_000
        + b"\r\n"
        + length(GOOD_BODY),
        {401},
    ),
    "a type of bytes": (
        b"POST "
        + CATEGORY.encode()
        + b" HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: \xff\r\n"
        + length(GOOD_BODY),
        {415},
    ),
    "an empty idempotency key": (HEAD + b"Idempotency-Key: \r\n" + length(GOOD_BODY), {400}),
    "an idempotency key of 256": (HEAD + b"Idempotency-Key: " + b"k" * 256 + b"\r\n" + length(GOOD_BODY), {400}),
    "a large body with Expect: 100-continue": (
        HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
        {413},
    ),
    "an end in the middle": (HEAD + b"Content-Length: 1000\r\n\r\n" + GOOD_BODY, {0}),
    "nothing": (b"", {0}),
}
CLOSE = b"Connection: close\r\n"
OLD: dict[str, tuple[bytes, int]] = {
    "two hosts in HTTP/1.0": (b"GET /healthz HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", 400),
    "no host in HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
    "a body that is not compressed": (HEAD + CLOSE + b"Content-Encoding: identity\r\n" + length(GOOD_BODY), 200),
}


def exchange(url: str, sent: bytes, *, is_answered: bool = False) -> bytes:
    """Send bytes, close the sending side, and return all received bytes until the service closes.

    With ``is_answered``, close the sending side only after the response has begun: the service sends no response to a
    client that has already closed it.
    """
    parts = urlsplit(url)
    received = b""
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=300) as connection:
        with suppress(OSError):  # rejected before everything was sent
            connection.sendall(sent)
            if is_answered:
                select.select([connection], [], [], 60)
            elif not re.search(rb"Connection: close", sent):
                time.sleep(0.02)
            connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while piece := connection.recv(65_536):
                received += piece
    return received


@pytest.mark.parametrize("name", REQUESTS)
def test_malformed_http_is_refused_with_the_envelope(service: Service, name: str) -> None:
    sent, expected = REQUESTS[name]
    answer = exchange(service.url, sent, is_answered=0 not in expected)
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


@pytest.mark.parametrize("name", OLD)
def test_http_is_read_as_the_standard_requires(service: Service, name: str) -> None:
    sent, expected = OLD[name]
    received = received_until_closed(service, sent)
    assert re.findall(rb"HTTP/1\.[01] (\d{3}) ", received) == [b"%d" % expected]


def received_until_closed(service: Service, sent: bytes) -> bytes:
    parts = urlsplit(service.url)
    received = b""
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=300) as connection:
        connection.sendall(sent)
        while piece := connection.recv(65_536):
            received += piece
    return received


def test_pipelined_requests_get_their_responses_in_order(service: Service) -> None:
    slow, quick = b'{"query": "slow"}', b"{}"
    head = HEAD.replace(CATEGORY.encode(), SEARCH.encode())
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = received_until_closed(service, head + length(slow) + head + length(quick) + last)
    assert re.findall(rb"HTTP/1\.1 (\d{3}) ", received) == [b"200", b"400", b"200"]


def test_the_service_still_works_afterwards(service: Service) -> None:
    """Must run after the other tests: all connections are closed, the log contains no traceback, and calls succeed."""
    for _ in range(5):
        assert call(service.url, CATEGORY, {"cat_id": "976759"}).code == "OK"
    for _ in range(300):
        if b"crawler_connections 0.0" in exchange(service.url, b"GET /metrics HTTP/1.0\r\n\r\n"):
            break
        time.sleep(0.1)
    else:
        pytest.fail("connections were left open")
    log = service.logged()
    assert "Traceback" not in log, log[log.index("Traceback") :][:3_000]
    assert "code=INTERNAL_ERROR" not in log
