"""Feed exporters that replace Scrapy's own, and the rows of ``-a explode=``. Parquet is in ``parquet.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, cast

import orjson
from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter, CsvItemExporter

from crawler.outputs.columns import RecordPath, Struct, column_type_of_models
from crawler.outputs.failures import Failure
from crawler.targets.target import Record

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider


class JsonLinesExporter(BaseItemExporter):
    """Writes JSON Lines in UTF-8. The bytes of ``data`` are the same as in the endpoint's response."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.file = file

    def export_item(self, item: Any) -> None:
        line = item if isinstance(item, dict) else ItemAdapter(item).asdict()
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


class CsvExporter(CsvItemExporter):
    """Writes CSV with the columns of the data model. Lists and objects are written as JSON.

    Scrapy's own exporter writes only the columns that the first item has.
    """

    def __init__(self, file: Any, *, fields: Struct | None = None, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.fields = fields

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **kwargs: Any) -> CsvExporter:
        spider = cast("PlatformSpider", crawler.spider)
        row_path = spider.exploded
        fields = row_path.fields if row_path else column_type_of_models([scraper.data for scraper in spider.scrapers])
        return cls(file, fields=fields, **kwargs)

    def export_item(self, item: Any) -> None:
        line = isinstance(item, Failure) or (isinstance(item, Record) and item.is_line)
        if not self.fields_to_export and self.fields and not line:
            self.fields_to_export = list(dict.fromkeys([*item, *self.fields.of]))
        super().export_item(item)

    def serialize_field(self, field: Any, name: str, value: Any) -> Any:
        if isinstance(value, dict | list | bool):
            return orjson.dumps(value).decode()
        return super().serialize_field(field, name, value)


def exploded_rows(record: Record, row_path: RecordPath) -> Iterator[dict[str, Any]]:
    """Yield one row for each entry of a list in the record's data, with the columns that join it to its target."""
    provenance = record.provenance()
    joined = {"target_id": provenance.pop("id"), **provenance}
    for position, row in enumerate(row_path.rows(record.data)):
        yield {**joined, "position": position, **row}
