"""Connections that Scrapy 2.19 and Twisted lack: through an egress, with limits on the time to open one and on heads.

Browser pages and checks of an egress are connected through its proxy here. A *head* is the status line and headers of a
response: of a proxy to ``CONNECT``, or of a platform. A proxy that never responds would use up the timeout of the
download. Headers that never end would fill the memory, and take CPU time that grows with the square of the received
bytes.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog
from twisted.internet.defer import Deferred
from twisted.internet.error import TimeoutError as ConnectTimeoutError
from twisted.internet.interfaces import IAddress, IProtocolFactory, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure
from zope.interface import implementer

from crawler.downloads.egress_setting import Egress, Proxy

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Connection]]
"""A function that opens a TCP connection. Arguments: a host name or an address, and a port."""

PORTS = {"http": 80, "https": 443}
"""Scheme of a URL -> its default port."""


class ProxyError(ConnectionError):
    """Raised when a proxy cannot be reached, or opens no tunnel. The message contains no credentials."""


def through_proxy(proxy: Proxy) -> Connect:
    """Return a function that connects through an HTTP proxy, and raises ``ProxyError`` if that fails.

    If the function is called with a host name, the proxy resolves the name.
    """
    authorization = b""
    if proxy.authorization:
        authorization = b"Proxy-Authorization: " + proxy.authorization + b"\r\n"

    async def connect(address: str, port: int) -> Connection:
        destination = (f"[{address}]:{port}" if ":" in address else f"{address}:{port}").encode()
        try:
            reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        except OSError as error:
            raise ProxyError(f"cannot connect to the proxy {proxy.url}: {_os_message(error)}") from error
        try:
            writer.write(b"CONNECT " + destination + b" HTTP/1.1\r\nHost: " + destination + b"\r\n")
            writer.write(authorization + b"\r\n")
            _raise_if_refused(await reader.readuntil(b"\r\n\r\n"))
        except BaseException as error:
            writer.close()
            if isinstance(error, (EOFError, asyncio.LimitOverrunError, ConnectionResetError)):
                raise ProxyError("the proxy closed the connection") from error
            raise
        return reader, writer

    return connect


def _raise_if_refused(head: bytes) -> None:
    status = head.split(maxsplit=2)[1:2]
    if status != [b"200"]:
        raise ProxyError(f"the proxy answered {head.splitlines()[0].decode('latin-1')!r}")


def _os_message(error: OSError) -> str:
    return error.strerror or type(error).__name__


def through(egress: Egress) -> Connect:
    """Return a function that connects through an egress."""
    if egress.proxy:
        return through_proxy(egress.proxy)
    return asyncio.open_connection


async def problem_of(egress: Egress, origin: str, *, verify: bool, seconds: float) -> str:
    """Return why no connection to an origin can be opened through an egress, with TLS for ``https``; "" if it can.

    No request is sent. ``verify``: whether an invalid certificate is a failure. ``seconds``: the timeout. If the
    connection is open and ends without an answer to the beginning of TLS, the platform may have ended it: "". If it
    stays open without an answer, the proxy may have opened a tunnel to nowhere.
    """
    url = urlsplit(origin)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(seconds):
            _, writer = await through(egress)(url.hostname or "", url.port or PORTS[url.scheme])
            if url.scheme == "https":
                await _start_tls(writer, url.hostname, verify=verify)
    except TimeoutError:
        return f"no connection within {seconds:g} s"
    except ssl.SSLEOFError:
        return ""
    except ssl.SSLError as error:
        return f"TLS failed: {error.reason or type(error).__name__}"
    except ProxyError as error:
        return str(error)
    except OSError as error:
        return f"cannot connect: {_os_message(error)}" if writer is None else ""
    finally:
        if writer is not None:
            writer.close()
    return ""


async def _start_tls(writer: asyncio.StreamWriter, host: str | None, *, verify: bool) -> None:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await writer.start_tls(context, server_hostname=host)


logger = structlog.get_logger(__name__)

MAX_CONNECT_BYTES = 64 * 1024
"""Maximum bytes of the status line and headers of a proxy's response to ``CONNECT``. Real proxies send less than 1 KiB.
"""
END = b"\r\n\r\n"
MAX_HEAD_BYTES = 128 * 1024
"""Maximum bytes of the status line and headers of a platform's response. Browsers accept 256 KiB, platforms send
10 KiB."""
MAX_HEAD_LINES = 1_000
"""Maximum number of lines of a platform's response before its body."""
BLANK_LINE = re.compile(rb"\n\r?\n")
"""Matches the end of the last header and the blank line after it."""
_NEWEST_BYTES = 8
"""Number of the last received bytes that are kept, because the blank line after the headers may arrive in pieces."""


@implementer(IStreamClientEndpoint)
@dataclass
class LimitedEndpoint:
    """Wraps an endpoint: aborts connections that are not open after ``seconds``, or have too large response headers."""

    endpoint: Any
    seconds: float

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:  # noqa: N803  # Twisted's
        """Open a connection. The ``Deferred`` has its protocol as result, or an error of the wrapped endpoint.

        Raises:
            ProxyError: the proxy is too slow, closes the connection or sends too many bytes before the tunnel is open.
            ConnectTimeoutError: a connection without a tunnel could not be opened in time.
        """
        from twisted.internet import reactor  # noqa: PLC0415  # the import installs a reactor

        heads, is_tunnel = BoundedHeads(protocolFactory), hasattr(self.endpoint, "processProxyResponse")

        def fail(why: str) -> None:
            if not opened.called:
                opened.errback(ProxyError(why))

        if is_tunnel:  # the endpoint passes the bytes of the proxy's response to this method
            self.endpoint.processProxyResponse = limited_head(self.endpoint.processProxyResponse, fail)
            heads.on_lost = lambda: fail("the proxy closed the connection")
        opened: Deferred[Any] = self.endpoint.connect(heads)

        def timed_out(_: object, seconds: float) -> None:
            why = f"the proxy did not open a tunnel within {seconds:g} s"
            raise ProxyError(why) if is_tunnel else ConnectTimeoutError(string=f"no connection in {seconds:g} s")

        def close(failure: Failure) -> Failure:
            heads.abort()
            return failure

        opened.addTimeout(self.seconds, reactor, timed_out)
        return opened.addErrback(close)


def limited_head(pass_on: Callable[[bytes], None], fail: Callable[[str], None]) -> Callable[[bytes], None]:
    """Return a function that collects the received bytes of a proxy's response to ``CONNECT``.

    When all headers have been received, the function calls ``pass_on`` with the collected bytes. If they exceed
    ``MAX_CONNECT_BYTES``, it calls ``fail`` with the reason.
    """
    head = bytearray()

    def receive(data: bytes) -> None:
        searched = max(0, len(head) - len(END) + 1)
        head.extend(data)
        end = head.find(END, searched)
        if end > MAX_CONNECT_BYTES or (end < 0 and len(head) > MAX_CONNECT_BYTES):
            fail(f"the head of the proxy's response is larger than {MAX_CONNECT_BYTES} bytes")
        elif end >= 0:
            pass_on(bytes(head))

    return receive


class BoundedHeads(Factory):
    """Wraps a factory of client protocols. A protocol aborts its connection if response headers are too large."""

    noisy = False

    def __init__(self, factory: Any) -> None:
        self.factory = factory
        self.on_lost: Callable[[], None] = lambda: None
        """Called when a connection of one of the protocols is lost or closed."""
        self._protocol: Any = None
        self._aborted = False

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802  # Twisted's
        protocol: Any = None if self._aborted else self.factory.buildProtocol(addr)
        if protocol is not None:
            head = _Head(protocol)
            lose = protocol.connectionLost

            def connection_lost(*reason: Any) -> None:
                lose(*reason)
                self.on_lost()

            protocol.request = head.send
            protocol.connectionLost = connection_lost
            protocol.dataReceived = head.receive
        self._protocol = protocol
        return protocol

    def abort(self) -> None:
        """Abort the connection. If it is still being opened, it gets no protocol."""
        self._aborted = True
        if self._protocol is not None and self._protocol.transport is not None:
            self._protocol.transport.abortConnection()


class _Head:
    """Counts the bytes and lines of a response until the blank line after its headers."""

    _bytes = _lines = 0
    _newest = b""
    _is_complete = False

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self._send: Callable[[Any], Any] = protocol.request
        self._pass_on: Callable[[bytes], None] = protocol.dataReceived

    def send(self, request: Any) -> Any:
        """Send a request, and reset the counts: the next received byte is the first one of the response."""
        self._bytes = self._lines = 0
        self._newest = b""
        self._is_complete = False
        return self._send(request)

    def receive(self, data: bytes) -> None:
        """Pass the received bytes on, or abort the connection if the headers are too large."""
        if not self._is_complete:
            self._count(data)
        if self._bytes > MAX_HEAD_BYTES or self._lines > MAX_HEAD_LINES:
            logger.warning("response_head_too_large", bytes=self._bytes, lines=self._lines)
            self.protocol.transport.abortConnection()
            return
        self._pass_on(data)

    def _count(self, data: bytes) -> None:
        """Count the received bytes and lines up to the blank line after the headers."""
        text = self._newest + data
        end = BLANK_LINE.search(text)
        head = text[: end.start()] if end else text
        self._bytes += max(0, len(head) - len(self._newest))
        self._lines += head.count(b"\n", len(self._newest)) if len(head) > len(self._newest) else 0
        self._newest = text[-_NEWEST_BYTES:]
        self._is_complete = end is not None
