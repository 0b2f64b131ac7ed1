"""The feed format ``parquet``, whose columns have the types of the data models. Needs the extra ``parquet``.

A file has one row per record, or with ``-a explode=`` one row per entry of the list. The file can be read only after
the feed is closed. For crawls that may be killed, use batches (``FEED_EXPORT_BATCH_ITEM_COUNT``) or JSON Lines instead.
"""

from __future__ import annotations

from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, cast

from scrapy.exporters import BaseItemExporter

from crawler.outputs.columns import ColumnType, ListOf, Scalar, Struct, coerce
from crawler.outputs.csv_exporter import table_fields
from crawler.outputs.selection import table_row
from crawler.targets.target import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

ROWS_PER_BATCH = 1_000
"""Maximum number of rows that are converted to columns at once. Each time, the crawl pauses for some milliseconds."""
FIRST_ROWS = 16
"""Number of rows of the first batch, whose size in bytes determines the number of rows of the next one."""
BATCH_BYTES = 1024 * 1024
"""Rows are converted in batches of about this many bytes. As Python objects, they take ten times as much memory."""
ROW_GROUP_BYTES = 4 * 1024 * 1024
"""Bytes that are buffered in memory before they are written as a row group."""
JSON_COLUMNS = frozenset({"params", "columns"})
TIME_COLUMN = "fetched_at"
NEVER_NULL = frozenset({"target_id", "root", "scraper", "params", TIME_COLUMN, "warnings"})


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Return the Arrow type for a column type. ``json`` columns are text."""
    import pyarrow as pa  # noqa: PLC0415  # needs the extra "parquet"

    if isinstance(column_type, Struct):
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in column_type.of.items()])
    if isinstance(column_type, ListOf):
        return pa.list_(arrow_type(column_type.of))
    kinds: dict[Scalar, pa.DataType] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "json": pa.string(),
    }
    return kinds[column_type]


def arrow_schema(columns: Struct) -> pa.Schema:
    """Return the schema of a table. ``columns``: as ``table_columns`` or a selection returns them."""
    import pyarrow as pa  # noqa: PLC0415  # needs the extra "parquet"

    times = {TIME_COLUMN: pa.timestamp("us", tz="UTC")}
    types = {name: times.get(name) or arrow_type(each) for name, each in _stored(columns).of.items()}
    return pa.schema([pa.field(name, each, nullable=name not in NEVER_NULL) for name, each in types.items()])


def _stored(columns: Struct) -> Struct:
    """Return the columns, with ``params`` and ``columns`` as JSON text: their keys differ by scraper and by file."""
    return Struct({name: "json" if name in JSON_COLUMNS else each for name, each in columns.of.items()})


class ParquetExporter(BaseItemExporter):
    """Writes records as rows of a Parquet file."""

    def __init__(self, file: IO[bytes], *, fields: Struct, **kwargs: Any) -> None:
        """``fields``: the columns, as ``table_columns`` or a selection returns them."""
        import pyarrow.parquet as pq  # noqa: PLC0415  # needs the extra "parquet"

        super().__init__(dont_fail=True, **kwargs)
        self.fields = _stored(fields)
        self.schema = arrow_schema(fields)
        self._writer = pq.ParquetWriter(file, self.schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._rows_per_batch = FIRST_ROWS
        self._batches: list[pa.RecordBatch] = []
        self._batch_bytes = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> ParquetExporter:
        spider = cast("PlatformSpider", crawler.spider)
        return cls(file, fields=table_fields(spider, identified=True), **kwargs)

    def export_item(self, item: Record | dict[str, Any]) -> None:
        """Add a record, or a row that ``exporters.exploded_rows`` has made."""
        self._rows.append(self._row(item))
        if len(self._rows) >= self._rows_per_batch:
            self._convert()
            if self._batch_bytes >= ROW_GROUP_BYTES:
                self._write()

    def finish_exporting(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # needs the extra "parquet"

        self._convert()
        self._write()
        self._writer.close()
        pa.default_memory_pool().release_unused()

    def _row(self, item: Record | dict[str, Any]) -> dict[str, Any]:
        row = coerce(table_row(item) if isinstance(item, Record) else item, self.fields)
        if TIME_COLUMN in row:
            row[TIME_COLUMN] = datetime.fromisoformat(row[TIME_COLUMN])
        return cast("dict[str, Any]", row)

    def _convert(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # needs the extra "parquet"

        if self._rows:
            batch = pa.RecordBatch.from_pylist(self._rows, schema=self.schema)
            rows = len(self._rows) * BATCH_BYTES // max(1, batch.nbytes)
            self._rows_per_batch = min(ROWS_PER_BATCH, max(FIRST_ROWS, rows))
            self._rows = []
            self._batches.append(batch)
            self._batch_bytes += batch.nbytes

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # needs the extra "parquet"

        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._batch_bytes = [], 0
