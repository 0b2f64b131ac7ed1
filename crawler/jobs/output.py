"""Writes the outcomes of a job to files."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem
from scrapy.utils.misc import load_object

from crawler.jobs.changes import Change, Comparison
from crawler.jobs.outcomes import (
    ColumnsDifferError,
    Cursor,
    Line,
    Shape,
    by_outcome,
    failure_line,
    in_order,
    kept,
    new_entries,
    record_line,
    shapes_of,
)
from crawler.outputs.exporters import CHANGES, FAILURES, failures_table
from crawler.outputs.feed_files import AUTO, AUTO_URI, open_database, split_password
from crawler.outputs.formats import DEFAULT, PLACES, format_of, suffix_of
from crawler.outputs.xlsx import XlsxBook
from crawler.storage.files import check_writable

if TYPE_CHECKING:
    from scrapy.exporters import BaseItemExporter
    from scrapy.settings import BaseSettings

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.outputs.exporters import Table
    from crawler.outputs.formats import Format

RECORDS_PER_TRANSACTION = 100
STDOUT = "-"
"""The path that means standard output, where records are JSON Lines."""
TEMPORARY = ".part"
"""Suffix of a local file that is not complete."""


class OutputError(ValueError):
    """Raised when the records cannot be written as a ``Layout`` says. The message contains the remedy."""


def check_place(path: str) -> None:
    """Check that a file system supports a path, and that a ``NewFile`` can be written if the path is local.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        system, own = fsspec.url_to_fs(path)
        if isinstance(system, LocalFileSystem):
            check_writable(Path(own), replaced=True)
    except (ImportError, OSError, ValueError) as error:
        raise OutputError(f"{path} cannot be written: {error}") from error


@dataclass(frozen=True)
class Layout:
    """The form of a job's records in files: the path of the file or files, and ``--explode`` and ``--fields``."""

    path: str
    explode: str | None = None
    fields: str | None = None

    @property
    def format(self) -> Format:
        """The format of the file.

        Raises:
            OutputError: the path has no suffix of a format, or is gzip of files that are already compressed.
        """
        if self.path == STDOUT:
            return DEFAULT
        try:
            found = format_of(self.path)
        except ValueError as error:
            raise OutputError(f"{error}.") from None
        if found is None:
            raise OutputError(f"{self.path}: no format is called {suffix_of(self.path)!r}; use one of {PLACES}.")
        return found

    def check(self) -> None:
        """Check the layout, as far as this is possible without the job.

        Raises:
            OutputError: the format cannot be used, or not with this path, or the file cannot be written.
        """
        if self.format.kind == "book" and "%(scraper)s" in self.path:
            raise OutputError(f"{self.path}: a workbook has a sheet for each scraper: leave out %(scraper)s.")
        if self.format.kind == "database":
            self._check_database()
            return
        if self.path != STDOUT:
            check_place(self.path)

    def _check_database(self) -> None:
        try:
            uri, password = split_password(self.path)
            open_database(uri, password)
        except ValueError as error:
            raise OutputError(f"{error}.") from None
        if self.explode or self.fields or "%(scraper)s" in uri:
            raise OutputError(
                f"{uri}: a database gets whole records, in tables of each scraper: leave out --explode, --fields and"
                " %(scraper)s, or use a file."
            )

    async def shapes(self, jobs: Jobs, job: Job) -> dict[str, Shape]:
        """Return the shapes of a job's rows by scraper. The tables of a database are created.

        Raises:
            OutputError: as for ``check()``; or no scraper of the job has the list or one of the fields, or the columns
                of the scrapers do not fit into one file.
            DatabaseError: the database cannot be used.
            StoreUnavailable: the store is unavailable.
        """
        self.check()
        one = self.format.kind == "table" and "%(scraper)s" not in self.path
        described = await jobs.described(job)  # not in the try block: StoreUnavailable derives from ValueError
        try:
            found = shapes_of(job, *described, self.explode, self.fields, in_one_table=one)
        except ColumnsDifferError as error:
            raise OutputError(
                f"{self.path}: the job has {error}, whose columns differ: put %(scraper)s into the name, choose"
                " --fields, or use .jsonl."
            ) from None
        except ValueError as error:
            raise OutputError(str(error)) from error
        if self.format.kind == "database":  # a job of hours must not end with a wrong password
            DatabaseOutput(self.path.replace("%(name)s", job.name), found.values()).abandon()
        return found


class NewFile:
    """A file that replaces the former file of the same path only when it is complete.

    A local file is replaced by a rename, a remote file by one upload. The content of a remote file is first written to
    the local disk, so that an incomplete file is never uploaded.
    """

    def __init__(self, url: str) -> None:
        """``url``: a path, or a URL of a file system of fsspec. With the suffix ``.gz``, the content is compressed."""
        self._system, self.path = fsspec.url_to_fs(url)
        self._opened = ExitStack()
        if isinstance(self._system, LocalFileSystem):
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._temporary = Path(self.path + TEMPORARY)
        else:
            self._temporary = Path(self._opened.enter_context(tempfile.TemporaryDirectory())) / "content"
        self._file: IO[bytes] = self._opened.enter_context(self._temporary.open("wb"))
        self.content = self._file
        """The stream to which the content is written."""
        if url.endswith(".gz"):  # without a time stamp, so that repeated files are equal
            self.content = cast("IO[bytes]", gzip.GzipFile("", "wb", fileobj=self._file, mtime=0))

    def commit(self) -> None:
        """Complete the file, and replace the former file with it.

        Raises:
            OSError: the file cannot be written. The former file stays.
        """
        with self._opened:
            self.content.close()
            self._file.close()
            if isinstance(self._system, LocalFileSystem):
                self._temporary.replace(self.path)
            else:
                self._system.put_file(str(self._temporary), self.path)

    def discard(self) -> None:
        """Remove the incomplete file. The former file stays."""
        self._temporary.unlink(missing_ok=True)
        self._opened.close()


def open_exporter(chosen: Format, file: IO[bytes] | XlsxBook, table: Table, settings: BaseSettings) -> BaseItemExporter:
    """Return the started exporter of a file without a crawl. ``table``: the form of the rows of a table."""
    options = {"settings": settings, "table": table} if chosen.has_rows else {"encoding": "utf-8", "indent": 0}
    exporter: BaseItemExporter = load_object(chosen.exporter)(file, **options)
    exporter.start_exporting()
    return exporter


@dataclass
class Output:
    """The files of a job's records, of its failures, or of its changes.

    A workbook of records has a sheet of the failures, too.
    """

    layout: Layout
    shapes: dict[str, Shape]
    settings: BaseSettings
    created: datetime
    """The creation time in the properties of a workbook: the time of the job, so that repeated files are equal."""
    store_empty: bool = True
    """Whether files without rows are written, too."""
    stream: IO[bytes] | None = None
    """A stream that the rows are written to, instead of to files. The caller closes the stream."""
    folder: Path | None = None
    """The folder for the temporary files of a workbook. None: the system's folder of temporary files."""
    format: Format | None = None
    """The format. None: the one that the path's suffix names."""
    content: Literal["records", "failures", "changes"] = "records"
    own: tuple[str, ...] = ()
    """The names of the user's own columns, for the tables of failures."""
    _rows: Counter[str] = field(default_factory=Counter)
    """Path -> the number of rows written to it."""
    _files: dict[str, NewFile] = field(default_factory=dict)
    _exporters: dict[str, BaseItemExporter] = field(default_factory=dict)
    """Path of a file, or title of a sheet -> the exporter."""

    def __post_init__(self) -> None:
        self._format = self.format or self.layout.format
        is_book = self._format.kind == "book"
        self._has_failures = self.content == "failures" or (self.content == "records" and is_book)
        self._failures = failures_table(self.own)

    def write(self, line: Line | Change) -> None:
        """Write the record of a target, if its scraper has a shape, or its failure, or a change."""
        if isinstance(line, Change):
            self._exporter(CHANGES).export_item(line.line())
        elif line.record is not None:
            given = record_line(line)
            shape = self.shapes.get(given["scraper"])
            if shape is not None:
                exporter = self._exporter(shape.table)
                rows = shape.rows if self._format.has_rows else shape.lines
                for row in rows(given, new_entries(line)):
                    exporter.export_item(row)
                    self._rows[self._path(shape.table)] += 1
        elif self._has_failures and line.is_failure:
            self._exporter(self._failures).export_item(failure_line(line))
            self._rows[self._path(self._failures)] += self.content == "failures"

    def _exporter(self, table: Table) -> BaseItemExporter:
        path = self._path(table)
        key = table.title if self._format.kind == "book" else path
        if key not in self._exporters:
            file = self._book if self._format.kind == "book" else self._open(path)
            self._exporters[key] = open_exporter(self._format, file, table, self.settings)
        return self._exporters[key]

    def _path(self, table: Table) -> str:
        return self.layout.path.replace("%(scraper)s", table.title)

    def _open(self, path: str) -> IO[bytes]:
        if self.stream is not None:
            return self.stream
        self._files[path] = NewFile(path)
        return self._files[path].content

    @cached_property
    def _book(self) -> XlsxBook:
        return XlsxBook(self._open(self.layout.path), self.created, self.folder)

    def close(self) -> dict[str, int]:
        """Complete the files. Return their paths, and the number of rows in each, without failures in a workbook.

        A workbook opens with the sheet of records, even if a target failed first.
        """
        filled = [each for each in self._exporters if each != FAILURES]
        if self.store_empty:
            shown = [CHANGES] * (self.content == "changes") + [self._failures] * self._has_failures
            for table in [*(shape.table for shape in self.shapes.values()), *shown]:
                self._exporter(table)
        for exporter in self._exporters.values():
            exporter.finish_exporting()
        if self._format.kind == "book" and self._files:
            self._book.close(*filled[:1])
        for file in self._files.values():
            file.commit()
        return {path: self._rows[path] for path in (self._files if self.stream is None else [self.layout.path])}

    def abandon(self) -> None:
        """Remove the incomplete files. The former files stay."""
        if "_book" in vars(self):
            self._book.discard()
        for file in self._files.values():
            file.discard()


class DatabaseOutput:
    """The tables of a job's records in a database. If the export fails, the rows of former transactions stay."""

    def __init__(self, url: str, shapes: Iterable[Shape]) -> None:
        """Connect to the database, and create the tables.

        Raises:
            DatabaseError: the database cannot be used.
        """
        self._database = open_database(*split_password(url))
        self._database.prepare([each.scraper for each in shapes])
        self._lines: list[dict[str, Any]] = []
        self._written = 0

    def write(self, line: Line | Change) -> None:
        """Write the record of a target. Failures are left out."""
        if isinstance(line, Line) and line.record is not None:
            self._lines.append(record_line(line))
            if len(self._lines) == RECORDS_PER_TRANSACTION:
                self._commit()

    def _commit(self) -> None:
        self._database.write(self._lines)
        self._written += len(self._lines)
        self._lines = []

    def close(self) -> dict[str, int]:
        """Write the last rows. Return the URL of the database, without its password, and the number of records."""
        self._commit()
        self._database.close()
        return {self._database.name: self._written}

    def abandon(self) -> None:
        """Disconnect from the database."""
        self._database.close()


@dataclass(frozen=True)
class JobFiles:
    """Writes the outcomes of a job to files."""

    jobs: Jobs
    job: Job
    settings: BaseSettings

    async def write(
        self, layout: Layout | None, failures: str | None, after: Cursor | None = None
    ) -> tuple[dict[str, int], Cursor]:
        """Write the records to files, in the order of the input, and the failures to another file.

        ``layout``: the layout of the records, or None to write no records. ``failures``: the path of the failures, or
        None to write no failures; if there are none, a local file of an earlier run is removed. ``after``: write only
        the outcomes after this position, in the order in which they were stored.

        Return the paths of the written files with their numbers of rows, and the position at which the next export
        continues.

        Raises:
            OutputError: the records cannot be written as ``layout`` says.
            JobError, OSError: the run was removed, or a file cannot be written. The former files stay.
        """
        outputs: list[Output | DatabaseOutput] = []
        if layout is not None:
            named = replace(layout, path=layout.path.replace("%(name)s", self.job.name))
            shapes = await named.shapes(self.jobs, self.job)
            if named.format.kind == "database":
                outputs.append(DatabaseOutput(named.path, shapes.values()))
            else:
                stream = sys.stdout.buffer if named.path == STDOUT else None
                _, columns = await self.jobs.described(self.job)
                outputs.append(Output(named, shapes, self.settings, self._created, stream=stream, own=columns))
        failures = failures and failures.replace("%(name)s", self.job.name)
        if failures is not None:
            own: dict[str, Any] = {"store_empty": False, "format": DEFAULT, "content": "failures"}
            outputs.append(Output(Layout(failures), {}, self.settings, self._created, **own))
        until = self.job.seq
        lines = in_order(self.jobs, self.job.id) if after is None else by_outcome(self.jobs, after, until=until)
        written = await _write(kept(self.jobs, [self.job.id], lines), outputs)
        if failures is not None and failures not in written:
            _remove_local(failures)
        return written, Cursor(self.job.id, max(until, after.seq if after else 0))

    async def write_changes(self, path: str, comparison: Comparison) -> None:
        """Write the changes since earlier runs to a file.

        Raises:
            OutputError: the path has no suffix of a format of files.
            JobError, OSError: a run was removed, or the file cannot be written. The former file stays.
        """
        layout = Layout(path)
        if layout.format.kind == "database":
            raise OutputError(f"{path}: changes are written to a file: use one of .jsonl, .csv, .xlsx, .json.")
        output = Output(layout, {}, self.settings, self._created, content="changes")
        async with aclosing(comparison.pages(self.jobs)) as pages:
            lines = (each async for page in pages for each in page)
            await _write(kept(self.jobs, [self.job.id, *comparison.earlier], lines), [output])

    @property
    def _created(self) -> datetime:
        return datetime.fromtimestamp(self.job.created, UTC)


async def _write(
    lines: AsyncIterator[Line] | AsyncIterator[Change], outputs: Sequence[Output | DatabaseOutput]
) -> dict[str, int]:
    """Write lines to files. Return the paths of the files with their numbers of rows."""
    try:
        async for line in lines:
            for output in outputs:
                output.write(line)
        return {path: n for output in outputs for path, n in output.close().items()}
    except BaseException:
        for output in outputs:
            output.abandon()
        raise


def _remove_local(path: str) -> None:
    if "://" not in path:
        Path(path).unlink(missing_ok=True)


def failures_path(settings: BaseSettings, job: Job) -> str | None:
    """Return the path of a job's failures, from ``FAILURES_FEED``. None: they are not written."""
    feed = settings["FAILURES_FEED"]
    if feed is None:
        return None
    template = AUTO_URI if feed == AUTO else str(feed)
    return template.replace("%(name)s", "collect").replace("%(job)s", job.name.replace(os.sep, "_"))
