"""Attacks on a running service, and measurements during them, for the soak tests and ``scripts/attack``.

Each attack is a function that takes a ``Victim`` and returns a ``Report``. It asserts nothing: the caller compares the
report with its limits.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.service.client import HEADERS, SEARCH
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
    """The service under attack: its URL, its process id, and a valid API key."""

    url: str
    pid: int
    key: str = "sandbox"

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
    calls: list[tuple[str, float]] = field(default_factory=list)
    """The code (``broken`` if the connection broke) and the duration in seconds of each call."""
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def slowest_health(self) -> float:
        return max(self.health_seconds, default=0.0)

    @property
    def grown(self) -> float:
        """The MB by which the peak of the memory exceeded its size before the attack."""
        return self.megabytes_peak - self.megabytes_before

    def codes(self) -> dict[str, int]:
        codes = [code for code, _ in self.calls]
        return {code: codes.count(code) for code in sorted(set(codes))}


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


def get(victim: Victim, path: str, *, source: str = "127.0.0.1", timeout: float = 10) -> bytes:
    """Make a GET request from the local address ``source``, and return the whole response."""
    received = b""
    with socket.create_connection(victim.address, timeout=timeout, source_address=(source, 0)) as connection:
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


def call(
    victim: Victim, params: dict[str, Any], *, headers: dict[str, str] | None = None, timeout: float = 150
) -> tuple[str, float, dict[str, Any]]:
    """Make a call. Return its code (or ``broken``), its duration in seconds (by ``clock``), and its body."""
    body = json.dumps(params).encode()
    fields = {**HEADERS, "X-API-Key": victim.key, "Connection": "close", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    received, started = b"", clock(victim)
    with suppress(OSError), socket.create_connection(victim.address, timeout=timeout) as connection:
        head = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
        connection.sendall(head.encode() + body)
        while piece := connection.recv(65_536):
            received += piece
    seconds = clock(victim) - started
    try:
        answer: dict[str, Any] = json.loads(received.partition(b"\r\n\r\n")[2])
        return answer["status"]["code"], seconds, answer
    except (ValueError, KeyError):
        return "broken", seconds, {}


@contextmanager
def watched(victim: Victim, *, source: str = "127.0.0.3") -> Iterator[Report]:
    """Measure the service's memory and ``/healthz`` until the block ends. ``source``: the address of the requests."""
    report = Report(megabytes_before=megabytes(victim.pid))
    report.megabytes_peak = report.megabytes_before
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            started = clock(victim)
            try:
                healthy = b'"ok"' in get(victim, "/healthz", source=source)
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


def pipelined_unread(
    victim: Victim, *, connections: int = 100, requests: int = 300, seconds: float = 10.0, path: str = LARGEST_FILE
) -> Report:
    """Many pipelined requests for the largest file, on connections that never read a response.

    After the first such attack, malloc keeps about 11 MB of free memory, which later attacks reuse.
    """
    sent = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * requests
    with watched(victim) as report:
        unread = []
        for _ in range(connections):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.bind(("127.0.0.2", 0))
            connection.connect(victim.address)
            connection.settimeout(0)
            with suppress(OSError):
                connection.send(sent)
            unread.append(connection)
        time.sleep(seconds)
        for connection in unread:
            connection.close()
        time.sleep(2)
    return report


def idle_connections(victim: Victim, *, connections: int = 3_000, seconds: float = 10.0) -> Report:
    """Fewer idle connections than the service allows, while another client makes calls."""
    with watched(victim) as report:
        idle = []
        for _ in range(connections):
            with suppress(OSError):
                idle.append(socket.create_connection(victim.address, timeout=5, source_address=("127.0.0.2", 0)))
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            code, duration, _ = call(victim, {"query": "mustard"})
            report.calls.append((code, duration))
        for connection in idle:
            connection.close()
        time.sleep(2)
    report.notes["opened"] = len(idle)
    return report


def wrong_keys(victim: Victim, *, calls: int = 2_000) -> Report:
    """Invalid keys on one connection, then a valid key from the same address."""
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nX-API-Key: wrong\r\nContent-Length: 0\r\n\r\n".encode()
    statuses: list[bytes] = []
    with (
        watched(victim) as report,
        socket.create_connection(victim.address, timeout=30, source_address=("127.0.0.2", 0)) as connection,
    ):
        for _ in range(calls):
            connection.sendall(head)
            received = connection.recv(65_536)
            statuses += re.findall(rb"HTTP/1\.1 (\d{3}) ", received)
    report.notes["statuses"] = {int(status): statuses.count(status) for status in set(statuses)}
    return report


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


@dataclass
class Load:
    """Makes calls at a constant rate, each in a thread."""

    victim: Victim
    per_second: float = 50.0
    at_once: int = 40
    """The maximum number of concurrent calls. If the machine is too slow for the rate, fewer calls are made.
    """
    wait: int = 5
    mixed: bool = False
    """Whether some calls are for faulty targets, have a tiny deadline, or are abandoned by the client."""
    sent: int = 0
    results: list[tuple[str, float]] = field(default_factory=list)
    """The code (``broken`` if the client disconnected) and the duration in seconds of each call."""
    ordinary: list[str] = field(default_factory=list)
    """The codes of the calls with a good target, a normal deadline and a client that waits for the response."""
    usage: list[tuple[str, bool]] = field(default_factory=list)
    """For each call with a response: its code, and whether it was billable."""
    ends: list[float] = field(default_factory=list)
    """For each call with a response: the time of its end on the monotonic clock."""

    def run(self, seconds: float) -> None:
        """Make calls for ``seconds``, and wait until all of them have ended."""
        threads = []
        ends = time.monotonic() + seconds
        free = threading.Semaphore(self.at_once)

        def one(number: int) -> None:
            try:
                self._one(number)
            finally:
                free.release()

        while time.monotonic() < ends:
            free.acquire()
            thread = threading.Thread(target=one, args=(self.sent,))
            thread.start()
            threads.append(thread)
            self.sent += 1
            time.sleep(1 / self.per_second)
        for thread in threads:
            thread.join()

    def _one(self, number: int) -> None:
        headers = {"Prefer": f"wait={self.wait}"}
        query, timeout = f"mustard {number}", 150.0
        if self.mixed and number % 20 == 0:
            query = MIXED_FAULTS[number // 20 % len(MIXED_FAULTS)]
        elif self.mixed and number % 20 == 1:
            query, timeout = "slow", 0.2  # the client disconnects
        elif self.mixed and number % 20 == 2:
            query, headers["Prefer"] = "slow", "wait=1"
        code, seconds, body = call(self.victim, {"query": query}, headers=headers, timeout=timeout)
        self.results.append((code, seconds))
        if query.startswith("mustard"):
            self.ordinary.append(code)
        if code != "broken":
            self.usage.append((code, bool(body["meta"]["billable"])))
            self.ends.append(time.monotonic())


MIXED_FAULTS = ("flaky", "forbidden", "challenge", "rate-limited")
"""Faults of the sandbox's shop."""
KNOWN_CODES = {
    *("OK", "CLIENT_GONE", "UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED", "UPSTREAM_ERROR", "UPSTREAM_TIMEOUT"),
    *("CIRCUIT_OPEN", "OVERLOADED", "STORE_UNAVAILABLE", "INTERNAL_ERROR", "EXTRACTION_FAILED"),
}


def killed_workers(
    victim: Victim, *, minutes: float = 10.0, per_second: float = 20.0, at_once: int = 12, every: float = 60.0
) -> tuple[Load, list[float]]:
    """Make mixed calls to a service with several workers, and kill a worker at intervals.

    Return the load and the times of the kills.
    """
    load = Load(victim, per_second, at_once, mixed=True)
    kills: list[float] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(min(every, minutes * 60 / 3)):
            workers = Path(f"/proc/{victim.pid}/task/{victim.pid}/children").read_text().split()
            if len(workers) > 1:
                kills.append(time.monotonic())
                os.kill(int(workers[len(kills) % len(workers)]), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    load.run(minutes * 60)
    ended.set()
    killer.join()
    return load, kills


def calls_counted(victim: Victim, code: str) -> float:
    """Return how many calls with a code the metrics show for the scraper that ``Load`` calls."""
    return value(victim.url, "crawler_calls_total", scraper=SEARCH.rpartition("/")[2], code=code)


def under_fault(
    victim: Victim, begin: Callable[[], Callable[[], None]], *, seconds: float = 30.0, per_second: float = 50.0
) -> tuple[Report, Load]:
    """Make calls while a store has a fault. ``begin`` starts it and returns a function that ends it."""
    load = Load(victim, per_second)
    with watched(victim) as report:
        load.run(2)
        end = begin()
        try:
            load.run(seconds)
        finally:
            end()
        load.run(2)
    report.calls = load.results
    return report, load


def usage_of(victim: Victim) -> dict[str, Any]:
    """Return the response of ``GET /v1/usage``."""
    request = f"GET /v1/usage HTTP/1.1\r\nHost: x\r\nX-API-Key: {victim.key}\r\nConnection: close\r\n\r\n"
    received = b""
    with socket.create_connection(victim.address, timeout=30) as connection:
        connection.sendall(request.encode())
        while piece := connection.recv(65_536):
            received += piece
    found: dict[str, Any] = json.loads(received.partition(b"\r\n\r\n")[2])
    return found
