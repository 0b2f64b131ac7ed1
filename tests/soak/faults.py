"""Faults of the files of a running service. Each function starts a fault and returns a function that ends it.

``full`` and ``read_only`` require the right to mount file systems: the files must be in a folder that ``small_disk``
has mounted.
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
    """Run a command, and return whether it succeeded."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """Mount a small in-memory file system on a folder."""
    folder.mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def can_mount() -> bool:
    """Return whether this process may mount file systems."""
    if os.geteuid():
        return False
    return _run("unshare", "-m", "true")


def locked(path: Path) -> End:
    """Change the file's modification time, and hold an exclusive lock like a backup."""
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
    """Make the folder read-only. An open file stays writable, so a lock forces the service to open it again."""
    release = locked(path)
    folder = str(path.parent)
    _run("mount", "--bind", folder, folder)
    _run("mount", "-o", "remount,bind,ro", folder)
    threading.Timer(3, release).start()

    def end() -> None:
        _run("umount", "-l", folder)

    return end


def truncated(path: Path) -> End:
    """Truncate the file. The returned function restores an API key file, which the service cannot create again."""
    content = path.read_bytes()
    os.truncate(path, 0)
    return lambda: restore(path, content)


def deleted(path: Path) -> End:
    """Delete the file. The returned function restores an API key file."""
    content = path.read_bytes()
    path.unlink()
    return lambda: restore(path, content)


def restore(path: Path, content: bytes) -> None:
    """Write an API key file again, but no other file: the service itself creates other stores again."""
    if "keys" in path.name:
        path.write_bytes(content)


FAULTS: dict[str, Callable[[Path], End]] = {
    fault.__name__: fault for fault in (locked, full, read_only, truncated, deleted)
}
NEED_MOUNT = {"full", "read_only"}
LOSE_DATA = {"truncated", "deleted"}
