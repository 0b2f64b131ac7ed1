"""Exports rows to a file or database, and prints the peak of the process's memory in MB, and its processor seconds.

Usage: python -m benchmarks.exports jsonlines|csv|nothing ROWS FILE
       python -m benchmarks.exports sql ROWS URL
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy.exporters import BaseItemExporter

from benchmarks.records import PRODUCTS, SCRAPER, records
from benchmarks.stack import peak_megabytes
from crawler.outputs.columns import column_type_of_models, find_row_path
from crawler.outputs.csv_exporter import CsvExporter
from crawler.outputs.exporters import JsonLinesExporter, exploded_rows
from crawler.outputs.selection import table_columns
from crawler.outputs.sql_feed import open_database, split_password
from crawler.outputs.tables import Table

ROW_PATH = find_row_path(column_type_of_models([SCRAPER.data]), PRODUCTS)


def rows(number: int) -> Iterator[dict[str, Any]]:
    """Yield rows as ``-a explode=`` makes them, one for each product."""
    for record in records(number):
        yield from exploded_rows(record, ROW_PATH)


def export(kind: str, number: int, location: str) -> None:
    """Write the rows. ``nothing``: only make them. ``sql``: write each record to a database in its own transaction."""
    if kind == "sql":
        database = open_database(*split_password(location))
        database.prepare([SCRAPER])
        for record in records(number):
            database.write([{**record.provenance(), "data": record.data}])
        database.close()
        return
    with Path(location).open("wb") as out:
        exporter: BaseItemExporter | None = None
        if kind == "jsonlines":
            exporter = JsonLinesExporter(out)
        elif kind == "csv":
            exporter = CsvExporter(out, Table(table_columns([SCRAPER], ROW_PATH, sliced=False)))
        for row in rows(number):
            if exporter:
                exporter.export_item(row)


if __name__ == "__main__":
    export(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    print(peak_megabytes(os.getpid()), time.process_time())
