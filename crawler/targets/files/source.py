"""Reads targets from files of all formats, optionally compressed, on disk or in a bucket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from crawler.errors import InvalidRequest, ScraperNotFound
from crawler.targets.files.find import READ_ERRORS, find_files, name_of, unreadable
from crawler.targets.files.formats import read_rows
from crawler.targets.files.plain import params_of
from crawler.targets.files.rows import Row, UnreadableFileError, damage, shown
from crawler.targets.sources import TargetSource, TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Target, TargetParser

if TYPE_CHECKING:
    from fsspec.core import OpenFile

ROWS_PER_READ = 500
"""Number of rows that are read at once. They are read in a thread, so that a slow bucket does not block the crawl."""
CHECKED_FILES = 20
"""Number of files that are checked before the first target. Further files of a glob are checked when they are read."""


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


@dataclass
class FileSource(TargetSource):
    """The targets of all files that match a path, a glob or a URL, sorted by file name.

    The files are read gradually during the crawl. An invalid row becomes a failed target with its line number, and the
    crawl continues.
    """

    parser: TargetParser
    location: str
    shard: Shard = field(default_factory=Shard)
    encoding: str | None = None
    """The encoding of files of text without a byte order mark. None: UTF-8."""
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
            return  # such as a bucket that does not respond. The crawl tries again and reports it

    async def open(self) -> None:
        """Find the files, and read ``CHECKED_FILES`` of them up to the first row, to find wrong headers and encodings.

        Raises:
            WrongTargetsError: no file matches, a file's format, encoding or columns are wrong, or the argument
                ``scraper`` names an unknown scraper.
            TargetsUnavailableError: a file cannot be read.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        self._files, self._sizes = find_files(self.location)
        self._check_files()

    def _check_files(self) -> None:
        try:
            if self.parser.default:
                self.parser.scraper(self.parser.default, {})
        except ScraperNotFound as error:
            raise WrongTargetsError(error.message) from None
        for file in self._files[:CHECKED_FILES]:
            try:
                with file as opened:
                    next(read_rows(opened, file.path, self.parser, self.encoding), None)
            except UnreadableFileError as error:
                raise WrongTargetsError(f"{name_of(file, self._files)}, {error}") from error
            except READ_ERRORS as error:
                raise unreadable(file, error) from error

    @property
    def identity(self) -> dict[str, Any]:
        sizes = dict(zip((file.path for file in self._files), self._sizes, strict=True))
        encoding = {} if self.encoding is None else {"encoding": self.encoding}
        return {"targets": sizes, "shard": str(self.shard), **encoding}

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
        done, total = 0, sum(self._sizes) or 1
        for file, size in zip(self._files, self._sizes, strict=True):
            name = name_of(file, self._files)
            try:
                with file as opened:
                    for row in read_rows(opened, file.path, self.parser, self.encoding):
                        number = self._rows
                        self._rows += 1
                        if self._rows % ROWS_PER_READ == 0:
                            self._expect(round(self._rows * total / (done + file.fobjects[0].tell())))
                        if number in self.shard:
                            yield self._parse(row, number, name)
            except READ_ERRORS as error:
                yield unreadable(file, error)
                return
            done += size
        self._expect(self._rows)

    def _parse(self, row: Row, number: int, name: str) -> Target | InvalidTarget:
        own_id = f"{name}:{row.element or row.line}"  # for a row without an id; the same in each run
        where = f"Line {row.line} of {name}" + (f", element {row.element}," if row.element else "")
        try:
            cells = self._cells(row)
            target_id = _id(cells.get("id"), own_id)
        except InvalidRequest as error:
            malformed = InvalidRequest(f"{where} {error.message}.", details=error.details)
            return InvalidTarget(own_id, malformed, raw=shown(row.raw), line=row.line, row=number)
        if not row.is_text and any(type(value) is int for value in cells.values()):
            cells = self.parser.integers_as_text(cells)
        found = self.parser.parse({**cells, "id": target_id}, text=row.is_text, line=row.line, row=number, batch=True)
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
        if problem := damage(values):
            raise InvalidRequest(problem)
        return params_of(row.cells, self.parser) if isinstance(row.cells, str) else row.cells


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
