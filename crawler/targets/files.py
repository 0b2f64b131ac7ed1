"""Reads targets from files: JSON Lines, CSV or Parquet, optionally compressed, on disk or in a bucket."""

from __future__ import annotations

import asyncio
import csv
import io
import lzma
import os
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Self

import fsspec
import orjson
from fsspec.utils import infer_compression

from crawler.errors import InvalidRequest
from crawler.targets.sources import TargetSource, TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Target, TargetParser

if TYPE_CHECKING:
    from fsspec.core import OpenFile

ROWS_PER_READ = 500
"""Number of rows that are read at once. They are read in a thread, so that a slow bucket does not block the crawl."""
MAX_LINE_BYTES = 1024 * 1024
"""Maximum bytes of a line. A longer line is an invalid target and is not parsed."""
MAX_SHOWN_CHARACTERS = 1_000
"""Maximum characters of a malformed line that are written to the failures feed."""
READ_ERRORS = (OSError, EOFError, ImportError, ValueError, zlib.error, lzma.LZMAError)
"""Exceptions of the libraries for a file that is missing, is truncated or does not have the format of its suffix."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several equal parts of the rows. 3/16 is every 16th row, starting with the third."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard such as ``3/16``.

        Raises:
            ValueError: the text is not a shard.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is not a shard: write 3/16 for the third of sixteen parts")
        return cls(int(found[1]), int(found[2]))

    def __contains__(self, row: int) -> bool:
        return row % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a file. If the row is malformed, ``cells`` is None and ``problem`` describes why."""

    line: int
    cells: dict[str, Any] | None
    raw: str = ""
    problem: str = ""


@dataclass
class FileSource(TargetSource):
    """The targets of all files that match a path, a glob or a URL, sorted by file name.

    The files are read gradually during the crawl. An invalid row becomes a failed target with its line number, and the
    crawl continues.
    """

    parser: TargetParser
    location: str
    shard: Shard = field(default_factory=Shard)
    _files: list[OpenFile] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _rows: int = 0
    _expected: int | None = None

    def check(self) -> None:
        try:
            self._open()
        except WrongTargetsError:
            raise
        except TargetsUnavailableError:
            return  # such as a bucket that does not respond: the run reports it, if it is still so

    async def open(self) -> None:
        """Find the files.

        Raises:
            TargetsUnavailableError: no file matches, or a file cannot be read.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        try:
            found = fsspec.open_files(self.location, "rb", compression="infer")
            self._files = sorted(found, key=lambda file: str(file.path))
            self._sizes = [file.fs.size(file.path) or 0 for file in self._files]
        except FileNotFoundError:
            self._files = []
        except READ_ERRORS as error:
            raise TargetsUnavailableError(f"cannot read the targets {self.location}: {error}") from error
        if not self._files:
            raise WrongTargetsError(f"no such targets file: {self.location}")

    @property
    def identity(self) -> dict[str, Any]:
        sizes = dict(zip((file.path for file in self._files), self._sizes, strict=True))
        return {"targets": sizes, "shard": str(self.shard)}

    @property
    def expected(self) -> int | None:
        """The number of rows in this shard. It is an estimate from the file sizes until all rows have been read."""
        return self._expected

    def _expect(self, rows: int) -> None:
        self._expected = len(range(self.shard.number - 1, rows, self.shard.of))

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        rows = self._targets()
        while chunk := await asyncio.to_thread(lambda: list(islice(rows, ROWS_PER_READ))):
            for each in chunk:
                if isinstance(each, TargetsUnavailableError):
                    raise each
                yield each

    def _targets(self) -> Iterator[Target | InvalidTarget | TargetsUnavailableError]:
        """Yield all targets. A read error is yielded, not raised, so that the targets before it are not lost."""
        common = os.path.commonpath([str(PurePosixPath(file.path).parent) for file in self._files])
        done, total = 0, sum(self._sizes) or 1
        for file, size in zip(self._files, self._sizes, strict=True):
            name = str(PurePosixPath(file.path).relative_to(common))
            read, text = _reader(file.path)
            try:
                with file as opened:
                    for row in read(opened):
                        number = self._rows
                        self._rows += 1
                        if self._rows % ROWS_PER_READ == 0:
                            self._expect(round(self._rows * total / (done + file.fobjects[0].tell())))
                        if number in self.shard:
                            yield self._parse(row, number, name, text=text)
            except READ_ERRORS as error:
                yield TargetsUnavailableError(f"cannot read the rest of {file.path}: {error}")
                return
            done += size
        self._expect(self._rows)

    def _parse(self, row: _Row, number: int, name: str, *, text: bool) -> Target | InvalidTarget:
        own_id = f"{name}:{row.line}"  # the id of a target without an id: every run gives it the same one
        if row.cells is None:
            error = InvalidRequest(f"Line {row.line} {row.problem}.")
            shown = row.raw[:MAX_SHOWN_CHARACTERS].rstrip("\r\n")
            return InvalidTarget(own_id, error, raw=shown, line=row.line, row=number)
        raw = row.cells if row.cells.get("id") else {**row.cells, "id": own_id}
        return self.parser.parse(raw, text=text, line=row.line, row=number, batch=True)


def _reader(path: str) -> tuple[Any, bool]:
    """Return the function that reads a file with this name, and whether all cells of the format are text."""
    name = PurePosixPath(path.lower())
    if infer_compression(str(name)):
        name = name.with_suffix("")
    if name.suffix == ".csv":
        return _csv, True
    if name.suffix in {".parquet", ".pq"}:
        return _parquet, True
    return _json_lines, False


def _json_lines(file: IO[bytes]) -> Iterator[_Row]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        text = line[:MAX_SHOWN_CHARACTERS].decode(errors="replace")
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while rest := file.readline(MAX_LINE_BYTES):
                if rest.endswith(b"\n"):
                    break
            yield _Row(number, None, text, f"is longer than {MAX_LINE_BYTES} bytes")
        elif not line.isspace():
            try:
                raw = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield _Row(number, None, text, f"is not valid JSON: {error}")
                continue
            yield _Row(number, raw) if isinstance(raw, dict) else _Row(number, None, text, "is not a JSON object")


def _csv(file: IO[bytes]) -> Iterator[_Row]:
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", errors="replace")
    rows = csv.DictReader(lines, restkey="")
    try:
        while True:
            try:
                row = next(rows)
            except csv.Error as error:
                yield _Row(rows.line_num, None, "", f"is not valid CSV: {error}")
                continue
            if "" in row or None in row.values():
                text = ",".join(str(cell) for cell in row.values())
                yield _Row(rows.line_num, None, text, "has a different number of cells than the header")
            else:
                yield _Row(rows.line_num, {name: cell for name, cell in row.items() if cell})
    except StopIteration:
        return
    finally:
        lines.detach()  # the caller closes the file


def _parquet(file: IO[bytes]) -> Iterator[_Row]:
    """Yield the rows of a Parquet file without null cells.

    Cells are converted to text, as in CSV, because a column of ids may have a numeric type.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # an extra, and slow to import

    number = 0
    for batch in ParquetFile(file).iter_batches(batch_size=ROWS_PER_READ):
        for row in batch.to_pylist():
            number += 1
            yield _Row(number, {name: _cell(value) for name, value in row.items() if value is not None})


def _cell(value: object) -> str:
    """Convert a cell to text. 2.0 becomes "2": some programs store integers as floats if the column has empty cells."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
