"""Files of targets: one or many, on this machine or in a bucket, JSON Lines, CSV or Parquet, compressed or not."""

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
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Target, TargetParser

if TYPE_CHECKING:
    from fsspec.core import OpenFile

CHUNK = 500
"""Rows that are read at once, in a thread: a bucket must not keep the crawl waiting."""
LONGEST_LINE = 1024 * 1024
"""Bytes of a line beyond which it is no target, whatever it says."""
SHOWN = 1_000
"""Characters of a malformed line that a failure shows."""
UNREADABLE = (OSError, EOFError, ImportError, ValueError, zlib.error, lzma.LZMAError)
"""What the libraries raise where a file is not there, is cut off or is not what its name says."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Every ``of``-th row, from the ``number``-th on: 3/16 is the third of sixteen equal parts."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """A shard from ``3/16``.

        Raises:
            ValueError: for all else.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError("a shard is written 3/16: the third of sixteen parts")
        return cls(int(found[1]), int(found[2]))

    def __contains__(self, row: int) -> bool:
        return row % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as its file has it, or what is wrong with it. ``text``: its cells are still to be converted."""

    line: int
    cells: dict[str, Any] | None
    raw: str = ""
    problem: str = ""


@dataclass
class FileSource(TargetSource):
    """The targets of all files that a path, a glob or a URL names, in the order of their names.

    Read as they are consumed. A row that is no target is a failed target with its line number, not the end of the run.
    """

    parser: TargetParser
    location: str
    shard: Shard = field(default_factory=Shard)
    _files: list[OpenFile] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _rows: int = 0
    _expected: int | None = None

    async def open(self) -> None:
        """Finds the files.

        Raises:
            TargetsUnavailableError: there are none.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        try:
            found = fsspec.open_files(self.location, "rb", compression="infer")
            self._files = sorted(found, key=lambda file: str(file.path))
            self._sizes = [file.fs.size(file.path) or 0 for file in self._files]
        except FileNotFoundError:
            self._files = []
        except UNREADABLE as error:
            raise TargetsUnavailableError(f"cannot read the targets {self.location}: {error}") from error
        if not self._files:
            raise TargetsUnavailableError(f"no such targets file: {self.location}")

    @property
    def identity(self) -> dict[str, Any]:
        sizes = dict(zip((file.path for file in self._files), self._sizes, strict=True))
        return {"targets": sizes, "shard": str(self.shard)}

    @property
    def expected(self) -> int | None:
        """How many rows of this shard there are, as far as the share of the bytes read tells."""
        return self._expected

    def _expect(self, rows: int) -> None:
        self._expected = len(range(self.shard.number - 1, rows, self.shard.of))

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        rows = self._targets()
        while chunk := await asyncio.to_thread(lambda: list(islice(rows, CHUNK))):
            for each in chunk:
                if isinstance(each, TargetsUnavailableError):
                    raise each
                yield each

    def _targets(self) -> Iterator[Target | InvalidTarget | TargetsUnavailableError]:
        """All targets; the error that ends them comes last, so that those before it are not lost with its chunk."""
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
                        if self._rows % CHUNK == 0:
                            self._expect(round(self._rows * total / (done + file.fobjects[0].tell())))
                        if number in self.shard:
                            yield self._admit(row, number, name, text=text)
            except UNREADABLE as error:
                yield TargetsUnavailableError(f"cannot read the targets any further, in {file.path}: {error}")
                return
            done += size
        self._expect(self._rows)

    def _admit(self, row: _Row, number: int, name: str, *, text: bool) -> Target | InvalidTarget:
        own_id = f"{name}:{row.line}"  # the same in every run
        if row.cells is None:
            error = InvalidRequest(f"Line {row.line} {row.problem}.")
            return InvalidTarget(own_id, error, raw=row.raw[:SHOWN].rstrip("\r\n"), line=row.line, row=number)
        raw = row.cells if row.cells.get("id") else {**row.cells, "id": own_id}
        return self.parser.parse(raw, text=text, line=row.line, row=number, batch=True)


def _reader(path: str) -> tuple[Any, bool]:
    """What reads a file of this name, and whether its cells are text."""
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
    while line := file.readline(LONGEST_LINE):
        number += 1
        text = line[:SHOWN].decode(errors="replace")
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while rest := file.readline(LONGEST_LINE):
                if rest.endswith(b"\n"):
                    break
            yield _Row(number, None, text, f"is longer than {LONGEST_LINE} bytes")
        elif not line.isspace():
            try:
                raw = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield _Row(number, None, text, f"is no JSON: {error}")
                continue
            yield _Row(number, raw) if isinstance(raw, dict) else _Row(number, None, text, "is no JSON object")


def _csv(file: IO[bytes]) -> Iterator[_Row]:
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", errors="replace")
    rows = csv.DictReader(lines, restkey="")
    try:
        while True:
            try:
                row = next(rows)
            except csv.Error as error:
                yield _Row(rows.line_num, None, "", f"is no CSV: {error}")
                continue
            if "" in row or None in row.values():
                text = ",".join(str(cell) for cell in row.values())
                yield _Row(rows.line_num, None, text, "has not as many cells as the header")
            else:
                yield _Row(rows.line_num, {name: cell for name, cell in row.items() if cell})
    except StopIteration:
        return
    finally:
        lines.detach()  # whoever opened the file closes it


def _parquet(file: IO[bytes]) -> Iterator[_Row]:
    """Rows of cells as text, as those of CSV: a column of ids may be one of numbers. Null is a cell left out."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # an extra, and slow to import

    number = 0
    for batch in ParquetFile(file).iter_batches(batch_size=CHUNK):
        for row in batch.to_pylist():
            number += 1
            yield _Row(number, {name: _cell(value) for name, value in row.items() if value is not None})


def _cell(value: object) -> str:
    """A cell as text. A column of whole numbers with gaps is one of floats to those who wrote it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
