"""What the benchmarks run: the sandbox, our endpoint, other servers, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
READY_WITHIN = 60.0  # seconds


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes(pid: int) -> list[int]:
    """A process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in processes(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Processor time that a process and those that it started have used."""
    ticks = 0
    for each in processes(pid):
        user, system = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def rss_megabytes(pid: int) -> float:
    """Resident memory of a process and those that it started, without what they share."""
    pages = 0
    for each in processes(pid):
        resident, shared = Path(f"/proc/{each}/statm").read_text().split()[1:3]
        pages += int(resident) - int(shared)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files(pid: int) -> int:
    """How many files a process and those that it started have open."""
    return sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in processes(pid))


class Stack:
    """Processes on one sandbox, all ended with it. What they print goes to files."""

    def __init__(self, stack: contextlib.ExitStack, sandbox: tuple[str, ...], settings: dict[str, Any]) -> None:
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
        settings = {
            "PLATFORM_ORIGINS": self._sandbox(sandbox),
            "FAILURES_FEED": None,
            "BREAKER_THRESHOLD": 0,
            "KEYS_FILE": str(self.folder / "keys.sqlite3"),
            **settings,
        }
        self.env |= {f"CRAWLER_{name}": json.dumps(value) for name, value in settings.items()}
        command = [str(BIN / "scrapy"), "keys", "create", "benchmark"]
        self.key = subprocess.check_output(
            command, cwd=ROOT, env=self.env, text=True, stderr=subprocess.DEVNULL
        ).strip()

    def _sandbox(self, options: tuple[str, ...]) -> dict[str, Any]:
        """Starts the sandbox, and returns where its platforms are."""
        log = self.folder / "sandbox.log"
        process = self._stack.enter_context(_running(BIN / "scrapy", "sandbox", *options, env=self.env, log=log))
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and process.poll() is None:
            for line in log.read_text().splitlines(keepends=True):
                if line.startswith('{"origins"') and line.endswith("\n"):
                    origins: dict[str, Any] = json.loads(line)["origins"]
                    return origins
            time.sleep(0.1)
        raise SystemExit(f"The sandbox did not start:\n{log.read_text()[-2_000:]}")

    @property
    def headers(self) -> dict[str, str]:
        """Of a call of our endpoint."""
        return {"Content-Type": "application/json", "X-API-Key": self.key}

    def endpoint(self, *options: str) -> tuple[int, int]:
        """Starts our endpoint. Returns its port and process id."""
        port = free_port()
        pid = self.start(BIN / "scrapy", "serve", "--port", str(port), *options, port=port, ready="/readyz")
        return port, pid

    def start(self, *command: str | Path, port: int, ready: str) -> int:
        """Starts a server and returns its process id when it answers a path with any status below 500.

        Raises:
            SystemExit: it ended, or is not ready in time.
        """
        log = self.folder / f"{Path(command[0]).name}-{port}.log"
        process = self._stack.enter_context(_running(*command, env=self.env, log=log))
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and process.poll() is None:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.suppress(OSError), contextlib.closing(connection):
                connection.request("GET", ready)
                if connection.getresponse().status < 500:
                    return process.pid
            time.sleep(0.1)
        raise SystemExit(f"{process.args!r} did not start:\n{log.read_text()[-2_000:]}")


@contextlib.contextmanager
def stack(*sandbox: str, light: bool = True, **settings: Any) -> Iterator[Stack]:
    """Runs the sandbox with its options; ``settings`` of the project go to all that is started on it."""
    with contextlib.ExitStack() as processes_to_end:
        yield Stack(processes_to_end, (*sandbox, *(["--light"] if light else [])), settings)


@contextlib.contextmanager
def _running(*command: str | Path, env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
