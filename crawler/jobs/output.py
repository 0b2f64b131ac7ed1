"""Write the outcomes of a job to files: JSON Lines, JSON, CSV and Parquet."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import fsspec
import orjson

from crawler.jobs.export import Cursor, by_seq, in_order, next_part, uploaded
from crawler.outputs.columns import Struct, column_type_of_models
from crawler.outputs.csv_exporter import CsvExporter
from crawler.outputs.parquet import ParquetExporter
from crawler.outputs.selection import provenance_columns
from crawler.registry import find_scraper

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.export import Line
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.targets.target import Scraper

Kind: TypeAlias = Literal["record", "failure"]
FORMATS = ("jsonl", "json", "csv", "parquet")
TABLES = {"csv", "parquet"}
"""Formats whose columns are those of one scraper."""
TEMPORARY = ".part"
"""Suffix of a local file that is not complete."""


class OutputError(ValueError):
    """Raised when an output cannot be written as it was named. The message says what to do."""


def format_of(path: str) -> str:
    """Return the format that the suffix of a path names, without the suffix of gzip.

    Raises:
        OutputError: the suffix names no format, or gzip of Parquet.
    """
    name = PurePosixPath(path)
    suffix = (name.with_suffix("") if name.suffix == ".gz" else name).suffix.removeprefix(".")
    if suffix == "parquet" and name.suffix == ".gz":
        raise OutputError(f"{path}: the data in Parquet files is already compressed; leave out .gz.")
    if suffix not in FORMATS:
        raise OutputError(f"{path}: no format is called {suffix!r}; use one of .{', .'.join(FORMATS)}.")
    return suffix


def check_output(path: str, scrapers: set[str] | None = None) -> None:
    """Check that a job with these scrapers can be written to a path.

    Raises:
        OutputError: the format is unknown, or a table would have to contain the columns of several scrapers.
    """
    if format_of(path) in TABLES and "%(scraper)s" not in path and len(scrapers or ()) > 1:
        named = ", ".join(sorted(scrapers or ()))
        raise OutputError(
            f"{path}: the job has {named}, whose columns differ: put %(scraper)s into the name, or use .jsonl."
        )


class Writer(Protocol):
    """Writes the lines of a file."""

    def write(self, line: dict[str, Any]) -> None:
        """Write a line."""

    def finish(self) -> None:
        """Complete the content of the file."""


@dataclass
class _JsonLines:
    file: IO[bytes]

    def write(self, line: dict[str, Any]) -> None:
        self.file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def finish(self) -> None:
        pass


@dataclass
class _Json:
    file: IO[bytes]
    begin: bytes = b"[\n"

    def write(self, line: dict[str, Any]) -> None:
        self.file.write(self.begin + orjson.dumps(line))
        self.begin = b",\n"

    def finish(self) -> None:
        self.file.write(b"\n]\n" if self.begin == b",\n" else b"[]\n")


class _Table:
    def __init__(self, kind: str, file: IO[bytes], scraper: Scraper, settings: BaseSettings) -> None:
        data = column_type_of_models([scraper.data])
        self.exporter: CsvExporter | ParquetExporter
        if kind == "parquet":
            self.exporter = ParquetExporter(file, fields=data, row_path=None)
        else:
            fields = Struct({**provenance_columns([scraper], None, sliced=False).of, **data.of})
            options = {"escape": settings.getbool("CSV_ESCAPE_FORMULAS"), "bom": settings.getbool("CSV_BOM")}
            self.exporter = CsvExporter(file, fields=fields, **options)
        self.exporter.start_exporting()

    def write(self, line: dict[str, Any]) -> None:
        own = {key: value for key, value in line.items() if key not in {"id", "data"}}
        self.exporter.export_item({"target_id": line["id"], **own, **line["data"]})

    def finish(self) -> None:
        self.exporter.finish_exporting()


@dataclass
class Output:
    """The files of an output. A local file replaces the former one when it is complete."""

    path: str
    settings: BaseSettings
    _writers: dict[str, Writer] = field(default_factory=dict)
    _files: ExitStack = field(default_factory=ExitStack)

    def write(self, line: dict[str, Any]) -> None:
        """Write a line to the file of its scraper."""
        path = self.path.replace("%(scraper)s", str(line["scraper"]))
        if path not in self._writers:
            self._writers[path] = self._open(path, line["scraper"])
        self._writers[path].write(line)

    def _open(self, path: str, scraper: str) -> Writer:
        local = "://" not in path
        target = path + TEMPORARY if local else path
        compression = "gzip" if path.endswith(".gz") else None
        file = self._files.enter_context(fsspec.open(target, "wb", compression=compression, **_options(local=local)))
        match format_of(path):
            case "jsonl":
                return _JsonLines(file)
            case "json":
                return _Json(file)
            case kind:
                return _Table(kind, file, find_scraper(scraper), self.settings)

    def close(self, scrapers: Collection[str]) -> list[str]:
        """Complete the files, and return their paths. ``scrapers``: whose files are written even without lines."""
        for scraper in sorted(scrapers):
            path = self.path.replace("%(scraper)s", scraper)
            if path not in self._writers:
                self._writers[path] = self._open(path, scraper)
        if not self._writers and "://" not in self.path:
            Path(self.path).unlink(missing_ok=True)  # of an earlier run of the same job
        for writer in self._writers.values():
            writer.finish()
        self._files.close()
        for path in self._writers:
            if "://" not in path:
                Path(path + TEMPORARY).replace(path)
        return list(self._writers)

    def abandon(self) -> None:
        """Remove what was written: the former files stay."""
        self._files.close()
        for path in self._writers:
            if "://" not in path:
                Path(path + TEMPORARY).unlink(missing_ok=True)


def _options(*, local: bool) -> dict[str, Any]:
    return {"auto_mkdir": True} if local else {}


async def write_parts(jobs: Jobs, job: Job, settings: BaseSettings, path: str, size: int) -> AsyncIterator[str]:
    """Write the next records of a job to files of ``size`` outcomes each. Yield the path of each file.

    ``path`` contains ``%(part)d``, the number of a part. A part's lines never change: a part that was interrupted is
    written again. The last part is written when the job has ended.

    Raises:
        OutputError: the path has no ``%(part)d``, or the output has the columns of several scrapers.
        OSError: a file cannot be written.
    """
    if part_path(path, job, 0) == part_path(path, job, 1):
        raise OutputError(f"{path}: the name of parts needs their number, such as %(part)05d.")
    check_output(path, await jobs.scrapers(job))
    while (part := await next_part(jobs, job.id, path, size)) is not None:
        output = Output(part_path(path, job, part.number), settings)
        try:
            after = part.after
            while page := await by_seq(jobs, Cursor(job.id, after), until=part.until):
                for line in page:
                    for each in [replace(line, inputs=(own,)) for own in line.inputs] or [line]:
                        if each.record is not None:
                            output.write(record_line(each))
                after = page[-1].seq or part.until
            written = output.close(())
        except BaseException:
            output.abandon()
            raise
        await uploaded(jobs, job.id, path, part)
        for each_path in written:
            yield each_path


def part_path(path: str, job: Job, number: int) -> str:
    """Return the path of a part. ``%(scraper)s`` stays.

    Raises:
        OutputError: the path has other placeholders, or a wrong format.
    """
    try:
        return path % {"part": number, "name": job.name, "scraper": "%(scraper)s"}
    except (KeyError, TypeError, ValueError):
        raise OutputError(f"{path}: the placeholders are %(part)05d, %(name)s and %(scraper)s.") from None


async def lines(jobs: Jobs, job: int) -> AsyncIterator[tuple[Kind, dict[str, Any]]]:
    """Yield the lines of a job in the order of its input: records as in batch feeds, and failures.

    A target without an outcome, or without new data, has no line.
    """
    async for each in in_order(jobs, job):
        if each.record is not None:
            yield "record", record_line(each)
        elif each.state in {"failed", "dead"}:
            yield "failure", failure(each)


def record_line(line: Line) -> dict[str, Any]:
    """Return the line of a record, as ``Record.as_line`` does."""
    outcome = line.outcome or {}
    return {
        **_identity(line),
        "fetched_at": outcome["fetched_at"],
        "warnings": outcome["warnings"],
        "data": line.record,
    }


def failure(line: Line) -> dict[str, Any]:
    """Return the line of a failed target, as ``failure_line`` does."""
    error = (line.outcome or {})["error"]
    keys = {key: error.get(key) for key in ("code", "message", "retryable", "details", "upstream")}
    return {**_identity(line), "parent": line.work.get("parent"), "line": line.work["line"], **keys}


def _identity(line: Line) -> dict[str, Any]:
    work = line.work
    root = {} if work.get("root") is None else {"root": work["root"]}
    own_id = line.inputs[0].id if line.inputs else work["id"]
    return {"id": own_id, **root, "scraper": work["scraper"], "params": work["params"]}


def paths_of(records: str | None, failures: str | None) -> dict[Kind, str]:
    """Return the paths of an output by the kind of its lines. None: these lines are not written."""
    found: dict[Kind, str | None] = {"record": records, "failure": failures}
    return {kind: path for kind, path in found.items() if path}


async def write_job(jobs: Jobs, job: Job, settings: BaseSettings, paths: dict[Kind, str]) -> list[str]:
    """Write the records and the failures of a job, each to its path. Return the paths of the written files.

    Raises:
        OutputError: the output has the columns of several scrapers.
        OSError: a file cannot be written. The former files stay.
    """
    scrapers = await jobs.scrapers(job)
    if "record" in paths:
        check_output(paths["record"], scrapers)
    outputs = {kind: Output(path.replace("%(name)s", job.name), settings) for kind, path in paths.items()}
    try:
        async for kind, line in lines(jobs, job.id):
            if kind in outputs:
                outputs[kind].write(line)
        return [each for kind, output in outputs.items() for each in output.close(scrapers if kind == "record" else ())]
    except BaseException:
        for output in outputs.values():
            output.abandon()
        raise


def failures_path(settings: BaseSettings, job: Job) -> str | None:
    """Return the path of the failures of a job: that of ``FAILURES_FEED``. None: they are not written."""
    feed = settings["FAILURES_FEED"]
    if feed is None:
        return None
    template = "failures/%(name)s-%(job)s.jsonl" if feed == "auto" else str(feed)
    return template.replace("%(name)s", "collect").replace("%(job)s", job.name.replace(os.sep, "_"))
