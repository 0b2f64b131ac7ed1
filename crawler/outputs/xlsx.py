"""Writes tables as Excel workbooks (``.xlsx``).

``XlsxBook`` writes tables to any file, each in a sheet. ``XlsxExporter`` is the feed format ``xlsx``, of a single
table. A workbook can be read only when it is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import orjson
import structlog

from crawler.outputs.exporters import Table, TableExporter
from crawler.targets.files.rows import MAX_CELL_CHARACTERS

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

logger = structlog.get_logger(__name__)

MAX_ROWS = 1_048_576
"""Maximum rows of a sheet: Excel's own limit."""
MAX_NAME = 31
"""Maximum length of the name of a sheet."""
TIME_COLUMNS = frozenset({"fetched_at"})
"""Columns of ISO 8601 times, which are written as Excel's times, in UTC."""
_EXACT = 10**15
"""Excel stores 15 digits of a number: larger integers would be rounded."""
_CUT = " … [cut: {:,} characters]"
_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Matches characters that are not valid in XML. The library escapes control characters."""
_MIN_WIDTH, _MAX_WIDTH, _TIME_WIDTH = 10, 40, 19


class XlsxBook:
    """A workbook with any number of tables, in constant memory: rows are moved to temporary files one by one.

    A sheet has at most 1,048,576 rows, including the header. Further rows of a table are in another sheet with the same
    header.
    """

    def __init__(self, file: IO[bytes], created: datetime | None = None, folder: Path | None = None) -> None:
        """``file``: the file to which ``close()`` writes the workbook; it need not be seekable.

        ``created``: by default, now. ``folder``: the folder of temporary files. None: the system's folder.
        """
        from xlsxwriter import Workbook  # noqa: PLC0415  # slow to import

        self._file = file
        self._tables: list[XlsxTable] = []
        self._spool = TemporaryFile(dir=folder)  # noqa: SIM115  # a zip archive cannot be written to a file that only grows
        self._book = Workbook(self._spool, {"constant_memory": True, "tmpdir": None if folder is None else str(folder)})
        self._book.use_zip64()
        self._book.set_properties({} if created is None else {"created": created})
        self.bold = self._book.add_format({"bold": True})
        self.integer = self._book.add_format({"num_format": "0"})
        self.time = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})

    def table(self, name: str, columns: Iterable[str]) -> XlsxTable:
        """Add a table. ``name``: the name of its sheet. ``columns``: at least one column."""
        table = XlsxTable(self, name, list(columns))
        self._tables.append(table)
        return table

    def sheet(self, name: str) -> Worksheet:
        """Add a sheet. Its name is cut to 31 characters, and gets a number if another sheet has it."""
        names = chain([name[:MAX_NAME]], (f"{name[: MAX_NAME - 4]} {number}" for number in count(2)))
        used = {each.casefold() for each in self._book.sheetnames}
        sheet: Worksheet = self._book.add_worksheet(next(each for each in names if each.casefold() not in used))
        return sheet

    def close(self, opens: str = "") -> None:
        """Write the workbook to the file, which is not closed. Log how many cells were cut.

        ``opens``: the name of the table that is shown when the workbook is opened. By default, the first table is.
        """
        for table in self._tables:
            table.end()
        if sheet := self._book.get_worksheet_by_name(opens[:MAX_NAME]):
            sheet.activate()
        with self._spool:
            self._book.close()
            self._spool.seek(0)
            copyfileobj(self._spool, self._file)
        if cut := sum(table.cut for table in self._tables):
            hint = "-a explode= writes a row for each entry of a list; JSON Lines have whole texts"
            logger.warning("cells_cut", cells=cut, characters=MAX_CELL_CHARACTERS, hint=hint)

    def discard(self) -> None:
        """Remove the temporary files. Called instead of ``close()``."""
        self._spool.close()
        for sheet in self._book.worksheets():
            sheet.row_data_fh.close()
            Path(sheet.row_data_filename).unlink(missing_ok=True)


class XlsxTable:
    """Writes rows to a sheet of a workbook.

    Texts stay texts: nothing in the data becomes a formula or a link. Integers of more than 15 digits are texts, too,
    because Excel would round them. Objects and lists are JSON. Texts that are too long for a cell are cut, and end with
    a note.
    """

    def __init__(self, book: XlsxBook, name: str, columns: list[str]) -> None:
        self.columns = columns
        self.cut = 0
        """Number of cells whose text was cut."""
        self._book = book
        self._name = name
        self._add_sheet()

    def write(self, row: Mapping[str, Any]) -> None:
        """Write a row: the value of each column, JSON data or a ``datetime``. Missing columns are empty cells."""
        if self._row == MAX_ROWS:
            self.end()
            self._add_sheet()
        for number, name in enumerate(self.columns):
            value = row.get(name)
            if value is not None:
                self._write_cell(number, value)
        self._row += 1

    def _add_sheet(self) -> None:
        self._sheet = self._book.sheet(self._name)
        self._sheet.freeze_panes(1, 0)
        for number, name in enumerate(self.columns):
            width = _TIME_WIDTH if name in TIME_COLUMNS else min(max(len(name) + 4, _MIN_WIDTH), _MAX_WIDTH)
            self._sheet.set_column(number, number, width)
            self._sheet.write_string(0, number, self._fitting(name), self._book.bold)
        self._row = 1

    def end(self) -> None:
        """Complete the last sheet."""
        self._sheet.autofilter(0, 0, self._row - 1, len(self.columns) - 1)

    def _write_cell(self, column: int, value: Any) -> None:
        if isinstance(value, bool):
            self._sheet.write_boolean(self._row, column, value)
        elif isinstance(value, int) and abs(value) < _EXACT:
            self._sheet.write_number(self._row, column, value, self._book.integer)
        elif isinstance(value, float):
            self._sheet.write_number(self._row, column, value)
        elif isinstance(value, datetime):
            self._sheet.write_datetime(self._row, column, value.astimezone(UTC).replace(tzinfo=None), self._book.time)
        else:
            self._sheet.write_string(self._row, column, self._fitting(value))

    def _fitting(self, value: Any) -> str:
        """Return the text of a value, cut to the maximum length of a cell."""
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        if text.startswith("<r>") and text.endswith("</r>"):  # the library would write it as XML, unescaped
            text = f" {text}"
        if text.isascii() and len(text) <= MAX_CELL_CHARACTERS:
            return text
        text = _NOT_XML.sub("\ufffd", text)
        units = text.encode("utf-16-le")  # Excel counts characters outside of the Basic Multilingual Plane twice
        if len(units) <= 2 * MAX_CELL_CHARACTERS:
            return text
        self.cut += 1
        note = _CUT.format(len(text))
        return units[: 2 * (MAX_CELL_CHARACTERS - len(note))].decode("utf-16-le", "ignore") + note


class XlsxExporter(TableExporter):
    """The feed format ``xlsx``. Its columns are those of the format ``csv``."""

    def __init__(
        self, file: IO[bytes] | XlsxBook, table: Table, *, fields_to_export: Any = None, **kwargs: Any
    ) -> None:
        """``file``: the feed's file, or a workbook to which the table is added, and which the caller closes."""
        super().__init__(file, table, fields_to_export=fields_to_export, **kwargs)
        self._book = file if isinstance(file, XlsxBook) else XlsxBook(file)
        self._owns_book = self._book is not file
        self._sheet: XlsxTable | None = None

    def write_row(self, row: dict[str, Any]) -> None:
        self._opened().write({title: _cell(title, value) for title, value in row.items()})

    def finish_exporting(self) -> None:
        self._opened()
        if self._owns_book:
            self._book.close()

    def _opened(self) -> XlsxTable:
        self._sheet = self._sheet or self._book.table(self.table.title, self.titles.values())
        return self._sheet


def _cell(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in TIME_COLUMNS and isinstance(value, str) else value
