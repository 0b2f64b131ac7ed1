"""Real forward proxies (proxy.py), each with its own loopback address, behind relays that inject faults."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.http_server import free_port, in_thread

ROOT = Path(__file__).parents[1]
USER, PASSWORD = "operator", "hunter2-of-the-proxies"
SECRETS = (PASSWORD, base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(), "Proxy-Authorization")
"""Texts that no output of a command may contain."""
NamedFault = Literal["", "refuse", "hang", "407", "502", "reset", "endless", "garbage"]
Fault = NamedFault | bytes
"""A fault of a relay. Bytes: all connections get this response, and are closed."""
ANSWERS: dict[NamedFault, bytes] = {
    "407": b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
    "502": b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"HTTP/1.1 200 OK\r\n\r\n" + b"garbage" * 1_000,
}
"""Faults by which all connections get a response, and are closed."""
RESET_AFTER_BYTES = 6_000
"""The fault ``reset`` resets a connection after this many response bytes: in the middle of a page, after the TLS
handshake."""


@dataclass
class Relay:
    """Accepts connections, and forwards them to another server unless a fault is set."""

    server_port: int
    fault: Fault = ""
    port: int = 0
    accepted: int = 0
    """Number of accepted connections."""
    _open: set[asyncio.Task[None]] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def set(self, fault: Fault) -> None:
        """Set the fault, and close the open connections, so that the fault applies to all further requests."""
        assert self._loop
        asyncio.run_coroutine_threadsafe(self._change(fault), self._loop).result()

    async def _change(self, fault: Fault) -> None:
        self.fault = fault
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        yield
        server.close()
        await self._change(self.fault)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, EOFError):
                await self._answer(reader, writer)
        finally:
            if self.fault in {"refuse", "reset"}:
                writer.transport.abort()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.fault == "refuse":
            return
        if self.fault == "hang":
            await asyncio.sleep(3_600)
        answer = self.fault if isinstance(self.fault, bytes) else ANSWERS.get(self.fault)
        if answer is not None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            return
        if self.fault == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"X-Filler: " + b"x" * 1_000 + b"\r\n")
                await writer.drain()
        inner = await asyncio.open_connection("127.0.0.1", self.server_port)
        limit = RESET_AFTER_BYTES if self.fault == "reset" else None
        copies = [asyncio.ensure_future(_copy(reader, inner[1])), asyncio.ensure_future(_copy(inner[0], writer, limit))]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in copies:
                each.cancel()
            inner[1].close()
            await asyncio.gather(*copies, inner[1].wait_closed(), return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None = None) -> None:
    copied = 0
    while data := await reader.read(65_536):
        if limit is not None and copied + len(data) > limit:
            writer.write(data[: limit - copied])
            return
        copied += len(data)
        writer.write(data)
        await writer.drain()


@dataclass
class Proxies:
    """Running proxies, as the value of EGRESSES. The dictionaries have the names of the egresses as keys."""

    egresses: list[dict[str, Any]]
    relays: dict[str, Relay]
    sources: dict[str, str]
    """The address from which each egress's connections reach the sandbox."""
    processes: dict[str, Proxy]
    direct: list[dict[str, Any]]
    """Like ``egresses``, but with the URLs of the proxies themselves instead of the relays."""


def certificate_for_localhost(path: Path) -> Path:
    """Write a self-signed certificate for ``localhost`` and its private key into one file."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout - -out -"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    path.write_bytes(subprocess.run([*command.split(), *names], check=True, capture_output=True).stdout)
    return path


@dataclass
class Proxy:
    """The process of a real proxy, which can be killed and restarted on the same port."""

    source: str
    credentials: str
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "hostname": "127.0.0.1",
            "port": self.port,
            "num-workers": 1,
            "num-acceptors": 1,
            "timeout": 120,
            "log-level": "CRITICAL",
            "plugins": "tests.proxy_source.FromOwnAddress",
        }
        if self.credentials:
            options["basic-auth"] = self.credentials
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        environment = {**os.environ, "PROXY_SOURCE": self.source}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "proxy", *given],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait_for(self.port)

    def kill(self) -> None:
        """Kill all processes of the proxy at once."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def url(self, port: int) -> str:
        """Return a URL with the proxy's credentials. ``port``: that of the proxy, or of a relay in front of it."""
        user = f"{self.credentials}@" if self.credentials else ""
        return f"http://{user}127.0.0.1:{port}"


@contextmanager
def proxies(count: int = 3) -> Iterator[Proxies]:
    """Run real proxies. All except the first require credentials."""
    pytest.importorskip("proxy", reason="needs proxy.py")
    names = [f"egress-{number}" for number in range(1, count + 1)]
    sources = {name: f"127.0.0.{number + 10}" for number, name in enumerate(names)}
    with ExitStack() as stack:
        processes = {}
        for number, name in enumerate(names):
            processes[name] = Proxy(sources[name], f"{USER}:{PASSWORD}" if number else "")
            stack.callback(processes[name].kill)
            processes[name].start()
        relays = {name: Relay(process.port) for name, process in processes.items()}
        stack.enter_context(in_thread(*(relay.serving() for relay in relays.values())))
        egresses = [{"name": name, "proxy": processes[name].url(relays[name].port)} for name in names]
        direct = [{"name": name, "proxy": process.url(process.port)} for name, process in processes.items()]
        yield Proxies(egresses, relays, sources, processes, direct)


def _wait_for(port: int) -> None:
    for _ in range(6_000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("the proxy did not start")
