"""Limits per client address: open connections, and attempts with invalid API keys."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawler.errors import RateLimited
from crawler.service.calls.envelope import Answer, Call
from crawler.service.http.addresses import MAX_ADDRESSES, PERIOD_SECONDS, Addresses
from crawler.service.http.cors import Cors
from crawler.service.http.edge import UNREAD_SECONDS, EdgeSite
from crawler.service.http.response_writer import ResponseWriter
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import running
from tests.service.metrics_of import value

# Connections


class _Unread(StringTransport):
    """A connection whose client reads only when the test calls ``read()``."""

    BUFFER = 65_536

    def __init__(self, host: str = "192.0.2.1") -> None:
        super().__init__(peerAddress=IPv4Address("TCP", host, 1))

    def write(self, data: bytes) -> None:
        super().write(data)
        if len(self.value()) > self.BUFFER and self.producer:
            self.producer.pauseProducing()

    def read(self) -> int:
        """Read everything that has been written, and return the number of bytes."""
        number = len(self.value())
        self.clear()
        if self.producer:
            self.producer.resumeProducing()
        return number


class _Page(Resource):
    """A response of 40,000 bytes, sent at once or when the test finishes it."""

    isLeaf = True
    served = 0

    def render_GET(self, request: Request) -> int:
        self.served += 1
        request.write(b"x" * 40_000)
        request.finish()
        return NOT_DONE_YET


def test_rb_5_pipelined_requests_are_answered_as_the_client_reads() -> None:
    page, clock = _Page(), Clock()
    channel = EdgeSite(page, 10, Addresses()).buildProtocol(None)
    channel.callLater = clock.callLater
    transport = _Unread()
    channel.makeConnection(transport)
    channel.dataReceived(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 300)
    assert len(transport.value()) < 2 * transport.BUFFER
    assert page.served == 2
    total = 0
    while number := transport.read():
        assert number < 2 * transport.BUFFER
        total += number
        clock.advance(UNREAD_SECONDS - 1)
    assert page.served == 300
    assert total > 300 * 40_000
    assert not transport.disconnected


def test_rb_5_a_client_that_reads_nothing_is_disconnected() -> None:
    clock = Clock()
    channel = EdgeSite(_Page(), 10, Addresses()).buildProtocol(None)
    channel.callLater = clock.callLater
    transport = _Unread()
    channel.makeConnection(transport)
    channel.dataReceived(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    clock.advance(UNREAD_SECONDS - 1)
    assert not transport.disconnected
    clock.advance(2)
    assert transport.disconnected


BODY = b"".join(b"%07d\n" % number for number in range(100_000))
"""A response body that does not fit into the transport's buffer."""


class _Large(Resource):
    """Sends the large body as the service does: in a task that is cancelled when the client disconnects."""

    isLeaf = True

    def render_GET(self, request: Request) -> int:
        writer = ResponseWriter(Cors())
        pieces = writer.send(request, Call(), Answer(200, {}, BODY))
        assert pieces is not None
        sending = asyncio.ensure_future(writer.stream(request, pieces))
        request.notifyFinish().addErrback(lambda _: sending.cancel())
        return NOT_DONE_YET


async def large_response() -> tuple[Any, _Unread]:
    channel = EdgeSite(_Large(), 10, Addresses()).buildProtocol(None)
    channel.callLater = Clock().callLater
    transport = _Unread()
    channel.makeConnection(transport)
    channel.dataReceived(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await settled()
    return channel, transport


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_rb_5_a_large_response_is_complete_and_written_as_the_client_reads() -> None:
    _, transport = await large_response()
    received = b""
    while piece := transport.value():
        assert len(piece) < 2 * transport.BUFFER
        received += piece
        transport.read()
        await settled()
    assert received.partition(b"\r\n\r\n")[2] == BODY


async def test_rb_5_an_unread_response_is_freed_with_its_connection() -> None:
    """The buffers must be freed at once, because the garbage collector runs rarely."""
    gc.collect()
    gc.disable()
    try:
        channel, transport = await large_response()
        assert transport.value()
        buffers = weakref.ref(transport)
        channel.stopProducing()  # a real transport calls both when the connection is lost
        channel.connectionLost(Failure(ConnectionLost()))
        transport.producer = None  # Twisted's transports do this, too
        del channel, transport
        await settled()
        assert buffers() is None
    finally:
        gc.enable()


def test_rb_21_one_address_cannot_take_all_connections() -> None:
    site = EdgeSite(Resource(), 10, Addresses(max_connections=3))

    def connect(host: str) -> tuple[object, _Unread]:
        transport = _Unread(host)
        channel = site.buildProtocol(transport.getPeer())
        channel.makeConnection(transport)
        return channel, transport

    idle = [connect("192.0.2.1") for _ in range(3)]
    assert not any(transport.value() for _, transport in idle)
    _, refused = connect("192.0.2.1")
    assert refused.value().startswith(b"HTTP/1.1 503 ")
    assert b"OVERLOADED" in refused.value()
    assert refused.disconnecting
    assert not connect("192.0.2.2")[1].value()
    idle[0][0].connectionLost()  # type: ignore[attr-defined]  # a protocol
    assert not connect("192.0.2.1")[1].value()
    assert connect("192.0.2.1")[1].value()


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("198.51.100.7", None, "198.51.100.7"),
        ("8.8.8.8", "192.0.2.1", "8.8.8.8"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("127.0.0.1", "192.0.2.1", None),
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "203.0.113.5, 192.0.2.1, 10.0.0.2", "192.0.2.1"),
        ("10.0.0.1", "2001:db8::1:2:3", "2001:db8::/64"),
        ("10.0.0.1", "unknown", None),
        ("10.0.0.1", None, None),
    ],
)
def test_the_client_behind_a_proxy_is_found(peer: str, forwarded_for: str | None, client: str | None) -> None:
    found = Addresses(trusted_proxies=["10.0.0.0/8"]).find_client(peer, forwarded_for)
    assert found == client


def test_an_unnamed_proxy_has_no_limit_of_connections() -> None:
    addresses = Addresses(max_connections=1)
    addresses.connected("10.0.0.1")
    assert not addresses.may_connect("10.0.0.1")
    addresses.find_client("10.0.0.1", "192.0.2.1")
    assert addresses.may_connect("10.0.0.1")
    addresses.connected("8.8.8.8")
    addresses.find_client("8.8.8.8", "192.0.2.1")
    assert not addresses.may_connect("8.8.8.8"), "a public address can forge the header"


# Invalid keys


def test_rb_19_failed_keys_are_limited_per_address_and_minute() -> None:
    clock = Clock()
    addresses = Addresses(max_failed_keys=2, clock=clock.seconds)
    for _ in range(2):
        addresses.count_failed_key("192.0.2.1")
    clock.advance(10)
    for _ in range(3):
        with pytest.raises(RateLimited) as refused:
            addresses.count_failed_key("192.0.2.1")
        assert refused.value.retry_after == PERIOD_SECONDS - 10
    addresses.count_failed_key("192.0.2.2")
    addresses.count_failed_key(None)
    clock.advance(PERIOD_SECONDS - 10)
    addresses.count_failed_key("192.0.2.1")


def test_rb_19_the_counts_of_many_addresses_are_bounded() -> None:
    addresses = Addresses(max_failed_keys=2)
    for number in range(MAX_ADDRESSES + 10):
        addresses.count_failed_key(f"address {number}")
    assert len(addresses._failed_keys) == MAX_ADDRESSES


def test_rb_19_wrong_keys_get_few_log_lines_and_a_valid_key_is_served(tmp_path: Path) -> None:
    with running(tmp_path / "log", "SERVICE_ADDRESS_FAILED_KEYS=5") as service:
        wrong = {**HEADERS, "X-API-Key": "wrong"}
        replies = [call(service.url, SEARCH, {"query": "x"}, headers=wrong) for _ in range(30)]
        assert [reply.status for reply in replies] == [401] * 5 + [429] * 25
        assert replies[-1].code == "RATE_LIMITED"
        assert 0 < int(replies[-1].headers["retry-after"]) <= PERIOD_SECONDS
        assert call(service.url, "/v1/usage", method="GET", headers={}).code == "RATE_LIMITED"
        assert call(service.url, SEARCH, {"query": "mustard"}).code == "OK"
        behind_a_proxy = {**wrong, "X-Forwarded-For": "192.0.2.1"}
        assert call(service.url, SEARCH, {"query": "x"}, headers=behind_a_proxy).status == 401
        assert value(service.url, "crawler_calls_total", scraper="retail-search-v4", code="RATE_LIMITED") == 25
        log = service.logged()
    assert len(re.findall(r"event=call .*code=RATE_LIMITED", log)) == 0
    assert log.count("event=failed_keys_limited") == 1


# Files


def test_rb_5_files_are_compressed_and_validated(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        parts = urlsplit(service.url)

        def get(path: str, headers: str = "") -> tuple[str, bytes]:
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
                request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"
                connection.sendall(request.encode())
                received = b""
                while piece := connection.recv(65_536):
                    received += piece
            head, _, body = received.partition(b"\r\n\r\n")
            return head.decode(), body

        for path in ("/docs/swagger-ui-bundle.js", "/openapi.json", "/docs"):
            plain, whole = get(path)
            assert plain.startswith("HTTP/1.1 200 ")
            head, compressed = get(path, "Accept-Encoding: gzip\r\n")
            assert "Content-Encoding: gzip" in head
            assert len(compressed) < len(whole) / 2
            for headers, found in (("", plain), ("Accept-Encoding: gzip\r\n", head)):
                etag = re.search(r"ETag: (\S+)", found, re.IGNORECASE)
                assert etag
                unchanged, nothing = get(path, f"{headers}If-None-Match: {etag[1]}\r\n")
                assert unchanged.startswith("HTTP/1.1 304 ")
                assert nothing == b""
            assert "no-store" not in plain
