"""The local feeds that a journal's entries refer to: whether their lines are still in the files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


class FilePool:
    """Reads single bytes of files. Keeps the most recently opened files open."""

    MAX_OPEN_FILES = 16

    def __init__(self) -> None:
        self._open: dict[Path, IO[bytes]] = {}

    def byte(self, path: Path, offset: int) -> bytes:
        """Return the byte at an offset of a file."""
        if path not in self._open:
            if len(self._open) >= self.MAX_OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            self._open[path] = path.open("rb")
        return os.pread(self._open[path].fileno(), 1, offset)

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()


class JournalFeed:
    """A local feed that earlier starts wrote, and how much of it is valid."""

    def __init__(self, path: str, files: FilePool, *, lines: bool | None) -> None:
        self.path = Path(path)
        self.files = files
        self.lines = lines
        """Whether it is a feed of lines of this run; None: not a feed of this run."""
        self.end = 0
        """The offset after the last valid line."""
        self.void = False
        """Whether an entry after ``end`` is invalid, so that no later entry can be valid."""
        self.starts: list[tuple[int, int]] = []
        """The ``feed`` entries: line number in the journal, and size."""
        exists = self.path.is_file()
        self.length = self.path.stat().st_size if exists else 0
        self.moved = lines is None and not exists
        """Whether the file was moved away, and this run does not write it: its lines count as stored."""

    def contains(self, number: int, end: int) -> bool:
        """Whether the feed still contains the line of the journal's entry ``number``, which ends at ``end``."""
        if self.moved:
            return True
        if self.void or end > self.length or self.restarted_before(number, end):
            return False
        return not (self.lines and end) or self.files.byte(self.path, end - 1) == b"\n"

    def invalidate(self, number: int, end: int) -> None:
        """Drop an entry, and with it all later ones of this feed, unless a later start has truncated the feed."""
        self.void |= not self.restarted_before(number, end)

    def restarted_before(self, number: int, end: int) -> bool:
        """Whether a start after the entry ``number`` has truncated the feed to less than ``end``."""
        return any(size < end for line, size in self.starts if line > number)
