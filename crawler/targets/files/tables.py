"""Reads tables: texts with commas, semicolons or tabs between the cells, and Excel workbooks (``.xlsx``, ``.xlsm``).

python-calamine reads a workbook in a process of its own (``workbook_child.py``), with limits of memory and processor
time: a workbook of 5 kB may state cells so far apart that reading it takes 550 GB, and ends the process.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO

import orjson
import structlog

from crawler.platforms.links import cleaned
from crawler.targets.files import workbook_child
from crawler.targets.files.rows import (
    MAX_CELL_CHARACTERS,
    MAX_LINE_CHARACTERS,
    Row,
    TableRow,
    UnreadableFileError,
    read_columns,
)
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


logger = structlog.get_logger(__name__)

MAX_FILE_BYTES = 256 * 1024**2
"""Maximum bytes of a workbook, which is a compressed file."""
SECONDS = 60
"""Maximum duration of the other process, by the clock."""
_CHUNK_BYTES = 1024**2
_COMMAND = (sys.executable, "-I", workbook_child.__file__)

_TOO_LARGE = "the workbook is too large or damaged: save the sheet as CSV (UTF-8)."
_HEADS = {
    b"PK\x03\x04": "",
    b"\xd0\xcf\x11\xe0": "the file is an Excel workbook of the old format (.xls), or protected by a password: save it"
    " as .xlsx without a password, or as CSV (UTF-8).",
}
"""The first bytes of a file -> why it is not read, or "" if it may be a workbook."""
_OTHER_FORMAT = "the file is not an Excel workbook (.xlsx): save the spreadsheet as .xlsx or as CSV (UTF-8)."
_UNREAD = {
    workbook_child.FORMULA: "has a formula without a result in column {}: save the workbook in a spreadsheet",
    workbook_child.NUMBER: "has a number in column {} whose last digits may be lost: store the column as text",
}


def read_xlsx(file: IO[bytes], parser: TargetParser) -> Iterator[Row]:
    """Yield the rows of a workbook's table, whose first row names the columns.

    Raises:
        UnreadableFileError: as for ``read_sheet``, or the columns do not fit. Raised before the first row.
    """
    yield from read_columns(read_sheet(file), parser, column_name)


def read_sheet(file: IO[bytes]) -> Iterator[TableRow]:
    """Yield the rows with content of the first visible sheet that has any. Cells without content are left out.

    Integers have no ``.0``. Dates and times are in ISO 8601. Truth values are ``true`` and ``false``. The content of
    merged cells is in the first of them. The value of a formula is its stored result. Hidden rows are rows. On a system
    that cannot limit the memory of a process, a warning is logged.

    Raises:
        UnreadableFileError: the file is not a workbook, is protected by a password, is damaged or is too large. Raised
            before the first row.
    """
    if not has_limits():
        logger.warning("workbook_without_limits", hint="a hostile workbook may take all memory: read files you trust")
    with closing(_converted(file)) as lines:
        yield from map(_row, lines)


@cache
def has_limits() -> bool:
    """Whether the memory of the process that reads workbooks is limited. Not so on macOS and Windows."""
    run = subprocess.run(_COMMAND, check=False, stderr=subprocess.DEVNULL)  # noqa: S603  # our own program
    return run.returncode == 0


def _converted(file: IO[bytes]) -> IO[bytes]:
    """Return the rows of a workbook as lines of JSON, in a file that has no name any longer.

    Raises:
        UnreadableFileError: the workbook cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="workbook-") as name:
        folder = Path(name)
        _copy(file, folder / "book.xlsx")
        with (folder / "rows").open("wb") as out:
            try:
                run = subprocess.run(  # noqa: S603  # our own program
                    [*_COMMAND, name], check=False, stdout=out, stderr=subprocess.DEVNULL, timeout=SECONDS
                )
            except subprocess.TimeoutExpired:
                raise UnreadableFileError(1, _TOO_LARGE) from None
        if run.returncode == workbook_child.PASSWORD:
            raise UnreadableFileError(
                1, "the workbook is protected by a password: save it without one, or as CSV (UTF-8)."
            )
        if run.returncode:
            raise UnreadableFileError(1, _TOO_LARGE)
        return (folder / "rows").open("rb")


def _copy(file: IO[bytes], path: Path) -> None:
    """Copy a file that may be a workbook.

    Raises:
        UnreadableFileError: it has another format, or is too large.
    """
    chunk = file.read(_CHUNK_BYTES)
    if problem := _HEADS.get(chunk[:4], _OTHER_FORMAT):
        raise UnreadableFileError(1, problem)
    with path.open("wb") as copy:
        while chunk:
            copy.write(chunk)
            if copy.tell() > MAX_FILE_BYTES:
                raise UnreadableFileError(1, _TOO_LARGE)
            chunk = file.read(_CHUNK_BYTES)


def _row(line: bytes) -> TableRow:
    number, cells, unread = orjson.loads(line)
    texts = dict(cells)
    raw = "\t".join(texts.values())
    if len(raw) > MAX_LINE_CHARACTERS:
        return TableRow(number, {}, "", f"has more than {MAX_LINE_CHARACTERS:,} characters")
    problem = ""
    if len(raw) > MAX_CELL_CHARACTERS and (
        column := next((n for n, text in cells if len(text) > MAX_CELL_CHARACTERS), 0)
    ):
        problem = f"has more than {MAX_CELL_CHARACTERS:,} characters in column {column_name(column)}"
    for column, kind in unread:
        problem = _UNREAD[kind].format(column_name(column))
    return TableRow(number, texts, raw, problem)


def column_name(number: int) -> str:
    """Return the letters of a column.

    >>> column_name(26), column_name(27)
    ('Z', 'AA')
    """
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("A") + rest) + name
    return name
