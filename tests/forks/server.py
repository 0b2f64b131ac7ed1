"""A process that has imported the project, and forks for each ``scrapy`` command that ``client.py`` requests.

In its own interpreter, a command needs about two seconds for imports, so most tests run commands here. The command
still has its own process, files and connections; only the imports are shared. It exits without tearing down the
modules, which would take more processor time than a short command itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

SETTINGS = "crawler.settings"
NOT_IMPORTED = (SETTINGS, "crawler.service", "scrapy.extensions.statsmailer")
"""Modules that read environment variables when they are imported, or import modules that do (the metrics), or warn."""
DOCUMENTS = tuple(f"crawler.service.{name}" for name in ("documents", "openapi", "status"))
"""Modules of the service that do not depend on environment variables."""
LOADED_BY_PATH = tuple(f"scrapy.{name}" for name in ("commands", "downloadermiddlewares", "extensions"))
"""Packages whose modules Scrapy imports when a command starts: all commands, and the components in the settings."""

ENDED: list[int] = []
"""The exit code of the command that this process has run."""


@atexit.register  # before any other function, so that it is called after all others
def exit_without_teardown() -> None:
    """Exit before the interpreter frees the imported modules, which would copy the memory shared with the server.

    A command that was interrupted, or has failed with an exception, or whose output is closed, exits as usual.
    """
    if ENDED:
        gc.collect()  # unused files and connections that were not closed are warned about
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ENDED[0])


def import_project() -> None:
    """Import Scrapy and the project's modules, and build the objects that are the same for many commands."""
    for package in ("crawler", *LOADED_BY_PATH):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.startswith(NOT_IMPORTED):
                import_installed(module.name)
    for name in (
        *DOCUMENTS,
        "scrapy.cmdline",
        "scrapy.core.engine",
        "scrapy.core.scraper",
        "scrapy.core.downloader.handlers.http11",
        "scrapy.logformatter",
        "scrapy_poet.commands",
    ):
        import_module(name)
    sys.modules.pop(SETTINGS, None)
    if found := sys.modules.keys() & {"twisted.internet.reactor", "prometheus_client"}:
        raise RuntimeError(f"Each command must import {found} itself.")
    build()


def import_installed(name: str) -> None:
    """Import a module of the project, unless it needs a package of an extra that is not installed."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("crawler"):
            raise


def build() -> None:
    """Build the simulated shop with seed 1, and the documents of the service, such as OpenAPI and ``llms.txt``."""
    from crawler.sandbox.retail.shop import orders  # noqa: PLC0415
    from crawler.service import documents, openapi, status  # noqa: PLC0415

    orders(1)
    built = (documents.docs(), openapi.as_json(""), documents.llms(""), *documents.bundled_files().values())
    assert all(document.digest and document.gzipped for document in built)
    status.catalogue()


def serve(address: str) -> None:
    """Fork for each connection to a Unix socket, until standard input ends, which means that the tests have ended."""
    import_project()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of all imported objects
    clients: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    wakes.settimeout(0)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a fork that ends wakes the loop
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen(64)
        Path(f"{address}.new").rename(address)  # clients wait for this name
        while True:
            ready, _, _ = select.select([listener, sys.stdin, woken], [], [])
            if sys.stdin in ready:
                return
            if woken in ready:
                woken.recv(1_000)
                report_ended(clients)
            if listener in ready:
                connection, _ = listener.accept()
                pid = os.fork()
                if pid == 0:
                    break
                clients[pid] = connection
                send(connection, pid)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for each in (woken, wakes, *clients.values()):
        each.close()
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection, connection.makefile(encoding="utf-8") as stream:
        request = json.loads(stream.readline())
    run(request, streams)


def report_ended(clients: dict[int, socket.socket]) -> None:
    """Send the exit codes of the forks that have ended to their clients. ``clients``: process id -> connection."""
    while clients:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with clients.pop(pid) as connection:
            send(connection, os.waitstatus_to_exitcode(status))


def send(connection: socket.socket, number: int) -> None:
    """Send a number to a client, which may have been killed."""
    with contextlib.suppress(OSError):
        connection.sendall(f"{number}\n".encode())


def run(request: dict[str, Any], streams: list[int]) -> None:
    """Run the requested command in this process, as if its interpreter had just been started."""
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    if os.environ.get("PYTHONWARNINGS") == "default":
        warnings.simplefilter("default")
    path = os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [request["folder"], *filter(None, path.split(os.pathsep))]
    exec(request["before"], {})  # noqa: S102  # a test's own code
    sys.argv = ["scrapy", *request["arguments"]]
    try:
        runpy.run_module("scrapy", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            ENDED.append(end.code or 0)
        raise
    ENDED.append(0)


if __name__ == "__main__":
    serve(sys.argv[1])
