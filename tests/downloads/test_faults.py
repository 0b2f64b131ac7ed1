"""The outcomes of downloads from servers and proxies that misbehave. They are the same with both event loops."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from dataclasses import replace
from typing import Any

import pytest

from crawler.components import BROWSER_HANDLER
from crawler.service.workers import LOOP
from tests.downloads.misbehaving import MAX_BODY, Case, Kept, Serve, outcomes, serving

OK = b"HTTP/1.1 200 OK\r\n"
TEN = b"Content-Length: 10\r\n\r\n"
TEXT = b"0123456789"

SHORT = {"DOWNLOAD_TIMEOUT": 6}
GOOD = "200 b'Content-Length: 10' b'0123456789'"
FAILED = "connection: The download failed before the response was complete. Retried."
LOST = "connection: The connection was lost before the response was complete. Retried."
TIMED_OUT = "timeout: The platform did not respond in time. Retried."
TOO_LARGE = "cancelled: The download was cancelled, for example because it is larger than DOWNLOAD_MAXSIZE."
EGRESS = "egress_failed: The egress misbehaving failed: "


def sends(*pieces: bytes) -> Serve:
    """A server that sends these pieces of a response, and then closes the connection."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return serve


def keeps(*pieces: bytes) -> Serve:
    """A server that sends these pieces of a response, and then keeps the connection open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await sends(*pieces)(reader, writer)
        raise Kept

    return serve


def resets(*pieces: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await sends(*pieces)(reader, writer)
        await asyncio.sleep(0.1)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return serve


def hangs(*pieces: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await sends(*pieces)(reader, writer)
        await asyncio.sleep(600)

    return serve


def repeats(first: bytes, piece: bytes, seconds: float = 0) -> Serve:
    """A server whose response begins with ``first`` and repeats ``piece`` without an end."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(seconds)

    return serve


async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that opens a tunnel, and answers the beginning of TLS itself."""
    await sends(OK + b"\r\n")(reader, writer)
    await reader.read(1)
    await hangs(TEXT * 100)(reader, writer)


class Once:
    """Serves all requests on kept connections, except the second request, for which ``end`` runs."""

    def __init__(self, end: Serve) -> None:
        self.end = end
        self.requests = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        await (self.end if self.requests == 2 else keeps(OK + TEN + TEXT))(reader, writer)


CASES: dict[str, tuple[Case, list[str], int]] = {
    # By name: the case, the outcome of each download, and the number of requests that the server receives
    "well": (Case(sends(OK + TEN + TEXT)), [GOOD], 1),
    "a request as given": (
        Case(
            sends(OK + TEN + TEXT),
            path="/a%2Fb/./c?q=1+2%203&q=\xe9#fragment",
            request={
                "method": "POST",
                "body": "text",
                "headers": {
                    "User-Agent": "browser",
                    "Accept": "*/*",
                    "Accept-Language": "de",
                    "Accept-Encoding": "gzip",
                    "Cookie": "a=1; b=2",
                    "Content-Type": "text/plain",
                    "X": ["1", "2"],
                },
            },
        ),
        [GOOD],
        1,
    ),
    "kept connection": (Case(keeps(OK + TEN + TEXT), downloads=3), [GOOD] * 3, 3),
    "headers": (
        Case(sends(OK + b"b: 1\r\nA:  two \r\nb: 2\r\nX: \xff\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n" + TEN + TEXT)),
        ["200 b'Content-Length: 10, B: 1 | 2, A: two, X: \\xff, Set-Cookie: a=1 | b=2' b'0123456789'"],
        1,
    ),
    "gzip": (
        Case(sends(OK + b"Content-Encoding: gzip\r\nContent-Length: 30\r\n\r\n" + gzip.compress(TEXT, mtime=0))),
        ["200 b'Content-Length: 30' b'0123456789'"],
        1,
    ),
    "HTTP/1.0 without length": (Case(sends(b"HTTP/1.0 200 OK\r\n\r\n", TEXT)), ["200 b'' b'0123456789', partial"], 1),
    "HTTP/1.1 without length": (Case(sends(OK + b"\r\n", TEXT)), ["200 b'' b'0123456789', partial"], 1),
    "endless hints": (
        Case(repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n", seconds=0.01), settings=SHORT),
        [TIMED_OUT],
        1,
    ),
    "connection refused": (
        Case(sends(), listens=False),
        ["connection: The platform's server refused the connection. Retried."],
        0,
    ),
    "unknown status": (
        Case(sends(b"HTTP/1.1 999 Denied\r\n" + TEN + TEXT)),
        ["999 b'Content-Length: 10' b'0123456789'"],
        1,
    ),
    "large header": (Case(sends(OK + b"X: " + b"x" * 100_000 + b"\r\n" + TEN + TEXT)), [FAILED], 1),
    "900 header lines": (
        Case(sends(OK + b"X: y\r\n" * 900 + TEN + TEXT)),
        ["200 b'Content-Length: 10, X: 900 values' b'0123456789'"],
        1,
    ),
    "2,000 header lines": (Case(sends(OK + b"X: y\r\n" * 2_000 + TEN + TEXT)), [FAILED], 1),
    "head of 200 kB": (Case(sends(OK + (b"X: " + b"x" * 10_000 + b"\r\n") * 20 + TEN + TEXT)), [FAILED], 1),
    "endless head": (Case(repeats(OK, b"X: " + b"x" * 1_000 + b"\r\n")), [FAILED], 1),
    "endless header": (Case(repeats(OK + b"X: ", b"x" * 1_000)), [FAILED], 1),
    "slow head": (Case(repeats(OK, b"X: y\r\n", seconds=0.1), settings=SHORT), [TIMED_OUT], 1),
    "no response": (Case(hangs(), settings=SHORT), [TIMED_OUT], 1),
    "slow body": (Case(repeats(OK + b"\r\n", b"x", seconds=0.1), settings=SHORT), [TIMED_OUT], 1),
    "body ends early": (Case(sends(OK + TEN + TEXT[:5])), [LOST], 1),
    "body ends late": (Case(keeps(OK + TEN + TEXT + b"more"), downloads=2), [GOOD] * 2, 2),
    "body over the limit": (Case(repeats(OK + b"\r\n", b"x" * 10_000)), [TOO_LARGE], 1),
    "length over the limit": (Case(hangs(OK + f"Content-Length: {MAX_BODY + 1}\r\n\r\n".encode())), [TOO_LARGE], 1),
    "two lengths": (Case(sends(OK + b"Content-Length: 5\r\n" + TEN + TEXT)), [FAILED], 1),
    "garbage": (Case(sends(b"\x00\x01garbage\r\n\r\n" + TEXT)), [FAILED], 1),
    "reset before the head": (Case(resets()), [FAILED], 1),
    "reset in the body": (Case(resets(OK + TEN + TEXT[:5])), [LOST], 1),
    "closed between requests": (Case(Once(sends()), downloads=3), [GOOD] * 3, 4),
    "reset between requests": (Case(Once(resets()), downloads=3), [GOOD] * 3, 4),
    "closed between POST requests": (
        Case(Once(sends()), downloads=3, request={"method": "POST", "body": "text"}),
        [GOOD, FAILED, GOOD],
        3,
    ),
    "Connection: close": (Case(keeps(OK + b"Connection: close\r\n" + TEN + TEXT), downloads=2), [GOOD] * 2, 2),
    "TLS, another name, not verified": (
        Case(sends(OK + TEN + TEXT), tls=True, settings={"DOWNLOAD_VERIFY_CERTIFICATES": False}),
        [GOOD],
        1,
    ),
    "TLS, another name": (
        Case(sends(OK + TEN + TEXT), tls=True, settings={"DOWNLOAD_VERIFY_CERTIFICATES": True}),
        [FAILED],
        0,
    ),
    "TLS too old": (
        Case(
            sends(OK + TEN + TEXT),
            tls=True,
            settings={"DOWNLOAD_TLS_MIN_VERSION": "TLSv1.0", "DOWNLOAD_TLS_MAX_VERSION": "TLSv1.1"},
        ),
        [FAILED],
        0,
    ),
    "TLS, a connection for each request": (Case(sends(OK + TEN + TEXT), tls=True, downloads=3), [GOOD] * 3, 3),
    "TLS, kept connection": (Case(keeps(OK + TEN + TEXT), tls=True, downloads=3), [GOOD] * 3, 3),
    "TLS, body ends early": (Case(sends(OK + TEN + TEXT[:5]), tls=True), [LOST], 1),
    "proxy asks for credentials": (
        Case(keeps(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), as_proxy=True),
        [EGRESS + "the proxy answered with status 407."],
        1,
    ),
    "proxy hangs": (
        Case(hangs(), as_proxy=True, settings={"CONNECT_TIMEOUT": 4}),
        [EGRESS + "the proxy did not open a tunnel within 4 s."],
        1,
    ),
    "proxy closes": (Case(sends(), as_proxy=True), [EGRESS + "the proxy closed the connection."], 1),
    "proxy resets": (Case(resets(), as_proxy=True), [EGRESS + "the proxy closed the connection."], 1),
    "proxy's head has no end": (
        Case(repeats(OK, b"X: " + b"x" * 1_000 + b"\r\n"), as_proxy=True),
        [EGRESS + "the head of the proxy's response is larger than 65536 bytes."],
        1,
    ),
    "proxy sends garbage": (
        Case(sends(b"garbage\r\n\r\n"), as_proxy=True),
        [EGRESS + "cannot connect to the proxy."],
        1,
    ),
    "no TLS in the tunnel": (
        Case(no_tls, as_proxy=True),
        [EGRESS + "TLS failed: WRONG_VERSION_NUMBER."],
        2,
    ),
    "platform closes in the tunnel": (Case(sends(OK + b"\r\n"), as_proxy=True), [FAILED], 2),
    "platform resets in the tunnel": (Case(resets(OK + b"\r\n"), as_proxy=True), [FAILED], 2),
    "tunnel to nowhere": (
        Case(hangs(OK + b"\r\n"), as_proxy=True, settings={**SHORT, "CONNECT_TIMEOUT": 4}),
        [EGRESS + "no connection within 4 s."],
        2,
    ),
}

WITH_BROWSER = {"DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), BROWSER_HANDLER)}
LIMITED = ("2,000 header lines", "proxy hangs", "proxy's head has no end", "TLS, a connection for each request")
"""Plain downloads of crawls that also load pages in the browser have the same limits."""
for name in LIMITED:
    case, expected, number = CASES[name]
    with_browser = replace(case, settings=case.settings | WITH_BROWSER, heads=[])
    CASES[f"{name}, crawl with a browser"] = with_browser, expected, number


@pytest.fixture(
    scope="module", params=[pytest.param(LOOP, id="uvloop"), pytest.param(None, id="asyncio", marks=pytest.mark.soak)]
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcomes and the number of received requests, by name of the case. ``log``: the log of the process."""
    cases = [case for case, *_ in CASES.values()]
    for case in cases:
        case.heads.clear()
        if isinstance(case.serve, Once):
            case.serve.requests = 0
    with serving(cases, tmp_path_factory.mktemp("tls") / "certificate.pem"):
        results, with_context, log = outcomes(cases, request.param)
    return {name: (result, len(case.heads)) for name, case, result in zip(CASES, cases, results, strict=True)} | {
        "with_context": with_context,
        "log": log,
    }


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_of_a_download(found: dict[str, Any], name: str) -> None:
    _, expected, requests = CASES[name]
    assert found[name] == (expected, requests)


def test_the_log_has_no_traceback_leak_or_secret(found: dict[str, Any]) -> None:
    texts = ("Traceback", "nclosed transport", "nclosed c", "never retrieved", "c2VjcmV0", "secret")
    assert [text for text in texts if text in found["log"]] == []


@pytest.mark.usefixtures("found")
def test_a_request_is_sent_as_given() -> None:
    case, *_ = CASES["a request as given"]
    line, *headers, _, _ = case.heads[0].split("\r\n")
    assert line == "POST /a%2Fb/./c?q=1+2%203&q=%C3%A9 HTTP/1.1"
    assert sorted(headers) == [
        "Accept-Encoding: gzip",
        "Accept-Language: de",
        "Accept: */*",
        "Content-Length: 4",
        "Content-Type: text/plain",
        "Cookie: a=1; b=2",
        f"Host: 127.0.0.1:{case.port}",
        "User-Agent: browser",
        "X: 1",
        "X: 2",
    ]


def test_the_tls_settings_of_a_host_are_made_once(found: dict[str, Any]) -> None:
    """Reading the system's certificates takes several milliseconds of CPU time."""
    connections = [case.downloads for name, (case, *_) in CASES.items() if "a connection for each request" in name]
    assert found["with_context"] == sum(connections) - len(connections)
