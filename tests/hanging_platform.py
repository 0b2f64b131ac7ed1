"""A shop on loopback that does not respond to selected requests, and counts its open connections."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.retail.site import Site
from tests.http_server import in_thread

Respond = Callable[[str, dict[str, str]], FakeResponse | None]
"""Maps a path and its query to a response. None: the request gets no response until ``release`` is set."""
CONDITION_TIMEOUT_SECONDS = 240.0
"""Seconds after which ``wait_until`` fails: far longer than any condition should take."""


@dataclass
class HangingPlatform:
    """The state of the server, written by its own thread and read by the test's thread."""

    site: Site
    respond: Respond | None
    port: int = 0
    robots: bytes | None = None
    """Content of robots.txt; None: 404."""
    permits: int | None = None
    """Number of responses that may be sent. If it is 0, requests wait until a test increases it. None: no limit."""
    release: threading.Event = field(default_factory=threading.Event)
    """Once it is set, the requests that got no response get their pages."""
    requested_paths: list[str] = field(default_factory=list)
    """Path and query of each request."""
    open_connections: int = 0
    most_connections: int = 0
    unanswered: int = 0
    """Number of open requests without a response."""

    @property
    def origin(self) -> str:
        """The origin of the server."""
        return f"http://127.0.0.1:{self.port}"

    def page(self, path: str, args: dict[str, str]) -> FakeResponse:
        """The sandbox's page at a path, or the response for robots.txt."""
        if path == "/robots.txt":
            return (404, {}, b"") if self.robots is None else (200, {"Content-Type": "text/plain"}, self.robots)
        return self.site.page(FakeRequest(path, args))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            while await self._request(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has disconnected
        finally:
            self.open_connections -= 1
            writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen on a free port."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        yield
        server.close()

    def _permitted(self) -> bool:
        """Take a permit. Return whether there was one."""
        if self.permits:
            self.permits -= 1
            return True
        return self.permits is None

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        url = head.split(b" ", 2)[1].decode("latin-1")
        self.requested_paths.append(url)
        parts = urlsplit(url)
        args = dict(parse_qsl(parts.query))
        is_permitted = self._permitted()
        response = (self.respond or self.page)(parts.path, args) if is_permitted else None
        if response is None:
            self.unanswered += 1
            disconnected = asyncio.ensure_future(reader.read(1))
            try:
                while not (disconnected.done() or self.release.is_set() or (not is_permitted and self._permitted())):
                    await asyncio.wait([disconnected], timeout=0.02)
            finally:
                self.unanswered -= 1
            if disconnected.done():
                await disconnected
                return False
            disconnected.cancel()
            await asyncio.wait([disconnected])
            response = self.page(parts.path, args)
        status, headers, body = response
        lines = [f"HTTP/1.1 {status} OK", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return True

    def wait_until(self, condition: Callable[[HangingPlatform], bool]) -> None:
        """Wait until a condition holds; fail if it does not hold within ``CONDITION_TIMEOUT_SECONDS``."""
        end = time.monotonic() + CONDITION_TIMEOUT_SECONDS
        while not condition(self):
            assert time.monotonic() < end, (self.open_connections, self.unanswered, self.requested_paths)
            time.sleep(0.01)


@contextmanager
def hanging_platform(respond: Respond | None = None, *, light: bool = True) -> Iterator[HangingPlatform]:
    """Run the server in a thread. By default, searches whose words begin with ``hang`` get no response."""
    platform = HangingPlatform(Site(light=light), respond)
    if respond is None:
        platform.respond = lambda path, args: (
            None if args.get("q", "").startswith("hang") else platform.page(path, args)
        )
    with in_thread(platform.listening()):
        yield platform
