"""Reads tables of text: comma, semicolon or tab between the cells, as spreadsheets and databases write them."""

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
from crawler.targets.target import OWN_KEYS, TargetParser

_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
"""The first line of some files for spreadsheets. It names the separator."""
_FORMULA = re.compile(r'="(.*)"', re.DOTALL)
"""A cell such as ``="00123"``, with which programs make a spreadsheet keep a text as it is."""
_APOSTROPHE = re.compile("'('*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20].*|[0-9_]+)", re.DOTALL)
"""A cell that begins with an apostrophe, which marks a number or a text like a formula as text. The CSV feeds of this
project write it, too."""
_INVISIBLE = "\u200b\ufeff"


def read_table(text: TextFile, parser: TargetParser, separators: str = ",;\t") -> Iterator[Row]:
    """Yield the rows of a table whose first row names the columns. Rows and cells without content are left out.

    Of the separators, the one that yields the most known column names is used.

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
    records = _Records(chain([header], lines))
    table = csv.reader(records, delimiter=separator, strict=True)
    columns = _columns(table, records, parser)
    records.header = records.raw.strip()
    first = True
    for cells in _cells(table, records):
        row = _row(cells, columns, records)
        if row is None:
            continue
        if first and row.problem and _value_without_name(cells, columns) is not None:
            raise UnreadableFileError(row.line, f"the row {row.problem}: name the column, or remove it.")
        first = False
        yield row


def is_header(line: str, parser: TargetParser) -> bool:
    """Whether the first line of a file names a column, in upper or lower case, or the separator of a table."""
    return bool(_SEPARATOR.fullmatch(line)) or any(_known_cells(line, each, parser)[0] for each in ",;\t")


def _next_with_content(lines: Iterator[Line]) -> Line | None:
    return next((line for line in lines if line.text.strip(" \t\r\n,;|")), None)


class _Records:
    """Passes the lines to the CSV reader, and keeps those of the current record, which may have several."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._texts: list[str] = []
        self.header: str | None = None
        """The text of the header, without its line end."""
        self.line = 0
        """Number of the record's first line."""
        self.end = 0
        """Number of its last line."""

    @property
    def raw(self) -> str:
        """The text of the record."""
        return "".join(self._texts)

    def begin(self) -> None:
        """Begin a record with the next line."""
        self._texts.clear()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if not self._texts:
            self.line = line.number
        self.end = line.number
        self._texts.append(line.text)
        if line.is_cut:
            raise csv.Error(f"line {line.number} is longer than {MAX_LINE_BYTES} bytes")
        return line.text


def _cells(table: Iterator[list[str]], records: _Records) -> Iterator[list[str] | csv.Error]:
    """Yield the cells of each record, or the error that makes it unreadable."""
    while True:
        records.begin()
        try:
            yield next(table)
        except csv.Error as error:
            yield error
        except StopIteration:
            return


def _columns(table: Iterator[list[str]], records: _Records, parser: TargetParser) -> list[str]:
    """Read the header. Columns without a name are "", those at the end are left out."""
    try:
        columns = [_name(cell) for cell in next(table)]
    except csv.Error as error:
        raise UnreadableFileError(records.line, f"the header is not valid CSV: {error}.") from None
    while columns and not columns[-1]:
        columns.pop()
    check_columns(columns, parser, records.line)
    return columns


def _row(cells: list[str] | csv.Error, columns: list[str], records: _Records) -> Row | None:
    """Return the row of a record, or None if it has no content."""
    if isinstance(cells, csv.Error):
        extent = (
            f" (it extends to line {records.end}: is a quotation mark missing?)" if records.end > records.line else ""
        )
        return Row(records.line, None, records.raw, f"is not valid CSV: {cells}{extent}")
    if not any(map(_has_content, cells)):
        return None
    problem = "repeats the header" if records.raw.strip() == records.header else _problem(cells, columns)
    if problem:
        return Row(records.line, None, records.raw, problem)
    named = zip(columns, cells, strict=False)  # a row may have further cells without content
    values = {name: _text(cell) for name, cell in named if _has_content(cell)}
    return Row(records.line, values, records.raw)


def _problem(cells: list[str], columns: list[str]) -> str | None:
    if len(cells) < len(columns) or any(map(_has_content, cells[len(columns) :])):
        return f"has {len(cells)} cells, but the header has {len(columns)}"
    unnamed = _value_without_name(cells, columns)
    if unnamed is not None:
        return f"has a value in column {unnamed + 1}, which has no name"
    return replaced_value(cells)


def _value_without_name(cells: list[str] | csv.Error, columns: list[str]) -> int | None:
    """Return the index of the first cell that has content, but no column name."""
    if isinstance(cells, csv.Error):
        return None
    named = enumerate(zip(columns, cells, strict=False))
    return next((index for index, (name, cell) in named if not name and _has_content(cell)), None)


def _known_cells(line: str, separator: str, parser: TargetParser) -> tuple[int, int]:
    """Return how many cells of a header are column names, in upper or lower case, and how many cells it has."""
    known = {*OWN_KEYS, *(name for each in parser.scrapers for name in each.params.model_fields)}
    cells = line.split(separator)
    return sum(_name(cell.strip().strip('"')).casefold() in known for cell in cells), len(cells)


def _name(cell: str) -> str:
    """Return the column's name in a cell of the header, without the spaces around it, also non-breaking ones."""
    return _text(cell.strip().strip(_INVISIBLE).strip())


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
