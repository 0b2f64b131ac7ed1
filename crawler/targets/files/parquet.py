"""Reads Parquet files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import IO

from crawler.targets.files.columns import check_columns
from crawler.targets.files.rows import Row
from crawler.targets.target import TargetParser

ROWS_PER_BATCH = 500
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_EXACT = 2.0**53
"""Integers up to this number are exact as a float."""


def read_parquet(file: IO[bytes], parser: TargetParser) -> Iterator[Row]:
    """Yield the rows without empty cells, and without the column that pandas adds for the index of a table.

    Cells are converted to text, as in CSV, because a column of ids may have a numeric type.

    Raises:
        UnreadableFileError: the columns do not fit. Raised before the first row.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # an extra, and slow to import

    parquet = ParquetFile(file)
    columns = [name for name in parquet.schema_arrow.names if not _PANDAS_INDEX.fullmatch(name)]
    check_columns(columns, parser)
    number = 0
    for batch in parquet.iter_batches(batch_size=ROWS_PER_BATCH, columns=columns):
        for row in batch.to_pylist():
            number += 1
            cells = {name: value for name, value in row.items() if not _is_empty(value)}
            problem = _problem(cells)
            if problem:
                yield Row(number, None, str(cells), problem)
            else:
                yield Row(number, {name: _text(value) for name, value in cells.items()})


def _is_empty(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _problem(cells: dict[str, object]) -> str | None:
    for name, value in cells.items():
        if isinstance(value, float) and abs(value) >= _EXACT:
            return f"has a number in the column {name!r} whose last digits are lost: store the column as text"
        if isinstance(value, bytes | list | dict):
            return f"has a value in the column {name!r} that is neither a text nor a number"
    return None


def _text(value: object) -> str:
    """Convert a cell to text. 2.0 becomes "2": some programs store integers as floats if the column has empty cells."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
