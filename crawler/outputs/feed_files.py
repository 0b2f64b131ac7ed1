"""The files of feeds, whose incomplete last lines are repaired, the lines of failed targets, and feeds in databases.

SQLAlchemy is imported late.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

import orjson
import structlog
from scrapy.exporters import BaseItemExporter
from scrapy.extensions.feedexport import ItemFilter
from scrapy.utils.misc import load_object
from w3lib.url import file_uri_to_path

from crawler.outputs.formats import FORMATS, NAMES, format_of, scheme_format
from crawler.targets.target import InvalidTarget, Outcome, Record, failure_keys

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from crawler.outputs.formats import Kind
    from crawler.outputs.sql import Database

logger = structlog.get_logger(__name__)

OF_BATCHES = {"batch_time", "batch_id"}
VARYING = {"time", "job"} | OF_BATCHES
"""Placeholders in feed URIs whose values differ between the starts or batches of one feed."""
_PLACEHOLDER = re.compile(r"%\(([^()]+)\)([-+ #0]*+\d*+[a-zA-Z])")
_READ_BYTES = 65_536


def is_local(uri: str) -> bool:
    """Whether a feed URI or URI template refers to a file on this machine or to the standard output."""
    return "://" not in uri or uri.startswith("file:")


def holds_lines(uri: str, options: Mapping[str, Any]) -> bool:
    """Whether a feed is a local JSON Lines feed, whose lines can be read as soon as they are flushed."""
    return is_local(uri) and kind_of(options) == "lines" and "postprocessing" not in options


def kind_of(options: Mapping[str, Any]) -> Kind | None:
    """Return the kind of a feed's format. None: the format is not the project's."""
    return NAMES[options["format"]].kind if options["format"] in NAMES else None


def absolute_path(uri: str) -> str:
    """Return the absolute path of a local feed URI or URI template."""
    return str(Path(file_uri_to_path(uri) if uri.startswith("file:") else uri).absolute())


def placeholders(template: str) -> set[str]:
    """Return the names of the placeholders in a feed URI template."""
    return {name for name, _ in _PLACEHOLDER.findall(template)}


def fixed_path(template: str, spider: Spider) -> Path | None:
    """Return the path to which every start of a run writes a feed, or None if starts differ or the feed is remote."""
    names = placeholders(template)
    if not is_local(template) or names & VARYING or not all(hasattr(spider, name) for name in names):
        return None
    return Path(absolute_path(template % {name: getattr(spider, name) for name in names} if names else template))


def repair_last_line(path: Path) -> None:
    """Make a JSON Lines file end with a complete line, so that new lines can be appended.

    If the last line is complete but has no newline, a newline is added. If it is incomplete, it is removed, as are the
    zero bytes that a power cut may leave at the end of a file.
    """
    if not path.is_file():
        return
    with path.open("rb+") as file:
        start = _end_of_last_line(file)
        file.seek(start)
        tail = file.read()
        if not tail:
            return
        if _is_json(tail) or not tail.startswith((b"{", b"\0")):  # text that is not a line of a feed is never removed
            file.write(b"\n")
        else:
            file.truncate(start)
            logger.warning("torn_line_truncated", feed=str(path), bytes=len(tail))


def _end_of_last_line(file: Any) -> int:
    """Return the offset after the last newline in a file, or 0 if it has no newline."""
    end: int = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _READ_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        end = start
    return 0


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


AUTO = "auto"
"""Value of ``FAILURES_FEED``: a file in the folder ``failures``, except for single targets."""
AUTO_URI = "failures/%(name)s-%(job)s.jsonl"


class Failure(dict[str, Any]):
    """The line of a failed target. Only feeds whose option ``item_classes`` contains this class get such lines."""


def failures_feed(uri: str) -> dict[str, dict[str, Any]]:
    """Return the entry to add to ``FEEDS`` for the setting ``FAILURES_FEED``.

    Raises:
        ValueError: the URI is the URL of a database, or of a file of another format than JSON Lines.
    """
    if scheme_format(uri) is not None:
        raise ValueError("FAILURES_FEED: a database gets only records: name a file")
    if (named := format_of(uri)) is not None and named.has_rows:
        raise ValueError(f"FAILURES_FEED: the failures are JSON Lines, not {named.title}: name a file such as f.jsonl")
    uri = AUTO_URI if uri == AUTO else uri
    options = {"format": "jsonlines", "store_empty": False, "batch_item_count": 0}
    return {uri: {**options, "item_classes": [f"{__name__}.{Failure.__name__}"]}}


def is_for_failures(options: Mapping[str, Any]) -> bool:
    """Whether the option ``item_classes`` of a feed contains ``Failure``."""
    return any(load_object(each) is Failure for each in options.get("item_classes") or ())


class WithoutFailures(ItemFilter):
    """The item filter for feeds of records. It rejects failures, and applies the feed's own filter to other items."""

    def __init__(self, own: ItemFilter) -> None:
        self.own = own

    def accepts(self, item: Any) -> bool:
        return not isinstance(item, Failure) and self.own.accepts(item)


def failure_line(outcome: Outcome) -> dict[str, Any]:
    """Return the line of the failed target of an outcome."""
    target, error = outcome.target, outcome.error
    assert error is not None
    parent = None if isinstance(target, InvalidTarget) else target.parent
    found = error.as_dict() | {"retryable": error.retryable}
    return failure_keys(target.as_dict(), parent, target.line, found)


def is_database(uri: object) -> bool:
    """Whether the URI of a feed is the URL of a database."""
    return scheme_format(str(uri)) is FORMATS["sql"]


def split_password(uri: str) -> tuple[str, str | None]:
    """Return the URL of a database without its password, and the password. Logs and messages contain the URL.

    >>> split_password("postgresql://me:a%40b@host/db")
    ('postgresql://me@host/db', 'a@b')

    Raises:
        ValueError: the URL is malformed. The message does not contain it: it may have a password.
    """
    scheme, _, rest = uri.partition("://")
    if scheme == "sqlite":
        return uri, None
    try:
        netloc = urlsplit(uri).netloc
    except ValueError:
        netloc = rest
    user, at, host = netloc.rpartition("@")
    name, colon, password = user.partition(":")
    after = rest.removeprefix(netloc)
    if netloc == rest or "@" in after or "password=" in after:
        raise ValueError(
            f"{scheme}://…: expected {scheme}://user:password@host/database with special characters percent-encoded,"
            " or the password in PGPASSWORD"
        )
    return f"{scheme}://{name}{at}{host}{after}", unquote(password) if colon else None


def without_passwords(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``FEEDS`` with the passwords of databases as the option ``password``: Scrapy logs the URIs of feeds.

    Raises:
        ValueError: the URL of a database is malformed.
    """
    found: dict[str, Any] = {}
    for uri, options in feeds.items():
        if is_database(uri):
            clean, password = split_password(str(uri))
            found[clean] = {"format": "sql", "password": password, **options, "batch_item_count": 0}
        else:
            found[uri] = options
    return found


def check_databases(settings: BaseSettings, *, whole_records: bool) -> None:
    """Check the feeds of a crawl that are databases. Nothing is connected.

    ``whole_records``: whether the crawl writes records with all fields.

    Raises:
        ValueError: the URL of a database is wrong, its driver is not installed, or the feed does not get whole records.
    """
    for uri, options in without_passwords(settings.getdict("FEEDS")).items():
        if is_database(uri):
            open_database(uri, options["password"])
            if options["format"] != "sql":
                raise ValueError(f"{uri}: a database gets records in the format sql, not {options['format']}")
            if not whole_records:
                raise ValueError(f"{uri}: a database gets whole records: leave out explode and fields, or use a file")
        elif options.get("format") == "sql":
            raise ValueError(f"{uri}: the format sql needs the URL of a database, such as sqlite:///{uri}")


def open_database(uri: str, password: str | None) -> Database:
    """Return a database that is not connected yet.

    Raises:
        ValueError: the URL is wrong, or the driver of the database is not installed.
    """
    from crawler.outputs.sql import Database  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    return Database(uri, password)


class SqlStorage:
    """The feed storage of databases. ``feed_options["password"]`` is the password, which the URI does not contain."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        self.uri = uri
        self.password: str | None = (feed_options or {}).get("password")

    def open(self, spider: Spider) -> IO[bytes]:
        """Return a ``Database`` with the tables of the spider's scrapers, to which only ``SqlExporter`` can write.

        Raises:
            DatabaseError: the database cannot be used.
        """
        database = open_database(self.uri, self.password)
        database.prepare(cast("Any", spider).scrapers)
        return cast("IO[bytes]", database)

    def store(self, file: IO[bytes]) -> None:
        """Disconnect from the database."""
        file.close()


class SqlExporter(BaseItemExporter):
    """Writes each record to a database in a transaction of its own, so that a crawl may be killed."""

    def __init__(self, file: Database, **kwargs: Any) -> None:
        super().__init__(dont_fail=True, **kwargs)
        self.database = file

    def export_item(self, item: Any) -> None:
        if not isinstance(item, Record):
            raise TypeError(f"{self.database.name}: a database gets only records of this project's scrapers")
        self.database.write([{**item.provenance(), "data": item.data}])
