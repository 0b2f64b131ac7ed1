"""The processes under attack: an endpoint, workers and ``scrapy collect``, with one store and one folder of files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crawls import ROOT
from tests.http_server import free_port

MARK = "ATTACKED_FOLDER"
"""The environment variable that marks all processes of the product, and their children."""
END_SECONDS = 90.0
"""Seconds in which a process ends after SIGTERM: ``CLOSE_GRACE`` and ``END_SECONDS`` of a worker, and a margin."""


SCRAPYS = """while handling timed call
Traceback (most recent call last):
"""
"""Begins a traceback that Scrapy's download handlers cause on a busy machine: they close their connections for at most
a second, and if the event loop is late, they end the wait twice."""


@dataclass
class Product:
    """Starts, kills and suspends the processes of the product."""

    folder: Path
    settings: dict[str, Any]
    environment: dict[str, str]
    endpoints: int
    """The number of worker processes of the endpoint."""
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    """The running ``scrapy work`` processes."""
    collecting: subprocess.Popen[str] | None = None
    """The running ``scrapy collect``."""
    endpoint: subprocess.Popen[str] | None = None
    frozen: float = 0.0
    """The seconds in which a process of the endpoint was suspended."""
    started: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    is_killed: bool = False
    """Whether nothing may be started any more, after the attack was interrupted."""

    def __post_init__(self) -> None:
        self.port = free_port()
        for name in ("tmp", "logs"):
            (self.folder / name).mkdir()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *arguments: object, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start a command of the project, whose log is a file of its own."""
        given = [part for name, value in self.settings.items() for part in ("-s", f"{name}={value}")]
        own = {MARK: str(self.folder), "TMPDIR": str(self.folder / "tmp"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "scrapy", *map(str, arguments), *given]
        environment = os.environ | self.environment | own
        with self.lock:
            assert not self.is_killed
            self.started += 1
            with (self.folder / "logs" / f"{arguments[0]}-{self.started}").open("w") as errors:
                return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stdout, stderr=errors, text=True)

    # The endpoint

    def serve(self) -> None:
        """Start the endpoint. While its store is unavailable, or the last one still ends, it is started again."""
        deadline = time.monotonic() + END_SECONDS
        while True:
            command = "serve", "--port", self.port, "--workers", self.endpoints
            self.endpoint = self.start(*command, stdout=subprocess.PIPE)
            assert self.endpoint.stdout
            if self.endpoint.stdout.readline().startswith("listening on "):
                return
            self.endpoint.wait()
            assert time.monotonic() < deadline, "the endpoint does not start"
            time.sleep(0.5)

    def serving(self) -> list[int]:
        """The process ids of the endpoint: its only process, or the supervisor and the workers."""
        if self.endpoint is None:
            return []
        own = [self.endpoint.pid]
        return own if self.endpoints == 1 else own + children(self.endpoint.pid)

    def accepting(self) -> list[int]:
        """The process ids of the endpoint without the supervisor's."""
        return self.serving()[self.endpoints > 1 :]

    def kill_endpoint(self, index: int) -> None:
        """Kill a process of the endpoint. The supervisor replaces a worker; the only process is started again here."""
        with self.lock:
            pids = self.accepting()
            with suppress(ProcessLookupError, IndexError, ZeroDivisionError):
                os.kill(pids[index % len(pids)], signal.SIGKILL)
            if self.endpoints == 1:
                assert self.endpoint
                self.endpoint.communicate()
                self.serve()

    def freeze_endpoint(self, index: int, seconds: float) -> None:
        """Suspend a process of the endpoint for some seconds."""
        if pids := self.accepting():
            with suppress(ProcessLookupError):
                os.kill(pids[index % len(pids)], signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(pids[index % len(pids)], signal.SIGCONT)
            self.frozen += seconds

    # Workers and scrapy collect

    def tend(self, wanted: int) -> list[str]:
        """Keep the workers running. Return what is wrong with those that have exited."""
        wrong = []
        with self.lock:
            for name, process in list(self.workers.items()):
                if process.poll() is not None:
                    del self.workers[name]
                    if process.returncode not in {0, -signal.SIGKILL, -signal.SIGTERM}:  # SIGTERM: while it started
                        wrong.append(f"scrapy work ended with exit code {process.returncode}")
            while len(self.workers) < wanted:
                self.workers[f"work-{self.started}"] = self.start("work")
        return wrong

    def any_worker(self, index: int) -> subprocess.Popen[str]:
        with self.lock:
            running = list(self.workers.values())
        return running[index % len(running)]

    # The end

    def end(self) -> list[str]:
        """End all processes. Return those that did not end in time or ended with an error, and what is left of them."""
        wrong = []
        running = self.workers | ({"serve": self.endpoint} if self.endpoint else {})
        for process in running.values():
            process.terminate()
        deadline = time.monotonic() + END_SECONDS
        for name, process in running.items():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                wrong.append(f"{name} did not end within {END_SECONDS:g} s")
                process.kill()
            else:
                if process.returncode:
                    wrong.append(f"{name} ended with {process.returncode}")
            if process.stdout:
                process.stdout.close()
        wrong += [f"a process is left: {text}" for text in self.left_processes()]
        wrong += [f"a temporary file is left: {each.name}" for each in (self.folder / "tmp").iterdir()]
        return wrong

    def kill(self) -> None:
        """Kill all processes of the product."""
        with self.lock:
            self.is_killed = True
        for pid in self._marked():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.endpoint, self.collecting, *self.workers.values()):
            if process is not None:
                process.wait()

    def left_processes(self) -> Iterator[str]:
        for pid in self._marked():
            with suppress(OSError):
                yield Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:200]

    def _marked(self) -> Iterator[int]:
        mark = f"{MARK}={self.folder}".encode()
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                is_zombie = (entry.parent / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
                if not is_zombie and mark in entry.read_bytes().split(b"\0"):
                    yield int(entry.parent.name)

    def logged_errors(self) -> list[str]:
        """Return the tracebacks in the logs, each once, with the line before it."""
        found: dict[str, str] = {}
        for log in sorted((self.folder / "logs").iterdir()):
            text = log.read_text(errors="replace").replace(SCRAPYS, "")
            for each in re.finditer(
                r"^(?P<before>.*)\n?Traceback \(most.*(?:\n[ \t]+.*|\n)*(?P<error>.*)", text, re.MULTILINE
            ):
                found.setdefault(
                    each["error"], f"{log.name}: a traceback: {each['before'][:150]} {each['error'][:300]}"
                )
        return list(found.values())


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def resident_megabytes(pids: list[int]) -> float:
    """Return the resident memory of processes, without their children: those that read workbooks have own limits."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            total += int(found[1]) if found else 0
    return total / 1024


def open_files(pids: list[int]) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


class Pace:
    """Measures for how long this machine kept the processes waiting, so that load is no difference."""

    TICK = 0.05

    def __init__(self, product: Product) -> None:
        self.product = product
        self.waited = 0.0
        """Seconds by which a thread that sleeps woke up too late, and for which the endpoint waited for a processor."""
        self._of_process: dict[int, float] = {}
        threading.Thread(target=self._measure, daemon=True).start()

    def _measure(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(self.TICK)
            passed = time.monotonic() - before
            waited = passed - self.TICK
            for pid in self.product.accepting():
                with suppress(OSError):
                    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
                    so_far = sum(int(each.read_text().split()[1]) for each in threads) / 1e9
                    waited += max(0.0, so_far - self._of_process.get(pid, so_far))  # threads end
                    self._of_process[pid] = so_far
            self.waited += min(waited, passed)  # threads wait at the same time

    def lateness(self) -> float:
        """Return the seconds so far by which responses may have been late: load, and suspended processes."""
        return self.waited + self.product.frozen
