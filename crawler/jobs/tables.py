"""The tables of the store: jobs, shared limits, the usage of the endpoint. The statements on jobs and their targets.

SQLAlchemy Core creates the tables and compiles the statements for SQLite and for PostgreSQL. SQLite has one writer at a
time, so that it needs no row locks: ``FOR UPDATE`` is left out there.

On PostgreSQL, a transaction locks rows of ``targets`` before rows of ``jobs``, and rows of ``jobs`` in the order of
their ids. Claims, and the expiry of leases, skip targets that other transactions have locked. This order
prevents deadlocks.

Texts from files and pages are stored as bytes: PostgreSQL refuses a whole batch if one of its texts has a NUL or a lone
surrogate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import sqlalchemy as sa
from sqlalchemy import bindparam as param
from sqlalchemy.dialects import postgresql

JobState: TypeAlias = Literal["loading", "open", "paused", "cancelled", "done"]
UNFINISHED: tuple[JobState, ...] = ("loading", "open", "paused")
TargetState: TypeAlias = Literal["waiting", "running", "paused", "done", "failed", "dead", "cancelled"]
STATES: tuple[TargetState, ...] = get_args(TargetState)
"""The states of a target. A job has a counter for each."""
VERSION = 4
"""The version of the tables. Add one for each change of the tables."""


class StoreVersionError(Exception):
    """Raised when another version of this program has made the tables of a store."""


metadata = sa.MetaData()
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite generates only keys of the type INTEGER

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", Number, sa.Identity(), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("run", sa.BigInteger, nullable=False, server_default="1"),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("key", sa.Text),
    sa.Column("kind", sa.Text, nullable=False, server_default="job"),  # job | removed
    sa.Column("state", sa.Text, nullable=False),  # loading | open | paused | cancelled | done
    sa.Column("whole_roots", sa.Boolean, nullable=False),
    sa.Column("options", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("loaded", sa.Double, nullable=False),  # the time of the last push of lines
    sa.Column("ended", sa.Double),
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
    *(sa.Column(state, sa.BigInteger, nullable=False, server_default="0") for state in STATES),
    sa.UniqueConstraint("owner", "name", "run"),
    sa.UniqueConstraint("owner", "key"),
    sqlite_autoincrement=True,  # no id is used again: a removed job's cursor must not fit a later job
)
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("job", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.LargeBinary, primary_key=True),
    sa.Column("n", sa.BigInteger, nullable=False),
)
inputs = sa.Table(
    "inputs",
    metadata,
    sa.Column("job", sa.BigInteger, primary_key=True),
    sa.Column("row", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("id", sa.LargeBinary, nullable=False),
    sa.Column("columns", sa.LargeBinary),
    sa.Column("line", sa.BigInteger),
    sa.Column("note", sa.LargeBinary, nullable=False),
)
targets = sa.Table(
    "targets",
    metadata,
    sa.Column("job", sa.BigInteger, primary_key=True),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("root", sa.LargeBinary),  # only in jobs of whole roots
    sa.Column("parent", sa.LargeBinary),
    sa.Column("row", sa.BigInteger),
    sa.Column("platform", sa.Text, nullable=False),
    sa.Column("work", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("exits", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lease_until", sa.Double),
    sa.Column("code", sa.Text),
    sa.Column("outcome", sa.LargeBinary),
    sa.Column("note", sa.LargeBinary),
    sa.Column("seq", sa.BigInteger),
)
records = sa.Table(
    "records",
    metadata,
    sa.Column("job", sa.BigInteger, primary_key=True),
    # The primary key ends with seq, not with the target's key, so that new rows are appended.
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
limits = sa.Table(  # throttles, circuit breakers, refusals, limits of API keys: see shared_facts.py
    "limits",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("fact", sa.LargeBinary, nullable=False),
    sa.Column("ends", sa.Double, nullable=False),  # the fact can be deleted after this time
)
seen = sa.Table(  # kept when jobs are removed
    "seen",
    metadata,
    sa.Column("listing", sa.LargeBinary, primary_key=True),
    sa.Column("ids", sa.LargeBinary, nullable=False),
)
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("client", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("scraper", sa.Text, primary_key=True),
    sa.Column("code", sa.Text, primary_key=True),
    sa.Column("calls", sa.BigInteger, nullable=False),
    sa.Column("billable", sa.BigInteger, nullable=False),
    sa.Column("partial", sa.BigInteger, nullable=False, server_default="0"),
)
totals = sa.Table(  # the targets of clients' jobs with an outcome, for the metrics: kept when jobs are removed
    "totals",
    metadata,
    sa.Column("scraper", sa.Text, primary_key=True),
    sa.Column("code", sa.Text, primary_key=True),
    sa.Column("targets", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
)
outbox = sa.Table(  # the events that are to be sent to the webhooks of clients: see counters.py
    "outbox",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),  # sorted by the time of the event
    sa.Column("client", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("due", sa.Double, nullable=False),  # the time of the next try
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
)
writes = sa.Table(  # the ids of writes that may be repeated: see ``Store.write_once``
    "writes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("stored", sa.Double, nullable=False),
)
schema_version = sa.Table("schema_version", metadata, sa.Column("version", sa.Integer, nullable=False))
T, J = targets.c, jobs.c


def _index(name: str, *columns: sa.Column[object], where: sa.ColumnElement[bool] | None = None) -> None:
    sa.Index(name, *columns, sqlite_where=where, postgresql_where=where)


WAITING, RUNNING = T.state == sa.literal_column("'waiting'"), T.state == sa.literal_column("'running'")
FAILED = T.code != sa.literal_column("'OK'")
OPEN = J.state == sa.literal_column("'open'")
_index("jobs_open", J.owner, J.id, where=OPEN)
_index("inputs_key", inputs.c.job, inputs.c.key, inputs.c.row)
# Targets are claimed in the order in which they are stored, so that few pages change.
_index("targets_waiting", T.platform, T.job, T.row, T.key, where=WAITING)
_index("outbox_due", outbox.c.due)
_index("writes_stored", writes.c.stored)
_index("limits_scope", limits.c.scope)
_index("limits_ends", limits.c.ends)
_index("targets_leases", T.lease_until, where=RUNNING)
_index("targets_seq", T.job, T.seq, where=T.seq.is_not(None))
_index("targets_failed", T.job, T.code, T.seq, where=FAILED)
_index("targets_followups", T.job, T.row, T.key, where=T.parent.is_not(None))
_index("targets_roots", T.job, T.root, T.seq, where=T.root.is_not(None))

sa.event.listen(  # the data is compressed already
    records,
    "after_create",
    sa.DDL("ALTER TABLE records ALTER COLUMN data SET STORAGE EXTERNAL").execute_if(dialect="postgresql"),
)


def insert_into(table: sa.Table, *, add: Iterable[str] = (), replace: Iterable[str] = ()) -> sa.Insert:
    """Return an INSERT statement. Rows whose key is already stored are skipped, or some of their columns are changed.

    ``add``: columns of numbers, which are added to the stored ones. ``replace``: columns that get the new values.
    """
    insert = postgresql.insert(table)  # SQLite has the same ON CONFLICT
    changes = {name: table.c[name] + insert.excluded[name] for name in add}
    changes |= {name: insert.excluded[name] for name in replace}
    if not changes:
        return insert.on_conflict_do_nothing()
    return insert.on_conflict_do_update(index_elements=table.primary_key.columns, set_=changes)


def create(connection: sa.Connection) -> None:
    """Create the tables in an empty database, within the caller's transaction. Other databases are not changed.

    Raises:
        StoreVersionError: as for ``has_tables()``.
    """
    if not has_tables(connection):
        metadata.create_all(connection)
        connection.execute(sa.insert(schema_version).values(version=VERSION))


def has_tables(connection: sa.Connection) -> bool:
    """Whether a database has the tables.

    Raises:
        StoreVersionError: another version has made its tables.
    """
    inspected = sa.inspect(connection)
    has_usage = inspected.has_table("usage")  # first: another process may create all tables between the two queries
    if inspected.has_table("schema_version"):
        found = connection.scalar(sa.select(schema_version.c.version))
        if found != VERSION:
            raise StoreVersionError(
                f"The tables of the store have version {found}, and this program needs version {VERSION}: use the"
                " program that made them, or another store."
            )
        return True
    if has_usage:
        raise StoreVersionError(
            "The store is of version 0.2, which this version cannot read: print its usage with version 0.2 (scrapy keys"
            " usage), then remove it, or set STORE to a new file or database (CHANGELOG.md)."
        )
    return False


def several(name: str) -> sa.BindParameter[Any]:
    """Return the parameter for a list of values."""
    return param(name, expanding=True)


def first(query: sa.Select[Any], *order: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a query for the first ``limit`` rows of another query, in an order."""
    return query.order_by(*order).limit(param("limit"))


OF_JOB = T.job == param("job")
OF_KEYS = (T.job == param("job_")) & T.key.in_(several("keys"))

# Statements on jobs

RUNS = sa.select(jobs).where(J.owner == param("owner"), J.name == param("name")).order_by(J.run.desc())
OF_KEY = sa.select(jobs).where(J.owner == param("owner"), J.key == param("key"))
JOB = sa.select(jobs).where(J.id == param("job"))
OF_USERS = J.kind == "job"
LIST_JOBS = first(sa.select(jobs).where(J.id > param("after")), J.id)
NEWEST_JOBS_OF = first(
    sa.select(jobs).where(
        *(J.owner == param("owner"), sa.or_(param("name") == "", J.name == param("name"))),
        *(J.id < param("before"), OF_USERS, J.state != "loading"),
    ),
    J.id.desc(),
)
"""The jobs that an owner can see: neither removed jobs nor those whose upload is incomplete."""
OPEN_JOBS = sa.select(jobs).where(OPEN, OF_USERS).order_by(J.id)
COUNT_OPEN = sa.select(sa.func.count(J.id)).where(J.owner == param("owner"), OF_USERS, J.state.in_(several("states")))
LOCK_JOBS = sa.select(jobs).where(J.id.in_(several("jobs"))).order_by(J.id).with_for_update()
_UPDATE_JOB = sa.update(jobs).where(J.id == param("job_"))
COUNT = _UPDATE_JOB.values({name: param(f"{name}_") for name in (*STATES, "seq", "state", "ended", "revision")})
SET_LOADED = _UPDATE_JOB.values(loaded=param("loaded_"))
SET_OPTIONS = _UPDATE_JOB.values(options=param("options_"))
MARK_REMOVED = _UPDATE_JOB.values(kind="removed", key=None)
ADD_EVENT = sa.insert(outbox)
DROP_JOB = sa.delete(jobs).where(J.id == param("job"))
_RECORD = (records.c.job == T.job) & (records.c.seq == T.seq)
_WITH_RECORDS = targets.outerjoin(records, _RECORD)
_NUMBERS = sa.func.count(), sa.func.count(records.c.seq)
BOOKS = sa.select(T.state, *_NUMBERS).select_from(_WITH_RECORDS).where(OF_JOB).group_by(T.state)
"""The numbers of a job's targets and records, by state."""
NUMBERED = sa.select(sa.func.count(T.seq), sa.func.max(T.seq), sa.func.count(T.seq.distinct())).where(OF_JOB)

# Statements on targets

ADD_JOB = insert_into(jobs).returning(jobs)
ADD_INPUTS = insert_into(inputs)
ADD_TARGETS = insert_into(targets)
STORED = sa.select(T.key).where(OF_KEYS)
"""Selects those of the given keys that are stored."""
ADD_TALLIES = insert_into(tallies, add=["n"])
_ON_PLATFORM = T.platform == param("platform")
_FIRST_WAITING = sa.select(T.key).where(T.job == J.id, _ON_PLATFORM, WAITING).order_by(T.row).limit(1)
_HAS_TARGETS = sa.and_(  # without EXISTS, with which PostgreSQL might read all waiting targets into a hash table
    J.waiting > 0, J.id.not_in(several("skipped")), _FIRST_WAITING.scalar_subquery().is_not(None)
)
_ANY_JOB = (T.job + 0).label("job")  # for the column alone, SQLite would read all targets in the order of their jobs
RUNNING_ON = (
    sa.select(_ANY_JOB, sa.func.count().label("n")).where(RUNNING, T.lease_until > 0, _ON_PLATFORM).group_by(_ANY_JOB)
)
"""The numbers of running targets on a platform by job."""
_running = RUNNING_ON.subquery()
JOBS_TO_CLAIM = (
    sa.select(J.id, J.owner, J.whole_roots, sa.func.coalesce(_running.c.n, 0), sa.case((_HAS_TARGETS, 1), else_=0))
    .select_from(jobs.outerjoin(_running, _running.c.job == J.id))
    .where(OPEN)
    .order_by(J.id)
)
"""The open jobs, each with its number of running targets on a platform, and whether it has a target to claim."""
JOB_TO_CLAIM = sa.select(J.id, J.whole_roots).where(OPEN, J.id == param("job"), J.waiting > 0)
_CLAIMED = (T.job, T.key, T.tries, T.exits, T.platform, T.work, T.row, T.root)
_FREE = sa.select(*_CLAIMED).where(OF_JOB, _ON_PLATFORM, WAITING)
TO_CLAIM = first(_FREE, T.row, T.key).with_for_update(skip_locked=True)
_other = targets.alias()
ROOT_RUNNING = sa.exists().where(
    _other.c.job == T.job, _other.c.root == T.root, _other.c.state == sa.literal_column("'running'")
)
FREE_ROOT = _FREE.where(~ROOT_RUNNING).order_by(T.row, T.key).limit(1).with_for_update(skip_locked=True, of=targets)
OF_ROOT = sa.and_(OF_JOB, T.root == param("root"))
ROOT_TO_CLAIM = sa.select(*_CLAIMED).where(OF_ROOT, WAITING).with_for_update(skip_locked=True)
BUSY = sa.select(sa.func.count()).where(OF_ROOT, RUNNING)
_HOLD = sa.update(targets).where(OF_KEYS).values(lease_until=param("until"))
START = _HOLD.values(state="running", worker=param("worker_"), tries=T.tries + 1)
RENEW = _HOLD.where(T.worker == param("worker_"), RUNNING).returning(T.key, T.tries)
_EXPIRED = sa.select(*_CLAIMED).where(RUNNING, (T.lease_until < param("now")) | (T.lease_until > param("far")))
EXPIRED = first(_EXPIRED, T.lease_until).with_for_update(skip_locked=True)
HELD = sa.select(T.job, T.key, T.state, T.worker, T.tries).where(OF_KEYS).order_by(T.key).with_for_update()
_UPDATE = sa.update(targets).where(T.job == param("job_"), T.key == param("key_"))
_END = _UPDATE.values(state=param("to"), lease_until=None, exits=T.exits + param("exits_"))
MOVE = _END
"""Puts a target back into its queue, pauses it or cancels it."""
FINISH = _END.values(
    code=param("code_"),
    outcome=param("outcome_"),
    note=param("note_"),
    seq=param("seq_"),
)
ADD_RECORDS = sa.insert(records)
_OF_STATES = sa.select(T.key, T.state, T.code).where(OF_JOB, T.state.in_(several("states")))
SWEEP = first(_OF_STATES.where(T.key > param("after")), T.key).with_for_update()
"""The next of a job's targets in some states, in the order of their keys."""
SWEEP_TARGETS = SWEEP.where(T.platform != "")
"""As ``SWEEP``, without invalid lines."""
SWEEP_CODES = SWEEP_TARGETS.where(T.code.in_(several("codes")))
"""As ``SWEEP_TARGETS``, only targets whose errors have some codes."""
RETRY = _UPDATE.values(state="waiting", code=None, outcome=None, note=None, seq=None, exits=0)
DROP_TARGETS = (
    sa.delete(records).where(records.c.job == param("job_"), records.c.seq.in_(sa.select(T.seq).where(OF_KEYS))),
    sa.delete(targets).where(OF_KEYS),
)
INPUT_ROWS = first(sa.select(inputs.c.row).where(inputs.c.job == param("job")), inputs.c.row)
LAST_ROW = sa.select(sa.func.max(inputs.c.row)).where(inputs.c.job == param("job"))
DROP_INPUTS = sa.delete(inputs).where(inputs.c.job == param("job"), inputs.c.row <= param("last"))
DROP_TALLIES = sa.delete(tallies).where(tallies.c.job == param("job"))

LEFT_ON = tuple(sa.select(T.key).where(OF_JOB, _ON_PLATFORM, state).limit(1) for state in (WAITING, RUNNING))
COUNT_UNFINISHED = sa.select(sa.func.count()).where(OF_JOB, _ON_PLATFORM, WAITING | RUNNING)

# Queries of outcomes

NOTES = sa.select(T.code, T.note).where(OF_ROOT, T.note.is_not(None), T.seq > 0).order_by(T.seq)
SEEN = sa.select(seen.c.ids).where(seen.c.listing == param("listing"))
LOCK_SEEN = SEEN.with_for_update()
SET_SEEN = insert_into(seen, replace=["ids"])
TALLIES = sa.select(tallies.c.kind, tallies.c.name, tallies.c.n).where(tallies.c.job == param("job"))
_INPUT = (inputs.c.id, inputs.c.columns, inputs.c.line, inputs.c.note)
_LINE = (T.key, T.row, T.platform, T.work, T.state, T.code, T.outcome, T.seq, records.c.data)
_LINES = sa.select(*_LINE).select_from(_WITH_RECORDS).where(OF_JOB)
BY_SEQ = first(_LINES.where(T.seq > param("after"), T.seq <= param("until")), T.seq)
_WITH_TARGETS = inputs.join(targets, (T.job == inputs.c.job) & (T.key == inputs.c.key))
BY_CODE = first(_LINES.where(FAILED, T.code == param("code")), T.seq)
"""The first failures with a code."""
_BY_INPUT = _WITH_TARGETS.outerjoin(records, _RECORD)
_INPUTS = sa.select(*_LINE, inputs.c.row.label("position"), *_INPUT).select_from(_BY_INPUT)
BY_ROW = first(_INPUTS.where(inputs.c.job == param("job"), inputs.c.row > param("after")), inputs.c.row)
OF_RUNS = (
    sa.select(T.job, *_LINE).select_from(_WITH_RECORDS).where(T.job.in_(several("jobs")), T.key.in_(several("keys")))
)
"""The targets with some keys in several runs of a job."""
_IN_OTHER = sa.exists().where(_other.c.job == param("other"), _other.c.key == inputs.c.key)
REMOVED = first(
    _INPUTS.where(
        *(inputs.c.job == param("job"), inputs.c.row > param("after"), T.row == inputs.c.row),
        *(T.platform != "", ~_IN_OTHER),
    ),
    inputs.c.row,
)
"""The input lines of a job whose targets another job does not have, without invalid lines."""
_AFTER = sa.tuple_(T.row, T.key) > sa.tuple_(param("row_"), param("key_"))
_OF_LINE = (inputs.c.row, inputs.c.key, T.platform, T.work, T.outcome, *_INPUT)
_LINES_OF = sa.select(*_OF_LINE).select_from(_WITH_TARGETS)
LINES = first(_LINES_OF.where(inputs.c.job == param("job"), inputs.c.row > param("after")), inputs.c.row)
"""The input lines of a job with their targets."""
FOLLOWUPS = first(_LINES.where(T.parent.is_not(None), T.row <= param("last"), _AFTER), T.row, T.key)
INPUTS_OF = (
    sa.select(inputs.c.key, inputs.c.row, *_INPUT)
    .where(inputs.c.job == param("job"), inputs.c.key.in_(several("keys")))
    .order_by(inputs.c.key, inputs.c.row)
)
_DONE = sa.select(T.key, T.root, T.outcome, T.seq).where(OF_JOB, T.state == sa.literal_column("'done'"))
DONE = first(_DONE.where(T.seq > param("after")), T.seq)
TARGETS_OF = sa.select(T.key, T.platform, T.work).where(OF_KEYS).order_by(T.row, T.key)
