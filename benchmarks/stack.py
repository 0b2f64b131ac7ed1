"""The processes of the benchmarks: the sandbox, the endpoint and other servers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
READY_TIMEOUT_SECONDS = 60.0


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in processes(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants."""
    ticks = 0
    for each in processes(pid):
        user, system = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_megabytes(pid: int) -> float:
    """Return the proportional set size of a process and its descendants: what several share is divided among them."""
    texts = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in processes(pid)]
    return (
        sum(int(each) for text in texts for each in re.findall(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE)) * 1024 / 1e6
    )


def resident_megabytes(pid: int | str = "self") -> float:
    """Return the resident memory of a process, 0 once it has exited."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else 0


class Stack:
    """Processes that use one sandbox. Their output goes to files."""

    def __init__(self, stack: contextlib.ExitStack, sandbox: tuple[str, ...], settings: dict[str, Any]) -> None:
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
        self.env["PYTHONPATH"] = str(ROOT)
        settings = {
            "PLATFORM_ORIGINS": settings.get("PLATFORM_ORIGINS") or self._sandbox(sandbox),
            "FAILURES_FEED": None,
            "BREAKER_THRESHOLD": 0,
            "KEYS_FILE": str(self.folder / "keys.sqlite3"),
            "STORE": str(self.folder / "service.sqlite3"),
            **settings,
        }
        self.env |= {f"CRAWLER_{name}": json.dumps(value) for name, value in settings.items()}

    @cached_property
    def key(self) -> str:
        """An API key of the endpoint."""
        command = [str(BIN / "scrapy"), "keys", "create", "benchmark"]
        return subprocess.check_output(command, cwd=ROOT, env=self.env, text=True, stderr=subprocess.DEVNULL).strip()

    def _sandbox(self, options: tuple[str, ...]) -> dict[str, Any]:
        """Start the sandbox, and return the origins of its platforms."""
        log = self.folder / "sandbox.log"
        process = self._stack.enter_context(_running(BIN / "scrapy", "sandbox", *options, env=self.env, log=log))
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            for line in log.read_text().splitlines(keepends=True):
                if line.startswith('{"origins"') and line.endswith("\n"):
                    origins: dict[str, Any] = json.loads(line)["origins"]
                    return origins
            time.sleep(0.1)
        raise SystemExit(f"The sandbox did not start:\n{log.read_text()[-2_000:]}")

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a call to the endpoint."""
        return {"Content-Type": "application/json", "X-API-Key": self.key}

    def endpoint(self, *options: str) -> tuple[int, int]:
        """Start the endpoint. Return its port and process id."""
        assert self.key, "The endpoint does not start without a valid key."
        port = free_port()
        pid = self.start(BIN / "scrapy", "serve", "--port", str(port), *options, port=port, ready="/readyz")
        return port, pid

    def start(self, *command: str | Path, port: int, ready: str, folder: Path = ROOT) -> int:
        """Start a server in a folder, and return its process id when a path returns a status below 500.

        Raises:
            SystemExit: the server exited, or is not ready in time.
        """
        log = self.folder / f"{Path(command[0]).name}-{port}.log"
        process = self._stack.enter_context(_running(*command, env=self.env, log=log, folder=folder))
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
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
    """Run the sandbox with its options. ``settings`` apply to all processes of the project that use it.

    With ``PLATFORM_ORIGINS`` among the settings, no sandbox runs.
    """
    with contextlib.ExitStack() as exit_stack:
        yield Stack(exit_stack, (*sandbox, *(["--light"] if light else [])), settings)


@contextlib.contextmanager
def _running(
    *command: str | Path, env: dict[str, str], log: Path, folder: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
