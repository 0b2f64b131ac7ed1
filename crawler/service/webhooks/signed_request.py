"""Sends one signed request to the webhook of a client, whose receiver may be hostile.

Only the status of the response is interpreted, so that its size does not matter. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from crawler.downloads.public_addresses import AddressRefusedError, connect_checked, is_private, is_public
from crawler.downloads.tunnel import PORTS

if TYPE_CHECKING:
    from crawler.downloads.tunnel import Connection

MAX_URL = 2_000
URL = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][!-\"$-~]*)?")
"""Matches a URL in ASCII, without user name, password and fragment."""
TRY_SECONDS = 15.0
"""Timeout in seconds of a try, from the name resolution to the status of the response."""
CONNECT_SECONDS = 5.0
"""Timeout in seconds for a connection to each address of the receiver."""
BUFFER_BYTES = 8_192
"""Maximum size of a line of the response. asyncio pauses reading when its buffer contains twice as much."""
MAX_LINES = 100
"""Maximum number of lines up to the status. Interim responses, such as Early Hints, may precede the status line."""
STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: .*)?\r?\n", re.DOTALL)
FAILURES = (AddressRefusedError, OSError, EOFError, ValueError, asyncio.LimitOverrunError)
LINGER_SECONDS = 1.0
"""Seconds for which the rest of a response is read after its status, because some receivers log a lost connection."""
LINGER_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Response:
    """The result of a try."""

    status: int | None
    error: str | None
    """Why the event was not delivered, without data from the receiver. None: it was delivered."""


def check_url(url: str, *, private: bool) -> str:
    """Check the URL of a webhook, and return it. The addresses of a name are checked for each connection.

    ``private``: the setting ``WEBHOOK_PRIVATE``.

    Raises:
        ValueError: events must not be sent to this URL.
    """
    match = URL.fullmatch(url)
    if match is None or len(url) > MAX_URL:
        raise ValueError(f"expected an https URL of at most {MAX_URL} ASCII characters, without user name and fragment")
    scheme, host, port, _ = match.groups()
    if scheme == "http" and not private:
        raise ValueError("expected https, not http")
    if port and not 0 < int(port[1:]) < 2**16:
        raise ValueError("expected a port from 1 to 65535")
    try:
        allowed = _allows(scheme, host.strip("[]"), private=private)
    except ValueError:  # a name
        allowed = not host.startswith("[")
    if not allowed:
        raise ValueError(f"expected a public address, not {host}")
    return url


def _allows(scheme: str, address: str, *, private: bool) -> bool:
    return (private and is_private(address)) or (scheme == "https" and is_public(address))


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def send(url: str, secret: str, delivery_id: str, body: bytes, *, private: bool) -> Response:
    """Send an event, and return the result. A failed connection is a result, too, and raises no error.

    The event is delivered if the receiver responds with a status from 200 to 299 within ``TRY_SECONDS``.
    """
    writer = None
    try:
        async with asyncio.timeout(TRY_SECONDS):
            reader, writer = await _connect(url, private=private)
            writer.write(_request(url, secret, delivery_id, body))
            status = await _status(reader)
        with suppress(TimeoutError, OSError, EOFError):
            async with asyncio.timeout(LINGER_SECONDS):
                await reader.readexactly(LINGER_BYTES)
    except FAILURES as error:
        return Response(None, _reason(error))
    finally:
        if writer is not None:
            writer.transport.abort()
    return Response(status, None if 200 <= status < 300 else f"status {status}")


def _reason(error: Exception) -> str:
    """Describe the failure of a request, without addresses of the operator's network."""
    match error:
        case AddressRefusedError():
            return "the host has no allowed address"
        case ssl.SSLError():
            return f"TLS failed: {getattr(error, 'verify_message', '') or error.reason or 'no reason'}"
        case socket.gaierror() | UnicodeError():
            return "the host name cannot be resolved"
        case TimeoutError():
            return str(error) or f"no response within {TRY_SECONDS:g} s"
        case OSError():
            return f"no connection: {os.strerror(error.errno) if error.errno else type(error).__name__}"
    return "the response is not HTTP/1.1"


async def _connect(url: str, *, private: bool) -> Connection:
    parts = urlsplit(url)
    host = parts.hostname or ""
    tls = _tls() if parts.scheme == "https" else None
    name = host if tls else None

    async def connect(address: str, port: int) -> Connection:
        return await asyncio.open_connection(address, port, limit=BUFFER_BYTES, ssl=tls, server_hostname=name)

    def allows(address: str) -> bool:
        return _allows(parts.scheme, address, private=private)

    return await connect_checked(host, parts.port or PORTS[parts.scheme], allows, connect, CONNECT_SECONDS)


def _request(url: str, secret: str, delivery_id: str, body: bytes) -> bytes:
    parts, now = urlsplit(url), datetime.now(UTC)
    headers = {
        "Host": parts.netloc,
        "User-Agent": "webhooks",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(delivery_id, now, body.decode()),
    }
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def _status(reader: asyncio.StreamReader) -> int:
    """Read the status of a response, after interim responses.

    Raises:
        ValueError, EOFError, LimitOverrunError: the receiver has not sent a response of HTTP/1.1.
    """
    is_interim = False
    for _ in range(MAX_LINES):
        line = await reader.readuntil(b"\n")
        if is_interim:
            is_interim = bool(line.strip())
            continue
        match = STATUS.fullmatch(line)
        if match is None:
            break
        if (status := int(match[1])) >= 200:
            return status
        is_interim = True
    raise ValueError("no status line")
