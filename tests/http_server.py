"""Servers on loopback in a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def free_port() -> int:
    """Return a port of loopback that refuses connections until a server listens on it.

    On Linux, a socket stays bound to it while this process runs, so that no other program is given the port by chance.
    Servers can listen on it nevertheless, because they set SO_REUSEADDR, too.
    """
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        if sys.platform == "linux":
            free.detach()
    return port


class Handler(BaseHTTPRequestHandler):
    """Base class of handlers, which logs nothing."""

    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes = b"", status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Send a response."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Log nothing: killed clients break their connections."""


@contextmanager
def served(handler: type[Handler]) -> Iterator[str]:
    """Yield the origin of a server."""
    with _Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def in_thread(*servers: AbstractAsyncContextManager[Any]) -> Iterator[list[Any]]:
    """Run servers in a thread of their own, while the test does something else. Yield their values."""
    started, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    values: list[Any] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with contextlib.AsyncExitStack() as stack:
            values.extend([await stack.enter_async_context(server) for server in servers])
            started.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(300)
    try:
        yield values
    finally:
        loops[0].call_soon_threadsafe(end.set)
        thread.join(300)
