"""The store: runs transactions in a thread, on an SQLite or PostgreSQL database that may become unavailable or lost.

SQLite serves the worker processes of one host. PostgreSQL (extra ``postgresql``) also serves several hosts. Statements
are objects of SQLAlchemy Core, or texts that both databases accept, with named parameters (``:client``).

SQLAlchemy creates the tables, and compiles each statement once. The drivers execute the statements: SQLAlchemy would
take 100 µs for each statement and 5 µs for each value, in total as much CPU time as all other work of a worker.

The clocks of leases and of the store are here, too: the time of the database, without its jumps.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, TypeAlias, TypeVar

import sqlalchemy as sa
import structlog
from filelock import FileLock

from crawler.errors import StoreUnavailable
from crawler.jobs import tables
from crawler.jobs.tables import insert_into, writes
from crawler.storage.files import FILE_MODE, SqliteFile, transaction

JUMP_SECONDS = 2.0
"""Maximum seconds by which the time between two readings may differ on the wall clock and on the monotonic clock.

A larger difference means that the wall clock has jumped.
"""

OBSERVE_SECONDS = 1.0
"""Seconds after which the next transaction reads the time of the database again."""


lease_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Returns a monotonic time in seconds. The clock continues while the machine sleeps: leases expire then, too."""


@dataclass
class SteadyClock:
    """Compares the database's wall clock with the monotonic clock, to find jumps of the wall clock.

    After a jump forward, all leases seem to have expired, until their workers renew them. After an outage of the
    database, leases have expired because workers could not renew them. A process that has just started, or was
    suspended, cannot exclude such a jump or outage. Therefore leases count as expired only after this process has read
    the clock repeatedly, without a jump, for longer than the interval at which workers renew leases.
    """

    needed: float
    """Seconds without a jump after which the clock counts as steady. A longer gap between readings is a jump, too."""
    monotonic: Callable[[], float] = lease_clock
    _last: tuple[float, float] | None = None
    _since: float = 0.0

    def is_steady(self, now: float) -> bool:
        """Add a reading of the clock. Return whether the clock is steady. ``now``: the Unix time of the database."""
        here = self.monotonic()
        if self._last is None:
            self._since = here
        else:
            passed = here - self._last[1]
            if abs(now - self._last[0] - passed) > JUMP_SECONDS or passed > self.needed:
                self._since = here
        self._last = now, here
        return here - self._since >= self.needed


class StoreTime:
    """The Unix time of the store's host, without jumps of its wall clock.

    After a jump, this time follows the monotonic clock until the wall clock has been steady for ``needed`` seconds.
    Processes on several hosts have the same time, because PostgreSQL returns the time of its server.
    """

    def __init__(self, needed: float = 10.0, monotonic: Callable[[], float] = lease_clock) -> None:
        self.is_steady = False
        """Whether the wall clock was observed for ``needed`` seconds without a jump.

        While it is False, rows must not be deleted because of their age.
        """
        self._clock = SteadyClock(needed, monotonic)
        self._monotonic = monotonic
        self._offset: float | None = None
        self._observe_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the next transaction should call ``observe()``."""
        return self._monotonic() >= self._observe_at

    def observe(self, now: float) -> None:
        """Compare the time of the database with the monotonic clock. ``now``: the Unix time of the database."""
        here = self._monotonic()
        self._observe_at = here + OBSERVE_SECONDS
        self.is_steady = self._clock.is_steady(now)
        if self._offset is None or self.is_steady:
            self._offset = now - here

    def now(self) -> float:
        """Return the Unix time of the store's host in seconds. Before the first observation: the time of this host."""
        return time.time() if self._offset is None else self._monotonic() + self._offset


STORE_TIME = StoreTime()
"""The time of the store that this process uses. Each ``Store`` updates it in its transactions."""


store_time = STORE_TIME.now
"""Return the Unix time of the store's host in seconds, without the jumps of its wall clock."""


def utc_text(seconds: float, timespec: str = "seconds") -> str:
    """Return a Unix time as RFC 3339 text in UTC, such as ``2026-11-25T20:15:00Z``.

    >>> utc_text(0), utc_text(0.5, "milliseconds")
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:00.500Z')
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


logger = structlog.get_logger(__name__)

SCHEMA_LOCK = 7_403_812
"""The number of the PostgreSQL advisory lock that is held while tables are created.

Without this lock, ``CREATE TABLE IF NOT EXISTS`` can fail if several processes run it at the same time.
"""

BUSY_SECONDS = 1.0
"""Maximum seconds for which a statement waits for a lock that another transaction holds."""
CONNECT_SECONDS = 3
"""Maximum seconds for connecting to PostgreSQL."""
SCHEMA_SECONDS = 30.0
"""Maximum seconds for which a process waits while another process creates the tables in PostgreSQL."""
STATEMENT_SECONDS = 5.0
"""Maximum seconds for which PostgreSQL executes a statement."""
IDLE_SECONDS = 10.0
"""Seconds after which PostgreSQL ends an idle transaction: a suspended process must not hold locks for longer."""

DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""SQLite's error codes for a damaged database, and for a file that is not a database."""


Statement: TypeAlias = str | sa.Executable
Values: TypeAlias = dict[str, Any] | list[dict[str, Any]]


_text = lru_cache(maxsize=256)(sa.text)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text of a statement in the SQL of a database."""

    text: str
    positions: tuple[str, ...] | None
    """The names of the values in the order of the placeholders. None: the placeholders in the text have names."""
    lists: Mapping[str, tuple[str, ...]]
    """Name of a list of values -> the names of its members."""
    fixed: Mapping[str, Any]
    """Values that are part of the statement."""

    def arguments(self, values: Mapping[str, Any]) -> Any:
        """Return the values as the driver expects them."""
        named = {**self.fixed, **values}
        for name, members in self.lists.items():
            given = list(named.pop(name)) or [None]  # an empty list becomes NULL, which equals no value
            named.update(zip(members, given + given[-1:] * (len(members) - len(given)), strict=True))
        return named if self.positions is None else [named[name] for name in self.positions]


def compiled(dialect: sa.Dialect, statement: sa.Executable, values: Mapping[str, Any]) -> Compiled:
    """Return a statement, compiled for the names of its values and the lengths of its lists.

    The length of a list is rounded up to a power of two, so that few different statements are compiled.
    """
    form = [(name, _places(value) if isinstance(value, list | tuple) else 0) for name, value in values.items()]
    return _compiled(dialect, statement, tuple(form))


@cache
def _dialect(url: str) -> sa.Dialect:
    """Return the dialect for which the statements of all connections are compiled.

    The dialect of each connection would keep its own statements in memory: 30 MB after a day with many short outages.
    """
    return sa.create_engine(url).dialect


def _places(values: Sequence[Any]) -> int:
    return 1 << (max(len(values), 1) - 1).bit_length()


@lru_cache(maxsize=1024)
def _compiled(dialect: sa.Dialect, statement: Any, form: tuple[tuple[str, int], ...]) -> Compiled:
    keys = [name for name, _ in form] if statement.is_insert else None
    found = statement.compile(dialect=dialect, column_keys=keys)
    state = found.construct_expanded_state({name: [b""] * n if n else None for name, n in form}, escape_names=False)
    lists = {name: tuple(members) for name, members in state.parameter_expansion.items()}
    given = {name for name, _ in form}.union(*lists.values())
    fixed = {name: value for name, value in state.parameters.items() if name not in given}
    positions = None if state.positiontup is None else tuple(state.positiontup)
    return Compiled(state.statement, positions, lists, fixed)


def named_rows(cursor: Any) -> Callable[..., Any]:
    """Return the function that converts a row of a cursor to a named tuple."""
    return _row_type(tuple(column[0] for column in cursor.description or ()))


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> Callable[..., Any]:
    of_names: Any = namedtuple  # noqa: PYI024  # the names are known at run time only
    make: Callable[..., Any] = of_names("row", names, rename=True)._make
    return make


class Connection:
    """An open connection to a database, which runs one transaction at a time."""

    url: ClassVar[str]
    """The SQLAlchemy URL that names the dialect and the driver."""

    def __init__(self, driver: Any) -> None:
        """Create missing tables. ``driver``: the connection of the driver.

        Raises:
            StoreVersionError: another version of the project has made the tables.
        """
        self.driver = driver
        self.close: Callable[[], None] = driver.close
        # With these options, SQLAlchemy begins and ends no transactions on the connection.
        options: dict[str, Any] = {"poolclass": sa.pool.NullPool, "pool_reset_on_return": None}
        engine = sa.create_engine(self.url, creator=lambda: driver, isolation_level="AUTOCOMMIT", **options)
        self.dialect = engine.dialect.name
        """``sqlite`` or ``postgresql``."""
        try:
            self._core = engine.connect()
            if not tables.has_tables(self._core):  # most processes can connect without a write lock
                self._create_tables()
        except Exception as error:
            self.close()
            if isinstance(error, sa.exc.DBAPIError) and error.orig is not None:
                raise error.orig from error  # the error of the driver, as those of all other statements
            raise

    def _create_tables(self) -> None:
        with self.begin(write=True):
            tables.create(self._core)

    def begin(self, *, write: bool) -> AbstractContextManager[object]:
        """Begin a transaction, which ends with the ``with`` block. ``write``: whether it changes data."""
        raise NotImplementedError

    def execute(self, statement: Statement, values: Values) -> Any:
        """Run a statement and return its cursor. If ``values`` is a list, run the statement once for each entry."""
        cursor = self.driver.cursor()
        if values == []:
            return cursor
        one = values[0] if isinstance(values, list) else values
        found = compiled(_dialect(self.url), _text(statement) if isinstance(statement, str) else statement, one)
        if isinstance(values, list):
            cursor.executemany(found.text, [found.arguments(each) for each in values])
        else:
            cursor.execute(found.text, found.arguments(values))
        return cursor

    @property
    def is_lost(self) -> bool:
        """Whether the server has closed the connection."""
        return False

    def now(self) -> float:
        """Return the Unix time of the database. With PostgreSQL, this is its server's: clocks of hosts differ."""
        raise NotImplementedError

    def run(self, sql: Statement, /, **values: Any) -> int:
        """Run a statement. Return the number of changed rows."""
        return int(self.execute(sql, values).rowcount)

    def rows(self, sql: Statement, /, **values: Any) -> list[Any]:
        """Run a query. Return its rows as named tuples."""
        return list(self.execute(sql, values).fetchall())


class Database:
    """A database of the store: an SQLite file or a PostgreSQL database."""

    name: str
    """The name for logs, without a password."""
    errors: tuple[type[Exception], ...]
    """All exceptions that the driver may raise: those for an unavailable database, ``refusals`` and ``conflicts``."""
    refusals: tuple[type[Exception], ...]
    """The exceptions caused by the values of a statement. The same statement with the same values would fail again."""
    conflicts: tuple[type[Exception], ...] = ()
    """The exceptions after which a transaction can be repeated at once."""
    losses: int = 0
    """Number of times that this process found the stored data lost, and continued with another database."""

    def connect(self) -> Connection:
        """Connect, and create missing tables. Exceptions: as for ``Connection()``."""
        raise NotImplementedError

    def discard_lost(self, connection: Connection | None) -> bool:
        """If the stored data is lost, create an empty database and return True: the caller must reconnect."""
        return False

    def discard_damaged(self, connection: Connection | None, error: Exception) -> None:
        """If the error means that the files are damaged, rename them and create an empty database."""


class SqliteDatabase(Database):
    """An SQLite file. If it is deleted, replaced, emptied or damaged while it is in use, the loss is logged.

    The process then continues with the file that has replaced it, or with a new, empty one. Without this check, SQLite
    would continue to write to a deleted file without an error, and the data would be lost at the next start.
    """

    errors = (sqlite3.Error, OSError)
    refusals = (sqlite3.DataError, sqlite3.IntegrityError)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self._file = SqliteFile(path, (), many_writes=True, busy_timeout=BUSY_SECONDS)
        self._opened: tuple[int, int] | None = None
        """Device and inode of the file that this process has opened."""

    def connect(self) -> _SqliteConnection:
        connection = _SqliteConnection(self._file.connect())
        self._opened = self._identity()
        return connection

    def discard_lost(self, connection: Connection | None) -> bool:
        if self._opened is None or (self._identity() == self._opened and self.path.stat().st_size):
            return False
        self._start_anew(connection, "deleted, replaced or emptied")
        return True

    def discard_damaged(self, connection: Connection | None, error: Exception) -> None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary part of an extended code
        if code in DAMAGED and self._opened is not None and self._identity() == self._opened:
            self._start_anew(connection, str(error))

    def _start_anew(self, connection: Connection | None, reason: str) -> None:
        """Rename the files of the lost database, and create a new one, unless another process has done so."""
        kept_as = f"{self.name}.lost-{time.time_ns()}"
        with FileLock(f"{self.name}.lock", timeout=BUSY_SECONDS, mode=FILE_MODE):
            if self._identity() in {None, self._opened}:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        Path(self.name + suffix).replace(kept_as + suffix)
                if connection is not None:
                    connection.close()  # after the rename: SQLite changes no file that was moved
                self.connect().close()
        self._opened = self._identity()
        self.losses += 1
        logger.error("store_lost", store=self.name, reason=reason, kept_as=kept_as)

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


class _SqliteConnection(Connection):
    url = "sqlite://"

    def begin(self, *, write: bool) -> AbstractContextManager[object]:
        return transaction(self.driver, write=write)

    def execute(self, statement: Statement, values: Values) -> Any:
        cursor = super().execute(statement, values)
        named = named_rows(cursor)
        cursor.row_factory = lambda _, row: named(row)
        return cursor

    def now(self) -> float:
        return time.time()


class PostgreSqlDatabase(Database):
    """A PostgreSQL database. Its server keeps the data and reports damage, so this class does not check for losses."""

    name = "postgresql"

    def __init__(self, url: str, *, durable: bool) -> None:
        """``durable``: whether commits wait for the disk.

        If they do not, a crash of the server may lose the last commits.
        """
        import psycopg  # noqa: PLC0415  # needs the extra "postgresql"

        self.errors = (psycopg.Error, OSError)
        self.refusals = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)
        self.conflicts = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
        limits = {
            "lock_timeout": BUSY_SECONDS,
            "statement_timeout": STATEMENT_SECONDS,
            "idle_in_transaction_session_timeout": IDLE_SECONDS,
        }
        options = [f"-c {name}={round(seconds * 1000)}" for name, seconds in limits.items()]
        if not durable:
            options.append("-c synchronous_commit=off")
        defaults = {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": int(STATEMENT_SECONDS * 1000),
            "options": " ".join(options),
        }
        self._parameters: dict[str, Any] = defaults | psycopg.conninfo.conninfo_to_dict(url)

    def connect(self) -> _PostgreSqlConnection:
        import psycopg  # noqa: PLC0415  # needs the extra "postgresql"

        connection = psycopg.connect(**self._parameters, autocommit=True, row_factory=named_rows)
        return _PostgreSqlConnection(connection)


class _PostgreSqlConnection(Connection):
    url = "postgresql+psycopg://"

    def _create_tables(self) -> None:
        with self.begin(write=True):
            self.execute(f"SET LOCAL lock_timeout = {SCHEMA_SECONDS * 1000:.0f}", {})
            self.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": SCHEMA_LOCK})
            tables.create(self._core)

    def begin(self, *, write: bool) -> AbstractContextManager[object]:
        found: AbstractContextManager[object] = self.driver.transaction()
        return found

    @property
    def is_lost(self) -> bool:
        return bool(self.driver.closed)

    def now(self) -> float:
        return float(self.execute("SELECT extract(epoch FROM clock_timestamp())", {}).fetchone()[0])


CLOSE_SECONDS = 3.0
"""Maximum seconds for which ``close()`` waits for pending transactions."""
RETRY_SECONDS = 5
"""``Retry-After``, in seconds, of calls that need the store while the store is unavailable."""

PATIENCE_SECONDS = 10.0
"""Maximum seconds for which ``transact_patiently()`` repeats a transaction."""
PATIENT_SECONDS = 0.2
"""Seconds between two tries of ``transact_patiently()``."""
CONFLICT_TRIES = 5
"""Maximum number of tries of a transaction. A deadlock or serialisation failure in the last try counts as an outage."""

WRITE_SECONDS = 86_400.0
"""Seconds for which the id of a write is kept: longer than its caller repeats it."""
ADD_WRITE = insert_into(writes)
DROP_WRITES = writes.delete().where(writes.c.stored < sa.bindparam("before"))

T = TypeVar("T")
Session: TypeAlias = Connection
"""The connection that the work of a transaction gets as its argument."""


class StoreRefused(StoreUnavailable):
    """Raised when the database rejects the values of a transaction. The same transaction would fail again."""


class _AbandonedError(Exception):
    """Rolls back a transaction whose caller has stopped waiting."""


@dataclass
class _Job:
    """A transaction to run in the store's thread."""

    work: Callable[[Session], Any]
    write: bool
    result: Future[Any] = field(default_factory=Future)
    submitted: float = field(default_factory=time.monotonic)
    abandoned: bool = False

    def run(self, session: Session) -> Any:
        """Do the work of the transaction. If the caller has stopped waiting, raise an error to roll it back."""
        if self.abandoned:
            raise _AbandonedError
        outcome = self.work(session)
        if self.abandoned:  # the caller has already reported a failure
            raise _AbandonedError
        return outcome


class Store:
    """Runs transactions in order, in one thread with one connection, so that they do not block the event loop.

    If the database is unavailable (locked, full, read-only, not reachable), each transaction fails with
    ``StoreUnavailable``, and the next transaction connects again. The start and the end of an outage are logged.
    """

    def __init__(self, location: str, *, durable: bool = True) -> None:
        """``location``: path of a file, or a ``postgresql://`` URL. ``durable``: see ``PostgreSqlDatabase``."""
        self.location = location
        self.failures = 0
        """Number of transactions that failed because the database was unavailable."""
        self._database: Database = (
            PostgreSqlDatabase(location, durable=durable) if "://" in location else SqliteDatabase(Path(location))
        )
        self._connection: Connection | None = None
        self._failing_since: float | None = None
        self._failed_at = 0.0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon thread, unlike an executor's: a database that never responds must not prevent the exit.
        self._thread = threading.Thread(target=self._run_jobs, name="store", daemon=True)

    @property
    def losses(self) -> int:
        """Number of times that this store found the stored data lost, such as a deleted SQLite file."""
        return self._database.losses

    async def transact(self, work: Callable[[Session], T], *, seconds: float | None = None, write: bool = True) -> T:
        """Run ``work`` in a transaction, in the store's thread. The transaction ends even if the caller is cancelled.

        ``seconds``: the maximum time to wait, None: no limit. After that, the transaction is rolled back or not
        started. ``write``: whether the work changes data. Work that only reads can be done while another process holds
        SQLite's write lock.

        Raises:
            StoreUnavailable: the database is unavailable, or ``seconds`` have passed.
            StoreRefused: the database rejects the values. This is not an outage.
        """
        job = _Job(work, write)
        if not self._thread.is_alive():
            self._thread.start()
        self._jobs.put(job)
        result = asyncio.wrap_future(job.result)
        result.add_done_callback(_retrieve_exception)
        try:
            async with asyncio.timeout(seconds):
                outcome: T = await asyncio.shield(result)
        except TimeoutError:
            job.abandoned = True
            raise _unavailable() from None
        return outcome

    async def write_once(self, work: Callable[[Session], object], write_id: str) -> None:
        """Run ``work`` in a transaction, unless a transaction with the same id is already committed.

        For work that must not be done twice, such as adding numbers to stored ones. The response to a commit may be
        lost, so a transaction may be committed although this method raises: repeat it with the same id.

        Raises:
            StoreUnavailable: the database is unavailable.
            StoreRefused: the database rejects the values.
        """

        def once(session: Session) -> None:
            now = store_time()
            if session.run(ADD_WRITE, id=write_id, stored=now):
                work(session)
                session.run(DROP_WRITES, before=now - WRITE_SECONDS)

        await self.transact(once)

    async def transact_patiently(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in a transaction, and repeat it for a time while the database is unavailable.

        For example, a lock may be held for too long on a busy server. ``work`` must have the same effect if it is done
        twice, because the response to a commit may be lost.

        Raises:
            StoreUnavailable: the database was unavailable for ``PATIENCE_SECONDS``, or rejects the values.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await self.transact(work)
            except StoreUnavailable as error:
                if isinstance(error, StoreRefused) or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(PATIENT_SECONDS)

    def transact_sync(self, work: Callable[[Session], T], *, write: bool = True) -> T:
        """Run ``work`` in a transaction, in the caller's thread. Commands use this, because they have no event loop.

        Raises:
            StoreUnavailable: the database is unavailable.
            StoreRefused: the database rejects the values. This is not an outage.
        """
        for attempt in range(CONFLICT_TRIES):
            try:
                outcome = self._run(work, write=write)
                break
            except self._database.errors as error:
                if isinstance(error, self._database.refusals):
                    self.disconnect()
                    raise StoreRefused(f"The store rejected a value: {error}") from error
                if not write and not attempt and self._connection is not None and self._connection.is_lost:
                    self.disconnect()  # the server has restarted, for example: reading again has no effect
                    continue
                if not isinstance(error, self._database.conflicts) or attempt + 1 == CONFLICT_TRIES:
                    self._failed(error)
                    raise _unavailable() from error
            except Exception:  # from ``work``: the state of the connection is not known
                self.disconnect()  # the next transaction gets a new connection
                raise
        if self._failing_since is not None:
            seconds = round(time.monotonic() - self._failing_since, 1)
            logger.warning("store_available", store=self._database.name, seconds=seconds)
            self._failing_since = None
        return outcome

    def _run(self, work: Callable[[Session], T], *, write: bool) -> T:
        if self._database.discard_lost(self._connection):
            self._connection = None
        if self._connection is None:
            self._connection = self._database.connect()
        connection = self._connection
        if STORE_TIME.is_due:
            STORE_TIME.observe(connection.now())
        with connection.begin(write=write):
            return work(connection)

    async def close(self) -> None:
        """Disconnect after all pending transactions. Wait for them for at most ``CLOSE_SECONDS``."""
        if self._thread.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
        else:
            self.disconnect()

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            if job.abandoned:
                continue
            if job.write and job.submitted < self._failed_at:  # do not wait for the same lock again
                job.result.set_exception(_unavailable())
                continue
            try:
                job.result.set_result(self.transact_sync(job.run, write=job.write))
            except BaseException as error:  # noqa: BLE001  # the caller gets the exception
                job.result.set_exception(error)
        self.disconnect()

    def _failed(self, error: Exception) -> None:
        """Log the start of an outage, and disconnect, so that the next transaction connects again."""
        self.failures += 1
        self._failed_at = time.monotonic()
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            logger.error("store_unavailable", store=self._database.name, error=str(error))
        connection, self._connection = self._connection, None
        with suppress(*self._database.errors):
            self._database.discard_damaged(connection, error)
        if connection is not None:
            with suppress(*self._database.errors):
                connection.close()

    def disconnect(self) -> None:
        """Close the connection at once. Only for a store whose thread does not run; otherwise call ``close()``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _unavailable() -> StoreUnavailable:
    return StoreUnavailable("The store is unavailable; retry later.", retry_after=RETRY_SECONDS)


def _retrieve_exception(result: asyncio.Future[Any]) -> None:
    """Mark the exception of a transaction as handled: its caller may have stopped waiting. The outage is logged."""
    if not result.cancelled():
        result.exception()
