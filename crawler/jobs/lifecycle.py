"""Creates, fills, cancels, resumes, retries, checks and removes jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import orjson
from scrapy.utils.asyncgen import as_async_generator

from crawler.errors import documented
from crawler.jobs import tables as sql
from crawler.jobs.counters import Changes, check, lock_jobs
from crawler.jobs.job import InputLine, Job, JobError, checked_name
from crawler.jobs.options import JobOptions
from crawler.jobs.store import STORE_TIME, Session, Statement, Store
from crawler.jobs.tables import STATES, UNFINISHED, JobState, TargetState

ROWS_PER_TRANSACTION = 500
PAUSE = 2.0
"""Pause after each transaction of a long change, as a multiple of its duration, so that other transactions can run."""
PAGES_PER_VACUUM = 500
"""Number of pages of an SQLite file that are returned to the disk in one transaction."""
LOADING_SECONDS = 120.0
"""Seconds without new lines after which the upload of a loading job counts as interrupted, because its process exited.

Lines are stored every ``ROWS_PER_TRANSACTION`` lines. A workbook whose lines take longer than a minute is refused.
"""
MAX_ID = 2**63 - 1
RETRYABLE = [each.code for each in documented() if each.retryable]
"""The codes of errors that may pass: of the platform, of the network and of this program."""


class TooManyJobsError(JobError):
    """Raised when an owner has the maximum number of jobs that are loading, open or paused."""


class UnfinishedRunError(JobError):
    """Raised when a run cannot begin, because the newest run of the job is loading, open or paused."""


@dataclass(frozen=True)
class Rules:
    """When a new run of a job begins."""

    if_unfinished: Literal["continue", "cancel", "refuse"] = "continue"
    """What to do if the newest run is loading, open or paused. A run whose upload was interrupted is never refused."""
    key: str | None = None
    """The ``Idempotency-Key`` of the new run. If a run of the owner has this key, no run begins."""
    most_open: int | None = None
    """The maximum number of the owner's runs that are loading, open or paused."""
    until_written: bool = False
    """Whether a run that is done is not finished as long as it is ``JobOptions.unwritten``."""


DEFAULT = Rules()


class Jobs:
    """The jobs of a store. Reads have a connection of their own, ``reads``, so that they do not wait for writes."""

    def __init__(self, location: str) -> None:
        """``location``: path of a file, or a ``postgresql://`` URL."""
        self.writes, self.reads = (Store(location) for _ in range(2))

    async def close(self) -> None:
        """Disconnect after all pending transactions."""
        await asyncio.gather(self.writes.close(), self.reads.close())

    async def read(self, statement: Statement, **values: Any) -> list[Any]:
        """Return the rows of a query, in a transaction of its own."""
        return await self.reads.transact(lambda session: session.rows(statement, **values), write=False)

    async def begin(
        self,
        name: str,
        owner: str = "",
        *,
        options: JobOptions | None = None,
        whole_roots: bool = False,
        rules: Rules = DEFAULT,
    ) -> Job:
        """Return the run of a job to work on: the newest run if it is not finished, else a new run, which is loading.

        The newest run decides, in one transaction. If several processes begin a run at the same time, all get the same
        one.

        Raises:
            UnfinishedRunError, TooManyJobsError: the rules refuse a new run.
            JobError: the name is empty, or the name or the owner cannot be stored.
        """
        given = options or JobOptions()
        values = {
            "name": checked_name("name of a job", name),
            "owner": checked_name("owner of a job", owner),
            "options": given.dump(),
            "whole_roots": whole_roots,
            "key": rules.key,
            "state": "loading",
        }
        if not name:
            raise JobError("A job must have a name.")
        former, job = await self.writes.transact(lambda session: _begin(session, values, given, rules))
        if former is not None:
            await self.cancel(former)
        return job

    async def get(self, job: int) -> Job | None:
        """Return a job, or None if it was removed."""
        found = await self._list(sql.JOB, job=job)
        return found[0] if found else None

    async def runs(self, name: str, owner: str = "", *, removed: bool = False) -> list[Job]:
        """Return the runs of the owner's job with this name, the newest first.

        ``removed``: also those whose removal is not complete.
        """
        return [job for job in await self._list(sql.RUNS, name=name, owner=owner) if removed or job.kind == "job"]

    async def find(self, name: str, owner: str = "", run: int | None = None) -> Job | None:
        """Return a run of the owner's job with this name, or None. Without a number, return the newest run."""
        return next((job for job in await self.runs(name, owner) if run in {None, job.run}), None)

    async def earlier(self, job: Job) -> list[Job]:
        """Return the kept earlier runs with which a run can be compared, the newest first.

        These are done, and of the sandbox only if the run is.
        """
        return [
            each
            for each in await self.runs(job.name, job.owner)
            if each.run < job.run and each.state == "done" and each.options.sandbox == job.options.sandbox
        ]

    async def has_left(self, job: int, platform: str, *, running: bool) -> bool:
        """Whether a job has waiting targets of a platform, or with ``running`` also running ones."""
        values, which = {"job": job, "platform": platform}, sql.LEFT_ON if running else sql.LEFT_ON[:1]
        return await self.reads.transact(
            lambda session: any(session.rows(each, **values) for each in which), write=False
        )

    async def count_unfinished(self, job: int, platform: str) -> int:
        """Return the number of a job's waiting and running targets of a platform."""
        return int((await self.read(sql.COUNT_UNFINISHED, job=job, platform=platform))[0][0])

    async def count_unfinished_of(self, owner: str) -> int:
        """Return the number of an owner's jobs that are loading, open or paused."""
        return await self.reads.transact(lambda session: _count_unfinished(session, owner), write=False)

    async def every(self) -> AsyncIterator[Job]:
        """Yield the jobs of all owners, the oldest first."""
        after = 0
        while page := await self._list(sql.LIST_JOBS, after=after, limit=ROWS_PER_TRANSACTION):
            for job in page:
                yield job
            after = page[-1].id

    async def newest(self, owner: str, limit: int, before: int = MAX_ID, name: str = "") -> list[Job]:
        """Return runs of an owner with ids less than ``before``, the newest first, without loading and removed ones.

        ``name``: only runs of the job with this name.
        """
        return await self._list(sql.NEWEST_JOBS_OF, owner=owner, limit=limit, before=before, name=name)

    async def _list(self, statement: Statement, **values: Any) -> list[Job]:
        return [Job.of(row) for row in await self.read(statement, **values)]

    async def tallies(self, job: int) -> dict[tuple[str, str], int]:
        """Return a job's tallies, numbers such as those of outcomes with a code: (kind, name) -> number."""
        return {(kind, name.decode()): n for kind, name, n in await self.read(sql.TALLIES, job=job)}

    async def describe(self, job: Job, scrapers: Iterable[str], columns: Sequence[str]) -> None:
        """Store which scrapers the targets of a job have, and the names of the user's own columns in its files."""
        named = [("scraper", name) for name in sorted(scrapers)]
        if columns:
            named.append(("columns", orjson.dumps(columns).decode()))
        rows = [{"job": job.id, "kind": kind, "name": name.encode(), "n": 1} for kind, name in named]
        await self.writes.transact(lambda session: session.execute(sql.ADD_TALLIES, rows))

    async def described(self, job: Job) -> tuple[list[str], tuple[str, ...]]:
        """Return what ``describe()`` has stored: the scrapers in alphabetical order, and the names of the columns."""
        found = sorted(await self.tallies(job.id))
        columns = dict.fromkeys(each for kind, name in found if kind == "columns" for each in orjson.loads(name))
        return [name for kind, name in found if kind == "scraper"], tuple(columns)

    async def next_row(self, job: Job) -> int:
        """Return the row of the next line to push: 0 while the job is loading, because a killed push is repeated."""
        if job.state == "loading":
            return 0
        rows = await self.read(sql.LAST_ROW, job=job.id)
        return 0 if rows[0][0] is None else int(rows[0][0]) + 1

    async def push(self, job: Job, lines: Iterable[InputLine] | AsyncIterator[InputLine]) -> int:
        """Add lines and their targets to a job. Return the number of new targets.

        A line that was pushed before is skipped, so that a push that was killed can be repeated. While the job is
        loading, lines are compared by row; later, by key and id. The targets of a job that is still loading are claimed
        after ``open()``.

        Raises:
            JobError: the job is cancelled or was removed, or a line is not JSON data.
        """
        added = 0
        piece: list[InputLine] = []
        async for line in as_async_generator(lines):
            piece.append(line)
            if len(piece) == ROWS_PER_TRANSACTION:
                added += await self._push(job, piece)
                piece = []
        return added + (await self._push(job, piece) if piece else 0)

    async def _push(self, job: Job, lines: list[InputLine]) -> int:
        rows = await asyncio.to_thread(_rows, job, lines)
        added: int = await self._paced(lambda session: _push(session, job, *rows))
        return added

    async def open(self, job: Job) -> None:
        """Let workers claim the targets of a job that was loading. A job in another state is not changed."""
        await self.writes.transact(lambda session: _set_state(session, job, "open", of=("loading",)))

    async def cancel(self, job: Job) -> None:
        """Cancel a job that is not done, with its waiting and paused targets, and the follow-ups of its running ones.

        A cancellation that was killed can be repeated.
        """
        every: tuple[JobState, ...] = ("loading", "open", "paused", "cancelled")
        if await self.writes.transact(lambda session: _set_state(session, job, "cancelled", of=every)):
            await self._sweep(job, ("waiting", "paused"), partial(_move, to="cancelled"))

    async def set_options(self, job: Job, options: JobOptions) -> None:
        """Replace the options of a job. Running workers keep the former options."""
        values = {"job_": job.id, "options_": options.dump()}
        await self.writes.transact(lambda session: session.run(sql.SET_OPTIONS, **values))

    async def resume(self, job: Job) -> None:
        """Continue a job that is paused because a limit was reached."""
        await self._sweep(job, ("paused",), partial(_move, to="waiting"))
        await self.writes.transact(lambda session: _set_state(session, job, "open", of=("paused",)))

    async def retry(self, job: Job, *, every: bool = False) -> int:
        """Requeue the failed targets of a job whose error may pass, or with ``every`` all but invalid lines.

        Return their number.

        Raises:
            JobError: the job is cancelled or was removed.
        """
        states = ("failed", "dead")
        if every:
            return await self._sweep(job, states, _retry, sql.SWEEP_TARGETS)
        return await self._sweep(job, states, _retry, sql.SWEEP_CODES, codes=RETRYABLE)

    async def mark_removed(self, job: Job, of: tuple[JobState, ...] = get_args(JobState)) -> bool:
        """Hide a job from its owner until ``remove()`` has deleted it.

        Return False, and change nothing, if the job's state is not in ``of``, or if the job was deleted.
        """

        def mark(session: Session) -> bool:
            is_marked = _set_state(session, job, "cancelled", of=of)
            if is_marked:
                session.run(sql.MARK_REMOVED, job_=job.id)
            return is_marked

        return await self.writes.transact(mark)

    async def remove(self, job: Job) -> None:
        """Delete a job with its lines, targets and records. A removal that was killed can be repeated."""
        if not await self.mark_removed(job):
            return
        while await self._paced(lambda session: _drop_inputs(session, job)):
            pass
        while not await self._paced(lambda session: _drop_rest(session, job)):
            await self._sweep(job, STATES, _drop)
        while await self._paced(_vacuum):
            pass

    async def remove_earlier(self, name: str, owner: str = "") -> None:
        """Remove the runs that are no longer kept, now that a run is done: see ``JobOptions.keep``.

        The newest run that is done and the kept number of done runs before it stay. Earlier ones are removed, and all
        cancelled ones before the newest done run.
        """
        runs = await self.runs(name, owner, removed=True)
        done = [each for each in runs if each.state == "done"]
        for newest in done[:1]:
            kept = done[: newest.options.keep + 1]
            former = [each for each in runs if each.run < newest.run and each not in kept]
            for each in former:
                if await self.mark_removed(each, of=("done", "cancelled")):
                    await self.remove(each)

    async def check(self, job: Job) -> list[str]:
        """Compare the counters of a job with its targets, records and sequence numbers. Return the differences."""
        return await self.reads.transact(lambda session: check(session, job), write=False)

    async def _sweep(
        self, job: Job, states: tuple[str, ...], change: Any, piece_of: Statement = sql.SWEEP, **given: Any
    ) -> int:
        """Change the targets that are in ``states``, in several transactions. Return their number."""
        total, after = 0, b""
        while True:
            values = {"job": job.id, "after": after, "states": states, "limit": ROWS_PER_TRANSACTION, **given}

            def piece(session: Session, values: dict[str, Any] = values) -> list[Any]:
                rows = session.execute(piece_of, values).fetchall()
                if rows:
                    changes = _changes(session, job)
                    change(session, changes, job.id, rows)
                    changes.store(session.now())
                return list(rows)

            rows = await self._paced(piece)
            if not rows:
                return total
            total, after = total + len(rows), rows[-1].key

    async def _paced(self, work: Any) -> Any:
        """Run one of many transactions, then pause, so that transactions of other callers can run."""

        def timed(session: Session) -> tuple[Any, float]:
            begin = time.monotonic()
            return work(session), time.monotonic() - begin

        result, seconds = await self.writes.transact_patiently(timed)
        await asyncio.sleep(seconds * PAUSE)
        return result


def _begin(session: Session, values: dict[str, Any], options: JobOptions, rules: Rules) -> tuple[Job | None, Job]:
    """Return the run that was cancelled for a new one, and the run to work on."""
    if rules.key is not None and (made := session.rows(sql.OF_KEY, owner=values["owner"], key=rules.key)):
        return None, Job.of(made[0])
    newest = next(map(Job.of, session.rows(sql.RUNS, owner=values["owner"], name=values["name"])), None)
    former = None
    if newest is not None and rules.until_written and newest.state == "done" and newest.options.unwritten:
        return None, newest
    if newest is not None and newest.state in UNFINISHED:
        if rules.if_unfinished == "refuse" and not is_interrupted(newest):
            raise UnfinishedRunError(f"Run {newest.run} of the job {newest.name!r} is {newest.state}.")
        # The stored part of other files cannot be completed.
        is_other = newest.state == "loading" and newest.options.fingerprint != options.fingerprint
        if rules.if_unfinished == "continue" and not is_other:
            return None, newest
        former = newest if _set_state(session, newest, "cancelled", of=UNFINISHED) else None
        if rules.if_unfinished == "refuse":  # a repetition of the interrupted upload must not get a part of its lines
            session.run(sql.MARK_REMOVED, job_=newest.id)
    if rules.most_open is not None and _count_unfinished(session, values["owner"]) >= rules.most_open:
        raise TooManyJobsError(f"{rules.most_open} jobs are not done.")
    run = 1 if newest is None else newest.run + 1
    now = session.now()
    if added := session.execute(sql.ADD_JOB, values | {"run": run, "created": now, "loaded": now}).fetchone():
        return former, Job.of(added)
    # Another process has begun this run meanwhile.
    continues = replace(rules, if_unfinished="continue") if rules.if_unfinished == "cancel" else rules
    return former, _begin(session, values, options, continues)[1]


def is_interrupted(job: Job) -> bool:
    """Whether the upload of a job was interrupted. Just after a jump of the clock, this is not known: False."""
    return job.state == "loading" and STORE_TIME.is_steady and STORE_TIME.now() - job.loaded > LOADING_SECONDS


def _count_unfinished(session: Session, owner: str) -> int:
    return int(session.rows(sql.COUNT_OPEN, owner=owner, states=UNFINISHED)[0][0])


def _changes(session: Session, job: Job) -> Changes:
    jobs = lock_jobs(session, [job.id])
    if not jobs:
        raise JobError(f"The job {job.name!r} was removed.")
    return Changes(session, jobs)


def _set_state(session: Session, job: Job, to: JobState, of: tuple[JobState, ...]) -> bool:
    row = lock_jobs(session, [job.id]).get(job.id)
    if row is None or row.state not in of:
        return False
    changes = Changes(session, {job.id: row})
    changes.states[job.id] = to
    changes.store(session.now())
    return True


def _rows(job: Job, lines: Iterable[InputLine]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of lines and of their targets."""
    inputs, targets = [], []
    for line in lines:
        try:
            columns = orjson.dumps(line.columns) if line.columns else None
            own = {"job": job.id, "row": line.row, "key": line.key, "id": line.id.encode()}
            own |= {"columns": columns, "line": line.line, "note": line.note.encode()}
            work = orjson.dumps(line.work)
        except (TypeError, ValueError) as error:
            raise JobError(f"Line {line.row + 1} cannot be stored: {error}.") from error
        inputs.append(own)
        target = {"job": job.id, "key": line.key, "row": line.row, "platform": line.platform, "work": work}
        target |= {"root": line.key if job.whole_roots else None, "state": "waiting", "code": None, "outcome": None}
        if line.error is not None:
            outcome = orjson.dumps({"error": line.error})
            target |= {"state": "failed", "code": line.error["code"], "outcome": outcome}
        targets.append(target | {"seq": None})
    return inputs, targets


def _push(session: Session, job: Job, inputs: list[dict[str, Any]], targets: list[dict[str, Any]]) -> int:
    changes = _changes(session, job)
    if changes.jobs[job.id].state == "cancelled":
        raise JobError(f"The job {job.name!r} is cancelled: use another name.")
    if changes.jobs[job.id].state != "loading":
        stored = session.rows(sql.INPUTS_OF, job=job.id, keys=[row["key"] for row in inputs])
        known = {(key, own_id) for key, _, own_id, *_ in stored}
        inputs = [row for row in inputs if (row["key"], row["id"]) not in known]
    new = session.execute(sql.ADD_INPUTS, inputs).rowcount if inputs else 0
    added = len(changes.add(targets))
    if new > added:
        changes.tallies[job.id, "repeated", "lines"] += new - added
    now = session.now()
    changes.store(now)
    session.run(sql.SET_LOADED, job_=job.id, loaded_=now)
    return added


def _keys(job: int, rows: list[Any], **values: Any) -> list[dict[str, Any]]:
    return [{"job_": job, "key_": row.key, **values} for row in rows]


def _move(session: Session, changes: Changes, job: int, rows: list[Any], to: TargetState) -> None:
    session.execute(sql.MOVE, _keys(job, rows, to=to, exits_=0))
    for row in rows:
        changes.move(job, out=row.state, to=to)


def _retry(session: Session, changes: Changes, job: int, rows: list[Any]) -> None:
    if changes.jobs[job].state == "cancelled":
        raise JobError(f"The job {changes.jobs[job].name!r} is cancelled: its targets cannot be retried.")
    session.execute(sql.RETRY, _keys(job, rows))
    for row in rows:
        changes.move(job, out=row.state, to="waiting")
        changes.tallies[job, "code", row.code] -= 1


def _drop(session: Session, changes: Changes, job: int, rows: list[Any]) -> None:
    for statement in sql.DROP_TARGETS:
        session.execute(statement, {"job_": job, "keys": [row.key for row in rows]})
    for row in rows:
        changes.move(job, out=row.state)


def _drop_inputs(session: Session, job: Job) -> bool:
    rows = session.rows(sql.INPUT_ROWS, job=job.id, limit=ROWS_PER_TRANSACTION)
    if rows:
        session.run(sql.DROP_INPUTS, job=job.id, last=rows[-1][0])
    return bool(rows)


def _drop_rest(session: Session, job: Job) -> bool:
    """Delete a job without targets. Return False if it has targets: workers may have added follow-ups meanwhile."""
    row = lock_jobs(session, [job.id]).get(job.id)
    if row is not None and any(Job.of(row).counts.values()):
        return False
    for statement in (sql.DROP_TALLIES, sql.DROP_JOB):
        session.run(statement, job=job.id)
    return True


def _vacuum(session: Session) -> bool:
    """Return some free pages of an SQLite file to the disk. Return whether another call can return more."""
    if session.dialect != "sqlite":
        return False
    ((before,),) = session.rows("PRAGMA freelist_count")
    session.rows(f"PRAGMA incremental_vacuum({PAGES_PER_VACUUM})")
    ((left,),) = session.rows("PRAGMA freelist_count")
    return bool(0 < left < before)
