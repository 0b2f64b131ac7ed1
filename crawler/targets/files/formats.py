"""Selects the reader of a targets file by the file's name and first characters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

from crawler.targets.files.delimited import is_header, read_table
from crawler.targets.files.json import read_json_array, read_json_lines
from crawler.targets.files.plain import read_list
from crawler.targets.files.rows import Row, UnreadableFileError
from crawler.targets.files.text import TextFile
from crawler.targets.files.workbook import read_xlsx
from crawler.targets.parser import TargetParser

TABLES = {".csv": ",;\t", ".tsv": "\t,;", ".tab": "\t,;"}
"""Suffix of a table -> its possible separators, the usual one first."""
JSON_LINES = {".jsonl", ".ndjson", ".jl", ".json"}
WORKBOOKS = {".xlsx", ".xlsm"}

_OTHER_FORMATS = {
    b"PK\x03\x04": "a spreadsheet or an archive. Give an Excel workbook the suffix .xlsx, or save it as CSV (UTF-8).",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old format. Save it as .xlsx or as CSV (UTF-8).",
    b"\x1f\x8b": "compressed with gzip. Give its name the suffix .gz.",
    b"PAR1": "a Parquet file. Save it as CSV or JSON Lines, such as with DuckDB.",
    b"BZh": "compressed with bzip2. Compress it with gzip instead.",
    b"\xfd7zXZ": "compressed with xz. Compress it with gzip instead.",
}


def read_rows(file: IO[bytes], path: str, parser: TargetParser, encoding: str | None = None) -> Iterator[Row]:
    """Return the rows of a file. JSON objects have values of any type, all other rows have texts.

    ``path``: the name of the file, whose suffix selects Excel, tables and JSON. ``encoding``: the encoding of
    text files without a byte order mark, UTF-8 by default.

    Raises:
        UnreadableFileError: the file has none of the formats, or cannot be read in its format.
    """
    suffix = suffix_of(path)
    if suffix in WORKBOOKS:
        return read_xlsx(file, parser)
    text = TextFile.of(file, encoding)
    for magic, what in _OTHER_FORMATS.items():
        if text.head.startswith(magic):
            raise UnreadableFileError(1, f"the file is {what}")
    if suffix in TABLES:
        return read_table(text, parser, TABLES[suffix])
    start = text.start
    if start.startswith("["):
        return read_json_array(text)
    if suffix in JSON_LINES or start.startswith("{"):
        return read_json_lines(text)
    if start and is_header(start.splitlines()[0], parser):
        return read_table(text, parser)
    return read_list(text)


def suffix_of(path: str) -> str:
    """Return the suffix of a path in lower case, without the suffix of gzip: ``.csv`` for ``A.CSV.gz``."""
    return PurePosixPath(path.lower().removesuffix(".gz")).suffix
