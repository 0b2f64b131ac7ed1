"""Webhook receivers on loopback: well-behaved, failing and hostile ones."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

ENDLESS = b"x" * 65_536


@dataclass
class Request:
    """A received request."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server that responds to each request with its next behaviour. The last one is used for all further requests."""

    behaviours: list[Behaviour]
    requests: list[Request] = field(default_factory=list)
    sent: int = 0
    """Number of bytes that ``flood()`` managed to send before the client closed the connection."""
    port: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle a connection."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers["Content-Length"]))
            self.requests.append(Request(head[0], headers, body))
            behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
            await behaviour(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    def flood(self, begin: bytes, piece: bytes) -> Behaviour:
        """Return a behaviour: send a response that never ends."""

        async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(begin)
            while True:
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)

        return send


def status(code: int, headers: str = "", delay: float = 0) -> Behaviour:
    """Return a behaviour: send a complete response."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay)
        writer.write(f"HTTP/1.1 {code} Text\r\n{headers}Content-Length: 2\r\n\r\nok".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return send


async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """A behaviour: never respond."""
    await reader.read()


def text(response: bytes) -> Behaviour:
    """Return a behaviour: send bytes that are not HTTP, and close the connection."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        await writer.drain()

    return send


@asynccontextmanager
async def receiving(
    *behaviours: Behaviour, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver([*behaviours])
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=tls, limit=2**20)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in receiver.tasks:
            task.cancel()
        await asyncio.gather(*receiver.tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # closed transports free their sockets in the next rounds of the loop
