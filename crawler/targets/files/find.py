"""Finds files on disk and in buckets, and reads the objects in JSON Lines files."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tarfile import TarError
from typing import Any

import fsspec
from fsspec.core import OpenFile
from fsspec.implementations.local import LocalFileSystem

from crawler.targets.files.json import read_json_lines
from crawler.targets.files.text import TextFile
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError

READ_ERRORS = (OSError, EOFError, ImportError, ValueError, zlib.error, zipfile.BadZipFile, TarError)
"""Exceptions of the libraries for a file that is missing, is truncated or does not have the format of its suffix."""


@dataclass(frozen=True, slots=True)
class TargetsFile:
    """A targets file, which can be read several times, because it or its copy is a local file."""

    path: str
    """The path of the file on disk or in its bucket, or the URL of a file that is read by HTTP."""
    name: str
    """The path of the file below the folder that all files of the location have in common."""
    file: OpenFile

    def unreadable(self, error: Exception) -> TargetsUnavailableError:
        """Return the error for a file whose rest cannot be read."""
        return TargetsUnavailableError(f"cannot read {self.path} to its end: {error}")


def find_files(location: str) -> list[TargetsFile]:
    """Return the files that match a path, a glob or a URL, sorted by path.

    A file on another machine, or a pipe such as ``/dev/stdin`` or a shell's ``<(zcat x.csv.gz)``, is copied, because
    targets files are read several times: when they are checked, when repeated rows are found, and for the crawl.

    Raises:
        WrongTargetsError: no file matches.
        TargetsUnavailableError: the files cannot be listed or copied.
    """
    try:
        found = sorted(fsspec.open_files(location, "rb"), key=lambda file: str(file.path))
        copies = [_rereadable(file, location) for file in found]
    except FileNotFoundError:
        found = []
    except READ_ERRORS as error:
        raise TargetsUnavailableError(f"cannot read the targets {location}: {error}") from error
    if not found:
        raise WrongTargetsError(f"no such targets file: {location}")
    common = os.path.commonpath([str(PurePosixPath(each.path).parent) for each in found])
    names = (str(PurePosixPath(each.path).relative_to(common)) for each in found)
    return [TargetsFile(each.path, *rest) for each, *rest in zip(found, names, copies, strict=True)]


_copies: dict[tuple[str, str, str], Path] = {}
"""Location, path and version of a file -> its copy. The file system is not in the key, because fsspec creates
separate objects for each thread."""


def _rereadable(file: OpenFile, location: str) -> OpenFile:
    """Return a file if it is a regular local file, else its local copy. With the suffix ``.gz``, it is decompressed."""
    compression = "gzip" if str(file.path).lower().endswith(".gz") else None
    if not isinstance(file.fs, LocalFileSystem):
        version = repr(sorted(file.fs.info(file.path).items()))
    elif not stat.S_ISREG((status := Path(file.path).stat()).st_mode):
        version = f"{status.st_dev} {status.st_ino}"
    else:
        return OpenFile(file.fs, file.path, compression=compression)
    key = (location, str(file.path), version)
    if key not in _copies:
        _copies[key] = _copy_of(file)
    return OpenFile(LocalFileSystem(), str(_copies[key]), compression=compression)


def _copy_of(file: OpenFile) -> Path:
    """Return a copy of a file, still compressed, which is deleted when the process exits."""
    folder = tempfile.TemporaryDirectory(prefix="targets-")
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / "copy"
    if isinstance(file.fs, LocalFileSystem):  # for a pipe, which get_file() refuses
        with Path(file.path).open("rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
    else:
        file.fs.get_file(file.path, str(copy))
    return copy


def read_json_objects(location: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object in files of JSON Lines, as a pair: its place (``name, line 3``) and the object.

    Raises:
        WrongTargetsError: no file matches, or a line is not a JSON object.
        TargetsUnavailableError: a file cannot be read.
    """
    for each in find_files(location):
        try:
            with each.file as opened:
                for row in read_json_lines(TextFile.of(opened, None)):
                    where = f"{each.name}, line {row.line}"
                    if not isinstance(row.cells, dict):
                        raise WrongTargetsError(f"{where} {row.problem}.")
                    yield where, row.cells
        except READ_ERRORS as error:
            raise each.unreadable(error) from error
