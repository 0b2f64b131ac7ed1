"""Reads the outcomes of a job: pages and cursors.

Each page is read in a short transaction of its own. The transaction that numbers an outcome (``seq``) holds a lock on
the job until its commit, so that outcomes become visible in the order of their numbers. So a reader that continues
after the last ``seq`` misses no outcome, even while other processes store outcomes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from crawler.jobs import statements as sql
from crawler.jobs.databases import Statement
from crawler.jobs.job import unpack
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Session

LINES_PER_PAGE = 500
NO_END = 2**62


@dataclass(frozen=True, slots=True)
class InputId:
    """The input line of a target: its position, the user's id and own columns, the line number in the file, the note.

    The note is None in a job of an earlier version.
    """

    row: int
    id: str
    columns: dict[str, Any]
    line: int | None
    note: str | None = None


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


async def by_outcome(jobs: Jobs, cursor: Cursor, *, until: int = NO_END) -> AsyncIterator[Line]:
    """Yield the outcomes after a cursor, in the order of their commits: one line for each input line or follow-up."""
    while page := await by_seq(jobs, cursor, until=until):
        for line in page:
            for each in line.by_input():
                yield each
        cursor = Cursor(cursor.job, page[-1].seq or until)


async def in_order(jobs: Jobs, job: int) -> AsyncIterator[Line]:
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


def _input(row: int, own_id: bytes, columns: bytes | None, line: int | None, note: bytes | None) -> InputId:
    own = orjson.loads(columns) if columns else {}
    return InputId(row, own_id.decode(), own, line, None if note is None else note.decode())


def _line(row: Any, *inputs: InputId) -> Line:
    outcome = orjson.loads(row.outcome) if row.outcome else None
    own = (row.key, row.row, orjson.loads(row.work), row.state, row.code)
    return Line(*own, outcome, row.seq, unpack(row.data) if row.data else None, inputs)
