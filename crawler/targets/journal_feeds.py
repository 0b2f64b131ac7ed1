"""Checks whether local feeds still contain the lines to which the entries of a journal refer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


class FilePool:
    """Reads single bytes from many files, and keeps the most recently opened files open."""

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
    """A local feed that earlier starts of the run have written, and the part of it that is valid."""

    def __init__(self, path: str, files: FilePool, *, lines: bool | None) -> None:
        self.path = Path(path)
        self.files = files
        self.lines = lines
        """True: a JSON Lines feed of this run. False: another feed of this run. None: not a feed of this run."""
        self.end = 0
        """Offset in the file after the last valid line."""
        self.void = False
        """Whether an entry for a line after ``end`` was invalid. No later entry can then be valid."""
        self.starts: list[tuple[int, int]] = []
        """For each start that wrote the feed: the line number of its journal entry, and how many bytes it kept."""
        exists = self.path.is_file()
        self.length = self.path.stat().st_size if exists else 0
        self.moved = lines is None and not exists
        """Whether the file no longer exists, and this run does not write it. All of its lines then count as stored."""

    def contains(self, number: int, end: int) -> bool:
        """Whether the feed still contains a line that ends at ``end``. ``number``: its entry's line in the journal."""
        if self.moved:
            return True
        if self.void or end > self.length or self.restarted_before(number, end):
            return False
        return not (self.lines and end) or self.files.byte(self.path, end - 1) == b"\n"

    def invalidate(self, number: int, end: int) -> None:
        """Note that an entry is invalid. All later entries of the feed are then invalid, too.

        If a later start has truncated the feed before ``end``, the line was removed on purpose, and nothing is noted.
        """
        self.void |= not self.restarted_before(number, end)

    def restarted_before(self, number: int, end: int) -> bool:
        """Whether a start after line ``number`` of the journal has truncated the feed to fewer than ``end`` bytes."""
        return any(size < end for line, size in self.starts if line > number)
