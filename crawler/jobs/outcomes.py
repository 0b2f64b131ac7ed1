"""The outcomes of a job: reading them, their lines in files, the rows of tables, and the report for people.

Each page is read in a short transaction of its own. The transaction that numbers an outcome (``seq``) holds a lock on
the job until its commit, so that outcomes become visible in the order of their numbers. So a reader that continues
after the last ``seq`` misses no outcome, even while other processes store outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from crawler.jobs import tables as sql
from crawler.jobs.job import JobError, unpack
from crawler.jobs.lifecycle import RETRYABLE
from crawler.jobs.store import store_time
from crawler.monitoring.progress import counted
from crawler.monitoring.summary import Report, example
from crawler.outputs.columns import RecordPath, Struct, column_type_of_models, find_row_path, merged_fields
from crawler.outputs.exporters import Table, joined_rows
from crawler.outputs.selection import Selection, identified, table_columns
from crawler.registry import find_scraper, scrapers
from crawler.targets.reporter import PARTIAL, REPEATED
from crawler.targets.target import failure_keys, identity_keys, label_of, provenance_keys
from crawler.targets.warning import FAILED_SOURCES, INCOMPLETE, UNREAD_PATHS, UNREAD_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.store import Session, Statement
    from crawler.targets.target import Scraper

T = TypeVar("T")
LINES_PER_PAGE = 500
NO_END = 2**62


@dataclass(frozen=True, slots=True)
class InputId:
    """The input line of a target: its position, the user's id and own columns, its number in the file, its note."""

    row: int
    id: str
    columns: dict[str, Any]
    line: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Line:
    """A target of a job, with its outcome if it has one."""

    key: bytes
    row: int | None
    """Position of the input line that led to the target."""
    work: Any
    state: str
    code: str | None
    outcome: dict[str, Any] | None
    """The parts of the outcome other than the data. None: the target has no outcome."""
    seq: int | None
    record: Any
    """The data. None: the target failed, has no new data, or has no outcome."""
    inputs: tuple[InputId, ...] = ()
    """The input lines of the target. A target that was given more than once has several. A follow-up has none."""

    @property
    def is_failure(self) -> bool:
        """Whether the target has an error."""
        return self.state in {"failed", "dead"}

    def by_input(self) -> list[Line]:
        """Return one copy of this line for each input line of the target. A follow-up is returned unchanged."""
        return [replace(self, inputs=(each,)) for each in self.inputs] or [self]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in the outcomes of a job, as text ``<job>.<seq>``."""

    job: int
    seq: int = 0

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor in a text.

        Raises:
            ValueError: the text is not a cursor.
        """
        job, dot, seq = text.partition(".")
        if not (dot and job.isdecimal() and seq.isdecimal() and text.isascii() and len(text) < 40):
            raise ValueError(f"{text!r} is not a cursor: use the cursor of the last page, such as '7.500'.")
        return cls(int(job), int(seq))

    def __str__(self) -> str:
        return f"{self.job}.{self.seq}"


async def by_seq(jobs: Jobs, cursor: Cursor, *, until: int = NO_END, limit: int = LINES_PER_PAGE) -> list[Line]:
    """Return the next outcomes after a cursor, in the order of their commits: at most ``limit``, up to ``seq = until``.

    The next page begins at ``Cursor(job, lines[-1].seq)``. Return [] if no more outcomes are stored yet.
    """
    values = {"job": cursor.job, "after": cursor.seq, "until": until, "limit": limit}

    return await jobs.reads.transact(lambda session: _lines(session, cursor.job, sql.BY_SEQ, values), write=False)


async def first_failures(jobs: Jobs, job: int, codes: Iterable[str], limit: int) -> dict[str, list[Line]]:
    """Return error code -> the first failures with this code, at most ``limit``."""

    def found(session: Session) -> dict[str, list[Line]]:
        return {code: _lines(session, job, sql.BY_CODE, {"job": job, "code": code, "limit": limit}) for code in codes}

    return await jobs.reads.transact(found, write=False)


def _lines(session: Session, job: int, statement: Statement, values: dict[str, Any]) -> list[Line]:
    rows = session.rows(statement, **values)
    inputs: dict[bytes, list[InputId]] = {}
    for key, *rest in session.rows(sql.INPUTS_OF, job=job, keys=[row.key for row in rows]) if rows else ():
        inputs.setdefault(key, []).append(_input(*rest))
    return [_line(row, *inputs.get(row.key, ())) for row in rows]


async def by_outcome(jobs: Jobs, cursor: Cursor, *, until: int = NO_END) -> AsyncGenerator[Line]:
    """Yield the outcomes after a cursor, in the order of their commits: one line for each input line or follow-up."""
    while page := await by_seq(jobs, cursor, until=until):
        for line in page:
            for each in line.by_input():
                yield each
        cursor = Cursor(cursor.job, page[-1].seq or until)


async def kept(jobs: Jobs, runs: Iterable[int], found: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield what is read from some runs.

    Raises:
        JobError: a run was removed meanwhile, so that a part of it may be missing.
    """
    async with aclosing(found):
        async for each in found:
            yield each
    for run in runs:
        job = await jobs.get(run)
        if job is None or job.kind != "job":
            raise JobError(f"The job {run} was removed while it was read.")


async def in_order(jobs: Jobs, job: int) -> AsyncGenerator[Line]:
    """Yield a line for each input line, in the order of the input, each followed by its target's follow-ups.

    Targets without an outcome are included. The follow-ups of a target that was given more than once follow its first
    line.
    """
    after = -1
    while True:
        rows = await jobs.read(sql.BY_ROW, job=job, after=after, limit=LINES_PER_PAGE)
        if not rows:
            return
        followups = _followups(jobs, job, rows[0].position, rows[-1].position)
        followup = await anext(followups, None)
        for row in rows:
            yield _line(row, _input(row.position, row.id, row.columns, row.line, row.note))
            while followup is not None and followup.row == row.position:
                yield followup
                followup = await anext(followups, None)
        after = rows[-1].position


async def _followups(jobs: Jobs, job: int, first: int, last: int) -> AsyncIterator[Line]:
    """Yield the follow-ups of input lines, in the order of the lines."""
    position = {"row_": first, "key_": b""}
    while True:
        rows = await jobs.read(sql.FOLLOWUPS, job=job, last=last, limit=LINES_PER_PAGE, **position)
        for row in rows:
            yield _line(row)
        if len(rows) < LINES_PER_PAGE:
            return
        position = {"row_": rows[-1].row, "key_": rows[-1].key}


def _input(row: int, own_id: bytes, columns: bytes | None, line: int | None, note: bytes) -> InputId:
    own = orjson.loads(columns) if columns else {}
    return InputId(row, own_id.decode(), own, line, note.decode())


def _line(row: Any, *inputs: InputId) -> Line:
    outcome = orjson.loads(row.outcome) if row.outcome else None
    own = (row.key, row.row, orjson.loads(row.work), row.state, row.code)
    return Line(*own, outcome, row.seq, unpack(row.data) if row.data else None, inputs)


def record_line(line: Line) -> dict[str, Any]:
    """Return the line of a target's record."""
    outcome = line.outcome or {}
    found = provenance_keys(_identity(line), outcome["fetched_at"], outcome["warnings"], _note(line))
    return {**found, "data": line.record}


def failure_line(line: Line) -> dict[str, Any]:
    """Return the line of a failed target."""
    number = line.inputs[0].line if line.inputs else line.work["line"]
    return failure_keys(_identity(line), line.work.get("parent"), number, (line.outcome or {})["error"])


def new_entries(line: Line) -> frozenset[str] | None:
    """Return the ids of the entries of a record that ``since=`` selects. None: all."""
    new = (line.outcome or {}).get("new_entries")
    return None if new is None else frozenset(new)


def _note(line: Line) -> str:
    """Return the note of the input line, whose numbers may differ from those of other lines with the same target."""
    return line.inputs[0].note if line.inputs else str(line.work.get("note", ""))


def _identity(line: Line) -> dict[str, Any]:
    """Return the keys that identify the target. A follow-up has the user's columns of its root."""
    work = line.work
    own_id, own = (line.inputs[0].id, line.inputs[0].columns) if line.inputs else (work["id"], work.get("columns", {}))
    return identity_keys(own_id, work.get("root"), work["scraper"], work["params"], own)


@dataclass(frozen=True)
class Shape:
    """The form of a scraper's rows: whole records or the entries of a list, with all fields or with some of them."""

    scraper: Scraper
    own: tuple[str, ...] = ()
    """The names of the user's own columns in targets files."""
    row_path: RecordPath | None = None
    sliced: bool = False
    """Whether requested targets are split into slices. Then the column ``root`` has the id of the requested target."""
    selection: Selection | None = None
    joint: Struct | None = None
    """The columns of a table that several scrapers share."""

    @cached_property
    def table(self) -> Table:
        """The form of tables, which have the name of the scraper."""
        own = self.selection and self.selection.fields
        fields = self.joint or own or table_columns([self.scraper], self.row_path, sliced=self.sliced, own=self.own)
        return Table(fields, has_more_keys=self.selection is None, title=self.scraper.name)

    def rows(self, line: dict[str, Any], new: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of a record's line in tables. ``new``: as in ``exploded_rows``."""
        provenance = {key: value for key, value in line.items() if key != "data"}
        if self.row_path is None:
            rows = iter([{**identified(provenance), **line["data"]}])
        else:
            rows = joined_rows(provenance, line["data"], self.row_path, self.scraper.entries, new)
        return rows if self.selection is None else map(self.selection.row, rows)

    def lines(self, line: dict[str, Any], new: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the lines of a record in JSON: its own line, or the entries of the list."""
        if self.row_path is not None:
            yield from self.rows(line, new)
        elif self.selection is None:
            yield line
        else:
            yield {**line, "data": self.selection.row(line["data"])}


class ColumnsDifferError(ValueError):
    """Raised when the rows of several scrapers do not fit into one table. The message names the scrapers."""


def _in_one_table(shapes: Mapping[str, Shape], fields: str | None) -> dict[str, Shape]:
    """Return the shapes of several scrapers with the same columns: the selected ``fields``, or those that all have."""
    columns = [each.table.fields for each in shapes.values()]
    if fields is None and any(each.of.keys() != columns[0].of.keys() for each in columns):
        raise ColumnsDifferError(", ".join(shapes))
    joint = reduce(merged_fields, columns)
    if fields is not None:
        order = [name.strip().partition(".")[0] for name in fields.split(",")]
        joint = Struct(dict(sorted(joint.of.items(), key=lambda each: order.index(each[0]))))
    return {name: replace(each, joint=joint) for name, each in shapes.items()}


def shapes_of(  # noqa: PLR0913  # the options of an output
    job: Job,
    scrapers: Iterable[str],
    own: tuple[str, ...],
    explode: str | None,
    fields: str | None,
    *,
    in_one_table: bool,
) -> dict[str, Shape]:
    """Return the shapes of a job's rows by scraper, without scrapers that lack the list ``explode`` or all ``fields``.

    ``own``: the names of the user's own columns. ``in_one_table``: whether all shapes must have the same columns.

    Raises:
        ColumnsDifferError: they have not.
        ValueError: no scraper has the list, or no scraper has one of the fields. The message has the known names.
    """
    sliced = job.options.exhaustive
    found: list[Shape] = []
    problems: list[str] = []
    for scraper in map(find_scraper, scrapers):
        try:
            data = column_type_of_models([scraper.data])
            found.append(Shape(scraper, own, find_row_path(data, explode) if explode else None, sliced))
        except ValueError as error:
            problems.append(str(error))
    if problems and not found:
        raise ValueError("; ".join(dict.fromkeys(problems)))
    if fields is not None and found:
        tables = [([each.scraper], each.row_path) for each in found]
        selections = Selection.of_tables(fields, tables, sliced=sliced)
        pairs = zip(found, selections, strict=True)
        found = [replace(each, selection=selection) for each, selection in pairs if selection.tree]
    shapes = {each.scraper.name: each for each in found}
    return _in_one_table(shapes, fields) if in_one_table and len(found) > 1 else shapes


EXAMPLES = 3
"""Maximum number of examples of a code."""
Tallies = dict[tuple[str, str], int]


async def failures_by_code(jobs: Jobs, job: Job, tallies: Tallies) -> list[dict[str, Any]]:
    """Return the code of each failure, the number of its targets, whether a retry may help, and examples.

    An example is the line of a failure, as in the file of failures.
    """
    counts = {name: n for (kind, name), n in sorted(tallies.items()) if kind == "code" and name != "OK" and n}
    found = await first_failures(jobs, job.id, counts, EXAMPLES)
    return [
        {
            "code": code,
            "count": n,
            "retryable": code in RETRYABLE,
            "examples": [failure_line(each) for each in found[code]],
        }
        for code, n in counts.items()
    ]


async def report(jobs: Jobs, job: Job, outputs: Sequence[tuple[str, str]], again: str) -> Report:
    """Return the summary of a job.

    ``outputs``: as in ``Report``. ``again``: how the user collects the targets that are left.
    """
    tallies = await jobs.tallies(job.id)
    failures = await failures_by_code(jobs, job, tallies)
    examples = {each["code"]: _example(each["examples"][0]) for each in failures if each["examples"]}
    next_steps = []
    if job.state == "paused":
        next_steps.append(f"a limit was reached: {again} with a higher limit")
    elif job.state == "open":
        next_steps.append(again)
    elif any(each["retryable"] for each in failures):
        next_steps.append(f"scrapy jobs retry {job.name}, then {again}")
    return Report(
        f"job {job.name}", _stats(job, tallies), examples, Counter(), _incomplete(tallies), outputs, next_steps
    )


def _example(failure: dict[str, Any]) -> str:
    params = failure["params"]
    # The scraper of an invalid line may be unknown.
    if isinstance(params, dict) and (scraper := scrapers().get(failure["scraper"])):
        fields = scraper.params.model_fields
        params = {name: each for name, each in params.items() if name not in fields or fields[name].default != each}
    return example(failure["message"], failure["id"], failure["line"], label_of(params))


def _incomplete(tallies: Tallies) -> list[str]:
    coverage = {name: n for (kind, name), n in tallies.items() if kind == "coverage"}
    if not coverage:
        return []
    known = counted(coverage["collected"], "row") + (
        f" of {coverage['expected']:,}" if coverage.get("expected") else ""
    )
    return [f"listings that lack rows: {coverage['listings']:,} ({known} collected)"]


def _stats(job: Job, tallies: Tallies) -> dict[str, Any]:
    """Return the tallies of a job in the form of a crawl's stats."""
    stats: Counter[str] = Counter()
    for (kind, name), n in tallies.items():
        match kind, name.split("/"):
            case "code", _:
                stats[f"targets/{name}"] = n
            case "repeated", _:
                stats[REPEATED] = n
            case "partial", _:
                stats[PARTIAL] = n
            case "unread", _:
                stats[UNREAD_PATHS + name] = n
            case "unread rows", _:
                stats[UNREAD_ROWS + name] = n
            case "warning", [*source, _, reason] if reason != INCOMPLETE:
                stats[f"{FAILED_SOURCES}{'/'.join(source)}/{reason}"] += n
    seconds = max(0.0, (job.ended or store_time()) - job.created)
    reason = "finished" if job.state == "done" else job.state
    return {key: n for key, n in stats.items() if n} | {"elapsed_time_seconds": seconds, "finish_reason": reason}
