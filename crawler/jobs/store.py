"""The store: runs transactions in a thread, on an SQLite or PostgreSQL database that may become unavailable or lost.

SQLite serves the worker processes of one host. PostgreSQL (extra ``postgresql``) also serves several hosts. Statements
are objects of SQLAlchemy Core, or texts that both databases accept, with named parameters (``:client``).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import sqlalchemy as sa
import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs.clock import STORE_TIME, store_time
from crawler.jobs.databases import Connection, PostgreSqlDatabase, SqliteDatabase
from crawler.jobs.tables import SCHEMA, insert_into, writes

if TYPE_CHECKING:
    from crawler.jobs.databases import Database
    from crawler.jobs.schema_version import VersionedSchema

logger = structlog.get_logger(__name__)

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

    def __init__(self, location: str, schema: VersionedSchema = SCHEMA, *, durable: bool = True) -> None:
        """``location``: path of a file, or a ``postgresql://`` URL. ``durable``: see ``PostgreSqlDatabase``."""
        self.location = location
        self.failures = 0
        """Number of transactions that failed because the database was unavailable."""
        self._database: Database = (
            PostgreSqlDatabase(location, schema, durable=durable)
            if "://" in location
            else SqliteDatabase(Path(location), schema)
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
