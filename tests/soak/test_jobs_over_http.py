"""A large job, run by several processes of which some are killed: each record exactly once, equal in five formats.

``SOAK_JOB_TARGETS`` is the number of targets.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openpyxl
import pytest

from crawler.jobs.job import Finished
from crawler.jobs.lifecycle import Jobs
from crawler.service.keys import KeyStore
from tests import forks
from tests.crawls import ROOT, sandbox
from tests.jobs.postgresql_server import PostgreSqlServer
from tests.jobs.workers import Process, lines
from tests.service.client import SEARCH, call
from tests.service.conftest import Service, running

TARGETS = int(os.environ.get("SOAK_JOB_TARGETS", "10000"))
SECONDS = 3_600
MEMORY_MB = 60
"""How much an endpoint's memory may grow while it runs the job and sends its records."""
SCRAPERS = ("retail-search-v4", "retail-category-v4", "photoapp-post-v4")

pytestmark = pytest.mark.soak


def targets(n: int) -> bytes:
    """Return a CSV file for three scrapers. Ids look like numbers and formulas; one row in ten repeats a target."""
    file = io.StringIO()
    table = csv.writer(file)
    table.writerow(["id", "scraper", "query", "cat_id", "min_price", "url", "team"])
    for number in range(n):
        kind, of = SCRAPERS[number % 10 // 4], number - number % 100 + number % 90
        own_id = f"{number:07}"
        match kind:
            case "retail-search-v4":
                row = [f"soak {of}", "", "", ""]
            case "retail-category-v4":
                row = ["", "976759", f"{of / 1_000:.3f}", ""]
            case _:
                row = ["", "", "", f"https://www.instagram.com/p/Soak{of:07}/"]
        table.writerow([own_id, kind, *row, "=1+1"])
    return file.getvalue().encode()


@dataclass
class Endpoint:
    """The endpoint's process, and its memory use."""

    service: Service
    key: str
    samples: list[float] = field(default_factory=list)

    def open(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        parts = urlsplit(self.service.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=600)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"X-API-Key": self.key, **named})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    def get(self, path: str) -> bytes:
        status, body = self.open(path)
        assert status == 200, body[:500]
        return body

    @property
    def megabytes(self) -> float:
        """The memory of the process in MB, without what it shares with its parent."""
        lines = Path(f"/proc/{self.service.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Sample the memory until the block ends."""
        ended = threading.Event()

        def sample() -> None:
            while not ended.wait(0.2):
                self.samples.append(self.megabytes)

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="jk-", dir="/tmp") as folder:  # the path of a Unix socket must be short
        Path(folder).chmod(0o755)  # the database server runs as an unprivileged user
        started = PostgreSqlServer(Path(folder))
        yield started.url
        started.close()


def work(settings: dict[str, Any], log: Path) -> forks.Popen:
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    with log.open("w") as output:
        return forks.Popen(
            [sys.executable, "-m", "scrapy", "work", *given],
            stdout=subprocess.DEVNULL,
            stderr=output,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests/service")},
        )


def progress(endpoint: Endpoint, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(endpoint.get(f"/v1/jobs/{job_id}"))
    return found


def wait_until(endpoint: Endpoint, job_id: str, ended: int) -> dict[str, Any]:
    """Wait until at least ``ended`` targets have an outcome."""
    deadline = time.monotonic() + SECONDS
    while True:
        job = progress(endpoint, job_id)
        counts = job["targets"]
        if counts["done"] + counts["failed"] + counts["dead"] >= ended:
            return job
        assert time.monotonic() < deadline, job
        time.sleep(0.5)


@pytest.mark.parametrize(("database", "n"), [("postgresql", TARGETS), ("sqlite", TARGETS // 5)])
def test_a_job_of_three_processes_of_which_two_are_killed_has_each_record_once(
    tmp_path: Path, request: pytest.FixtureRequest, database: str, n: int
) -> None:
    store = request.getfixturevalue("server") if database == "postgresql" else str(tmp_path / "store.sqlite3")
    keys = KeyStore(tmp_path / "keys.sqlite")
    key = keys.create("soak")
    with sandbox() as shop:
        settings = {**shop, "STORE": store, "KEYS_FILE": keys.path, "JOB_LEASE": 5, "JOB_EXITS": 9}
        given = [f"{name}={value}" for name, value in settings.items()]
        with (
            running(tmp_path / "log1", *given, sandbox=False) as first,
            running(tmp_path / "log2", *given, sandbox=False) as second,
        ):
            endpoint = Endpoint(first, key)
            warm_up(endpoint)
            before = endpoint.megabytes
            with endpoint.sampled():
                run(endpoint, second, settings, tmp_path, n)
    assert max(endpoint.samples) - before <= MEMORY_MB


def warm_up(endpoint: Endpoint) -> None:
    """Run a small job and read it in all formats, so that their libraries are loaded before memory is measured."""
    _, body = endpoint.open("/v1/jobs", "POST", targets(10), Content_Type="text/csv")
    job_id = json.loads(body)["job"]["job_id"]
    wait_until(endpoint, job_id, 10)
    for query in ("jsonl", "json", "xlsx", f"csv&scraper={SCRAPERS[1]}"):
        endpoint.get(f"/v1/jobs/{job_id}/records?format={query}")


def calls_beside(endpoint: Endpoint) -> int:
    """Make synchronous calls, and return their number."""
    headers = {"X-API-Key": endpoint.key, "Content-Type": "application/json"}
    for number in range(20):
        reply = call(endpoint.service.url, SEARCH, {"query": f"beside {time.time_ns()} {number}"}, headers=headers)
        assert reply.status == 200, reply.body
    return 20


def run(endpoint: Endpoint, second: Service, settings: dict[str, Any], folder: Path, n: int) -> None:
    """Run a job, beside which calls are made and processes are killed."""
    status, body = endpoint.open("/v1/jobs", "POST", targets(n), Content_Type="text/csv")
    made = json.loads(body)
    assert status == 202, made
    job_id, total = made["job"]["job_id"], made["job"]["targets"]["total"]
    worker = work(settings, folder / "work1")
    wait_until(endpoint, job_id, total // 4)
    worker.kill()
    worker.communicate()
    worker = work(settings, folder / "work2")
    wait_until(endpoint, job_id, total // 2)
    second.process.kill()
    calls = calls_beside(endpoint)
    job = wait_until(endpoint, job_id, total)
    worker.kill()
    worker.communicate()
    assert job["state"] == "done"
    compare(endpoint, job_id, folder, n)
    usage = json.loads(endpoint.get("/v1/usage"))
    small = progress(endpoint, "1")["codes"]["OK"]
    assert usage["billable"] == job["codes"]["OK"] + small + calls, "each record is billed once"


def compare(endpoint: Endpoint, job_id: str, folder: Path, n: int) -> None:
    """Check that the four formats have equal rows, and that each uploaded line is a record or a failure."""
    path = f"/v1/jobs/{job_id}/records?format="
    lines = [json.loads(line) for line in endpoint.get(f"{path}jsonl").splitlines()]
    failed = [json.loads(line) for line in endpoint.get(f"/v1/jobs/{job_id}/failures").splitlines()]
    expected = Counter((each["scraper"], each["id"]) for each in lines)
    assert set(expected.values()) == {1}
    assert sorted(each["id"] for each in (*lines, *failed)) == [f"{number:07}" for number in range(n)]
    assert json.loads(endpoint.get(f"{path}json")) == lines
    book = folder / "records.xlsx"
    book.write_bytes(endpoint.get(f"{path}xlsx"))
    found: dict[str, Counter[tuple[str, str]]] = {"csv": Counter(), "xlsx": Counter()}
    types: set[str] = set()
    sheets = openpyxl.load_workbook(book, read_only=True)
    for scraper in sorted({each["scraper"] for each in lines}):
        file = folder / f"{scraper}.csv"
        file.write_bytes(endpoint.get(f"{path}csv&scraper={scraper}"))
        with file.open(newline="", encoding="utf-8") as rows:
            for line in csv.DictReader(rows):
                assert line["columns.team"] == "'=1+1"
                found["csv"][scraper, line["target_id"]] += 1
        table = sheets[scraper].iter_rows()
        names = [cell.value for cell in next(table)]
        for row in table:
            types.update(str(cell.data_type) for cell in row)
            found["xlsx"][scraper, str(row[names.index("target_id")].value)] += 1
            assert row[names.index("columns.team")].value == "=1+1"
    assert "f" not in types, "no cell is a formula"
    assert all(each == expected for each in found.values())


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
        endpoint = Endpoint(service, "sandbox")
        before = endpoint.megabytes
        parts = urlsplit(service.url)
        connection = stack.enter_context(closing(HTTPConnection(parts.hostname or "", parts.port, timeout=60)))
        size = {} if chunked else {"Content-Length": str(GIGABYTE * 1_000_000)}
        headers = {"X-API-Key": "sandbox", "Content-Type": "text/plain", **size}
        with endpoint.sampled(), suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", "/v1/jobs", pieces(), headers, encode_chunked=chunked)
        assert connection.sock is not None
        head = connection.sock.recv(100)
        grown = max(endpoint.samples, default=before) - before
        jobs = json.loads(endpoint.get("/v1/jobs"))["jobs"]
    assert head.startswith(b"HTTP/1.1 413 ")
    assert sent <= ARRIVED_MB
    assert grown <= READERS_MB
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
        endpoint = Endpoint(service, "sandbox")
        job_id = asyncio.run(large_job(str(store)))
        endpoint.get(f"/v1/jobs/{job_id}/records")  # loads what all readers need
        before = endpoint.megabytes
        readers = [reader(endpoint, job_id) for _ in range(sum(READERS.values()))]
        slow, rest = readers[: READERS["slow"]], readers[READERS["slow"] :]
        stopped, leaving = rest[: READERS["stops"]], rest[READERS["stops"] :]
        with endpoint.sampled():
            for each in leaving:
                each.close()
            deadline = time.monotonic() + UNREAD_SECONDS
            while time.monotonic() < deadline:
                for each in slow:
                    assert each.recv(100_000, socket.MSG_WAITALL), "a slow reader keeps its connection"
                endpoint.get("/v1/usage")
                time.sleep(0.5)
            assert not has_open_transaction(store)
        assert all(was_closed(each) for each in stopped)
        grown = max(endpoint.samples) - before
        for each in readers:
            each.close()
        assert "Traceback" not in service.logged()
    assert grown <= READERS_MB


async def large_job(store: str) -> int:
    """Create a finished job whose records do not fit into the buffers of a connection."""
    jobs = Jobs(store)
    job = await jobs.begin("large", "sandbox")
    work = {"scraper": SCRAPERS[0], "params": {}}
    await jobs.push(job, [replace(each, work={**work, "id": each.id}) for each in lines(300)])
    await jobs.describe(job, [SCRAPERS[0]], ())
    await jobs.open(job)
    outcome = {"warnings": [], "fetched_at": "2026-11-25T12:00:00Z"}
    record = {"query": "x" * 100_000}
    await Process(jobs, lambda claim: Finished(claim, "done", "OK", outcome, record)).run(job)
    await jobs.close()
    return job.id


def reader(endpoint: Endpoint, job_id: int) -> socket.socket:
    """Request the records of a job over a connection with a small buffer, and read only the first bytes."""
    parts = urlsplit(endpoint.service.url)
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


def test_a_job_and_racing_calls_are_billed_exactly_the_quota(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.sqlite")
    key = keys.create("small", quota=50)
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    with sandbox() as shop:
        given = [f"{name}={value}" for name, value in {**shop, "KEYS_FILE": keys.path}.items()]
        with running(tmp_path / "log", *given, sandbox=False) as service, ThreadPoolExecutor(8) as pool:
            endpoint = Endpoint(service, key)
            racing = [
                pool.submit(call, service.url, SEARCH, {"query": f"race {number}"}, headers=headers)
                for number in range(40)
            ]
            rows = [{"scraper": SCRAPERS[0], "query": f"quota {number}"} for number in range(100)]
            status, body = endpoint.open("/v1/jobs", "POST", json.dumps(rows).encode(), Content_Type="application/json")
            assert status == 202
            codes = Counter(each.result().code for each in racing)
            job_id = json.loads(body)["job"]["job_id"]
            while (job := progress(endpoint, job_id))["state"] != "paused" or job["targets"]["running"]:
                time.sleep(0.2)
            usage = json.loads(endpoint.get("/v1/usage"))
    assert codes.keys() <= {"OK", "QUOTA_EXCEEDED"}
    assert usage["billable"] == codes["OK"] + job["targets"]["done"] == 50
