"""Tables of records: their columns, and the base class of their exporters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Self, cast

from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter

from crawler.outputs.columns import Struct, column_type_of_models
from crawler.outputs.selection import flat_columns, flat_row, table_columns, table_row
from crawler.targets.lines import FAILURE_KEYS
from crawler.targets.target import Record

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.spiders.base import PlatformSpider

RECORDS = "records"
"""The title of a table of records."""


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


FAILURES = Table(Struct(dict.fromkeys(FAILURE_KEYS, "json")), title="failures")
"""The table of failures: a column for each key."""


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
        if self.may_grow:
            self.titles |= {name: name for name in flat_row(own, self.table.fields) if name not in self.titles}
            self.may_grow = False
        row = flat_row(row, self.table.fields)
        self.write_row({title: row[name] for name, title in self.titles.items() if name in row})

    def write_row(self, row: dict[str, Any]) -> None:
        """Write the values of a row by the titles of their columns."""
        raise NotImplementedError
