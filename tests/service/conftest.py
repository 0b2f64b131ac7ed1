"""Runs a real endpoint in a separate process. By default, its platforms are those of the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests import forks
from tests.browsers import require_chromium

ROOT = Path(__file__).parents[2]
QUICK = ("RETRY_BACKOFF_BASE=0.05", "DOWNLOAD_TIMEOUT=60", "BREAKER_THRESHOLD=0")

HELD = """
from pathlib import Path
from crawler.sandbox import faults

def held(request, page):
    answer = faults.send if Path("{released}").exists() else held
    faults.respond_after(request, 0.05, lambda: answer(request, page))

faults._CONNECTION_FAULTS["slow"] = held
"""
"""For ``running(before=HELD.format(released=...))``: "slow" responses are sent when the file ``released`` exists."""


@dataclass
class Service:
    """A running endpoint."""

    url: str
    process: forks.Popen
    log: Path

    @property
    def pid(self) -> int:
        """The process id of ``scrapy serve``."""
        return self.process.command_pid

    def logged(self) -> str:
        """Return the log of the service."""
        return self.log.read_text()


@contextmanager
def running(log: Path, *settings: str, sandbox: bool = True, workers: int = 1, before: str = "") -> Iterator[Service]:
    """Run ``scrapy serve``, by default with ``--sandbox``, and kill it at the end.

    ``before`` is Python code that the process runs first.
    """
    own = f"STORE={log.parent / 'service.sqlite3'}"
    options = [part for setting in (*QUICK, own, *settings) for part in ("-s", setting)]
    with log.open("w") as stderr:
        process = forks.Popen(
            [
                *(sys.executable, "-m", "scrapy", "serve", *["--sandbox"] * sandbox),
                *("--port", "0", "--workers", str(workers), *options),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "default", "PYTHONPATH": str(Path(__file__).parent)},
            before=before,
        )
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line.startswith("listening on "), log.read_text()
            yield Service(line.removeprefix("listening on ").strip(), process, log)
        finally:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log") as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = require_chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
