"""Reads targets from files of all formats, optionally compressed, on disk or in a bucket."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from crawler.errors import InvalidRequest, ScraperNotFound
from crawler.targets.files.find import READ_ERRORS, TargetsFile, find_files
from crawler.targets.files.formats import read_rows
from crawler.targets.files.plain import params_of
from crawler.targets.files.rows import Row, UnreadableFileError, damage, shown
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetSource, TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Target

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
    name: str | None = None
    """The name of the file in ids and messages. None: the file's own name."""
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
        self._files = found if self.name is None else [replace(each, name=self.name) for each in found]
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
                    row = next(read_rows(opened, each.path, self.parser, self.encoding), None)
                own.update(dict.fromkeys(self._own_names(row) if row else ()))
            except UnreadableFileError as error:
                raise WrongTargetsError(f"{each.name}, {error}") from error
            except READ_ERRORS as error:
                raise each.unreadable(error) from error
        self.own_columns = tuple(own)

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
                    for row in read_rows(opened, file.path, self.parser, self.encoding):
                        if rows in self.shard:
                            yield self._parse(row, rows, file.name), row.characters
                        rows += 1
            except READ_ERRORS as error:
                yield file.unreadable(error), 0
                break
        self.expected = len(range(self.shard.start, rows, self.shard.step))

    def _parse(self, row: Row, number: int, name: str) -> Target | InvalidTarget:
        target_id = f"{name}:{row.element or row.line}"  # the id of rows without one, the same in each run
        where = f"Line {row.line} of {name}" + (f", element {row.element}," if row.element else "")
        try:
            cells, own = self.parser.split(self._cells(row))
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
        if problem := damage(values):
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
