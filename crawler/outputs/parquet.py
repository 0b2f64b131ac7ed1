"""The feed format ``parquet``, whose columns have the types of the data models. Needs the extra ``parquet``.

A file has one row per target, or with ``-a explode=`` one row per entry of the list. It can be read only after the feed
is closed. For crawls that may be killed, use batches (``FEED_EXPORT_BATCH_ITEM_COUNT``) or JSON Lines instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, cast

import orjson
from scrapy.exporters import BaseItemExporter

from crawler.outputs.columns import ColumnType, ListOf, RecordPath, Scalar, Struct, coerce, column_type_of_models
from crawler.outputs.selection import WARNINGS, Selection, table_row
from crawler.targets.target import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

ROWS_PER_BATCH = 1_000
"""Number of rows that are converted to columns at once. A conversion blocks the crawl for a few milliseconds."""
ROW_GROUP_BYTES = 32 * 1024 * 1024
"""Bytes that are buffered in memory before they are written as a row group."""


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Return the Arrow type for a column type. ``json`` columns are text."""
    import pyarrow as pa  # noqa: PLC0415  # an extra

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


def arrow_schema(
    fields: Struct,
    row_path: RecordPath | None,
    *,
    sliced: bool = False,
    selection: Selection | None = None,
    has_own: bool = False,
) -> pa.Schema:
    """Return the columns of a file: columns to identify the target, then the keys of the data or of the list's rows.

    ``sliced``: whether requested targets are split into slices. Then ``root`` contains the id of the requested target.
    ``selection``: the columns to keep, and their order. ``has_own``: whether the targets have columns of the user's
    own, which are JSON text in one column.
    """
    import pyarrow as pa  # noqa: PLC0415  # an extra

    columns = [
        pa.field("target_id", pa.string(), nullable=False),
        *([pa.field("root", pa.string(), nullable=False)] if sliced else []),
        pa.field("scraper", pa.string(), nullable=False),
        pa.field("params", pa.string(), nullable=False),
        *([pa.field("columns", pa.string())] if has_own else []),
        pa.field("fetched_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("warnings", arrow_type(WARNINGS), nullable=False),
    ]
    if row_path is not None:
        columns.append(pa.field(row_path.position_column, pa.int64(), nullable=False))
    shown = fields if row_path is None else row_path.fields
    if selection is None:
        return pa.schema([*columns, *(pa.field(name, arrow_type(each)) for name, each in shown.of.items())])
    provenance = {column.name: column for column in columns}
    return pa.schema(
        [provenance.get(name) or pa.field(name, arrow_type(each)) for name, each in selection.fields.of.items()]
    )


def _provenance(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the columns of a row that identify its target, as far as the row has them."""
    cells = {name: row[name] for name in names if name in row}
    if "params" in cells:
        cells["params"] = orjson.dumps(cells["params"]).decode()
    if "columns" in cells:
        cells["columns"] = orjson.dumps(cells["columns"]).decode()
    if "fetched_at" in cells:
        cells["fetched_at"] = datetime.fromisoformat(cells["fetched_at"])
    return cells


class ParquetExporter(BaseItemExporter):
    """Writes records as rows of a Parquet file."""

    def __init__(  # noqa: PLR0913  # what a crawl's arguments decide
        self,
        file: IO[bytes],
        *,
        fields: Struct,
        row_path: RecordPath | None,
        sliced: bool = False,
        selection: Selection | None = None,
        has_own: bool = False,
        **kwargs: Any,
    ) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415  # an extra

        super().__init__(dont_fail=True, **kwargs)
        data = fields if row_path is None else row_path.fields
        self.fields = data if selection is None else selection.fields
        self.schema = arrow_schema(fields, row_path, sliced=sliced, selection=selection, has_own=has_own)
        self._provenance_names = [name for name in self.schema.names if name not in data.of]
        self._writer = pq.ParquetWriter(file, self.schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._batch_bytes = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> ParquetExporter:
        spider = cast("PlatformSpider", crawler.spider)
        fields = column_type_of_models([scraper.data for scraper in spider.scrapers])
        own = bool(spider.source.own_columns)
        shape: dict[str, Any] = {"sliced": spider.sliced, "selection": spider.selection, "has_own": own}
        return cls(file, fields=fields, row_path=spider.row_path, **shape, **kwargs)

    def export_item(self, item: Record | dict[str, Any]) -> None:
        """Add a record, or a row that ``exporters.exploded_rows`` has made."""
        self._rows.append(self._row(item))
        if len(self._rows) >= ROWS_PER_BATCH:
            self._convert()
            if self._batch_bytes >= ROW_GROUP_BYTES:
                self._write()

    def finish_exporting(self) -> None:
        self._convert()
        self._write()
        self._writer.close()

    def _row(self, item: Record | dict[str, Any]) -> dict[str, Any]:
        row = table_row(item) if isinstance(item, Record) else item
        return {**coerce(row, self.fields), **_provenance(row, self._provenance_names)}

    def _convert(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # an extra

        if self._rows:
            batch = pa.RecordBatch.from_pylist(self._rows, schema=self.schema)
            self._rows = []
            self._batches.append(batch)
            self._batch_bytes += batch.nbytes

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # an extra

        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._batch_bytes = [], 0
