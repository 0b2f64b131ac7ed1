"""Exports rows to a file, and prints the peak of the process's memory in MB.

Usage: python -m benchmarks.exports jsonlines|nothing ROWS FILE
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.records import PRODUCTS, SCRAPER, records
from benchmarks.stack import peak_megabytes
from crawler.outputs.columns import column_type_of_models, find_row_path
from crawler.outputs.exporters import JsonLinesExporter, exploded_rows

ROW_PATH = find_row_path(column_type_of_models([SCRAPER.data]), PRODUCTS)


def rows(number: int) -> Iterator[dict[str, Any]]:
    """Yield rows as ``-a explode=`` makes them, one for each product."""
    for record in records(number):
        yield from exploded_rows(record, ROW_PATH)


def export(kind: str, number: int, file: Path) -> None:
    """Write the rows to a file. ``nothing``: only make them."""
    with file.open("wb") as out:
        exporter = JsonLinesExporter(out) if kind == "jsonlines" else None
        for row in rows(number):
            if exporter:
                exporter.export_item(row)


if __name__ == "__main__":
    export(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    print(peak_megabytes(os.getpid()))
