"""Reads text tables with commas, semicolons or tabs between the cells, as spreadsheets and databases write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain

from crawler.platforms.pasted import cleaned
from crawler.targets.files.columns import TableRow, read_columns
from crawler.targets.files.rows import MAX_LINE_CHARACTERS, Row
from crawler.targets.files.text import Line, TextFile
from crawler.targets.parser import TargetParser, heading

_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
"""Matches the first line of some files for spreadsheets, which names the separator: ``sep=;``."""
_FORMULA = re.compile(r'="(.*)"', re.DOTALL)
"""Matches a cell such as ``="00123"``. Programs write this so that a spreadsheet does not convert the text."""
FORMULA_START = "'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""Matches the start of text that a spreadsheet evaluates as a formula. The last four are full-width forms."""
_APOSTROPHE = re.compile(f"'({FORMULA_START}.*|[0-9_]+)", re.DOTALL)
"""Matches a cell with a leading apostrophe, which marks a number, or text that looks like a formula, as text. The CSV
feeds of this project contain such cells, too."""


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
    yield from read_columns(_records(chain([header], lines), separator), parser)


def is_header(line: str, parser: TargetParser) -> bool:
    """Whether the first line of a file contains a known column name, in upper or lower case, or names a separator."""
    return bool(_SEPARATOR.fullmatch(line)) or any(_known_cells(line, each, parser)[0] for each in ",;\t")


def _next_with_content(lines: Iterator[Line]) -> Line | None:
    return next((line for line in lines if line.text.strip(" \t\r\n,;|")), None)


def _records(lines: Iterator[Line], separator: str) -> Iterator[TableRow]:
    """Yield the records with content: one row each, with several lines if a quoted cell has line breaks."""
    read: list[Line] = []

    def texts() -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line.text

    records = csv.reader(texts(), delimiter=separator, strict=True)
    width = 0
    while True:
        read.clear()
        cells: list[str] | None = []
        problem: object = None
        try:
            cells = next(records, None)
        except csv.Error as error:
            problem = error
        if any(line.is_cut for line in read):
            problem = f"a line is longer than {MAX_LINE_CHARACTERS} characters"
        if cells is None and problem is None:
            return
        if problem is not None:
            yield TableRow(read[0].number, {}, _raw(read), f"is not valid CSV: {problem}{_extent(read)}")
        elif content := {number: cell for number, cell in enumerate(cells or (), 1) if cell.strip()}:
            yield _table_row(read, content, len(cells or ()), width)
            width = width or max(content)


def _table_row(read: list[Line], content: dict[int, str], size: int, width: int) -> TableRow:
    """Return the row of a record. ``size``: its number of cells. ``width``: that of the header, 0 for the header."""
    if not width:
        names = {number: _text(cleaned(cell)) for number, cell in content.items()}
        return TableRow(read[0].number, names, _raw(read))
    problem = "" if size >= width >= max(content) else f"has {size} cells, but the header has {width}"
    cells = {number: _text(cell) for number, cell in content.items() if number <= width}
    return TableRow(read[0].number, cells, _raw(read), problem)


def _raw(read: list[Line]) -> str:
    return "".join(line.text for line in read)


def _extent(read: list[Line]) -> str:
    """Return a hint for the error message if the record has several lines: perhaps a quotation mark is missing."""
    return "" if len(read) == 1 else f" (it extends to line {read[-1].number}: is a quotation mark missing?)"


def _known_cells(line: str, separator: str, parser: TargetParser) -> tuple[int, int]:
    """Return how many cells of a header are known column names, and how many cells it has."""
    cells = line.split(separator)
    return sum(heading(_text(cell.strip().strip('"'))) in parser.by_heading for cell in cells), len(cells)


def _text(cell: str) -> str:
    """Return the text that a spreadsheet shows for a cell."""
    if not cell.startswith(("=", "'")):
        return cell
    if found := _FORMULA.fullmatch(cell):
        return found[1].replace('""', '"')
    found = _APOSTROPHE.fullmatch(cell)
    return found[1] if found else cell
