"""Files that replace an earlier file only when they are complete."""

from __future__ import annotations

import gzip
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

TEMPORARY = ".part"
"""Suffix of a local file that is not complete."""


class NewFile:
    """A file that replaces the former one when it is complete, by a rename. A remote file is replaced by one upload.

    The content of a remote file is first written to the local disk, so that an interrupted file is never uploaded.
    """

    def __init__(self, url: str) -> None:
        """``url``: a path, or a URL of a file system of fsspec. With the suffix ``.gz``, the content is compressed."""
        self._system, self.path = fsspec.url_to_fs(url)
        self._opened = ExitStack()
        if isinstance(self._system, LocalFileSystem):
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._temporary = Path(self.path + TEMPORARY)
        else:
            self._temporary = Path(self._opened.enter_context(tempfile.TemporaryDirectory())) / "content"
        self._file: IO[bytes] = self._opened.enter_context(self._temporary.open("wb"))
        self.content = self._file
        """The stream to which the content is written."""
        if url.endswith(".gz"):  # without a time stamp, so that repeated files are equal
            self.content = cast("IO[bytes]", gzip.GzipFile("", "wb", fileobj=self._file, mtime=0))

    def commit(self) -> None:
        """Replace the former file.

        Raises:
            OSError: the file cannot be written. The former file stays.
        """
        with self._opened:
            self.content.close()
            self._file.close()
            if isinstance(self._system, LocalFileSystem):
                self._temporary.replace(self.path)
            else:
                self._system.put_file(str(self._temporary), self.path)

    def discard(self) -> None:
        """Remove the incomplete file. The former file stays."""
        self._temporary.unlink(missing_ok=True)
        self._opened.close()
