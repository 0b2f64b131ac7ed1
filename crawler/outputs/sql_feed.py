"""Feeds in databases: ``-O postgresql://user@host/database`` and ``-O sqlite:///file``. SQLAlchemy is imported late."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from scrapy.exporters import BaseItemExporter

from crawler.outputs.formats import FORMATS, scheme_format
from crawler.targets import lines
from crawler.targets.target import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from crawler.outputs.sql import Database


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
        self.database.write([lines.record(item.provenance(), item.data)])
