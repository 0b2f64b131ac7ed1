"""Large uploads, and readers of large responses that are slow, stop or leave, hold no memory and no transaction."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawler.jobs.job import Finished
from crawler.jobs.lifecycle import Jobs
from tests.jobs.workers import Process, lines
from tests.service.client import call
from tests.service.conftest import Service, running
from tests.soak.attacks import Victim, watched

SCRAPER = "retail-search-v4"

pytestmark = pytest.mark.soak


GIGABYTE = 1_000
"""Pieces of 1 MB."""
ARRIVED_MB = 64
"""The limit of 32 MiB, plus what the kernel's buffers can hold."""


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_of_1_gb_is_refused_after_32_mib(tmp_path: Path, chunked: bool) -> None:  # noqa: FBT001  # a table
    """``http.client`` reads no response before the whole body is sent, so it gets a broken pipe first."""
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(GIGABYTE):
            sent += 1
            yield b"x" * 1_000_000

    with running(tmp_path / "log") as service, ExitStack() as stack:
        parts = urlsplit(service.url)
        connection = stack.enter_context(closing(HTTPConnection(parts.hostname or "", parts.port, timeout=60)))
        size = {} if chunked else {"Content-Length": str(GIGABYTE * 1_000_000)}
        headers = {"X-API-Key": "sandbox", "Content-Type": "text/plain", **size}
        with watched(Victim(service.url, service.pid)) as report, suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", "/v1/jobs", pieces(), headers, encode_chunked=chunked)
        assert connection.sock is not None
        head = connection.sock.recv(100)
        jobs = call(service.url, "/v1/jobs", method="GET").body["jobs"]
    assert head.startswith(b"HTTP/1.1 413 ")
    assert sent <= ARRIVED_MB
    assert report.grown <= READERS_MB
    assert jobs == []


READERS = {"slow": 6, "stops": 6, "leaves": 6}
READERS_MB = 40
"""How much an endpoint's memory may grow because of clients that do not read, and of rejected bodies."""
UNREAD_SECONDS = 45
"""Longer than the 30 s after which the endpoint closes a connection whose client does not read."""


def test_readers_that_are_slow_stop_or_leave_hold_nothing(tmp_path: Path) -> None:
    """No transaction stays open, memory is bounded, and connections whose clients stop reading are closed."""
    store = tmp_path / "store.sqlite3"
    with running(tmp_path / "log", f"STORE={store}") as service:
        job_id = asyncio.run(large_job(str(store)))
        call(service.url, f"/v1/jobs/{job_id}/records", method="GET")  # loads what all readers need
        readers = [reader(service, job_id) for _ in range(sum(READERS.values()))]
        slow, rest = readers[: READERS["slow"]], readers[READERS["slow"] :]
        stopped, leaving = rest[: READERS["stops"]], rest[READERS["stops"] :]
        with watched(Victim(service.url, service.pid)) as report:
            for each in leaving:
                each.close()
            deadline = time.monotonic() + UNREAD_SECONDS
            while time.monotonic() < deadline:
                for each in slow:
                    assert each.recv(100_000, socket.MSG_WAITALL), "a slow reader keeps its connection"
                time.sleep(0.5)
            assert not has_open_transaction(store)
        assert all(was_closed(each) for each in stopped)
        for each in readers:
            each.close()
        assert "Traceback" not in service.logged()
    assert report.grown <= READERS_MB


async def large_job(store: str) -> int:
    """Create a finished job whose records do not fit into the buffers of a connection."""
    jobs = Jobs(store)
    job = await jobs.begin("large", "sandbox")
    work = {"scraper": SCRAPER, "params": {}}
    await jobs.push(job, [replace(each, work={**work, "id": each.id}) for each in lines(300)])
    await jobs.describe(job, [SCRAPER], ())
    await jobs.open(job)
    outcome = {"warnings": [], "fetched_at": "2026-11-25T12:00:00Z"}
    record = {"query": "x" * 100_000}
    await Process(jobs, lambda claim: Finished(claim, "done", "OK", outcome, record)).run(job)
    await jobs.close()
    return job.id


def reader(service: Service, job_id: int) -> socket.socket:
    """Request the records of a job over a connection with a small buffer, and read only the first bytes."""
    parts = urlsplit(service.url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    opened.settimeout(30)
    opened.connect((parts.hostname, parts.port))
    opened.sendall(f"GET /v1/jobs/{job_id}/records HTTP/1.1\r\nHost: x\r\nX-API-Key: sandbox\r\n\r\n".encode())
    assert opened.recv(100).startswith(b"HTTP/1.1 200 ")
    return opened


def was_closed(connection: socket.socket) -> bool:
    """Return whether the endpoint closed the connection before the response was complete."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received = (received + piece)[-5:]
    except ConnectionResetError:
        return True
    return received != b"0\r\n\r\n"


def has_open_transaction(store: Path) -> bool:
    """Return whether a process has a transaction open: then the write-ahead log cannot be truncated."""
    with closing(sqlite3.connect(store, timeout=1)) as database:
        for _ in range(20):
            ((is_busy, _, _),) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            if not is_busy:
                return False
            time.sleep(0.1)
    return True
