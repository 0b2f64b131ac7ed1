"""The records of a job as a response: pages of text, or a whole workbook.

Each page is read in a short transaction of its own. A response contains the outcomes that were stored at its start, so
that the cursor for the next response can be sent in a header.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from crawler.errors import InvalidRequest, JobNotFound
from crawler.jobs.job import JobError
from crawler.jobs.outcomes import ColumnsDifferError, Cursor, Line, Shape, by_seq, kept, shapes_of
from crawler.jobs.output import Layout, Output
from crawler.outputs.formats import DEFAULT, SERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

    from crawler.jobs.changes import Comparison
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.outputs.formats import Format
    from crawler.service.jobs.client_jobs import ClientJobs

Turn: TypeAlias = AbstractAsyncContextManager[None]
PAGE = 8
"""Number of outcomes that are read at once. A record may have 100 kB, and its objects take ten times as much."""
PIECE_BYTES = 65_536
MAX_FILE_BYTES = 1_000_000_000
"""Maximum bytes of a file that is written before it is sent."""


@dataclass(frozen=True)
class Selected:
    """What a response contains: its outcomes, the fields of their records, and the format."""

    format: str = DEFAULT.name
    fields: str | None = None
    explode: str | None = None
    scraper: str | None = None
    code: str | None = None
    after: int = 0
    until: int = 0
    """The sequence number of the last outcome. ``after`` is the one before the first outcome."""

    @property
    def form(self) -> Format:
        """The format."""
        return SERVED[self.format]

    def has(self, line: Line) -> bool:
        """Whether the response contains this outcome."""
        return self.code in {None, line.code} and self.scraper in {None, line.work["scraper"]}

    def etag(self, job: Job) -> str:
        """Return the ETag of the response. Responses of a job with the same selection have the same ETag."""
        named = (job.id, job.created, *astuple(self))
        return f'W/"{hashlib.sha256(repr(named).encode()).hexdigest()[:32]}"'


class Buffer(io.BytesIO):
    """A buffer for the output of an exporter."""

    def take(self) -> bytes:
        """Return the content, and clear the buffer."""
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data


async def last_of(jobs: Jobs, job: Job, after: int, limit: int) -> int:
    """Return the sequence number of a response's last outcome: the job's last, or the last of ``limit`` outcomes."""
    if after + limit >= job.seq:
        return job.seq
    query = "SELECT seq FROM targets WHERE job = :job AND seq > :after ORDER BY seq LIMIT 1 OFFSET :skipped"
    rows = await jobs.read(query, job=job.id, after=after, skipped=limit - 1)
    return min(rows[0][0], job.seq) if rows else job.seq


async def shapes(jobs: Jobs, job: Job, selected: Selected) -> dict[str, Shape]:
    """Return scraper -> the shape of its rows: what a row is (a record, or an entry of its list), and the row's fields.

    Raises:
        InvalidRequest: the job has no such scraper, list or field, or a table would need several sets of columns.
    """
    names, own = await jobs.described(job)
    if selected.scraper is not None and selected.scraper not in names:
        raise InvalidRequest.of("scraper", f"the job has {', '.join(names)}")
    names = [each for each in names if selected.scraper in {None, each}]
    is_table = selected.form.kind == "table"
    try:
        return shapes_of(job, names, own, selected.explode, selected.fields, in_one_table=is_table)
    except ColumnsDifferError as error:
        others = ", ".join(name for name, each in SERVED.items() if each.kind != "table")
        problem = f"the columns of {error} differ: choose a scraper, fields, or one of {others}"
        raise InvalidRequest.of("scraper", problem) from None
    except ValueError as error:
        raise InvalidRequest.of("explode" if selected.fields is None else "fields", str(error)) from None


async def records(of: ClientJobs, job: Job, selected: Selected, rows: dict[str, Shape] | None) -> AsyncIterator[bytes]:
    """Return the pieces of the response with the records of a job. ``rows``: their shapes. None: the failures instead.

    Raises:
        InvalidRequest: a file would be too large.
        JobNotFound: the job, or an earlier run, was removed while its file was written.
    """
    content = "failures" if rows is None else "records"
    _, own = await of.jobs.described(job)
    output = partial(_output, job, of.settings, rows or {}, content=content, format=selected.form, own=own)
    pages = kept(of.jobs, [job.id], _selected(of.jobs, job, selected))
    if selected.form.kind == "book":
        return await _file(pages, output, of.writing.turn(job.owner))
    return _pages(pages, output)


async def changes(of: ClientJobs, job: Job, comparison: Comparison, chosen: Format) -> AsyncIterator[bytes]:
    """Return the pieces of the response with the changes of a job, which are compared in a turn of the client.

    Raises:
        InvalidRequest: a file would be too large.
        JobNotFound: the job, or an earlier run, was removed while its file was written.
    """
    output = partial(_output, job, of.settings, {}, content="changes", format=chosen)
    turn, pages = of.comparing.turn(job.owner), kept(of.jobs, [job.id, *comparison.earlier], comparison.pages(of.jobs))
    return await _file(pages, output, turn) if chosen.kind == "book" else _in_turn(turn, _pages(pages, output))


def _output(job: Job, settings: BaseSettings, rows: dict[str, Shape], path: str, **own: Any) -> Output:
    return Output(Layout(path), rows, settings, datetime.fromtimestamp(job.created, UTC), **own)


async def _in_turn(turn: Turn, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with turn, aclosing(pieces):
        async for piece in pieces:
            yield piece


async def _pages(pages: AsyncGenerator[list[Any]], output_to: Callable[..., Output]) -> AsyncGenerator[bytes]:
    buffer = Buffer()
    output = output_to("text", stream=buffer)

    def encoded(page: list[Any]) -> bytes:
        for line in page:
            output.write(line)
        return buffer.take()

    async with aclosing(pages):
        async for page in pages:
            data = await asyncio.to_thread(encoded, page)
            page.clear()  # the client may read slowly
            yield data
    output.close()
    yield buffer.take()


async def _file(pages: AsyncGenerator[list[Any]], output_to: Callable[..., Output], turn: Turn) -> AsyncIterator[bytes]:
    async with turn, aclosing(pages):
        try:
            return _pieces(await _written(pages, output_to))
        except JobError as error:
            raise JobNotFound(str(error)) from None


async def _written(pages: AsyncIterator[list[Any]], output_to: Callable[..., Output]) -> IO[bytes]:
    """Write a file, and return it open. The file has no name any longer, so closing it frees its space.

    Raises:
        InvalidRequest: the file would be too large.
    """
    with tempfile.TemporaryDirectory(prefix="records-") as name:
        folder = Path(name)
        path = folder / "records"
        output = output_to(str(path), folder=folder)

        def write(page: list[Any]) -> None:
            for line in page:
                output.write(line)
            _check_size(folder)

        try:
            async for page in pages:
                await asyncio.to_thread(write, page)
            await asyncio.to_thread(output.close)
        except BaseException:
            output.abandon()
            raise
        return path.open("rb")


def _check_size(folder: Path) -> None:
    if sum(each.stat().st_size for each in folder.iterdir()) > MAX_FILE_BYTES:
        raise InvalidRequest.of(
            "limit", f"the file would have more than {MAX_FILE_BYTES:,} bytes: use a limit and after="
        )


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece


async def _selected(jobs: Jobs, job: Job, selected: Selected) -> AsyncGenerator[list[Line]]:
    """Yield pages of the outcomes, with a line for each input line."""
    cursor = Cursor(job.id, selected.after)
    while page := await by_seq(jobs, cursor, until=selected.until, limit=PAGE):
        cursor = Cursor(job.id, page[-1].seq or selected.until)
        lines = [each for line in page if selected.has(line) for each in line.by_input()]
        page.clear()  # the client may read slowly
        yield lines
