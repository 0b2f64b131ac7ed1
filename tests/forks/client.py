"""Runs a ``scrapy`` command in a fork of ``tests.forks.server``, and exits with its exit code or signal.

Usage: client.py SOCKET [ARGUMENT ...]. The command gets the standard streams, the folder and the environment of the
client. The client imports nothing from the project, and runs with ``python -I -S``, because it must start quickly.
"""

import json
import os
import signal
import socket
import sys

PID_VARIABLE = "FORKED_PID_FD"
"""The environment variable with the number of the file descriptor to which the command's process id is written."""
CODE_VARIABLE = "FORKED_RUNS_BEFORE"
"""The environment variable with Python code that runs before the command."""


def run(address: str, arguments: list[str]) -> int:
    """Run a command. Return its exit code, or the negative number of the signal that ended it."""
    environment = dict(os.environ)
    pid_fd = environment.pop(PID_VARIABLE, None)
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),  # noqa: PTH109  # quick import
        "before": environment.pop(CODE_VARIABLE, ""),
        "environment": environment,
    }
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [b"\0"], [0, 1, 2])
        with server.makefile("rw", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(request)}\n")
            stream.flush()
            pid = int(stream.readline())
            if pid_fd is not None:
                os.write(int(pid_fd), f"{pid}\n".encode())
                os.close(int(pid_fd))
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, _: os.kill(pid, number))
            return int(stream.readline() or 1)


if __name__ == "__main__":
    status = run(sys.argv[1], sys.argv[2:])
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)
