"""Reads tables in Excel workbooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from crawler.targets.files.columns import check_columns
from crawler.targets.files.delimited import clean_name
from crawler.targets.files.rows import Row, UnreadableFileError, replaced_value
from crawler.targets.files.workbook import SheetRow, Workbook, column_name
from crawler.targets.parser import TargetParser


def read_xlsx(file: IO[bytes], parser: TargetParser) -> Iterator[Row]:
    """Yield the rows of a workbook's table, whose first row names the columns. Cells without content are left out.

    The table is on the first visible sheet that has content. ``file`` must be seekable.

    Raises:
        UnreadableFileError: the file is not a workbook, or its columns do not fit. Raised before the first row.
    """
    rows = Workbook(file).rows()
    header = next(rows, None)
    if header is None:
        return
    if header.problem:
        raise UnreadableFileError(header.number, f"the header {header.problem}.")
    names = {column: name for column, cell in header.cells.items() if (name := clean_name(cell))}
    columns = list(names.values())
    check_columns(columns, parser, header.number)
    for position, row in enumerate(rows):
        unnamed = next((column for column in row.cells if column not in names), None)
        problem = row.problem
        if unnamed is not None:
            problem = f"has a value in column {column_name(unnamed)}, which has no name"
            if not position:
                raise UnreadableFileError(row.number, f"the row {problem}: name the column, or remove it.")
        elif row.cells == header.cells:
            problem = "repeats the header"
        problem = problem or replaced_value(row.cells.values()) or ""
        values = None if problem else {names[column]: text for column, text in row.cells.items()}
        yield Row(row.number, values, _raw(row), problem, columns=columns)


def _raw(row: SheetRow) -> str:
    return "\t".join(row.cells.values())
