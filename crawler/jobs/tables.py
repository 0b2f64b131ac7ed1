"""The tables of the store: jobs, shared limits, and the usage of the endpoint.

SQLAlchemy creates these tables in SQLite and in PostgreSQL.

Texts from files and pages are stored as bytes: PostgreSQL refuses a whole batch if one of its texts has a NUL or a lone
surrogate.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from crawler.jobs.schema_version import VersionedSchema, refuse_version_0_2
from crawler.jobs.states import STATES

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
    sa.Column("note", sa.LargeBinary),  # null: an earlier version has stored the row
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
outbox = sa.Table(  # the events that are to be sent to the webhooks of clients: see events.py
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


def _create(connection: sa.Connection) -> None:
    refuse_version_0_2(connection)
    metadata.create_all(connection)


def _to_version_2(connection: sa.Connection) -> None:
    """Drop asynchronous calls, reservations of quotas, the states of processes, and webhooks that clients have set.

    Add the events of webhooks, and the ids of writes.
    """
    calls = "IN (SELECT id FROM jobs WHERE kind = 'calls')"
    for table in ("records", "targets", "tallies"):
        connection.execute(sa.text(f"DELETE FROM {table} WHERE job {calls}"))  # noqa: S608  # constants
    connection.execute(sa.text("DELETE FROM jobs WHERE kind = 'calls'"))
    connection.execute(sa.text("DROP INDEX targets_expires"))
    for column in ("ready", "expires"):
        connection.execute(sa.text(f"ALTER TABLE targets DROP COLUMN {column}"))
    states = ("processes", "outcomes", "unread", "successes")
    for table in ("idempotency", "quotas", "reservations", *states, "webhooks", "deliveries"):
        connection.execute(sa.text(f"DROP TABLE {table}"))
    for added in (outbox, writes):
        added.create(connection)


def _to_version_3(connection: sa.Connection) -> None:
    """Add the runs of jobs, the notes of input lines and an index of failures, and drop the parts of exports.

    Move the idempotency keys from the options to a column.
    """
    connection.execute(sa.text("DROP TABLE parts"))
    note = inputs.c.note.type.compile(connection.dialect)
    connection.execute(sa.text(f"ALTER TABLE inputs ADD COLUMN note {note}"))
    next(each for each in targets.indexes if each.name == "targets_failed").create(connection)
    columns = ", ".join(each.name for each in jobs.columns if each.name not in {"run", "revision", "key"})
    former = connection.execute(sa.text("SELECT id, options FROM jobs")).fetchall()
    if connection.dialect.name == "sqlite":  # it cannot drop a constraint
        connection.execute(sa.text("DROP INDEX jobs_open"))
        connection.execute(sa.text("ALTER TABLE jobs RENAME TO former"))
        jobs.create(connection)
        connection.execute(sa.text(f"INSERT INTO jobs ({columns}) SELECT {columns} FROM former"))  # noqa: S608
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'jobs'"))
        connection.execute(sa.text("UPDATE sqlite_sequence SET name = 'jobs' WHERE name = 'former'"))
        connection.execute(sa.text("DROP TABLE former"))
    else:
        run, revision, key = "run BIGINT NOT NULL DEFAULT 1", "revision BIGINT NOT NULL DEFAULT 0", "key TEXT"
        unique = "ADD UNIQUE (owner, name, run), ADD UNIQUE (owner, key)"
        added = f"ADD {run}, ADD {revision}, ADD {key}, DROP CONSTRAINT jobs_owner_name_key, {unique}"
        connection.execute(sa.text(f"ALTER TABLE jobs {added}"))
    for job, options in former:
        given = orjson.loads(options)
        if key := given.pop("key", None):
            values = {"key": key, "options": orjson.dumps(given)}
            connection.execute(sa.update(jobs).where(J.id == job).values(values))


SCHEMA = VersionedSchema(_create, steps=(_to_version_2, _to_version_3))
