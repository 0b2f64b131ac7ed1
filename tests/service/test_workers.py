"""Several workers share a port: even load, replacement after a crash, no lost calls at shutdown."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import aiohttp
import pytest
from twisted.web.resource import Resource
from twisted.web.server import Site

from crawler.service.workers import CONNECTION, PassedConnections
from tests.service.client import CATEGORY, HEADERS, SEARCH, Reply, call, many, wait_for_draining
from tests.service.conftest import HELD, Service, running
from tests.service.metrics_of import becomes


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("workers") / "log", workers=2) as service:
        wait_for_workers(service, {"0", "1"})
        yield service


def served_by(service: Service) -> list[str]:
    """Return the name of the worker that served each logged call."""
    return re.findall(r"event=call .*worker=(\d)", service.logged())


def wait_for_workers(service: Service, expected: set[str]) -> None:
    """Make calls until each of the expected workers has served one."""
    before = len(served_by(service))
    deadline = time.monotonic() + 300
    while set(served_by(service)[before:]) < expected:
        assert time.monotonic() < deadline, service.logged()
        try:
            call(service.url, SEARCH, {"query": "mustard"})
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.05)


def children(service: Service) -> list[int]:
    path = Path(f"/proc/{service.pid}/task/{service.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def test_a_burst_of_connections_is_distributed_evenly(pair: Service) -> None:
    """If all workers shared one listening socket, the first one to wake up would accept most of a burst."""
    before = Counter(served_by(pair))
    parts = urlsplit(pair.url)
    connections = [http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300) for _ in range(8)]
    for connection in connections:
        connection.connect()
    for connection in connections:
        connection.request("POST", CATEGORY, json.dumps({"cat_id": "3944"}), HEADERS)
        assert json.load(connection.getresponse())["success"]
    for connection in connections:
        connection.close()
    assert Counter(served_by(pair)) - before == Counter({"0": 4, "1": 4})


def test_a_killed_worker_is_replaced_while_the_other_serves(pair: Service) -> None:
    victim, _ = children(pair)
    os.kill(victim, signal.SIGKILL)
    while victim in children(pair):
        time.sleep(0.01)
    survivors = [call(pair.url, SEARCH, {"query": "mustard"}).code for _ in range(3)]
    assert survivors == ["OK"] * 3
    wait_for_workers(pair, {"0", "1"})
    assert len(children(pair)) == 2
    assert victim not in children(pair)
    assert "event=worker_exited" in pair.logged()


@pytest.mark.parametrize(
    "workers", [pytest.param("", id="one process", marks=pytest.mark.soak), pytest.param("01", id="two workers")]
)
async def test_sigterm_completes_the_call_in_flight_and_answers_all_others(tmp_path: Path, workers: str) -> None:
    """Also those that arrive while the worker without a call exits."""
    released = tmp_path / "released"
    with running(tmp_path / "log", workers=len(workers) or 1, before=HELD.format(released=released)) as service:
        wait_for_workers(service, {*workers})
        slow = asyncio.ensure_future(many(service.url, [(SEARCH, {"query": "slow"})]))
        assert await asyncio.to_thread(becomes, service.url, 1, "crawler_calls_in_flight", platform="retail")
        os.kill(service.pid, signal.SIGTERM)
        await asyncio.to_thread(wait_for_draining, service.url)
        late: list[Reply] = []
        while len(late) < 10 or len(children(service)) > 1 or late[-1].code == "OK":
            late += await many(service.url, [(CATEGORY, {"cat_id": "976759"})] * 4)
        released.touch()
        assert {reply.code for reply in late} <= {"OK", "SHUTTING_DOWN"}
        assert late[-1].headers["Connection"] == "close", "the client's next call goes to another process"
        assert [reply.code for reply in await slow] == ["OK"]
        with suppress(aiohttp.ClientError):  # until the port is closed, so that no call follows the last stored counts
            while True:
                await many(service.url, [(CATEGORY, {"cat_id": "976759"})] * 4)
        assert service.process.wait(timeout=300) == 0
        assert "usage_lost" not in service.logged()


def test_workers_exit_with_the_supervisor(pair: Service) -> None:
    """Must be the last test of the service."""
    workers = children(pair)
    pair.process.kill()
    pair.process.wait(timeout=300)
    deadline = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("exits", ["before", "after"])
async def test_a_worker_stops_if_the_supervisor_exits_while_it_starts(exits: str) -> None:
    supervisor, channel = socket.socketpair()
    stopped = asyncio.Event()
    if exits == "before":
        supervisor.close()
    with supervisor, channel:
        PassedConnections(channel, SimpleNamespace(stop=stopped.set), Site(Resource()))
        supervisor.close()  # the worker's ready message is unread, so the kernel resets the channel
        await asyncio.wait_for(stopped.wait(), 300)


LOAD = """
import gc, os, sys
from crawler.commands.serve import load_before_fork
from scrapy.utils.project import get_project_settings
load_before_fork(get_project_settings())
needed = {
    "crawler.browser.handler",
    "crawler.downloads.handlers",
    "crawler.middlewares",
    "crawler.service.endpoint",
    "crawler.spiders.videosite",
    "playwright.async_api",
    "sqlalchemy",
}
print(
    needed <= sys.modules.keys(),
    gc.get_freeze_count() > 10_000,
    "twisted.internet.reactor" in sys.modules,
    len(os.listdir("/proc/self/task")),
)
"""


def test_the_workers_fork_after_the_imports_and_before_a_reactor_or_a_thread_exists() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["True", "True", "False", "1"]


async def test_a_connection_that_was_reset_on_its_way_to_a_worker_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    supervisor, worker = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    adopted = asyncio.Event()

    def adopt(descriptor: int, *_: object) -> None:
        adopted.set()
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            connection.getpeername()  # as Twisted does

    with supervisor, worker, listener:
        port = PassedConnections(worker, SimpleNamespace(adoptStreamConnection=adopt), Site(Resource()))
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
        client.close()
        socket.send_fds(supervisor, [CONNECTION], [connection.fileno()])
        connection.close()
        async with asyncio.timeout(300):
            await adopted.wait()
        port.stopListening()
    assert not caplog.records
