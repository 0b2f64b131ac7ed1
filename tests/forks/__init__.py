"""Starts ``scrapy`` commands in forks of a process that has imported the project. See ``server.py``."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("client.py")
SCRAPY = [sys.executable, "-m", "scrapy"]


ADDRESS = "TESTS_FORKS_ADDRESS"
"""The environment variable with the address of the server that all processes of a test run share."""


def start() -> str:
    """Start a server that ends with this process. Return its address, at which it listens some seconds later."""
    address = f"{tempfile.mkdtemp(prefix='forks-')}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forks.server", address],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    atexit.register(server.kill)
    return address


@cache
def client_command() -> list[str]:
    """Return the command line of ``client.py``. Wait until the server listens."""
    address = os.environ.get(ADDRESS) or start()
    deadline = time.monotonic() + 300
    while not Path(address).exists():
        assert time.monotonic() < deadline, "the server of forks does not start"
        time.sleep(0.05)
    return [sys.executable, "-I", "-S", str(CLIENT), address]


class Popen(subprocess.Popen[Any]):
    """``subprocess.Popen`` for ``python -m scrapy``. Signals are sent to the command; ``pid`` is the client's.

    ``before`` is Python code that the command's process runs first, for example to change the simulated platforms.
    """

    def __init__(
        self, command: list[Any], *, env: dict[str, str] | None = None, before: str = "", **options: Any
    ) -> None:
        assert command[:3] == SCRAPY, command
        reader, writer = os.pipe()
        environment = {
            **(os.environ if env is None else env),
            "FORKED_PID_FD": str(writer),
            "FORKED_RUNS_BEFORE": before,
        }
        super().__init__([*client_command(), *map(str, command[3:])], env=environment, pass_fds=[writer], **options)
        os.close(writer)
        with os.fdopen(reader) as pid:
            self.command_pid = int(pid.readline())

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the command has ended, but its client has not
                os.kill(self.command_pid, sig)


def run(
    command: list[Any],
    *,
    check: bool = False,
    capture_output: bool = True,
    timeout: float = 900,
    input: str | bytes | None = None,  # noqa: A002  # the name in ``subprocess.run``
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run`` for ``python -m scrapy``, by default in the project's folder, and with its output as text.

    ``options`` are those of ``Popen``.
    """
    given: dict[str, Any] = {"cwd": ROOT, "text": True} | options
    if capture_output:
        given |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        given["stdin"] = subprocess.PIPE
    with Popen(command, **given) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
