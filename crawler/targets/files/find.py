"""Finds files on disk and in buckets, and reads objects of JSON Lines from them."""

from __future__ import annotations

import atexit
import lzma
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from tarfile import TarError
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from crawler.targets.files.json import read_json_lines
from crawler.targets.files.text import TextFile
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError

if TYPE_CHECKING:
    from fsspec.core import OpenFile

READ_ERRORS = (OSError, EOFError, ImportError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, TarError)
"""Exceptions of the libraries for a file that is missing, is truncated or does not have the format of its suffix."""


def find_files(location: str) -> tuple[list[OpenFile], list[int]]:
    """Return the files that match a path, a glob or a URL, sorted by path, and their sizes in bytes.

    A pipe, such as ``/dev/stdin`` or a shell's ``<(zcat x.csv.gz)``, is read to its end and replaced by a copy, because
    targets files are read several times.

    Raises:
        WrongTargetsError: no file matches.
        TargetsUnavailableError: the files cannot be listed.
    """
    try:
        found = fsspec.open_files(location, "rb", compression="infer")
        files = sorted(map(_rereadable, found), key=lambda file: str(file.path))
        sizes = [file.fs.size(file.path) or 0 for file in files]
    except FileNotFoundError:
        files = []
    except READ_ERRORS as error:
        raise TargetsUnavailableError(f"cannot read the targets {location}: {error}") from error
    if not files:
        raise WrongTargetsError(f"no such targets file: {location}")
    return files, sizes


def _rereadable(file: OpenFile) -> OpenFile:
    """Return the file, or a file with the content of a pipe."""
    if isinstance(file.fs, LocalFileSystem):
        status = Path(file.path).stat()
        if not stat.S_ISREG(status.st_mode):
            file.path = str(_copy_of(Path(file.path), status.st_dev, status.st_ino))
    return file


@cache
def _copy_of(pipe: Path, _device: int, _inode: int) -> Path:
    """Return a copy of a pipe, with its name, which is deleted when the process exits.

    A pipe can be read only once. Its device and inode distinguish it from a later pipe with the same path.
    """
    folder = tempfile.TemporaryDirectory(prefix="targets-")
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / pipe.name
    with pipe.open("rb") as source, copy.open("wb") as file:
        shutil.copyfileobj(source, file)
    return copy


def name_of(file: OpenFile, files: list[OpenFile]) -> str:
    """Return the path of a file below the folder that all files have in common."""
    common = os.path.commonpath([str(PurePosixPath(each.path).parent) for each in files])
    return str(PurePosixPath(file.path).relative_to(common))


def unreadable(file: OpenFile, error: Exception) -> TargetsUnavailableError:
    """Return the error for a file whose rest cannot be read."""
    return TargetsUnavailableError(f"cannot read {file.path} to its end: {error}")


def read_json_objects(location: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object in files of JSON Lines, as a pair: its place (``name, line 3``) and the object.

    Raises:
        WrongTargetsError: no file matches, or a line is not a JSON object.
        TargetsUnavailableError: a file cannot be read.
    """
    files, _ = find_files(location)
    for file in files:
        try:
            with file as opened:
                for row in read_json_lines(TextFile.of(opened, None)):
                    where = f"{name_of(file, files)}, line {row.line}"
                    if not isinstance(row.cells, dict):
                        raise WrongTargetsError(f"{where} {row.problem}.")
                    yield where, row.cells
        except READ_ERRORS as error:
            raise unreadable(file, error) from error
