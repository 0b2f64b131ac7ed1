"""HTTP/1.1 for protocols of asyncio, as little of it as a benchmark on loopback needs.

Messages have a ``Content-Length``, connections are kept. There are no timeouts, no limits and no
chunks.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
END = b"\r\n\r\n"


class Messages(asyncio.Protocol):
    """Splits the bytes of a connection into messages."""

    transport: Any

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head = self._length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._is_complete():
            head, body = bytes(self._buffer[: self._head]), bytes(self._buffer[self._head : self._length])
            del self._buffer[: self._length]
            self._length = 0
            self.message_received(head, body)

    def message_received(self, head: bytes, body: bytes) -> None:
        """Handle a message."""
        raise NotImplementedError

    def _is_complete(self) -> bool:
        """Whether the buffer begins with a complete message."""
        if not self._length:
            end = self._buffer.find(END)
            if end < 0:
                return False
            found = LENGTH.search(self._buffer, 0, end)
            self._head = end + len(END)
            self._length = self._head + int(found[1] if found else 0)
        return len(self._buffer) >= self._length


class Client(Messages):
    """A connection that sends one request at a time."""

    _response: asyncio.Future[tuple[bytes, bytes]] | None = None

    async def send(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a request. Return head and body of its response.

        Raises:
            ConnectionError: the server closed the connection.
        """
        self._response = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._response

    def message_received(self, head: bytes, body: bytes) -> None:
        assert self._response is not None
        self._response.set_result((head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(exc or ConnectionError("The server closed the connection."))


def ok(body: bytes, *headers: str) -> bytes:
    """Return a response with status 200."""
    lines = ["HTTP/1.1 200 OK", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + END + body


def get(netloc: str, path: str, *headers: str) -> bytes:
    """Return a ``GET`` request."""
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {netloc}", *headers]).encode() + END


def post(netloc: str, path: str, body: bytes, *headers: str) -> bytes:
    """Return a ``POST`` request."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {netloc}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + END + body
