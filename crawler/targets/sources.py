"""Target sources for the spider's arguments and for the endpoint's calls. ``FetchedOnce`` fetches repeats once.

``files/source.py`` reads targets files.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import orjson

from crawler.errors import ScraperNotFound
from crawler.targets.parser import TargetParser
from crawler.targets.target import InvalidTarget, Outcome, Target, new_id


class TargetsUnavailableError(Exception):
    """Raised when a source cannot provide all of its targets. The run then ends with this message."""


class WrongTargetsError(TargetsUnavailableError):
    """Raised for wrong targets, such as a file that does not exist, with which every run would fail."""


class TargetSource:
    """The base class of target sources, from which a crawl gets its targets."""

    keeps_followups: ClassVar[bool] = False
    """Whether the source itself stores follow-up targets and yields them later. Otherwise the tracker keeps them."""
    stores: ClassVar[bool] = False
    """Whether outcomes are reported only after ``store()``."""
    expected: int | None = None
    """The total number of the source's targets, or None if it is not known."""
    own_columns: tuple[str, ...] = ()
    """The names of the user's own columns, which tables of the outputs contain. Known once the source is open."""

    async def open(self) -> None:
        """Prepare the source. Called before the first target is taken.

        Raises:
            TargetsUnavailableError: the source cannot be read.
        """

    def check(self) -> None:
        """Check that the targets were given correctly. ``scrapy crawl`` calls this before it opens a feed.

        Raises:
            WrongTargetsError: the targets were not given correctly.
        """

    def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        """Yield the targets in order. A source should not read many targets in advance."""
        raise NotImplementedError

    async def store(self, outcome: Outcome) -> bool:
        """Store an outcome before it is reported, if ``stores``. Return False if it must not be reported."""
        return True

    def completed(self, outcome: Outcome) -> None:
        """Handle an outcome. Called once for each reported outcome, after the receivers of ``target_completed``."""

    def repeats_of(self, outcome: Outcome) -> Iterable[Outcome]:
        """Return the outcomes of other rows with the same target, which are reported after this outcome."""
        return ()

    def has_room(self, in_flight: int, usual: int) -> bool:
        """Whether another target may start. ``in_flight``: the number of others. ``usual``: ``TARGETS_IN_FLIGHT``."""
        return in_flight < usual


@dataclass
class ArgumentSource(TargetSource):
    """A source of one target, whose params are the spider's arguments."""

    parser: TargetParser
    params: Mapping[str, Any]
    expected = 1

    def check(self) -> None:
        target = self.parser.parse(self.params, text=True)
        if not isinstance(target, InvalidTarget):
            return
        if self.params or isinstance(target.error, ScraperNotFound):
            raise WrongTargetsError(target.error.message)
        forms = self.parser.forms()
        raise WrongTargetsError(f"The crawl has no target: give targets=FILE, or the params of one of {forms}.")

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        yield self.parser.parse(self.params, text=True, row=0)


@dataclass
class QueueSource(TargetSource):
    """The source of the endpoint's crawlers: a queue of calls.

    The queue remains in use when its crawler ends and another crawler is started. ``renew()`` ends the crawler,
    ``close()`` ends the queue.
    """

    on_outcome: Callable[[Outcome], None]
    limit: Callable[[int], bool] | None = None
    """Whether another target may start beside a number of others. None: ``TARGETS_IN_FLIGHT`` applies."""
    _waiting: OrderedDict[str, Target] = field(default_factory=OrderedDict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    renewing: bool = False
    """Whether the current iteration must end before it yields another target."""
    iterated: bool = False
    """Whether a spider is taking targets from the source."""
    _closed: bool = False

    def __len__(self) -> int:
        """Return the number of waiting targets."""
        return len(self._waiting)

    def put(self, target: Target) -> None:
        """Add a target at the end of the queue.

        Raises:
            RuntimeError: the source is closed.
        """
        if self._closed:
            raise RuntimeError("put() after close()")
        self._waiting[target.id] = target
        self._changed.set()

    def discard(self, target_id: str) -> bool:
        """Remove a waiting target. Return False if the target is not waiting, such as after a spider has taken it."""
        return self._waiting.pop(target_id, None) is not None

    def renew(self) -> None:
        """End the iteration of the crawler that reads this source.

        The crawler ends when the targets that it has taken are completed. The queue is kept.
        """
        self.renewing = True
        self._changed.set()

    def close(self) -> None:
        """End the source when all waiting targets have been taken."""
        self._closed = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        self.renewing = False
        self.iterated = True
        try:
            while not self.renewing:
                if self._waiting:
                    yield self._waiting.popitem(last=False)[1]
                elif self._closed:
                    return
                else:
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            self.iterated = False

    def completed(self, outcome: Outcome) -> None:
        """Pass the outcome to ``on_outcome``."""
        self.on_outcome(outcome)

    def has_room(self, in_flight: int, usual: int) -> bool:
        return self.limit(in_flight) if self.limit else in_flight < usual


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
            if not (self.repeated and self._execute("SELECT 1 FROM later WHERE row = ?", each.row).fetchone()):
                yield each

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
