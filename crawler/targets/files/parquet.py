"""Reads Parquet files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from crawler.targets.files.columns import check_columns
from crawler.targets.files.rows import MAX_CELL_CHARACTERS, Row, UnreadableFileError
from crawler.targets.parser import TargetParser

if TYPE_CHECKING:
    from pyarrow import Array, Scalar
    from pyarrow.parquet import FileMetaData

ROWS_PER_BATCH = 500
MAX_BATCH_BYTES = 16 * 1024**2
"""Maximum bytes, as the file states them, of the rows that are read at once. At least one row is read."""
MAX_GROUP_BYTES = 512 * 1024**2
"""Maximum uncompressed bytes of a row group: a single page of a column, which is read at once, may be that large."""
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_EXACT = 2.0**53
"""Floats represent integers up to this number exactly."""


def read_parquet(file: IO[bytes], parser: TargetParser) -> Iterator[Row]:
    """Yield each row, without its empty cells and the column that pandas adds for the index of a table.

    Cells are converted to text, as in CSV, because a column of ids may have a numeric type.

    Raises:
        UnreadableFileError: the columns do not fit, or a row group is too large. Raised before the first row.
    """
    import pyarrow as pa  # noqa: PLC0415  # in an extra, and slow to import
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    schema = ParquetFile(file).schema_arrow
    columns = [name for name in schema.names if not _PANDAS_INDEX.fullmatch(name)]
    check_columns(columns, parser)
    nested = [name for name in columns if pa.types.is_nested(schema.field(name).type)]
    if nested:
        raise UnreadableFileError(1, f"the column {nested[0]!r} has lists or objects: remove it, or store it as text.")
    kinds = {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}
    texts = [name for name in columns if schema.field(name).type in kinds]
    parquet = ParquetFile(file, read_dictionary=texts)  # a text of 3 MB in 500 rows then takes 3 MB, not 1.5 GB
    number = 0
    for batch in parquet.iter_batches(batch_size=_batch_size(parquet.metadata), columns=columns):
        values = [_values(batch.column(name)) for name in columns]
        for row in zip(*values, strict=True):
            number += 1
            cells = {name: value for name, value in zip(columns, row, strict=True) if not _is_empty(value)}
            problem = _problem(cells)
            if problem:
                yield Row(number, None, str(cells), problem, columns=columns)
            else:
                yield Row(number, {name: _text(value) for name, value in cells.items()}, columns=columns)


class _TooLong:
    """Stands for a text that is longer than a cell may be."""

    def __repr__(self) -> str:
        return "..."


_TOO_LONG = _TooLong()


def _batch_size(metadata: FileMetaData) -> int:
    """Return how many rows to read at once.

    Raises:
        UnreadableFileError: a row group is so large that a page of it may not fit into memory.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    largest = max((group.total_byte_size for group in groups), default=0)
    if largest > MAX_GROUP_BYTES:
        raise UnreadableFileError(
            1, f"a row group has {largest:,} bytes, of at most {MAX_GROUP_BYTES:,}: write smaller row groups."
        )
    per_row = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(ROWS_PER_BATCH, MAX_BATCH_BYTES // max(per_row, 1)))


def _values(column: Array) -> list[object]:
    """Return the values of a column. Equal texts in a dictionary-encoded column are the same object."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    indices = column.indices.to_pylist()
    texts = {index: _short(column.dictionary[index]) for index in set(indices) if index is not None}
    return [texts.get(index) for index in indices]


def _short(scalar: Scalar) -> object:
    """Return the value of a text, or ``_TOO_LONG`` if it is too long. A much too long text is not even read."""
    if scalar.as_buffer().size > 4 * MAX_CELL_CHARACTERS:
        return _TOO_LONG
    value = scalar.as_py()
    return value if len(value) <= MAX_CELL_CHARACTERS else _TOO_LONG


def _is_empty(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _problem(cells: dict[str, object]) -> str | None:
    for name, value in cells.items():
        if value is _TOO_LONG:
            return f"has a text in the column {name!r} of more than {MAX_CELL_CHARACTERS:,} characters"
        if isinstance(value, float) and abs(value) >= _EXACT:
            return f"has a number in the column {name!r} whose last digits are lost: store the column as text"
        if isinstance(value, bytes):
            return f"has a value in the column {name!r} that is neither a text nor a number"
    return None


def _text(value: object) -> str:
    """Convert a cell to text. 2.0 becomes "2": some programs store integers as floats if the column has empty cells."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
