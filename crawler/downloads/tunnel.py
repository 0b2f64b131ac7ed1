"""Connections through an egress for browser pages and for checks of an egress. Scrapy makes the other connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

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
        except (EOFError, asyncio.LimitOverrunError, ConnectionResetError) as error:
            writer.close()
            raise ProxyError("the proxy closed the connection") from error
        except BaseException:
            writer.close()
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
    connection is open and ends without an answer to the beginning of TLS, the platform may have ended it: "".
    """
    url = urlsplit(origin)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(seconds):
            _, writer = await through(egress)(url.hostname or "", url.port or PORTS[url.scheme])
            if url.scheme == "https":
                await _start_tls(writer, url.hostname, verify=verify)
    except ssl.SSLEOFError:
        return ""
    except ssl.SSLError as error:
        return f"TLS failed: {error.reason or type(error).__name__}"
    except OSError as error:  # also a timeout
        return "" if writer is not None else _problem(error, seconds)
    finally:
        if writer is not None:
            writer.close()
    return ""


def _problem(error: OSError, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {seconds:g} s"
    return str(error) if isinstance(error, ProxyError) else f"cannot connect: {_os_message(error)}"


async def _start_tls(writer: asyncio.StreamWriter, host: str | None, *, verify: bool) -> None:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await writer.start_tls(context, server_hostname=host)
