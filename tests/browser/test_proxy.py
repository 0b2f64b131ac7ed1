"""A page can connect to public addresses and configured origins only."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from crawler.browser import proxy
from crawler.browser import proxy as public_addresses
from crawler.browser.proxy import FilteringProxy, is_public
from crawler.downloads.connections import Connection, through_proxy
from crawler.downloads.egress_setting import Proxy
from tests.browser import canary
from tests.browsers import require_chromium

ROOT = Path(__file__).parents[2]
PUBLIC = "93.184.215.14"


@pytest.fixture(autouse=True)
def _no_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not look up this machine's address, which uses the network. The test with a real page covers this."""
    monkeypatch.setattr(public_addresses, "_is_own", lambda _ip: False)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "100.100.100.200",
        ),
        *("169.254.169.254", "168.63.129.16", "192.0.0.192", "198.18.0.1", "192.0.2.1", "224.0.0.251"),
        *("240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::10.0.0.1", "64:ff9b:1::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254"),
        *("ff02::fb", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1", "fec0::1"),
    ],
)
def test_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", PUBLIC, "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"])
def test_address_is_public(address: str) -> None:
    assert is_public(address)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
    await writer.drain()
    writer.close()


@asynccontextmanager
async def serving(serve: object = echo) -> AsyncIterator[int]:
    """Run a server on loopback. Yields its port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)  # type: ignore[arg-type]
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def connection_to(running: FilteringProxy) -> AsyncIterator[Connection]:
    """Connect to the proxy itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(running.url).port)
    yield reader, writer
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def connected(running: FilteringProxy, host: str, port: int) -> AsyncIterator[tuple[int, Connection]]:
    """Request a connection from the proxy. Yields the code of its reply, and the connection."""
    async with connection_to(running) as (reader, writer):
        writer.write(b"\x05\x01\x00")
        assert await reader.readexactly(2) == b"\x05\x00"
        writer.write(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + port.to_bytes(2))
        reply = await reader.readexactly(10)
        yield reply[1], (reader, writer)


async def echoed(connection: Connection) -> bytes:
    """Send a text and end the stream. Return all data received until the peer ends its stream."""
    reader, writer = connection
    writer.write(b"text" * 100_000)
    writer.write_eof()
    return await reader.read(-1)


class Resolver:
    """A stub of name resolution, with one answer for each query."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.answers = list(answers)
        monkeypatch.setattr(public_addresses, "resolve", self.resolve)

    async def resolve(self, host: str, port: int) -> list[str]:
        return self.answers.pop(0)


async def test_connection_to_a_configured_origin_carries_data() -> None:
    async with serving() as port, FilteringProxy({f"http://127.0.0.1:{port}"}) as running:
        for host in ("127.0.0.1", "localhost"):
            async with connected(running, host, port) as (code, connection):
                assert code == proxy.SUCCEEDED
                assert await echoed(connection) == b"text" * 100_000
    assert not running.refused


async def test_connection_to_another_port_of_an_origin_is_refused() -> None:
    async with serving() as port, FilteringProxy({"http://127.0.0.1:1", "https://platform.example"}) as running:
        for host in ("127.0.0.1", "127.0.0.2", "localhost", "::1"):
            async with connected(running, host, port) as (code, (reader, _)):
                assert code == proxy.NOT_ALLOWED
                assert await reader.read() == b""
    assert running.refused.total() == 4


async def test_connection_is_made_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name server's second answer contains a loopback address, which must not be used."""
    Resolver(monkeypatch, [PUBLIC, "127.0.0.1"], ["127.0.0.1", "10.0.0.1"])
    addresses: list[str] = []

    async def connect(address: str, _port: int) -> Connection:
        addresses.append(address)
        raise ConnectionRefusedError

    async with FilteringProxy(set(), connect) as running:
        for expected in (proxy.HOST_UNREACHABLE, proxy.NOT_ALLOWED):
            async with connected(running, "rebinding.example", 443) as (code, _):
                assert code == expected
    assert addresses == [PUBLIC]
    assert running.refused == {"rebinding.example:443": 1}


async def test_next_address_is_tried_if_the_first_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as port:
        Resolver(monkeypatch, ["2606:4700:4700::1111", PUBLIC])

        async def connect(address: str, _port: int) -> Connection:
            if address != PUBLIC:
                raise OSError("no route")
            return await asyncio.open_connection("127.0.0.1", port)

        async with (
            FilteringProxy(set(), connect) as running,
            connected(running, "platform.example", 443) as (code, connection),
        ):
            assert code == proxy.SUCCEEDED
            assert await echoed(connection) == b"text" * 100_000


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x05\x01\x00\x05\x02\x00\x01", b"\x05\x01\x00\x05\x01\x00\x09"]
)
async def test_client_that_does_not_speak_socks_is_disconnected(sent: bytes) -> None:
    async with FilteringProxy(set()) as running, connection_to(running) as (reader, writer):
        writer.write(sent)
        writer.write_eof()
        assert (await reader.read()).removeprefix(b"\x05\x00") == b""


async def test_connections_end_with_the_proxy() -> None:
    async with serving() as port, FilteringProxy({f"http://127.0.0.1:{port}"}) as running:
        async with connected(running, "127.0.0.1", port) as (_, (reader, _)):
            await running.__aexit__()
            assert await reader.read() == b""
        with pytest.raises(ConnectionError):
            async with connection_to(running):
                pass


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"200 OK\r\n\r\n", proxy.SUCCEEDED),
        (b"407 No\r\n\r\n", proxy.HOST_UNREACHABLE),
        (b"200 OK", proxy.HOST_UNREACHABLE),
    ],
)
async def test_another_proxy_gets_the_checked_address(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, code: int
) -> None:
    Resolver(monkeypatch, [PUBLIC])
    heads: list[bytes] = []
    has_ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + answer)
        if not answer.endswith(b"\n"):
            writer.write_eof()
        await echo(reader, writer)
        has_ended.set()

    async with serving(serve) as port:
        other = through_proxy(Proxy.parse(f"http://me:secret@127.0.0.1:{port}"))
        async with (
            FilteringProxy(set(), other) as running,
            connected(running, "platform.example", 443) as (found, connection),
        ):
            assert found == code
            if found == proxy.SUCCEEDED:
                assert await echoed(connection) == b"text" * 100_000
        await asyncio.wait_for(has_ended.wait(), 300)
    (head,) = heads
    assert head.decode().splitlines()[:3] == [
        f"CONNECT {PUBLIC}:443 HTTP/1.1",
        f"Host: {PUBLIC}:443",
        "Proxy-Authorization: Basic bWU6c2VjcmV0",
    ]


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(canary.ONE_OF_EACH_KIND, id="one of each kind"),
        pytest.param(canary.HOSTS, id="all", marks=pytest.mark.soak),
    ],
)
def test_page_reaches_no_private_address(hosts: tuple[str, ...]) -> None:
    """A page in a real browser tries all ways to connect to private addresses. None may reach them."""
    results = reached("open", *hosts)
    hits = {tuple(hit.split(" ", 1)) for hit in results["hits"]}
    assert {address for address, _ in hits} == {"1.2.3.4"}, results["hits"]
    assert {way.split(" ", 1)[-1] for _, way in hits} >= WAYS
    assert len(results["tried"]) == len(hosts), results["log"]
    assert "browser_connections_refused" in results["log"]
    assert "code=UPSTREAM_BLOCKED" in results["log"], "in the end, the page redirects to a private address"


WAYS = {
    *("/fetch", "/xhr", "/iframe", "/websocket", "/beacon", "/open", "/image", "/video", "/script", "/style"),
    *("/prefetch", "/preload", "/events", "/form", "/worker"),
    *("/redirected_fetch", "/redirected_iframe", "/redirected_image", "/redirected_open"),
}
"""The paths that the page requests. WebRTC, WebTransport and preconnections request no path."""


def test_the_page_of_a_local_server_reaches_no_public_address_either() -> None:
    results = reached("closed", "public.test")
    assert results["hits"] == {}
    assert results["tried"]
    assert "browser_connections_refused" in results["log"]


def reached(*arguments: str) -> dict[str, Any]:
    """Return what a page in a namespace of its own has reached."""
    require_chromium()
    isolated = ["unshare", "--map-root-user", "--net", "--mount"]
    if subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs network namespaces: run the tests as root, or allow user namespaces")
    run = subprocess.run(
        [*isolated, sys.executable, "-m", "tests.browser.canary", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found
