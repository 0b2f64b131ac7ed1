"""PostgreSQL servers for benchmarks, on loopback or a socket file, with data that is deleted at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

READY_TIMEOUT_SECONDS = 20


@contextmanager
def postgresql() -> Iterator[str | None]:
    """Run PostgreSQL with the durability of its defaults, and yield its URL; None if it is not installed."""
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket must be short
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL does not run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"
    make: list[str | Path] = [
        initdb,
        "-D",
        data,
        "-U",
        "benchmark",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-locale",
        "--no-sync",
    ]
    start: list[str | Path] = [postgres, "-D", data, "-k", folder, "-c", "listen_addresses="]
    try:
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **as_user)
        with subprocess.Popen(start, stderr=subprocess.DEVNULL, cwd=folder, **as_user) as server:
            try:
                _wait_for(data / "postmaster.pid", "ready")
                yield f"postgresql://benchmark@/postgres?host={folder}"
            finally:
                server.send_signal(signal.SIGINT)  # SIGTERM would wait until all clients disconnect
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(file: Path, text: str) -> None:
    """Wait until a file contains a text."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while not file.exists() or text not in file.read_text():
        if time.monotonic() > deadline:
            raise SystemExit(f"PostgreSQL did not start: {file} does not contain {text!r}.")
        time.sleep(0.05)


def _program(name: str) -> str | None:
    """Return the path of a PostgreSQL program: on the PATH, or in Debian's folder of the newest version."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(packaged[-1]) if packaged else None)
