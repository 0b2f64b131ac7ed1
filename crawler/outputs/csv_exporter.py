"""The feed format ``csv``, as tables that spreadsheets can open."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import orjson
from itemadapter import ItemAdapter
from scrapy.exporters import CsvItemExporter
from scrapy.utils.conf import feed_complete_default_values_from_settings

from crawler.outputs.columns import Struct, column_type_of_models
from crawler.outputs.failures import is_for_failures
from crawler.outputs.feed_files import fixed_path
from crawler.outputs.selection import flat_columns, flat_row, table_columns, table_row
from crawler.targets.files.delimited import FORMULA_START
from crawler.targets.target import Record

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawler.spiders.base import PlatformSpider

FORMULA = re.compile(FORMULA_START)
NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")
"""Matches text that is a number. A number is not a formula even if it starts with a sign."""


class UnusableFileError(Exception):
    """Raised when the lines of this run cannot be appended to the file of a feed. The message contains the remedy."""


class CsvExporter(CsvItemExporter):
    """Writes a table. Its columns are those of the target (in a batch), the fields of the data model, and other keys of
    the first item.

    The fields of nested objects are columns with dotted names. A list is JSON in one cell. Text that a spreadsheet
    would evaluate as a formula is escaped. In contrast, Scrapy's ``CsvItemExporter`` writes only the columns of the
    first item, and writes the header again when it appends to a file.
    """

    def __init__(
        self,
        file: Any,
        *,
        fields: Struct | None = None,
        has_more_keys: bool = True,
        escape: bool = True,
        bom: bool = False,
        **kwargs: Any,
    ) -> None:
        """``fields``: the columns, as nested objects. ``has_more_keys``: add the other keys of the first item, too.

        ``escape``: escape formulas. ``bom``: begin a new file with a byte order mark.

        Raises:
            UnusableFileError: the file has other columns.
        """
        self.fields = fields or Struct({})
        self.escape = escape
        named = kwargs.get("fields_to_export")  # the option ``fields`` of the feed
        self.columns = _columns(self.fields, named)
        self._may_grow = has_more_keys and not named
        is_appended = "a" in str(getattr(file, "mode", ""))
        header = _existing_header(Path(file.name), kwargs.get("delimiter", ",")) if is_appended else None
        if header is not None:
            _check_header(header, self.columns, file.name, may_grow=self._may_grow)
            self.columns, self._may_grow = header, False
            _end_last_line(Path(file.name))
        elif bom:
            kwargs["encoding"] = "utf-8-sig"
        with_header = bool(kwargs.pop("include_headers_line", True)) and header is None
        self._needs_header = with_header and bool(self.columns)
        super().__init__(file, include_headers_line=with_header, **kwargs)
        self.fields_to_export = named or self.columns

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> CsvExporter:
        spider = cast("PlatformSpider", crawler.spider)
        return cls(
            file,
            fields=table_fields(spider),
            has_more_keys=spider.selection is None,
            escape=crawler.settings.getbool("CSV_ESCAPE_FORMULAS"),
            bom=crawler.settings.getbool("CSV_BOM"),
            **kwargs,
        )

    def export_item(self, item: Any) -> None:
        data = item.data if isinstance(item, Record) else ItemAdapter(item).asdict()
        if self._may_grow:
            self.columns += [name for name in flat_row(data, self.fields) if name not in self.columns]
            self._may_grow = False
        self._needs_header = False
        super().export_item(flat_row(table_row(item) if isinstance(item, Record) else data, self.fields))

    def finish_exporting(self) -> None:
        """Write the header of a table without rows, and release the file."""
        if self._needs_header:
            self.csv_writer.writerow(self.columns)
        super().finish_exporting()

    def serialize_field(self, field: Any, name: str, value: Any) -> Any:
        if isinstance(value, dict | list | bool):
            return orjson.dumps(value).decode()
        if self.escape and isinstance(value, str):
            return escaped(value)
        return super().serialize_field(field, name, value)


def escaped(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would evaluate as a formula. Numbers are not changed.

    To restore the text, remove one apostrophe from each cell that matches ``FORMULA`` and starts with an apostrophe.

    >>> escaped("=1+1"), escaped("-12.5"), escaped("'=1")
    ("'=1+1", '-12.5', "''=1")
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def table_fields(spider: PlatformSpider) -> Struct:
    """Return the columns of a run's tables, as nested objects."""
    if spider.selection is not None:
        return spider.selection.fields
    if spider.row_path is None and not spider.batch:
        return column_type_of_models([scraper.data for scraper in spider.scrapers])
    return table_columns(spider.scrapers, spider.row_path, sliced=spider.sliced, own=spider.source.own_columns)


def check_existing_files(spider: PlatformSpider, settings: BaseSettings) -> None:
    """Check that the records of a crawl can be appended to the existing CSV files of its feeds.

    Raises:
        UnusableFileError: the columns of a file differ.
    """
    for uri, given in settings.getdict("FEEDS").items():
        options = feed_complete_default_values_from_settings(given, settings, str(uri))
        path = fixed_path(str(uri), spider)
        is_table = options["format"] == "csv" and "postprocessing" not in options and not is_for_failures(options)
        if not is_table or path is None or path.suffix == ".gz" or options.get("overwrite"):
            continue
        named = options["fields"]
        header = _existing_header(path, options["item_export_kwargs"].get("delimiter", ","))
        if header is not None:
            columns, may_grow = _columns(table_fields(spider), named), spider.selection is None and not named
            _check_header(header, columns, str(path), may_grow=may_grow)


def _check_header(header: list[str], columns: list[str], name: str, *, may_grow: bool) -> None:
    known = header[: len(columns)] if may_grow else header
    if known != columns:
        raise UnusableFileError(f"{name} has different columns from this run's: use -O, or another file")


def _columns(fields: Struct, named: Collection[str] | Mapping[str, str] | None) -> list[str]:
    """Return the columns of a table. ``named``: the option ``fields`` of the feed."""
    return list(named.values() if isinstance(named, Mapping) else named or flat_columns(fields))


def _existing_header(path: Path, delimiter: str) -> list[str] | None:
    """Return the header of a local file, or None if the file is missing or empty."""
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as existing:
        return next(csv.reader(existing, delimiter=delimiter), None)


def _end_last_line(path: Path) -> None:
    """Add a newline at the end of a file, if it is missing."""
    with path.open("rb+") as existing:
        existing.seek(-1, os.SEEK_END)
        if existing.read(1) not in {b"\n", b"\r"}:
            existing.write(b"\r\n")
