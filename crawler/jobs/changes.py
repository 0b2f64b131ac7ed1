"""Compares a run of a job with its kept earlier runs: what has changed since the last run.

A target is compared with its newest good record among the earlier runs (``baseline_run``). A requested target and the
pages to which it led are a *listing*, and are compared together::

    now       before                    change
    ────────  ────────────────────────  ──────────────────────────────────────────────────────────────
    target    in no earlier run         added
    -         in the last run           removed
    failure   any                       not_compared, with the code of the failure
    no target any                       not_compared (a line that is not a target)
    data      only failures             not_compared, no_baseline
    no page   data                      target_gone, if the platform states that there is no such page
    data      no page                   target_back
    row       -                         appeared, if the listing before would have had the row
    -         row                       gone, if the listing now would have the row
    value     another value             changed, if both values were read

A *row* is an entry of a list whose entries have keys, such as a product or a post. Which rows would a listing have?

- Timelines have all entries since some time (``Listing.since``), or all entries at all, if both reached the end.
- An exhaustive crawl has all products of its category, if nothing is missing.
- A search, or some pages of a category, shows what the platform chose. A row that is new on these pages has appeared
  there. A row that is no longer there may still exist: it is counted as ``gone_unknown``.

A record with a warning may lack rows and values. For these, an older record is the baseline. What no kept record can
answer is counted: ``appeared_unknown`` and ``gone_unknown`` are rows, ``unread`` are values that differ although one of
them was not read, or was read by other code.

Two records are compared value by value. The data models declare how, by one mark beside each field that is not compared
exactly:

===================  ===================================================================================
``Mark.KEY``         identifies an entry of a list, such as a product: entries with the same key are compared
``Mark.COUNT``       changes if it moves by more than ``SHARE``, because platforms round their counts
``Mark.NEVER``       is not compared: a signed URL, a cursor, what a page shows by chance
``Mark.ADVERTISED``  is not compared, and neither is an entry for which it is true
``Mark.NULL``        null is a statement of the platform, such as "no price"
``Mark.PARTIAL``     is not compared if one value may be only a part of the other, such as a shortened text
``Mark.WITHHELD``    names the fields of the record that the platform withheld: they are not compared
===================  ===================================================================================

A value *was read* if it is neither null (without ``Mark.NULL``), nor empty in a record with a warning, nor a part of
the other record's value (``Mark.PARTIAL``). All other lists and objects are compared as a whole, without the values in
them that are never compared.

The store is read in short transactions. Rows are kept in a temporary file, so that the memory does not depend on the
size of a listing.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, groupby, islice, pairwise
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from crawler.errors import TargetNotFound
from crawler.jobs import tables as sql
from crawler.jobs.job import unpack
from crawler.jobs.store import Store
from crawler.monitoring.progress import counted
from crawler.outputs.columns import (
    ColumnType,
    ListOf,
    RecordPath,
    Struct,
    column_type_of_models,
    record_paths,
    value_at,
    without_lists,
)
from crawler.platforms.model import Mark
from crawler.reading.values import stated_count
from crawler.registry import find_scraper
from crawler.targets.target import identity_keys
from crawler.targets.warning import OutcomeWarning

if TYPE_CHECKING:
    from pydantic import BaseModel

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.store import Session, Statement
    from crawler.targets.target import Scraper


Kind = Literal["added", "removed", "not_compared", "target_gone", "target_back", "appeared", "gone", "changed"]
NO_BASELINE = "no_baseline"
PER_PAGE = 500
"""Maximum number of changes, and of compared targets, in one transaction."""
PAGE_ROWS = 1_000_000
"""More than the number of rows of any page: the distance between the positions of two pages."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a target, of a row or of a value."""

    change: Kind
    target: dict[str, Any]
    """The keys that identify the target, as in the line of a record."""
    run: int
    baseline_run: int | None = None
    """The run of the record with which the target was compared."""
    rows: str = ""
    """The name of the list with the row. "": the change is not that of a row."""
    key: str = ""
    """The key of the row."""
    path: str = ""
    """The dotted path of the value in the row, or in the record."""
    old: Any = None
    new: Any = None
    """The values; for a row that has appeared or is gone, the row."""
    code: str = ""
    """Why the target was not compared, or the error which states that it is gone."""

    def line(self) -> dict[str, Any]:
        """Return the change as JSON data."""
        place = {"rows": self.rows, "key": self.key, "path": self.path, "old": self.old, "new": self.new}
        runs = {"run": self.run, "baseline_run": self.baseline_run}
        return {"change": self.change, **self.target, **runs, **place, "code": self.code}


class Row(NamedTuple):
    """A row in one of the compared listings. The record itself, without its rows, is a row with the name ""."""

    rows: str
    key: str
    side: int
    """0: the compared run. From 1 on: earlier runs, the newest first."""
    is_ad: bool
    position: int
    time: float | None
    is_whole: bool
    """Whether no part of its page is missing."""
    data: bytes


class Rows:
    """The rows of the compared listings. Of rows of a listing with equal keys, the first organic one is kept."""

    def __init__(self) -> None:
        # A file without a name, which SQLite deletes. The thread that compares may not be the one that closes it.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(f"CREATE TABLE rows ({', '.join(Row._fields)}, PRIMARY KEY (rows, key, side))")
        values = ", ".join("?" * len(Row._fields))
        others = ", ".join(f"{name} = excluded.{name}" for name in Row._fields[3:])
        conflict = f"ON CONFLICT DO UPDATE SET {others} WHERE is_ad > excluded.is_ad"
        self._common: dict[tuple[int, int], int] = {}
        self._add = f"INSERT INTO rows VALUES ({values}) {conflict}"  # noqa: S608  # constants

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows of a listing, in the order of the listing."""
        self._database.execute("BEGIN")
        self._database.executemany(self._add, rows)
        self._database.execute("COMMIT")

    def by_key(self) -> Iterator[list[Row]]:
        """Yield the rows with the same key together, in the order of the sides."""
        found = map(Row._make, self._database.execute("SELECT * FROM rows ORDER BY rows, key, side"))
        for _, rows in groupby(found, key=itemgetter(0, 1)):
            yield list(rows)

    def last_common(self, side: int, other: int) -> int:
        """Return the last position in a listing of a row that another listing has, too; -1 without such a row."""
        if (side, other) not in self._common:
            common = "SELECT key FROM rows WHERE rows > '' AND side = ?"
            query = f"SELECT max(position) FROM rows WHERE rows > '' AND side = ? AND key IN ({common})"  # noqa: S608  # constants
            ((last,),) = self._database.execute(query, (side, other))
            self._common[side, other] = -1 if last is None else int(last)
        return self._common[side, other]

    def clear(self) -> None:
        """Remove all rows."""
        self._common.clear()
        self._database.execute("DELETE FROM rows")

    def __del__(self) -> None:
        """Delete the file, when no thread compares any more: closing a database in use would crash the process."""
        self._database.close()


def _loses_rows(scraper: Scraper, warning: OutcomeWarning) -> bool:
    """Whether a record may lack rows because they are unread, or because the source of a timeline's rows failed."""
    if warning.unread is not None:
        return warning.unread.loses_rows
    return warning.coverage is None and scraper.entries is not None and warning.source == scraper.entries.source


@dataclass
class Listing:
    """A requested target in one run, with the pages to which it led."""

    side: int
    run: int
    contract: str | None = None
    """Identifies the code that has read the first page."""
    is_whole: bool = True
    """Whether all pages have data, and no part of a page is missing."""
    has_all_rows: bool = True
    """Whether all pages have data, and no row of a page is missing."""
    is_complete: bool = True
    """Whether, moreover, no sign of further pages was found."""
    ended: bool = False
    """Whether the last page of a timeline states that no further page follows, and nothing shows that posts are
    missing."""
    failed: list[Any] = field(default_factory=list)
    """The targets of the pages that have failed."""
    new: set[str] = field(default_factory=set)
    """The keys of the entries that ``since=last`` selects."""
    times: list[tuple[int, float]] = field(default_factory=list)
    """The positions and times of the entries of a timeline."""
    last: int = -1
    """The position of the last row."""

    @cached_property
    def since(self) -> float:
        """The time since which the listing has all entries of a timeline.

        The first entry may be pinned, and is ignored. If the others are not in order, because they are sorted by
        popularity or belong to threads, this is the time of the newest entry from the first disorder on.
        """
        times = [time for _, time in sorted(self.times)][1:]
        disorder = (at for at, (one, other) in enumerate(pairwise(times), 1) if other > one)
        return max(times[next(disorder, len(times) - 1) :], default=inf)


class Comparison:
    """Compares a run with its earlier runs. ``counts``: the numbers of changes, and of what cannot be compared."""

    def __init__(self, job: Job, earlier: Iterable[Job], first: int = 0, last: int | None = None) -> None:
        """``job``: a run that is done. ``earlier``: as ``Jobs.earlier()`` returns them. Runs that have read more or
        fewer pages of each listing are left out, and those that are to be removed: their rows may vanish meanwhile.
        ``first``, ``last``: the positions of the first and last input line to compare. None: until the end, with the
        removed targets.
        """
        self.job = job
        self.first, self.last = first, last
        kept = islice(earlier, job.options.keep)
        self.earlier = {each.id: each for each in kept if _pages(each) == _pages(job)}
        self.counts: Counter[str] = Counter()
        self._rows = Rows()
        self._session: Session | None = None
        self._is_left = False
        """Whether the caller has left. Then the thread that compares stops at the next record."""
        self._steps: Iterator[Change | None] = self._all()

    def __str__(self) -> str:
        """Describe the counts in a line for people."""
        if not self.earlier:
            return "no earlier run to compare with"
        found = ", ".join(f"{n:,} {name}" for name, n in self.counts.items() if n and name != "compared")
        return f"{counted(self.counts['compared'], 'target')} compared: {found or 'no changes'}"

    async def pages(self, jobs: Jobs) -> AsyncGenerator[list[Change]]:
        """Yield the changes in the order of the input, in pages. A thread with a connection of its own compares.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        store = Store(jobs.reads.location)
        try:
            while (page := await store.transact(self._page, write=False)) is not None:
                yield page
        finally:
            self._is_left = True
            self._steps = iter(())  # the generator refers to this object, which would keep the file of its rows
            await store.close()

    def _page(self, session: Session) -> list[Change] | None:
        self._session = session
        steps = list(islice(self._steps, PER_PAGE))
        found = [each for each in steps if each is not None]
        self.counts.update(each.change for each in found)
        return found if steps else None

    def _read(self, statement: Statement, **values: Any) -> list[Any]:
        assert self._session is not None
        return self._session.rows(statement, **values)

    def _lines(
        self, statement: Statement, job: int, first: int = 0, last: int | None = None, **values: Any
    ) -> Iterator[list[Any]]:
        """Yield the input lines of a run in pages, each target once."""
        while page := self._read(statement, job=job, after=first - 1, limit=PER_PAGE, **values):
            first = page[-1].position + 1
            yield [each for each in page if each.row == each.position and (last is None or each.row <= last)]
            if last is not None and first > last:
                return

    def _all(self) -> Iterator[Change | None]:
        """Yield the changes, and None after each target."""
        if not self.earlier:
            return
        for page in self._lines(sql.BY_ROW, self.job.id, self.first, self.last):
            before = defaultdict(list)
            for row in self._read(sql.OF_RUNS, jobs=list(self.earlier), keys=[each.key for each in page]):
                before[row.key].append(row)
            for line in page:
                yield from self._target(line, sorted(before[line.key], key=self._run, reverse=True))
                yield None
        newest = next(iter(self.earlier.values()))
        for page in self._lines(sql.REMOVED, newest.id, other=self.job.id) if self.last is None else ():
            for line in page:
                yield self._change("removed", line, newest.run)

    def _run(self, row: Any) -> int:
        run: int = self.earlier[row.job].run
        return run

    def _change(self, kind: Kind, line: Any, baseline: int | None = None, code: str = "") -> Change:
        return Change(kind, _identity(line), self.job.run, baseline, code=code)

    def _target(self, line: Any, before: list[Any]) -> Iterator[Change]:
        """Compare a target with its outcomes in the earlier runs, the newest first."""
        good = [each for each in before if each.state == "done"]
        known = next((each for each in before if each.state == "done" or _has_no_page(each)), None)
        code = "" if line.state == "done" else line.code
        if not before and line.platform:
            yield self._change("added", line, code=code)
        elif known is None or (code and not _has_no_page(line)):
            yield self._change("not_compared", line, code=code or NO_BASELINE)
        elif code:
            if known.state == "done":
                yield self._change("target_gone", line, self._run(known), code)
        else:
            if known.state != "done":
                yield self._change("target_back", line, self._run(known))
            if good:
                self.counts["compared"] += 1
                yield from self._listing(line, good)

    def _listing(self, line: Any, good: list[Any]) -> Iterator[Change]:
        """Compare a listing. ``good``: its requested target in the earlier runs in which this has data."""
        self._rows.clear()
        scraper = find_scraper(orjson.loads(line.work)["scraper"])
        now = self._load(0, self.job, line, scraper)
        for page in now.failed:
            yield self._change("not_compared", page, code=page.code)
        before: list[Listing] = []
        for side, each in enumerate(good, 1):
            before.append(self._load(side, self.earlier[each.job], each, scraper))
            if before[-1].is_whole:
                break
        target = _identity(line)
        for found in Listings(self.job, scraper, now, before, self._rows, self.counts).changes():
            yield Change(target=target, run=self.job.run, **found)

    def _load(self, side: int, job: Job, first: Any, scraper: Scraper) -> Listing:
        """Store the rows of a listing, and return the listing."""
        listing, last = Listing(side, job.run), -1
        for page in chain([first], self._followups(job, first)):
            if self._is_left:
                raise RuntimeError("The caller of this comparison has left.")
            depth, outcome = orjson.loads(page.work).get("hop", 0), orjson.loads(page.outcome or b"{}")
            warnings = [OutcomeWarning.from_dict(each) for each in outcome.get("warnings", ())]
            is_done, is_whole = page.state == "done", all(each.coverage for each in warnings)
            listing.is_whole &= is_done and is_whole
            listing.has_all_rows &= is_done and not any(_loses_rows(scraper, each) for each in warnings)
            listing.is_complete &= is_done and not any(each.coverage for each in warnings)
            listing.new.update(outcome.get("new_entries", ()))
            listing.failed += [] if is_done else [page]
            if page is first:
                listing.contract = outcome.get("contract")
            if page.data is None:
                continue
            record = unpack(page.data)
            if scraper.entries is not None and depth > last:
                has_more = value_at(record, tuple(scraper.entries.more.split(".")))
                last, listing.ended = depth, not (has_more or any(each.coverage for each in warnings))
            rows = _rows(scraper, record, Row("", "", side, False, depth * PAGE_ROWS, None, is_whole, b""))  # noqa: FBT003
            found = list(rows if page is first else islice(rows, 1, None))
            listing.times += [(each.position, each.time) for each in found if each.time is not None]
            listing.last = max(listing.last, *(each.position for each in found), -1)
            self._rows.add(found)
        return listing

    def _followups(self, job: Job, first: Any) -> Iterator[Any]:
        """Yield the pages to which a requested target led."""
        key = b""
        while job.options.exhaustive or job.options.max_pages > 1:
            position = {"row_": first.row, "last": first.row, "key_": key}
            page = self._read(sql.FOLLOWUPS, job=job.id, limit=PER_PAGE, **position)
            yield from page
            if len(page) < PER_PAGE:
                return
            key = page[-1].key


@dataclass
class Listings:
    """A listing in the compared run and in earlier runs, whose rows are stored."""

    job: Job
    scraper: Scraper
    now: Listing
    before: list[Listing]
    """The newest first. All except the last one may lack rows and values."""
    rows: Rows
    counts: Counter[str]

    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield the changes of rows and values: fields of ``Change``."""
        for found in self.rows.by_key():
            sides = {each.side: each for each in found}
            now, before = sides.get(0), self._known(sides)
            place = {"rows": found[0].rows, "key": found[0].key}
            if any(each.is_ad for each in found):
                continue
            if self.job.options.since == "last":
                if now is not None and now.rows and now.key in self.now.new:
                    yield {"change": "appeared", "baseline_run": self.before[0].run, **place, "new": _json(now)}
            elif now is None:
                yield from ({**place, **each} for row in before[:1] for each in self._missing(row))
            elif not before:
                yield from ({**place, **each} for each in self._added(now))
            elif now.data != before[0].data:
                yield from ({**place, **each} for each in self._changed(now, before))

    def _known(self, sides: dict[int, Row]) -> list[Row]:
        """Return a row in the earlier listings: [] if the newest one of them with all rows does not have it."""
        known: list[Row] = []
        for each in self.before:
            if each.side in sides:
                known.append(sides[each.side])
            elif each.has_all_rows and not known:
                return []
        return known

    def _missing(self, row: Row) -> Iterator[dict[str, Any]]:
        old = self.before[row.side - 1]
        if self._covers(self.now, old, row):
            yield {"change": "gone", "baseline_run": old.run, "old": _json(row)}
        else:
            self.counts["gone_unknown"] += 1

    def _added(self, row: Row) -> Iterator[dict[str, Any]]:
        old = next((each for each in self.before if each.has_all_rows), self.before[-1])
        shows_choice = self.scraper.entries is None and not self.job.options.exhaustive
        if old.has_all_rows and (shows_choice or self._covers(old, self.now, row)):
            yield {"change": "appeared", "baseline_run": old.run, "new": _json(row)}
        else:
            self.counts["appeared_unknown"] += 1

    def _covers(self, one: Listing, other: Listing, row: Row) -> bool:
        """Whether one listing would have a row of the other listing, if the row existed at the time of both."""
        entries = self.scraper.entries
        if not one.has_all_rows:
            return False
        if entries is None:
            return self.job.options.exhaustive and one.is_complete and (one is not self.now or other.is_complete)
        if (row.time is not None and row.time > one.since) or (one.ended and other.ended):
            return True
        is_above = row.position < self.rows.last_common(other.side, one.side)
        # Below the last common row, a later listing has only rows that are older than all of an earlier one.
        is_longer = one is self.now and 0 <= self.rows.last_common(one.side, other.side) < one.last
        return entries.in_order and (is_above or is_longer)

    def _changed(self, now: Row, before: list[Row]) -> Iterator[dict[str, Any]]:
        """Yield the changes of the values of a row. If the newest record lacks a value, an older one is compared."""
        fields, new = _shapes(self.scraper.data)[now.rows].fields, _json(now)
        unread: set[tuple[str, ...]] | None = None
        for row in before:
            listing, old = self.before[row.side - 1], _json(row)
            found = [each for each in differences(fields, old, new) if unread is None or each.path in unread]
            unread = set()
            hidden = withheld(fields, old) | withheld(fields, new)
            is_other_variant = withheld(fields, old) != withheld(fields, new)  # whose lists may have fewer entries
            is_whole = [each.is_whole and not is_other_variant for each in (row, now)]
            for each in found:
                is_hidden = each.path[0] in hidden or (is_other_variant and isinstance(each.new, list))
                if is_hidden or listing.contract != self.now.contract or not each.was_read(*is_whole):
                    unread.add(each.path)
                else:
                    values = {"path": ".".join(each.path), "old": each.old, "new": each.new}
                    yield {"change": "changed", "baseline_run": listing.run, **values}
        if unread:
            self.counts["unread"] += len(unread)


@cache
def _shapes(data: type[BaseModel]) -> dict[str, RecordPath]:
    """Return the types of a data model's record ("") and of its rows, by the name of their list."""
    record, *inner = record_paths(column_type_of_models([data]))
    rows = [each for each in inner if each.is_list and each.fields.marked(Mark.KEY)]
    return {"": record} | {each.name or ".".join(each.path): each for each in rows}


def _rows(scraper: Scraper, record: dict[str, Any], like: Row) -> Iterator[Row]:
    """Yield the rows of a page: first its record. ``like``: a row with the values that they have in common."""
    entries = scraper.entries
    for name, shape in _shapes(scraper.data).items():
        if not name:
            yield like._replace(data=orjson.dumps(record))
            continue
        advertised = shape.fields.marked(Mark.ADVERTISED)
        timed = entries is not None and entries.path == ".".join(shape.path)
        for key, (position, row) in shape.distinct_rows(record).items():
            yield like._replace(
                rows=name,
                key=" ".join(map(str, key)),
                is_ad=any(value_at(row, path) for path in advertised),
                position=like.position + position,
                time=row[entries.time] if entries is not None and timed else None,
                data=orjson.dumps(row),
            )


def _json(row: Row) -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(row.data)
    return data


def _pages(job: Job) -> tuple[bool, int]:
    return job.options.exhaustive, job.options.max_pages


def _identity(row: Any) -> dict[str, Any]:
    """Return the keys that identify the target of an input line or of a follow-up."""
    work = orjson.loads(row.work)
    columns = getattr(row, "columns", None)
    own = orjson.loads(columns) if columns else work.get("columns", {})
    own_id = row.id.decode() if hasattr(row, "id") else work["id"]
    return identity_keys(own_id, None, work["scraper"], work["params"], own)


def _has_no_page(row: Any) -> bool:
    """Whether a target has failed because the platform states that it does not exist.

    The statement is quoted in the details of the error, or is a status.
    """
    if row.code != TargetNotFound.code:
        return False
    error = orjson.loads(row.outcome)["error"]
    status = (error["upstream"] or {}).get("status")
    return status in {404, 410} or any(each["type"] == "mark" for each in error["details"])


SHARE = 0.1
"""A count is unchanged if it moves by at most this share of the larger number: lists round counts down to two digits,
so that an exact 10,999 and a rounded 10,000 may be the same."""
ALLOWANCE = 2
"""A count is unchanged if it moves by at most this number: the servers of a platform differ by a few."""
LONG = 200
"""Minimum number of characters of a text that may be the beginning of a longer one although it has no "…" at its end.
The microblog shortens long posts in this way."""
ELLIPSES = ("…", "...")
NOT_COMPARED = frozenset({Mark.NEVER, Mark.ADVERTISED})
_UNSTABLE = NOT_COMPARED | {Mark.COUNT}
"""The marks of values that do not make lists different."""


class Difference(NamedTuple):
    """A value that two records do not have in common."""

    path: tuple[str, ...]
    old: Any
    new: Any
    mark: Mark | None

    def was_read(self, old_is_whole: bool, new_is_whole: bool) -> bool:  # noqa: FBT001  # as the values
        """Whether both values were read. A record is whole if it has no warning about a missing part."""
        values = self.old, self.new
        if self.mark is Mark.PARTIAL and None not in values and is_part(*values):
            return False
        return all(
            self.mark is Mark.NULL and is_whole if value is None else is_whole or value not in ("", [])
            for value, is_whole in zip(values, (old_is_whole, new_is_whole), strict=True)
        )


def differences(fields: Struct, old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield the differences between two objects of a type, without the entries of lists that have keys."""
    for name, kind in fields.of.items():
        mark = fields.marks.get(name)
        if mark in NOT_COMPARED or is_keyed(kind):
            continue
        before, after = (_value(each, name, kind) for each in (old, new))
        if isinstance(kind, Struct) and before is not None and after is not None:
            yield from differences(kind, before, after, (*path, name))
        elif not same(mark, _significant(before, kind), _significant(after, kind)):
            yield Difference((*path, name), before, after, mark)


def same(mark: Mark | None, old: Any, new: Any) -> bool:
    """Whether two values are the same by the mark of their field.

    >>> same(None, 10_000, 10_999), same(Mark.COUNT, 10_000, 10_999), same(Mark.COUNT, 10_000, 11_999)
    (False, True, False)
    >>> same(Mark.COUNT, None, 0), same(Mark.COUNT, 1, 3)
    (False, True)
    >>> same(Mark.COUNT, "41M followers", "42M followers"), same(Mark.COUNT, "500+ connections", "480 connections")
    (True, False)
    """
    if mark is Mark.COUNT:
        one, other = (stated_count(each, r"\w+") if isinstance(each, str) else each for each in (old, new))
        if one is not None and other is not None:
            return bool(abs(one - other) <= max(ALLOWANCE, SHARE * max(one, other)))
    return bool(old == new)


def is_part(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether one of two texts or lists may be a part of the other.

    It is, if it is the beginning of the other, or if exactly one of two texts ends with an ellipsis: the texts of a
    shortened value and of a whole one cannot be compared.

    >>> is_part("Boats…", "Boats and lakes"), is_part("Trains…", "Boats"), is_part("", "Boats"), is_part([], ["a"])
    (True, True, True, True)
    >>> is_part("Boats…", "Trains…"), is_part("Boats", "Boats and lakes"), is_part(["b"], ["a", "b"])
    (False, False, False)
    >>> is_part("Boat" * 50, "Boat" * 51), is_part("Boat" * 51, "Boat" * 50 + "Cars"), is_part("a" * 199, "a" * 200)
    (True, False, False)
    """
    shorter, longer = sorted((one, other), key=len)
    if not (isinstance(shorter, str) and isinstance(longer, str)):
        return longer[: len(shorter)] == shorter
    is_cut = shorter.endswith(ELLIPSES)
    if is_cut != longer.endswith(ELLIPSES):
        return True
    begins = longer.startswith(shorter.rstrip("….") if is_cut else shorter)
    return begins and (is_cut or not shorter or len(shorter) >= LONG)


def withheld(fields: Struct, record: dict[str, Any]) -> set[str]:
    """Return the names of the fields that the platform withheld. A dotted name is a field of a list's entries."""
    return {name for path in fields.marked(Mark.WITHHELD) for name in value_at(record, path) or ()}


def is_keyed(kind: ColumnType) -> bool:
    """Whether a type is that of a list whose entries have keys."""
    inner = without_lists(kind)
    return isinstance(kind, ListOf) and isinstance(inner, Struct) and bool(inner.marked(Mark.KEY))


def _value(data: dict[str, Any], name: str, kind: ColumnType) -> Any:
    """Return a value. A key that is absent because the object has no such value counts as an empty value."""
    empty: Any = [] if isinstance(kind, ListOf) else "" if kind == "text" else None
    return data.get(name, empty)


def _significant(value: Any, kind: ColumnType) -> Any:
    """Return the entries of a list, and the objects in them, without the values that are never compared."""
    if isinstance(kind, ListOf) and value is not None:
        return [_significant(each, kind.of) for each in value]
    if isinstance(kind, Struct) and value is not None:
        compared = {name: each for name, each in kind.of.items() if kind.marks.get(name) not in _UNSTABLE}
        return {name: _significant(value.get(name), each) for name, each in compared.items()}
    return value
