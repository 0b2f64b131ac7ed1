"""A failing disk: each open, write, truncation, removal and sync below a folder can fail or kill the run."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class KilledError(BaseException):
    """Ends a run like ``kill -9``: no ``except Exception`` catches it, and nothing is written after it."""


class Disk:
    """The operations on files below a folder.

    ``fail_at``: the number of the operation that fails. ``full``: all later ones fail, too. ``torn``: half of a failing
    write is written. ``kill_at``: the number of the operation before which the process is killed.
    """

    def __init__(
        self, folder: Path, *, fail_at: int = -1, kill_at: int = -1, full: bool = False, torn: bool = False
    ) -> None:
        self.folder = folder
        self.fail_at = fail_at
        self.kill_at = kill_at
        self.full = full
        self.torn = torn
        self.operations = 0
        self.killed = False
        self.failed = ""
        self.synced: dict[Path, int] = {}
        """The length of each file at its last sync."""
        self.lengths: dict[Path, list[int]] = {}
        """The lengths to which each file was flushed after its last sync."""

    def contains(self, path: object) -> bool:
        """Whether a path is below the folder."""
        return isinstance(path, str | os.PathLike) and Path(os.fspath(path)).is_relative_to(self.folder)

    def operate(self, name: str) -> None:
        """Count an operation, and fail if its number is due."""
        if self.killed or self.operations == self.kill_at:
            self.killed = True
            raise KilledError
        number, self.operations = self.operations, self.operations + 1
        if number == self.fail_at or (self.full and 0 <= self.fail_at < number):
            self.failed = self.failed or name
            raise OSError(errno.ENOSPC, "No space left on device")

    def grown(self, path: Path, *, synced: bool = False) -> None:
        """Note a file's new length."""
        size = path.stat().st_size
        if synced:
            self.synced[path], self.lengths[path] = size, []
        else:
            self.lengths.setdefault(path, []).append(size)


class _Raw(io.FileIO):
    def __init__(self, disk: Disk, path: Path, mode: str) -> None:
        self._disk = disk
        self._path = path
        super().__init__(path, mode)

    def write(self, data: Any, /) -> int:
        try:
            self._disk.operate("write")
        except OSError:
            if self._disk.torn:
                super().write(bytes(data)[: len(data) // 2])
                self._disk.grown(self._path)
            raise
        written: int = super().write(data)
        self._disk.grown(self._path)
        return written

    def truncate(self, size: int | None = None, /) -> int:
        self._disk.operate("truncate")
        return super().truncate(size)


REAL_OPEN, REAL_TRUNCATE, REAL_SYNC = io.open, os.truncate, os.fsync
REAL_UNLINK, REAL_REPLACE = os.unlink, os.replace


class _Calls:
    """Replacements of Python's file functions."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.files: list[_Raw] = []

    def open(self, path: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        if not self.disk.contains(path) or not set(mode) & set("wa+"):
            return REAL_OPEN(path, mode, buffering, *args, **kwargs)
        self.disk.operate("open")
        raw = _Raw(self.disk, Path(path), mode.replace("b", ""))
        self.files.append(raw)
        if "w" in mode:
            self.disk.grown(Path(path))
        if not buffering:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def truncate(self, path: Any, length: int) -> None:
        self.disk.operate("truncate")
        REAL_TRUNCATE(path, length)
        self.disk.grown(Path(path), synced=True)

    def sync(self, number: int) -> None:
        path = Path(f"/proc/self/fd/{number}").readlink()
        if self.disk.contains(path):
            self.disk.operate("sync")
        REAL_SYNC(number)
        if self.disk.contains(path) and path.is_file():
            self.disk.grown(path, synced=True)

    def unlink(self, path: Any, **kwargs: Any) -> None:
        if self.disk.contains(path):
            self.disk.operate("unlink")
        REAL_UNLINK(path, **kwargs)

    def replace(self, old: Any, new: Any) -> None:
        if self.disk.contains(new):
            self.disk.operate("rename")
            self.disk.synced[Path(new)] = self.disk.synced.pop(Path(old))
            self.disk.lengths[Path(new)] = self.disk.lengths.pop(Path(old))
        REAL_REPLACE(old, new)


@contextmanager
def faulty(disk: Disk) -> Iterator[Disk]:
    """Replace the real disk."""
    calls = _Calls(disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", calls.open)
        patch.setattr(os, "truncate", calls.truncate)
        patch.setattr(os, "fsync", calls.sync)
        patch.setattr(os, "unlink", calls.unlink)
        patch.setattr(os, "replace", calls.replace)
        yield disk
    for file in calls.files:
        file.close()  # data that a killed process had not written is discarded
