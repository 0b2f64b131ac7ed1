"""The exporters for JSON Lines and for tables: CSV that spreadsheets can open. The rows of ``-a explode=``."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self, cast

import orjson
from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter
from scrapy.utils.conf import feed_complete_default_values_from_settings
from scrapy.utils.misc import load_object

from crawler.outputs.columns import ColumnType, RecordPath, Struct, column_type_of_models
from crawler.outputs.feed_files import Failure, fixed_path, is_for_failures, kind_of
from crawler.outputs.formats import NAMES
from crawler.outputs.selection import flat_columns, flat_row, identified, table_columns, table_row
from crawler.targets.files.tables import FORMULA_START
from crawler.targets.target import FAILURE_KEYS, Entries, Record

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawler.spiders.base import PlatformSpider

RECORDS, FAILURES = "records", "failures"
"""The titles of the tables of records and of failures."""


@dataclass(frozen=True)
class Table:
    """The form of a table: its columns as nested objects, and its name."""

    fields: Struct
    has_more_keys: bool = False
    """Whether the other keys of the first item are columns, too."""
    title: str = RECORDS

    @classmethod
    def of(cls, spider: PlatformSpider) -> Table:
        """Return the form of a run's tables."""
        if spider.selection is not None:
            return cls(spider.selection.fields)
        if spider.row_path is None and not spider.batch:
            return cls(column_type_of_models([scraper.data for scraper in spider.scrapers]), has_more_keys=True)
        own = spider.source.own_columns
        return cls(table_columns(spider.scrapers, spider.row_path, sliced=spider.sliced, own=own), has_more_keys=True)

    def titles(self, named: Iterable[str] | Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the dotted name of each value and the title of its column.

        ``named``: the columns, from the option ``fields`` of a feed. None or empty: those of ``fields``.
        """
        if isinstance(named, Mapping):
            return dict(named)
        return {name: name for name in named or flat_columns(self.fields)}


def failures_table(own: Iterable[str] = ()) -> Table:
    """Return the table of failures: a column for each key. ``own``: the names of the user's own columns."""
    columns: dict[str, ColumnType] = {}
    for key in FAILURE_KEYS:
        columns[key] = "json"
        if key == "params" and own:
            columns["columns"] = Struct(dict.fromkeys(own, "text"))
    return Table(Struct(columns), title=FAILURES)


CHANGE_KEYS = (
    *("change", "id", "scraper", "params", "columns", "run", "baseline_run"),
    *("rows", "key", "path", "old", "new", "code"),
)
CHANGES = Table(Struct(dict.fromkeys(CHANGE_KEYS, "json")), title="changes")
"""The table of the changes between two runs of a job."""


class TableExporter(BaseItemExporter):
    """The base class of the exporters of tables. The fields of nested objects are columns with dotted names."""

    def __init__(
        self,
        file: Any,
        table: Table,
        *,
        fields_to_export: Iterable[str] | Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """``file``: the file of the table. ``fields_to_export``: see ``Table.titles``."""
        super().__init__(dont_fail=True, fields_to_export=fields_to_export, **kwargs)
        self.file = file
        self.table = table
        self.titles = table.titles(fields_to_export)
        """Dotted name of a value -> the title of its column."""
        self.may_grow = table.has_more_keys and not fields_to_export

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> Self:
        return cls(file, Table.of(cast("PlatformSpider", crawler.spider)), **kwargs)

    def export_item(self, item: Any) -> None:
        """Write a record, a row that ``exporters.exploded_rows`` has made, or a failure."""
        if isinstance(item, Record):
            row, own = table_row(item), item.data
        else:
            row = own = item if isinstance(item, dict) else ItemAdapter(item).asdict()
        fields = failures_table(row.get("columns", ())).fields if isinstance(item, Failure) else self.table.fields
        if self.may_grow:
            self.titles |= {name: name for name in flat_row(own, self.table.fields) if name not in self.titles}
            self.may_grow = False
        row = flat_row(row, fields)
        self.write_row({title: row[name] for name, title in self.titles.items() if name in row})

    def write_row(self, row: dict[str, Any]) -> None:
        """Write the values of a row by the titles of their columns."""
        raise NotImplementedError


class JsonLinesExporter(BaseItemExporter):
    """Writes JSON Lines in UTF-8. The bytes of ``data`` are the same as in the endpoint's response."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.file = file

    def export_item(self, item: Any) -> None:
        line = item if isinstance(item, dict) else ItemAdapter(item).asdict()
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def exploded_rows(record: Record, row_path: RecordPath, new: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield one row for each entry of a list in the record's data, with the columns that join it to its target.

    ``new``: the ids of the entries to write, if ``-a since=`` compares this list. None: all entries.
    """
    return joined_rows(record.provenance(), record.data, row_path, record.target.scraper.entries, new)


def joined_rows(
    provenance: dict[str, Any],
    data: dict[str, Any],
    row_path: RecordPath,
    entries: Entries | None,
    new: Collection[str] | None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows for ``exploded_rows``. ``provenance``: the keys that precede the data in a feed line."""
    joined = identified(provenance)
    key = entries.key if entries and entries.path == ".".join(row_path.path) else None
    for position, row in enumerate(row_path.rows(data)):
        if new is None or key is None or row.get(key) in new:
            yield {**joined, row_path.position_column: position, **row}


FORMULA = re.compile(FORMULA_START)
NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")
"""Matches text that is a number. A number is not a formula even if it starts with a sign."""


AS_JSON = (dict, list, tuple, bool)
"""The types of values that are JSON in a cell."""


class UnusableFileError(Exception):
    """Raised when the lines of this run cannot be appended to the file of a feed. The message contains the remedy."""


class CsvExporter(TableExporter):
    """Writes a table as text. A list is JSON in one cell. Text that a spreadsheet would evaluate as a formula is
    escaped.

    In contrast, Scrapy's ``CsvItemExporter`` writes only the columns of the first item, and writes the header again
    when it appends to a file.
    """

    delimiter: ClassVar = ","

    def __init__(  # noqa: PLR0913  # the options of Scrapy's exporter
        self,
        file: IO[bytes],
        table: Table,
        *,
        settings: BaseSettings | None = None,
        fields_to_export: Collection[str] | Mapping[str, str] | None = None,
        encoding: str | None = None,
        include_headers_line: bool = True,
        errors: str | None = None,
        indent: int | None = None,
        **dialect: Any,
    ) -> None:
        """``settings``: whether formulas are escaped, and whether a new file begins with a byte order mark.

        The other arguments are those of Scrapy's exporter; ``indent`` has no effect. ``dialect``: arguments of
        ``csv.writer``.

        Raises:
            UnusableFileError: the file has other columns.
        """
        super().__init__(file, table, fields_to_export=fields_to_export)
        self.escape = settings is None or settings.getbool("CSV_ESCAPE_FORMULAS")
        dialect = {"delimiter": self.delimiter, **dialect}
        header = None
        if "a" in str(getattr(file, "mode", "")):
            header = _header(Path(file.name), dialect["delimiter"], self.titles, may_grow=self.may_grow)
        if header is not None:
            known = {title: name for name, title in self.titles.items()}
            self.titles, self.may_grow = {known.get(title, title): title for title in header}, False
            _end_last_line(Path(file.name))
        elif settings is not None and settings.getbool("CSV_BOM"):
            encoding = "utf-8-sig"
        self._needs_header = include_headers_line and header is None
        self._stream = TextIOWrapper(file, encoding or "utf-8", errors, newline="", write_through=True)
        self._writer = csv.writer(self._stream, **dialect)

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> Self:
        return super().from_crawler(crawler, file, settings=crawler.settings, **kwargs)

    def write_row(self, row: dict[str, Any]) -> None:
        self._write_header()
        self._writer.writerow([self._cell(row.get(title)) for title in self.titles.values()])

    def finish_exporting(self) -> None:
        """Write the header of a table without rows, and release the file."""
        self._write_header()
        self._stream.detach()

    def _write_header(self) -> None:
        if self._needs_header and self.titles:
            self._writer.writerow(self.titles.values())
        self._needs_header = False

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str):
            return escaped(value) if self.escape else value
        return orjson.dumps(value).decode() if isinstance(value, AS_JSON) else value


def escaped(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would evaluate as a formula. Numbers are not changed.

    To restore the text, remove one apostrophe from each cell that matches ``FORMULA`` and starts with an apostrophe.

    >>> escaped("=1+1"), escaped("-12.5"), escaped("'=1")
    ("'=1+1", '-12.5', "''=1")
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def check_existing_files(spider: PlatformSpider, settings: BaseSettings) -> None:
    """Check that the records of a crawl can be appended to the existing tables of its feeds.

    Raises:
        UnusableFileError: the columns of a file differ.
    """
    for uri, given in settings.getdict("FEEDS").items():
        options = feed_complete_default_values_from_settings(given, settings, str(uri))
        path = fixed_path(str(uri), spider)
        is_table = kind_of(options) == "table" and "postprocessing" not in options and not is_for_failures(options)
        if not is_table or path is None or path.suffix == ".gz" or options.get("overwrite"):
            continue
        exporter: type[CsvExporter] = load_object(NAMES[options["format"]].exporter)
        delimiter = options["item_export_kwargs"].get("delimiter", exporter.delimiter)
        table, named = Table.of(spider), options["fields"]
        _header(path, delimiter, table.titles(named), may_grow=table.has_more_keys and not named)


def _header(path: Path, delimiter: str, titles: Mapping[str, str], *, may_grow: bool) -> list[str] | None:
    """Return the header of a local file to which rows are added. None: the file is missing or empty.

    ``titles``: as in ``TableExporter``. ``may_grow``: the header may have further columns.

    Raises:
        UnusableFileError: the header has other columns.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as existing:
        header = next(csv.reader(existing, delimiter=delimiter), None)
    columns = [*titles.values()]
    if header is not None and columns != (header[: len(columns)] if may_grow else header):
        raise UnusableFileError(f"{path} has different columns from this run's: use -O, or another file")
    return header


def _end_last_line(path: Path) -> None:
    """Add a newline at the end of a file, if it is missing."""
    with path.open("rb+") as existing:
        existing.seek(-1, os.SEEK_END)
        if existing.read(1) not in {b"\n", b"\r"}:
            existing.write(b"\r\n")
