"""Finds targets files on disk and in buckets, and reads targets from all their formats, optionally compressed."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from tarfile import TarError
from typing import IO, Any

import fsspec
import orjson
from fsspec.core import OpenFile
from fsspec.implementations.local import LocalFileSystem

from crawler.errors import InvalidRequest, ScraperNotFound
from crawler.targets.files.json import read_json_array, read_json_lines
from crawler.targets.files.rows import COMMAND, Row, UnreadableFileError, Words, damaged, shown
from crawler.targets.files.tables import is_header, read_table, read_xlsx
from crawler.targets.files.text import TextFile, params_of, read_list
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetSource, TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Target

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
    except (FileNotFoundError, IsADirectoryError):
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


TABLES = {".csv": ",;\t", ".tsv": "\t,;", ".tab": "\t,;"}
"""Suffix of a table -> its possible separators, the usual one first."""
JSON_LINES = {".jsonl", ".ndjson", ".jl", ".json"}
WORKBOOKS = {".xlsx", ".xlsm"}

_OTHER_FORMATS = {
    b"PK\x03\x04": "a spreadsheet or an archive. {0.workbook}, or save it as CSV (UTF-8).",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old format. Save it as .xlsx or as CSV (UTF-8).",
    b"\x1f\x8b": "compressed with gzip. {0.compressed}",
    b"PAR1": "a Parquet file. Save it as CSV or JSON Lines, such as with DuckDB.",
    b"BZh": "compressed with bzip2. {0.compressed}",
    b"\xfd7zXZ": "compressed with xz. {0.compressed}",
}
"""The first bytes of a file -> what it is, and what to do, with the caller's ``Words``."""


def read_rows(
    file: IO[bytes], path: str, parser: TargetParser, encoding: str | None = None, words: Words = COMMAND
) -> Iterator[Row]:
    """Return the rows of a file. JSON objects have values of any type, all other rows have texts.

    ``path``: the name of the file, whose suffix selects Excel, tables and JSON. ``encoding``: the encoding of
    text files without a byte order mark, UTF-8 by default. ``words``: those of the caller, for messages.

    Raises:
        UnreadableFileError: the file has none of the formats, or cannot be read in its format.
    """
    suffix = suffix_of(path)
    if suffix in WORKBOOKS:
        return read_xlsx(file, parser)
    text = TextFile.of(file, encoding, words)
    for magic, what in _OTHER_FORMATS.items():
        if text.head.startswith(magic):
            raise UnreadableFileError(1, f"the file is {what.format(words)}")
    if suffix in TABLES:
        return read_table(text, parser, TABLES[suffix])
    start = text.start
    if start.startswith("["):
        return read_json_array(text)
    if suffix in JSON_LINES or start.startswith("{"):
        return read_json_lines(text)
    if start and is_header(start.splitlines()[0], parser):
        return read_table(text, parser)
    return read_list(text)


def suffix_of(path: str) -> str:
    """Return the suffix of a path in lower case, without the suffix of gzip: ``.csv`` for ``A.CSV.gz``."""
    return PurePosixPath(path.lower().removesuffix(".gz")).suffix


ROWS_PER_READ = 500
"""Maximum number of rows that are read at once, in a thread, so that a slow bucket does not block the crawl."""
CHARACTERS_PER_READ = 8 * 1024**2
"""Fewer than ``ROWS_PER_READ`` rows are read at once if they have this number of characters in total."""
CHECKED_FILES = 20
"""Number of files that are checked before the first target. Further files of a glob are checked when they are read."""


@dataclass
class FileSource(TargetSource):
    """The targets of all files that match a path, a glob or a URL, sorted by file name.

    The files are read gradually during the crawl. An invalid row becomes a failed target with its line number, and the
    crawl continues.
    """

    parser: TargetParser
    location: str
    shard: range = range(sys.maxsize)
    """The numbers of the rows to read, starting with 0. All files are counted together."""
    encoding: str | None = None
    """The encoding of files of text without a byte order mark. None: UTF-8."""
    words: Words = COMMAND
    """The words of the caller, for messages."""
    expected: int | None = None
    """The number of rows in this shard that can be read. None until all files have been read once."""
    own_columns: tuple[str, ...] = ()
    _files: list[TargetsFile] = field(default_factory=list)

    def check(self) -> None:
        try:
            self._open()
        except WrongTargetsError:
            raise
        except TargetsUnavailableError:
            return  # such as an unavailable bucket; the crawl tries again and reports the error

    async def open(self) -> None:
        """Find the files, and read ``CHECKED_FILES`` of them up to the first row, to find wrong headers and encodings.

        Raises:
            WrongTargetsError: no file matches, a file's format, encoding or columns are wrong, or the argument
                ``scraper`` names an unknown scraper.
            TargetsUnavailableError: a file cannot be read.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        found = find_files(self.location)
        name = self.words.file
        self._files = found if name is None else [replace(each, name=name) for each in found]
        self._check_files()

    def _check_files(self) -> None:
        try:
            if self.parser.default:
                self.parser.scraper(self.parser.default, {})
        except ScraperNotFound as error:
            raise WrongTargetsError(error.message) from None
        own: dict[str, None] = {}
        for each in self._files[:CHECKED_FILES]:
            try:
                with each.file as opened:
                    row = next(self._rows(each, opened), None)
                own.update(dict.fromkeys(self._own_names(row) if row else ()))
            except UnreadableFileError as error:
                raise WrongTargetsError(f"{each.name}, {error}") from error
            except READ_ERRORS as error:
                raise each.unreadable(error) from error
        self.own_columns = tuple(own)

    def _rows(self, file: TargetsFile, opened: IO[bytes]) -> Iterator[Row]:
        return read_rows(opened, file.path, self.parser, self.encoding, self.words)

    def _own_names(self, row: Row) -> list[str]:
        """Return the names of the columns or keys of a row that are the user's own."""
        names = row.columns or (row.cells if isinstance(row.cells, dict) else ())
        return self.parser.own_names(names, of_all_rows=bool(row.columns))

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        chunks = self._chunks()
        while chunk := await asyncio.to_thread(next, chunks, ()):
            for each in chunk:
                if isinstance(each, TargetsUnavailableError):
                    raise each
                yield each

    def _chunks(self) -> Iterator[list[Target | InvalidTarget | TargetsUnavailableError]]:
        chunk, size = [], 0
        for each, characters in self._targets():
            chunk.append(each)
            size += characters
            if len(chunk) == ROWS_PER_READ or size >= CHARACTERS_PER_READ:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _targets(self) -> Iterator[tuple[Target | InvalidTarget | TargetsUnavailableError, int]]:
        """Yield all targets, and how many characters each row has.

        A read error is yielded, not raised, so that the targets before it are not lost.
        """
        rows = 0
        for file in self._files:
            try:
                with file.file as opened:
                    for row in self._rows(file, opened):
                        if rows in self.shard:
                            yield self._parse(row, rows, file.name), row.characters
                        rows += 1
            except READ_ERRORS as error:
                yield file.unreadable(error), 0
                break
        self.expected = len(range(self.shard.start, rows, self.shard.step))

    def _parse(self, row: Row, number: int, name: str) -> Target | InvalidTarget:
        target_id = f"{name}:{row.element or row.line}"  # the id of rows without one, the same in each run
        where = f"Line {row.line} of {name}" + (f" (element {row.element})" if row.element else "")
        try:
            cells, own = self.parser.split(self._cells(row), self.own_columns if row.columns else ())
            target_id = _id(cells.get("id"), target_id)
            self._check_own(own)
        except InvalidRequest as error:
            malformed = InvalidRequest(f"{where} {error.message}.", details=error.details)
            return InvalidTarget(target_id, malformed, raw=shown(row.raw), line=row.line, row=number)
        if not row.is_text and any(type(value) is int for value in cells.values()):
            cells = self.parser.integers_as_text(cells)
        found = self.parser.parse({**cells, "id": target_id}, text=row.is_text, line=row.line, row=number, batch=True)
        if own:
            found = replace(found, columns=own)
        if isinstance(found, InvalidTarget):
            located = type(found.error)(f"{where}: {found.error.message}", details=found.error.details)
            return replace(found, error=located)
        return found

    def _cells(self, row: Row) -> dict[str, Any]:
        """Return the keys and values of a row.

        Raises:
            InvalidRequest: the row is malformed. The message continues a sentence that begins with the line.
        """
        if row.cells is None:
            raise InvalidRequest(row.problem)
        values = [row.cells] if isinstance(row.cells, str) else row.cells.values()
        if problem := damaged(values, self.words):
            raise InvalidRequest(problem)
        return params_of(row.cells, self.parser) if isinstance(row.cells, str) else row.cells

    def _check_own(self, own: dict[str, Any]) -> None:
        """Check the values of the user's own columns.

        Raises:
            InvalidRequest: the outputs have no such column, because the first rows lack it, or JSON has no such value.
                The message continues a sentence that begins with the line.
        """
        new = [name for name in own if name not in self.own_columns]
        if new:
            raise InvalidRequest(f"has the key {new[0]!r}, which the first row lacks: add it there, or remove it")
        try:
            orjson.dumps(own)
        except TypeError as error:
            raise InvalidRequest(f"has a value in your own columns that JSON cannot have: {error}") from None


def _id(given: Any, own_id: str) -> str:
    """Return the id of a row.

    Raises:
        InvalidRequest: the id is neither text nor an integer.
    """
    if given is None or given == "":
        return own_id
    if isinstance(given, str) or type(given) is int:
        return str(given)
    raise InvalidRequest(f"has an id that is neither a text nor an integer: {given!r}")
