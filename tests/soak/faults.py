"""Faults of the files of a running service. Each function begins a fault and returns what ends it.

``locked`` and ``deleted`` and ``truncated`` need nothing; ``full`` and ``read_only`` need the right to mount: the files
must be in a folder that ``small_disk`` has mounted.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

End = Callable[[], None]


def _run(*command: str) -> bool:
    """Run a program, and return whether it succeeded."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """Mount a small file system in memory on a folder."""
    folder.mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def can_mount() -> bool:
    """Whether this process may mount file systems."""
    if os.geteuid():
        return False
    return _run("unshare", "-m", "true")


def locked(path: Path) -> End:
    """Hold an exclusive lock, as a backup does, after the file has changed."""
    os.utime(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    connection.execute("BEGIN EXCLUSIVE")
    return connection.close


def full(path: Path) -> End:
    """Fill the file system."""
    os.utime(path)
    filler = path.with_name("filler")
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return filler.unlink


def read_only(path: Path) -> End:
    """Make the folder read-only. A lock makes the service open its file again: an open file would stay writable."""
    release = locked(path)
    folder = str(path.parent)
    _run("mount", "--bind", folder, folder)
    _run("mount", "-o", "remount,bind,ro", folder)
    threading.Timer(3, release).start()

    def end() -> None:
        _run("umount", "-l", folder)

    return end


def truncated(path: Path) -> End:
    """Cut the file, and restore it if it holds keys: the keys are not created again by the service."""
    content = path.read_bytes()
    os.truncate(path, 0)
    return lambda: restore(path, content)


def deleted(path: Path) -> End:
    """Delete the file."""
    content = path.read_bytes()
    path.unlink()
    return lambda: restore(path, content)


def restore(path: Path, content: bytes) -> None:
    """Write the keys again. The store of usage begins anew by itself."""
    if "keys" in path.name:
        path.write_bytes(content)


FAULTS: dict[str, Callable[[Path], End]] = {
    fault.__name__: fault for fault in (locked, full, read_only, truncated, deleted)
}
NEED_MOUNT = {"full", "read_only"}
LOSE_DATA = {"truncated", "deleted"}
