"""Fetches a target only once if several rows of targets files contain it. Each row has an outcome of its own.

The rows are read twice: first to find repeated targets, then to crawl. The repeated targets are stored in a temporary
SQLite database, so that memory does not grow with the number of rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, Target, new_id

_SCHEMA = """
CREATE TABLE first (key BLOB PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE later (row INTEGER PRIMARY KEY, first INTEGER NOT NULL, id BLOB NOT NULL, line INTEGER, columns BLOB);
CREATE INDEX of_first ON later (first);
"""
_CACHE_KIBIBYTES = 16 * 1024


@dataclass
class FetchedOnce(TargetSource):
    """Yields the distinct targets of another source, which must be iterable twice.

    The outcome of a target that other rows repeat is reported for these rows, too, with their own ids and columns.
    The same applies to the outcomes of its follow-ups.
    """

    source: TargetSource
    repeated: int = 0
    """Number of rows that repeat the target of an earlier row."""
    _followups: dict[str, int] = field(default_factory=dict)
    """Id of a follow-up in progress -> the row of the target that led to it, if other rows repeat that target."""

    async def open(self) -> None:
        """Open the source, and find the rows that repeat a target.

        Raises:
            TargetsUnavailableError: the source cannot be read, or there is no room for temporary files.
        """
        await self.source.open()
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # temporary
        self._database.executescript(f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}; PRAGMA journal_mode=OFF; {_SCHEMA} BEGIN")
        try:
            async for each in self.source:
                if isinstance(each, Target) and each.row is not None:
                    self._add(each, each.row)
        except TargetsUnavailableError:
            pass  # the crawl reports the error after the readable rows
        except sqlite3.OperationalError as error:
            raise TargetsUnavailableError(f"the rows cannot be compared in a temporary file: {error}") from error

    def _add(self, target: Target, row: int) -> None:
        key = target.key
        if self._database.execute("INSERT OR IGNORE INTO first VALUES (?, ?)", (key, row)).rowcount:
            return
        (first,) = self._database.execute("SELECT row FROM first WHERE key = ?", (key,)).fetchone()
        columns = orjson.dumps(target.columns) if target.columns else None
        later = (row, first, target.id.encode(errors="surrogatepass"), target.line, columns)
        self._database.execute("INSERT INTO later VALUES (?, ?, ?, ?, ?)", later)
        self.repeated += 1

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        async for each in self.source:
            if not (self.repeated and self._is_later(each.row)):
                yield each

    def _is_later(self, row: int | None) -> bool:
        return self._execute("SELECT 1 FROM later WHERE row = ?", row).fetchone() is not None

    def repeats_of(self, outcome: Outcome) -> Iterable[Outcome]:
        """Return the outcomes of the rows that repeat the outcome's target, which are made one by one."""
        target = outcome.target
        if not self.repeated or isinstance(target, InvalidTarget):
            return ()
        first = self._followups.pop(target.id, None) if target.row is None else target.row
        if first is None or not self._execute("SELECT 1 FROM later WHERE first = ?", first).fetchone():
            return ()
        self._followups.update((each.id, first) for each in outcome.followups)
        return self._repeats(outcome, target, first)

    def _repeats(self, outcome: Outcome, target: Target, first: int) -> Iterator[Outcome]:
        where = "SELECT id, line, row, columns FROM later WHERE first = ? ORDER BY row"
        for own_id, line, row, columns in self._execute(where, first):
            requested = own_id.decode(errors="surrogatepass")
            place: dict[str, Any] = {"line": line, "columns": orjson.loads(columns) if columns else {}}
            if target.row is not None:
                place |= {"id": requested, "row": row}
            else:
                place["id"] = new_id()
            repeated = replace(target, **place, root=None if target.root is None else requested)
            yield _outcome_of(outcome, repeated)

    def _execute(self, statement: str, value: int | None) -> sqlite3.Cursor:
        return self._database.execute(statement, (value,))


def _outcome_of(outcome: Outcome, target: Target) -> Outcome:
    """Return a copy of the outcome for ``target``, which has the id and columns of a repeating row.

    The follow-ups and the note are not copied.
    """
    record = outcome.record
    if record is not None:
        content = dict(record)
        if record.is_line:
            own = target.as_dict()
            content = own | {key: value for key, value in record.items() if key not in {*own, "columns"}}
        record = type(record)(content, target, record.fetched_at, record.warnings, is_line=record.is_line)
    return replace(outcome, target=target, record=record, duration_ms=0, followups=(), note=None)
