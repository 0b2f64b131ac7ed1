"""The formats in which records are written.

Feeds, the options ``-o`` and ``-O``, ``scrapy jobs export``, the endpoint's downloads, the OpenAPI document, the
console and the table in ``docs/outputs.md`` are made from the table ``FORMATS``. To add a format, add its row and its
exporter, and run ``python -m tests.reference_tables``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["lines", "array", "table", "book", "database"]


@dataclass(frozen=True)
class Format:
    """A format of records. ``name`` is its name in ``FEEDS`` and in ``format=``, and the suffix of its files."""

    name: str
    title: str
    """Its name for people."""
    exporter: str
    """The path of its exporter, a subclass of Scrapy's ``BaseItemExporter``."""
    kind: Kind
    """``lines``: a record in each line, which can be read without the other lines. ``array``: records in JSON.

    ``table``: rows with the same columns. ``book``: a table of each scraper and one of the failures, in a
    compressed file that can be read only when it is closed. ``database``: tables of each scraper, which a URL names.
    """
    purpose: str
    """What the format is for, in Markdown."""
    needs: str = ""
    """What must be installed, in Markdown. "": nothing."""
    media_type: str = ""
    """The media type of the endpoint's response. "": the endpoint does not send this format."""
    aliases: tuple[str, ...] = ()
    """Further names and suffixes."""
    schemes: tuple[str, ...] = ()
    """The schemes of the URLs that select the format, instead of a suffix."""

    @property
    def has_rows(self) -> bool:
        """Whether records are rows with columns."""
        return self.kind in {"table", "book"}


FORMATS = {
    each.name: each
    for each in (
        Format(
            "jsonl",
            "JSON Lines",
            "crawler.outputs.exporters.JsonLinesExporter",
            "lines",
            "every purpose. If the crawl is killed, all complete lines are kept",
            media_type="application/x-ndjson",
            aliases=("jsonlines", "jl", "gz"),  # Scrapy takes the format of out.jsonl.gz from the last suffix
        ),
        Format(
            "json",
            "JSON",
            "scrapy.exporters.JsonItemExporter",
            "array",
            "small outputs, as one array",
            media_type="application/json",
        ),
        Format(
            "csv",
            "CSV",
            "crawler.outputs.exporters.CsvExporter",
            "table",
            "spreadsheets; one table, of scrapers with equal columns or of chosen fields",
            media_type="text/csv; charset=utf-8",
        ),
        Format(
            "xlsx",
            "Excel",
            "crawler.outputs.xlsx.XlsxExporter",
            "book",
            "spreadsheets, with types; a sheet for each scraper",
            media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        Format(
            "sql",
            "SQL",
            "crawler.outputs.feed_files.SqlExporter",
            "database",
            "the newest state of all records, products and posts, each in one row",
            needs="for PostgreSQL: extra `postgresql`",
            schemes=("sqlite", "postgresql", "postgres"),
        ),
    )
}
PLACES = ", ".join(f"{each.schemes[0]}://" if each.schemes else f".{name}" for name, each in FORMATS.items())
"""The suffixes and schemes that select the formats, for people."""
DEFAULT = FORMATS["jsonl"]
"""The format of downloads, and of files with the suffix ``.gz`` alone."""
NAMES = {name: each for each in FORMATS.values() for name in (each.name, *each.aliases)}
"""Name, alias or suffix -> its format."""
SERVED = {name: each for name, each in FORMATS.items() if each.media_type}
"""The formats that the endpoint sends."""
OF_FAILURES = {name: each for name, each in SERVED.items() if each.kind != "book"}
"""The formats in which the endpoint sends the failures of a job."""


def format_of(location: str) -> Format | None:
    """Return the format that the scheme of a URL or the suffix of a path selects. None: there is no such format.

    Raises:
        ValueError: as for ``suffix_of``.
    """
    if (found := scheme_format(location)) is not None:
        return found
    found = NAMES.get(suffix_of(location))
    return None if found is None or found.schemes else found


def scheme_format(location: str) -> Format | None:
    """Return the format that the scheme of a URL selects, or None."""
    scheme, colon, _ = location.partition("://")
    return next((each for each in FORMATS.values() if colon and scheme in each.schemes), None)


def suffix_of(location: str) -> str:
    """Return the suffix of a path or URL without its dot and without the suffix of gzip.

    >>> suffix_of("s3://bucket/out.csv.gz"), suffix_of("out.gz"), suffix_of("out")
    ('csv', 'jsonl', '')

    Raises:
        ValueError: gzip of a format whose files are already compressed.
    """
    path = PurePosixPath(location)
    if path.suffix != ".gz":
        return path.suffix.removeprefix(".")
    found = PurePosixPath(path.stem).suffix.removeprefix(".") or DEFAULT.name
    if found in NAMES and NAMES[found].kind == "book":
        raise ValueError(f"{location}: the data in {NAMES[found].title} files is already compressed; use {path.stem}")
    return found
