"""Reads text tables with commas, semicolons or tabs between the cells, as spreadsheets and databases write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain

from crawler.targets.files.columns import check_columns
from crawler.targets.files.rows import (
    MAX_LINE_BYTES,
    Row,
    UnreadableFileError,
    replaced_value,
)
from crawler.targets.files.text import Line, TextFile
from crawler.targets.parser import TargetParser
from crawler.targets.target import OWN_KEYS

_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
"""Matches the first line of some files for spreadsheets, which names the separator: ``sep=;``."""
_FORMULA = re.compile(r'="(.*)"', re.DOTALL)
"""Matches a cell such as ``="00123"``. Programs write this so that a spreadsheet does not convert the text."""
FORMULA_START = "'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""Matches the start of text that a spreadsheet evaluates as a formula. The last four are full-width forms."""
_APOSTROPHE = re.compile(f"'({FORMULA_START}.*|[0-9_]+)", re.DOTALL)
"""Matches a cell with a leading apostrophe, which marks a number, or text that looks like a formula, as text. The CSV
feeds of this project contain such cells, too."""
_INVISIBLE = "\u200b\ufeff"


def read_table(text: TextFile, parser: TargetParser, separators: str = ",;\t") -> Iterator[Row]:
    """Yield the rows of a table whose first row names the columns. Rows and cells without content are left out.

    The separator that yields the most known column names is used.

    Raises:
        UnreadableFileError: the file is not text, or its columns do not fit. Raised before the first row.
    """
    text.check()
    lines = text.lines()
    header = _next_with_content(lines)
    if header and (found := _SEPARATOR.fullmatch(header.text)):
        separators = found[1]
        header = _next_with_content(lines)
    if header is None:
        return
    separator = max(separators, key=lambda each: _known_cells(header.text, each, parser))
    table = _Table(chain([header], lines), separator)
    table.read_header(parser)
    yield from table.rows()


def is_header(line: str, parser: TargetParser) -> bool:
    """Whether the first line of a file contains a known column name, in upper or lower case, or names a separator."""
    return bool(_SEPARATOR.fullmatch(line)) or any(_known_cells(line, each, parser)[0] for each in ",;\t")


def _next_with_content(lines: Iterator[Line]) -> Line | None:
    return next((line for line in lines if line.text.strip(" \t\r\n,;|")), None)


class _Table:
    """A table, read by ``csv.reader``. A *record* is one row, with several lines if a quoted cell has line breaks."""

    def __init__(self, lines: Iterator[Line], separator: str) -> None:
        self._lines = lines
        self._reader = csv.reader(self._texts(), delimiter=separator, strict=True)
        self._record: list[Line] = []
        """The lines of the current record."""
        self._header = ""
        self._columns: list[str] = []
        """The names of the columns, "" for those without a name."""
        self._names: list[str] = []

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            self._record.append(line)
            yield line.text

    @property
    def _line(self) -> int:
        return self._record[0].number

    @property
    def _raw(self) -> str:
        return "".join(line.text for line in self._record)

    def _cells(self) -> list[str] | None:
        """Read the cells of the next record. None: the file has ended.

        Raises:
            csv.Error: the record is not valid CSV, or too long.
        """
        self._record.clear()
        problem: object = None
        cells: list[str] | None = None
        try:
            cells = next(self._reader, None)
        except csv.Error as error:
            problem = error
        if any(line.is_cut for line in self._record):
            problem = f"a line is longer than {MAX_LINE_BYTES} bytes"
        if problem:
            raise csv.Error(problem)
        return cells

    def read_header(self, parser: TargetParser) -> None:
        """Read the names of the columns. Columns without a name at the end of the header are dropped.

        Raises:
            UnreadableFileError: the columns do not fit.
        """
        try:
            columns = [_name(cell) for cell in self._cells() or ()]
        except csv.Error as error:
            raise UnreadableFileError(self._line, f"the header is not valid CSV: {error}.") from None
        while columns and not columns[-1]:
            columns.pop()
        check_columns(columns, parser, self._line)
        self._columns, self._names = columns, [name for name in columns if name]
        self._header = self._raw.strip()

    def rows(self) -> Iterator[Row]:
        """Yield the rows with content.

        Raises:
            UnreadableFileError: the first row has a value in a column without a name, such as an exported index.
        """
        is_first = True
        while True:
            try:
                cells = self._cells()
            except csv.Error as error:
                yield self._malformed(f"is not valid CSV: {error}{self._extent()}")
                continue
            if cells is None:
                return
            if not any(map(_has_content, cells)):
                continue
            unnamed = self._value_without_name(cells)
            if unnamed and is_first:
                raise UnreadableFileError(self._line, f"the row {unnamed}: name the column, or remove it.")
            is_first = False
            problem = unnamed or self._problem(cells)
            if problem:
                yield self._malformed(problem)
            else:
                yield Row(self._line, self._values(cells), self._raw, columns=self._names)

    def _malformed(self, problem: str) -> Row:
        return Row(self._line, None, self._raw, problem, columns=self._names)

    def _extent(self) -> str:
        """Return a hint for the error message if the record has several lines: perhaps a quotation mark is missing."""
        if len(self._record) == 1:
            return ""
        return f" (it extends to line {self._record[-1].number}: is a quotation mark missing?)"

    def _value_without_name(self, cells: list[str]) -> str | None:
        named = enumerate(zip(self._columns, cells, strict=False), 1)
        found = next((number for number, (name, cell) in named if not name and _has_content(cell)), None)
        return None if found is None else f"has a value in column {found}, which has no name"

    def _problem(self, cells: list[str]) -> str | None:
        if len(cells) < len(self._columns) or any(map(_has_content, cells[len(self._columns) :])):
            return f"has {len(cells)} cells, but the header has {len(self._columns)}"
        if self._raw.strip() == self._header:
            return "repeats the header"
        return replaced_value(cells)

    def _values(self, cells: list[str]) -> dict[str, str]:
        named = zip(self._columns, cells, strict=False)  # a row may have further cells without content
        return {name: _text(cell) for name, cell in named if _has_content(cell)}


def _known_cells(line: str, separator: str, parser: TargetParser) -> tuple[int, int]:
    """Return how many cells of a header are known column names, in upper or lower case, and how many cells it has."""
    known = {*OWN_KEYS, *(name for each in parser.scrapers for name in each.params.model_fields)}
    cells = line.split(separator)
    return sum(_name(cell.strip().strip('"')).casefold() in known for cell in cells), len(cells)


def _name(cell: str) -> str:
    return _text(clean_name(cell))


def clean_name(cell: str) -> str:
    """Return the column's name in a cell of the header, without the spaces around it, also non-breaking ones."""
    return cell.strip().strip(_INVISIBLE).strip()


def _has_content(cell: str) -> bool:
    return bool(cell.strip())


def _text(cell: str) -> str:
    """Return the text that a spreadsheet shows for a cell."""
    if not cell.startswith(("=", "'")):
        return cell
    if found := _FORMULA.fullmatch(cell):
        return found[1].replace('""', '"')
    found = _APOSTROPHE.fullmatch(cell)
    return found[1] if found else cell
