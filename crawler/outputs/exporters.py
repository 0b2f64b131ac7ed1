"""The exporter for JSON Lines, and the rows of ``-a explode=``. Tables have modules of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import IO, TYPE_CHECKING, Any

import orjson
from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter
from scrapy.utils.misc import load_object

from crawler.outputs.columns import RecordPath
from crawler.outputs.selection import identified
from crawler.targets.target import Entries, Record

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.outputs.formats import Format
    from crawler.outputs.tables import Table
    from crawler.outputs.xlsx import XlsxBook


class JsonLinesExporter(BaseItemExporter):
    """Writes JSON Lines in UTF-8. The bytes of ``data`` are the same as in the endpoint's response."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.file = file

    def export_item(self, item: Any) -> None:
        line = item if isinstance(item, dict) else ItemAdapter(item).asdict()
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def open_exporter(chosen: Format, file: IO[bytes] | XlsxBook, table: Table, settings: BaseSettings) -> BaseItemExporter:
    """Return the started exporter of a file without a crawl. ``table``: the form of the rows of a table."""
    options = {"settings": settings, "table": table} if chosen.has_rows else {"encoding": "utf-8", "indent": 0}
    exporter: BaseItemExporter = load_object(chosen.exporter)(file, **options)
    exporter.start_exporting()
    return exporter


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
