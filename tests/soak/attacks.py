"""Slow connections to a running service, and measurements meanwhile. The callers compare the ``Report`` with limits."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.service.client import SEARCH
from tests.service.metrics_of import becomes, value

SILENCE_SECONDS = 2
"""If the service does not respond for this long, the sending side of the connection is closed."""
LARGEST_FILE = "/docs/swagger-ui-bundle.js"
CALL = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\nContent-Type: application/json\r\n".encode()
UPLOAD = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: wrong\r\nContent-Type: text/plain\r\n"
SLOW: dict[str, tuple[int, bytes, bytes]] = {
    "dripped heads": (50, b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n"),
    "dripped bodies": (50, CALL + b"Content-Length: 60000\r\n\r\n{", b" "),
    "chunked bodies without an end": (50, CALL + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "stalled uploads with a wrong key": (50, UPLOAD + b"Content-Length: 10000000\r\n\r\nx", b""),
    "unread pipelines": (20, f"GET {LARGEST_FILE} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 300, b""),
    "unread last responses": (20, f"GET {LARGEST_FILE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(), b""),
    "idle connections": (1_200, b"", b""),
}
"""Kinds of slow connections: their number, the bytes that are sent first, and those that are sent again and again."""


@dataclass(frozen=True)
class Victim:
    """The service under attack: its URL, and its process id."""

    url: str
    pid: int

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0


@dataclass
class Report:
    """The measurements during an attack."""

    health_seconds: list[float] = field(default_factory=list)
    """The duration (by ``clock``) of each ``GET /healthz`` during the attack, infinite if it failed."""
    megabytes_before: float = 0.0
    megabytes_peak: float = 0.0
    megabytes_after: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def slowest_health(self) -> float:
        return max(self.health_seconds, default=0.0)

    @property
    def grown(self) -> float:
        """The MB by which the peak of the memory exceeded its size before the attack."""
        return self.megabytes_peak - self.megabytes_before


def megabytes(pid: int) -> float:
    """Return the resident memory of a process and its children in MB."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return (int(found[1]) if found else 0) / 1024 + sum(megabytes(int(child)) for child in children)


def clock(victim: Victim) -> float:
    """Return the time of a clock that stops while the service or this thread waits for a processor.

    So measurements are not distorted by other load: they are at most the seconds that an idle machine would need.
    """
    waiting = Path(f"/proc/{victim.pid}/schedstat"), Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return time.monotonic() - sum(int(each.read_text().split()[1]) for each in waiting) / 1e9


def get(victim: Victim, path: str) -> bytes:
    """Make a GET request, and return the whole response."""
    received = b""
    with socket.create_connection(victim.address, timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        while piece := connection.recv(65_536):
            received += piece
    return received


def exchange(victim: Victim, sent: bytes) -> bytes:
    """Send bytes and return all received bytes. The sending side is closed only if the service does not respond."""
    received = b""
    with socket.create_connection(victim.address, timeout=SILENCE_SECONDS) as connection, suppress(OSError):
        connection.sendall(sent)
        while True:
            try:
                piece = connection.recv(65_536)
            except TimeoutError:
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(60)
                continue
            if not piece:
                break
            received += piece
    return received


@contextmanager
def watched(victim: Victim) -> Iterator[Report]:
    """Measure the service's memory and ``/healthz`` until the block ends."""
    report = Report(megabytes_before=megabytes(victim.pid))
    report.megabytes_peak = report.megabytes_before
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            started = clock(victim)
            try:
                healthy = b'"ok"' in get(victim, "/healthz")
            except OSError:
                healthy = False
            report.health_seconds.append(clock(victim) - started if healthy else float("inf"))
            report.megabytes_peak = max(report.megabytes_peak, megabytes(victim.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield report
    finally:
        ended.set()
        watcher.join()
        report.megabytes_after = megabytes(victim.pid)


def slow_connections(victim: Victim, *, seconds: float = 20.0, idle: int = 1_200) -> Report:
    """Open all kinds of ``SLOW`` connections at once, and keep them for ``seconds``.

    ``notes``: ``open``, the number of connections that the service still has then, and ``received``, kind -> what the
    connections of this kind have received.
    """
    slow: list[tuple[str, socket.socket, bytes]] = []
    with watched(victim) as report:
        for kind, (number, first, drip) in SLOW.items():
            for _ in range(number if first else idle):
                connection = socket.socket()
                if kind.startswith("unread"):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.connect(victim.address)
                connection.settimeout(0)
                with suppress(OSError):
                    connection.send(first)
                slow.append((kind, connection, drip))
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for _, connection, drip in slow:
                with suppress(OSError):
                    connection.send(drip)
            time.sleep(0.25)
    is_none_open = becomes(victim.url, 0, "crawler_connections")
    report.notes["open"] = 0 if is_none_open else value(victim.url, "crawler_connections")
    report.notes["received"] = received = {kind: set[bytes]() for kind in SLOW}
    for kind, connection, _ in slow:
        with connection, suppress(OSError):
            received[kind].add(b"" if kind.startswith("unread") else connection.recv(65_536))
    return report
