"""The feed format ``parquet``: typed, nested columns, made from the data models. Needs the extra ``parquet``.

One row a target, or one a row of a list with ``-a explode=``. The file is whole only when the feed is closed: a crawl
that may be killed writes batches (``FEED_EXPORT_BATCH_ITEM_COUNT``) or JSON Lines.
"""

from __future__ import annotations

from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, cast

import orjson
from scrapy.exporters import BaseItemExporter

from crawler.outputs.columns import ColumnType, ListOf, RecordPath, Scalar, Struct, coerce, column_type_of_models
from crawler.targets.target import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

CONVERTED_AT_ONCE = 1_000
"""Rows that are turned into columns in one go: a few milliseconds of the crawl's own time."""
ROW_GROUP_BYTES = 32 * 1024 * 1024
"""What is held in memory before it is written as a row group."""


def arrow_type(shape: ColumnType) -> pa.DataType:
    """The column type of a shape; what has no fixed shape is text."""
    import pyarrow as pa  # noqa: PLC0415  # an extra

    if isinstance(shape, Struct):
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in shape.of.items()])
    if isinstance(shape, ListOf):
        return pa.list_(arrow_type(shape.of))
    kinds: dict[Scalar, pa.DataType] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "json": pa.string(),
    }
    return kinds[shape]


def arrow_schema(fields: Struct, place: RecordPath | None) -> pa.Schema:
    """The columns of a file: what joins a row to its target, then the data's keys, or those of the list's rows."""
    import pyarrow as pa  # noqa: PLC0415  # an extra

    columns = [
        pa.field("target_id", pa.string(), nullable=False),
        pa.field("scraper", pa.string(), nullable=False),
        pa.field("params", pa.string(), nullable=False),
        pa.field("fetched_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
    if place is not None:
        columns.append(pa.field("position", pa.int64(), nullable=False))
    shown = fields if place is None else place.fields
    return pa.schema([*columns, *(pa.field(name, arrow_type(each)) for name, each in shown.of.items())])


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


class ParquetExporter(BaseItemExporter):
    """Writes records as the rows of one Parquet file, compressed column by column."""

    def __init__(self, file: IO[bytes], *, fields: Struct, place: RecordPath | None, **kwargs: Any) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415  # an extra

        super().__init__(dont_fail=True, **kwargs)
        self.fields = fields
        self.place = place
        self.schema = arrow_schema(fields, place)
        self._writer = pq.ParquetWriter(file, self.schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._held = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> ParquetExporter:
        spider = cast("PlatformSpider", crawler.spider)
        fields = column_type_of_models([scraper.data for scraper in spider.scrapers])
        return cls(file, fields=fields, place=spider.exploded, **kwargs)

    def export_item(self, item: Record | dict[str, Any]) -> None:
        """Adds a record, or a row of ``exporters.exploded_rows``."""
        self._rows.append(self._row(item))
        if len(self._rows) >= CONVERTED_AT_ONCE:
            self._convert()
            if self._held >= ROW_GROUP_BYTES:
                self._write()

    def finish_exporting(self) -> None:
        self._convert()
        self._write()
        self._writer.close()

    def _row(self, item: Record | dict[str, Any]) -> dict[str, Any]:
        if isinstance(item, Record):
            target = item.target.as_dict()
            joined = {"target_id": target["id"], "scraper": target["scraper"], "fetched_at": item.fetched_at}
            return {**joined, "params": _json(target["params"]), **coerce(item.data, self.fields)}
        assert self.place is not None
        joined = {"target_id": item["target_id"], "scraper": item["scraper"], "position": item["position"]}
        joined["fetched_at"] = datetime.fromisoformat(item["fetched_at"])
        return {**joined, "params": _json(item["params"]), **coerce(item, self.place.fields)}

    def _convert(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # an extra

        if self._rows:
            batch = pa.RecordBatch.from_pylist(self._rows, schema=self.schema)
            self._rows = []
            self._batches.append(batch)
            self._held += batch.nbytes

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # an extra

        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._held = [], 0
