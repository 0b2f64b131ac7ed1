"""Reads tables in Excel workbooks (``.xlsx``, ``.xlsm``) as texts, in bounded memory and time.

The elements are those of ECMA-376, part 1, chapter 18 (SpreadsheetML). LibreOffice and Google Sheets write them, too.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import IO

from crawler.targets.files.columns import TableRow, read_columns
from crawler.targets.files.ooxml import DAMAGED, Handler, Package, refuse
from crawler.targets.files.rows import MAX_CELL_CHARACTERS, MAX_LINE_CHARACTERS, Row
from crawler.targets.parser import TargetParser

MAX_ROWS = 1_048_576
"""Maximum rows of a sheet. This limit and the limit of columns are Excel's own."""
MAX_COLUMNS = 16_384
MAX_SHEET_BYTES = 1024**3
"""Maximum bytes of a sheet's XML: a million rows with 16 cells have about 600 MB."""
MAX_FORMATS = 100_000

_EXACT = 1e15
"""Excel stores 15 digits of a number. The last digits of larger numbers may be lost."""
_DATE_FORMATS = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
"""Ids of the built-in number formats of dates and times (18.8.30, numFmt)."""
_NOT_A_CODE = re.compile(r'"[^"]*"|\[(?![hms]+\])[^\]]*\]|[\\_*].', re.IGNORECASE | re.DOTALL)
"""Matches the parts of a number format that are literal text, a colour, a condition or a locale."""
_DATE_CODE = re.compile("[dmyhs]", re.IGNORECASE)
_REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""Matches an escaped character in a text, such as ``_x000D_``."""


def read_xlsx(file: IO[bytes], parser: TargetParser) -> Iterator[Row]:
    """Yield the rows of a workbook's table, whose first row names the columns. Cells without content are left out.

    The table is on the first visible sheet that has content. ``file`` must be seekable.

    Raises:
        UnreadableFileError: the file is not a workbook, or its columns do not fit (raised before the first row), or the
            rest of the sheet cannot be read.
    """
    return read_columns(Workbook(file).rows(), parser, column_name)


class Workbook:
    """The workbook in a file, which must be seekable and stay open."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the list of sheets, the number formats and the texts that cells share.

        Raises:
            UnreadableFileError: the file is not a workbook, is protected by a password, is damaged or is too large.
        """
        self._package = package = Package(file)
        main = next((each.part for each in package.relations("") if each.kind == "officeDocument"), "")
        self._book, self._styles, self._strings = _Book(), _Styles(), _Strings()
        package.read(main, self._book)
        if not self._book.visible:
            refuse("the file is not an Excel workbook (.xlsx): save the spreadsheet as .xlsx or as CSV (UTF-8).")
        handlers: dict[str, Handler] = {"styles": self._styles, "sharedStrings": self._strings}
        sheets: dict[str, str] = {}
        for each in package.relations(main):
            if each.kind in handlers:
                package.read(each.part, handlers[each.kind])
            elif each.kind == "worksheet":
                sheets[each.id] = each.part
        self._sheets = [sheets[each] for each in self._book.visible if each in sheets]

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows with content of the first visible sheet that has any. The rows are read gradually.

        Numbers have no trailing ``.0``. Dates and times are in ISO 8601. Truth values are ``true`` and ``false``.
        The content of merged cells is in the first of them. The value of a formula is its stored result.

        Raises:
            UnreadableFileError: the rest of the sheet cannot be read.
        """
        for part in self._sheets:
            sheet = _Sheet(self._strings, self._styles.is_date, self._book.epoch)
            for _ in self._package.parse(part, sheet, MAX_SHEET_BYTES):
                yield from sheet.rows
                sheet.rows.clear()
            if sheet.has_content:
                return


class _Book(Handler):
    """The list of sheets, and the day from which dates are counted."""

    def __init__(self) -> None:
        self.visible: list[str] = []
        """The relation ids of the visible sheets, in the order of their tabs."""
        self.epoch = datetime(1899, 12, 30)  # noqa: DTZ001  # a spreadsheet's times have no time zone

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet" and attributes.get("state", "visible") == "visible":
            self.visible += [value for key, value in attributes.items() if key.endswith(" id")]
        elif name == "workbookPr" and attributes.get("date1904") in {"1", "true"}:
            self.epoch = datetime(1904, 1, 1)  # noqa: DTZ001


class _Styles(Handler):
    """Which cell styles show a number as a date or time."""

    def __init__(self) -> None:
        self.is_date: list[bool] = []
        """For each cell style, in order: whether its number format shows a date or time."""
        self._own: dict[str, bool] = {}
        self._in_cells = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "cellXfs":
            self._in_cells = True
        elif name == "numFmt" and len(self._own) < MAX_FORMATS:
            code = _NOT_A_CODE.sub("", attributes.get("formatCode", "")[:1_000])
            self._own[attributes.get("numFmtId", "")] = bool(_DATE_CODE.search(code))
        elif name == "xf" and self._in_cells:
            if len(self.is_date) == MAX_FORMATS:
                refuse(f"the workbook has more than {MAX_FORMATS:,} cell formats: save the sheet as CSV (UTF-8).")
            number = attributes.get("numFmtId", "0")
            self.is_date.append(self._own.get(number, number.isdecimal() and int(number[:5]) in _DATE_FORMATS))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False


class _Strings(Handler):
    """The texts that cells share, joined as bytes, because a list of strings would take several times the memory."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._ends = array("I", [0])
        self._in_text = False

    def __getitem__(self, index: int) -> str:
        """Return the text with this index.

        Raises:
            IndexError: there is no such text.
        """
        if not 0 <= index < len(self._ends) - 1:
            raise IndexError(index)
        return self._content[self._ends[index] : self._ends[index + 1]].decode(errors="surrogatepass")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._in_text = name == "t"

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "si":
            self._ends.append(len(self._content))

    def text(self, text: str) -> None:
        if self._in_text:
            self._content += text.encode(errors="surrogatepass")


class _Sheet(Handler):
    """Collects the rows of a sheet."""

    def __init__(self, strings: _Strings, is_date: list[bool], epoch: datetime) -> None:
        self.rows: list[TableRow] = []
        """The rows with content that have been read, and not been taken yet."""
        self.has_content = False
        self._strings, self._is_date, self._epoch = strings, is_date, epoch
        self._row, self._cells, self._problem, self._row_characters = 0, dict[int, str](), "", 0
        self._column, self._type, self._style, self._is_formula = 0, "n", "0", False
        self._pieces: list[str] = []
        """The pieces of the current cell's value."""
        self._characters = 0
        self._in_value = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._in_value = name in {"v", "t"}
        if name == "c":
            self._start_cell(attributes)
        elif name == "f":
            self._is_formula = True
        elif name == "row":
            self._start_row(attributes.get("r"))

    def _start_row(self, number: str | None) -> None:
        row = self._row + 1 if number is None else int(number[:9]) if number.isdecimal() else 0
        if row <= self._row:
            refuse(DAMAGED, self._row + 1)
        if row > MAX_ROWS:
            refuse(f"the sheet has more than {MAX_ROWS:,} rows: save it as CSV (UTF-8).", self._row + 1)
        self._row, self._cells, self._problem, self._row_characters = row, {}, "", 0
        self._column = 0

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        reference = _REFERENCE.fullmatch(attributes.get("r", ""))
        self._column = column_number(reference[1]) if reference else self._column + 1
        if self._column > MAX_COLUMNS:
            refuse(f"the sheet has more than {MAX_COLUMNS:,} columns: save it as CSV (UTF-8).", self._row)
        self._type, self._style = attributes.get("t", "n"), attributes.get("s", "0")
        self._pieces, self._characters, self._is_formula = [], 0, False

    def end(self, name: str) -> None:
        self._in_value = False
        if name == "c":
            self._end_cell()
        elif name == "row" and (self._cells or self._problem):
            self.has_content = True
            self.rows.append(TableRow(self._row, self._cells, "\t".join(self._cells.values()), self._problem))

    def text(self, text: str) -> None:
        if self._in_value and self._characters <= MAX_CELL_CHARACTERS:
            self._pieces.append(text)
            self._characters += len(text)

    def _end_cell(self) -> None:
        found = "".join(self._pieces)
        try:
            text = self._value(found) if found else ""
        except (ValueError, IndexError) as error:
            self._problem = f"has a cell in column {column_name(self._column)} that cannot be read: {error}"
            return
        self._row_characters += len(text)
        if self._row_characters > MAX_LINE_CHARACTERS:
            self._cells.clear()
            self._problem = f"has more than {MAX_LINE_CHARACTERS:,} characters"
        elif text.strip():
            self._cells[self._column] = text
        elif self._is_formula and self._type != "str":
            where = column_name(self._column)
            self._problem = f"has a formula without a result in column {where}: save the workbook in a spreadsheet"

    def _value(self, found: str) -> str:
        """Return the text of a cell.

        Raises:
            ValueError: the value does not have the cell's type, or is too long. The message describes the problem.
            IndexError: the workbook has no such shared text.
        """
        if self._type == "s":
            found = self._strings[int(found)]
        if len(found) > MAX_CELL_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CELL_CHARACTERS:,} characters")
        match self._type:
            case "s" | "str" | "inlineStr":
                return _unescaped(found)
            case "b":
                return "true" if found.strip() == "1" else "false"
            case "e" | "d":  # an error, such as #N/A, or a date in ISO 8601
                return found
        style = int(self._style) if self._style.isdecimal() and len(self._style) < 7 else 0
        number = float(found)
        if style < len(self._is_date) and self._is_date[style] and number >= 0:
            with suppress(OverflowError):  # after 9999-12-31, which is also Excel's last day
                return _time(number, self._epoch)
        if not math.isfinite(number) or abs(number) >= _EXACT:
            raise ValueError("it is a number whose last digits may be lost. Store the column as text")
        return str(int(number)) if number.is_integer() else repr(number)


def column_number(name: str) -> int:
    """Return the number of a column, starting with 1.

    >>> column_number("A"), column_number("XFD")
    (1, 16384)
    """
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


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


def _time(days: float, epoch: datetime) -> str:
    """Return the date, the time of day or both that a spreadsheet shows for a number of days."""
    if epoch.year == 1899 and 1 <= days < 60:  # Excel has a day 1900-02-29: the numbers of earlier days are one less
        days += 1
    moment = epoch + timedelta(seconds=round(days * 86_400))
    if days < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if days.is_integer() else moment.isoformat()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
