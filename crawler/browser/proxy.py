"""A proxy for all connections of a browser page, which keeps the page away from private networks.

The scripts of a page choose the hosts to which it connects, and Playwright's ``route()`` does not intercept redirects.
Therefore each connection is checked after name resolution, and made to the checked address, so that a host name cannot
resolve to another address after the check.

The protocol is SOCKS5 (RFC 1928), because Chromium then sends the host name and port of each connection to the proxy,
which resolves the name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Self, TypeVar
from urllib.parse import urlsplit

import structlog

from crawler.downloads.connections import PORTS, Connect, Connection

logger = structlog.get_logger(__name__)

CONNECT_SECONDS = 10.0
"""Default of the maximum seconds to connect to one address of a host. Afterwards, the host's next address is tried."""
CHUNK_BYTES = 64 * 1024

SUCCEEDED, NOT_ALLOWED, HOST_UNREACHABLE = 0, 2, 4
"""Replies of a SOCKS5 server."""


class FilteringProxy:
    """The proxy of one page, on a free port of loopback. ``async with`` starts it, and closes it with its connections.

    The proxy connects to public addresses, and to ``origins``, which may also have private addresses. ``connect`` opens
    each connection, such as through an egress. ``seconds``: see ``CONNECT_SECONDS``. With ``is_closed``, the proxy
    connects to ``origins`` only, and resolves no other names.
    """

    def __init__(
        self,
        origins: Collection[str],
        connect: Connect = asyncio.open_connection,
        seconds: float = CONNECT_SECONDS,
        *,
        is_closed: bool = False,
    ) -> None:
        self.refused: Counter[str] = Counter()
        """Host and port -> number of connections that were refused, because none of the host's addresses is allowed."""
        self.failure = ""
        """Why the page's last connection to an allowed address failed; empty if it succeeded."""
        self.url = ""
        """URL of the proxy."""
        self._origins = {_host_and_port(origin) for origin in origins}
        self._is_closed = is_closed
        self._connect = connect
        self._seconds = seconds
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve((reader, writer)))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, client: Connection) -> None:
        """Serve one connection of the browser until both sides have closed it, or one side has failed."""
        reader, writer = client
        try:
            host, port = await _requested(reader, writer)
            try:
                server = await self._open(host, port)
            except AddressRefusedError as error:
                self.refused[f"{host}:{port}"] += 1
                logger.debug("browser_connection_refused", host=host, port=port, reason=str(error))
                writer.write(_reply(NOT_ALLOWED))
            except (OSError, UnicodeError) as error:  # UnicodeError: the host name is not valid
                logger.debug("browser_connection_failed", host=host, port=port, reason=str(error))
                writer.write(_reply(HOST_UNREACHABLE))
            else:
                writer.write(_reply(SUCCEEDED))
                await _exchange(client, server)
        except (OSError, EOFError):
            pass  # the browser has disconnected
        finally:
            writer.close()

    async def _open(self, host: str, port: int) -> Connection:
        """Check the addresses of a host, and connect to the first allowed address that accepts the connection.

        Raises:
            AddressRefusedError: none of the host's addresses is allowed.
            OSError: the name cannot be resolved, or none of the allowed addresses accepts the connection.
            UnicodeError: the host name is not valid.
        """
        if self._is_closed and host != "localhost" and (host, port) not in self._origins:
            raise AddressRefusedError("not one of the allowed origins")
        try:
            found = await connect_checked(
                host, port, lambda address: self._allows(host, address, port), self._connect, self._seconds
            )
        except OSError as error:
            if not isinstance(error, socket.gaierror):
                self.failure = str(error)
            raise
        self.failure = ""
        return found

    def _allows(self, host: str, address: str, port: int) -> bool:
        # An origin's address may be reached under any host name: the sandbox's pages load scripts from ``localhost``.
        if not self._origins.isdisjoint({(host, port), (address, port)}):
            return True
        return not self._is_closed and is_public(address)


def _host_and_port(origin: str) -> tuple[str, int]:
    url = urlsplit(origin)
    return url.hostname or "", url.port or PORTS[url.scheme]


async def _requested(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Read the SOCKS5 greeting and request of a client; return the host and port to connect to.

    Raises:
        ConnectionError: the client sent something other than a SOCKS5 request with the command CONNECT.
        EOFError: the client disconnected before the end of its request.
    """
    _version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")  # no authentication
    version, command, _reserved, kind = await reader.readexactly(4)
    if (version, command) != (5, 1) or kind not in {1, 3, 4}:
        raise ConnectionError("not a SOCKS5 request to connect")
    if kind == 3:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("ascii", errors="replace")
    else:
        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
    return host, int.from_bytes(await reader.readexactly(2))


def _reply(code: int) -> bytes:
    """Return the reply to a SOCKS5 request. Its bound address is 0.0.0.0:0, because Chromium does not use it."""
    return bytes([5, code, 0, 1, 0, 0, 0, 0, 0, 0])


async def _exchange(client: Connection, server: Connection) -> None:
    """Pass data in both directions until both have ended, or one has failed. Then close the server's connection."""
    try:
        async with asyncio.TaskGroup() as directions:
            directions.create_task(_pass_on(client[0], server[1]))
            directions.create_task(_pass_on(server[0], client[1]))
    except* OSError:
        pass  # one side has reset its connection
    finally:
        server[1].close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


T = TypeVar("T")

NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""The IPv6 network of NAT64 gateways. The last 32 bits of an address are the IPv4 address to which they connect."""
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The network of global IPv6 addresses. Other addresses are local, reserved or multicast."""
NOT_PUBLIC = (
    ipaddress.ip_network("168.63.129.16/32"),  # the metadata service of a cloud
    ipaddress.ip_network("192.0.0.0/24"),  # also metadata; ``is_global`` is wrong for it before Python 3.11.10
    ipaddress.ip_network("2001::/32"),  # Teredo, and
    ipaddress.ip_network("2002::/16"),  # 6to4: both contain an IPv4 address
)


class AddressRefusedError(Exception):
    """Raised when none of a host's addresses is allowed."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, and not to this machine."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return is_public(str(ip.ipv4_mapped))
        if ip in NAT64:
            return is_public(str(ipaddress.IPv4Address(ip.packed[-4:])))
        if ip not in GLOBAL_UNICAST:
            return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or any(ip in network for network in NOT_PUBLIC):
        return False
    return not _is_own(ip)


def _is_own(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to this machine: the system would send packets to it from the same address.

    No packet is sent.
    """
    with socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(ip), 9))
        except OSError:  # no route to it
            return False
        return bool(probe.getsockname()[0] == str(ip))


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, the preferred address first.

    Raises:
        OSError: the name cannot be resolved.
        UnicodeError: the name is not a valid host name.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def connect_checked(
    host: str, port: int, allows: Callable[[str], bool], connect: Callable[[str, int], Awaitable[T]], seconds: float
) -> T:
    """Connect to the first allowed address of a host that accepts the connection.

    ``allows``: whether an address may be connected to. ``connect`` gets an address and the port. ``seconds``: the
    timeout for each address.

    Raises:
        AddressRefusedError: none of the host's addresses is allowed.
        OSError: the name cannot be resolved (``socket.gaierror``), or no allowed address accepts the connection.
        UnicodeError: the name is not a valid host name.
    """
    addresses = await resolve(host, port)
    allowed = [address for address in addresses if allows(address)]
    if not allowed:
        raise AddressRefusedError(f"not a public address: {', '.join(addresses)}")
    failure = OSError("no address")
    for address in allowed:
        try:
            async with asyncio.timeout(seconds):
                return await connect(address, port)
        except OSError as error:
            failure = error if str(error) else TimeoutError(f"no connection within {seconds:g} s")
    raise failure
