"""A worker: claims targets of jobs, holds them by leases, and stores their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self, TypeVar

import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs import leases
from crawler.jobs.job import Claim, Finished, Key, Stored
from crawler.jobs.leases import Holder, Skipped
from crawler.jobs.store import Session, SteadyClock, Store, StoreRefused, lease_clock

logger = structlog.get_logger(__name__)
T = TypeVar("T")

BATCH = 32
"""Maximum number of outcomes that one transaction stores."""
FLUSH_SECONDS = 0.25
"""Maximum seconds for which an outcome waits for others, to be stored in one transaction with them."""
TEND_SECONDS = 1.0
"""Maximum interval in seconds at which a worker looks for expired leases of other workers."""
RETRY_SECONDS = 1.0
"""Seconds between two tries while the database is unavailable."""
OUTAGE_SECONDS = 600.0
"""Maximum seconds of an outage of the database. In a longer outage, the worker stops."""
CLOSE_SECONDS = 20.0
"""Maximum seconds for which ``close()`` tries to store outcomes and to release targets."""
MAX_UNSTORED = 8 * BATCH
"""A worker with at least this number of outcomes that are not stored yet claims no targets."""


class WorkerStoppedError(Exception):
    """Raised when a worker cannot continue. The message is logged. A command ends with exit code 1."""


def _is_refusal(error: Exception) -> bool:
    """Whether a transaction failed because of the values of an outcome."""
    if isinstance(error, StoreUnavailable):  # derives from ValueError
        return isinstance(error, StoreRefused)
    return isinstance(error, OverflowError | TypeError | ValueError)


@dataclass
class Worker:
    """Holds the claimed targets of a process. Use it as an asynchronous context manager.

    ``on_stored`` is called once for each outcome, after its commit. ``on_lost`` is called for each target that another
    worker may have taken, and must stop its scrape. ``on_claimed`` is called with the follow-ups that belong to a root
    of this worker.
    """

    store: Store
    on_stored: Callable[[Finished], None] = lambda _: None
    on_lost: Callable[[Claim], None] = lambda _: None
    on_claimed: Callable[[list[Claim]], None] = lambda _: None
    holder: Holder = field(default_factory=Holder)
    """The worker's name and limits, and which targets it claims."""
    held: dict[Key, Claim] = field(default_factory=dict)
    """The targets on which this worker has a lease."""
    failure: WorkerStoppedError | None = None
    """The error because of which the worker has stopped. None: it runs."""
    _unstored: dict[Key, Finished] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Serialises the transactions on held targets: each one ends with the update of ``held``."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _outage_since: float | None = None
    _outage_cause: BaseException | None = None
    _closing: bool = False

    def __post_init__(self) -> None:
        self._losses = self.store.losses
        self._clock = SteadyClock(self.holder.lease / 2)
        self._renewed = lease_clock()

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._guarded(each)) for each in (self._flush_forever, self._tend)]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def claim(self, platform: str, n: int, skipped: Skipped | None = None) -> list[Claim]:
        """Claim waiting targets of a platform.

        Return none if no target waits, if the database is unavailable, if ``MAX_UNSTORED`` outcomes are not stored yet,
        or if the worker is closing.

        ``n``: at least 1, and not more than can start within a third of the lease. In a job whose roots are claimed
        whole, the result may be longer.

        Raises:
            WorkerStoppedError: the worker has stopped.
        """
        self._check()
        if len(self._unstored) >= MAX_UNSTORED:
            return []
        claimed = self._claim(lambda each: leases.claim(each, self.holder, platform, n, skipped or Skipped()))
        # Shielded: otherwise a cancelled caller would leave claimed targets that no worker processes.
        return await asyncio.shield(asyncio.ensure_future(claimed))

    async def _claim(self, work: Callable[[Session], list[Claim]]) -> list[Claim]:
        async with self._lock:
            if self._closing:
                return []
            try:
                found = await self._transact(work)
            except StoreUnavailable as error:  # handled here, because the caller may be gone
                self._tolerate(error)
                return []
            self.held |= {each.target: each for each in found}
        return found

    def finish(self, finished: Finished) -> None:
        """Store the outcome of a held target, in a batch. The caller must not change the data afterwards."""
        if finished.claim.target in self.held:  # otherwise it was lost, and on_lost was called
            self._unstored[finished.claim.target] = finished
            self._changed.set()

    async def release(self, claims: Iterable[Claim] | None = None) -> None:
        """Return targets that were not finished, so that other workers can take them. None: all held targets.

        Raises:
            StoreUnavailable: the store is unavailable. The targets are still held.
            WorkerStoppedError: the data of the store was lost.
        """
        async with self._lock:
            given = [
                each
                for each in (self.held.values() if claims is None else claims)
                if each.target in self.held and each.target not in self._unstored
            ]
            if given:
                await self._transact(lambda session: leases.release(session, self.holder, given))
            for each in given:
                self.held.pop(each.target, None)

    def drop(self, claim: Claim) -> None:
        """Stop holding a target that was deleted, or that another worker has taken."""
        if self.held.get(claim.target) is claim:
            del self.held[claim.target]

    async def close(self) -> None:
        """Store the outcomes, and release the held targets without an outcome.

        Targets whose outcomes are not stored are scraped again when their leases have expired.

        Raises:
            WorkerStoppedError: the worker had stopped before, or stops now because the data of the store was lost.
        """
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        deadline = lease_clock() + CLOSE_SECONDS
        while self.failure is None:
            try:
                while self._unstored:
                    await self._flush()
                await self.release()
                break
            except WorkerStoppedError as error:
                self.failure = error
            except StoreUnavailable as error:
                if lease_clock() > deadline:
                    unstored, held = len(self._unstored), len(self.held)
                    logger.warning("worker_not_closed", error=str(error), unstored=unstored, held=held)
                    break
                await asyncio.sleep(RETRY_SECONDS)
        self._check()

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # The connection to the store

    async def _transact(self, work: Callable[[Session], T]) -> T:
        """Run a transaction.

        Raises:
            StoreUnavailable: the store is unavailable.
            WorkerStoppedError: the data of the store was lost.
        """
        outcome = await self.store.transact(work)
        self._outage_since = None
        if self.store.losses != self._losses:
            raise WorkerStoppedError(
                f"The store {self.store.location} was deleted or replaced while the worker ran: its jobs are lost."
            )
        return outcome

    def _tolerate(self, error: StoreUnavailable) -> None:
        """Record that the store is unavailable.

        Raises:
            WorkerStoppedError: the outage has lasted for more than ``OUTAGE_SECONDS``.
        """
        self._outage_since = self._outage_since or lease_clock()
        # A transaction that waited behind a failed one has no cause of its own.
        cause = self._outage_cause = error.__cause__ or self._outage_cause or error
        if lease_clock() - self._outage_since > OUTAGE_SECONDS:
            raise WorkerStoppedError(f"The store was unavailable for {OUTAGE_SECONDS:.0f} s: {cause}") from error

    async def _guarded(self, loop: Callable[[], Awaitable[None]]) -> None:
        try:
            await loop()
        except WorkerStoppedError as error:
            self.failure = error
        except Exception as error:  # a fault of any kind must not end the loop in silence: claim() and close() raise it
            self.failure = WorkerStoppedError(f"The worker failed: {type(error).__name__}: {error}")
            logger.exception("worker_failed")

    # Storing outcomes

    async def _flush_forever(self) -> None:
        while True:
            await self._changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    while len(self._unstored) < min(BATCH, len(self.held)):
                        self._changed.clear()
                        await self._changed.wait()
            self._changed.clear()
            try:
                while self._unstored:
                    await self._flush()
            except StoreUnavailable as error:
                self._tolerate(error)
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _flush(self) -> None:
        """Store the oldest ``BATCH`` outcomes."""
        batch = list(self._unstored.values())[:BATCH]
        await self._store(await asyncio.to_thread(lambda: [Stored.of(each) for each in batch]))

    async def _store(self, batch: Sequence[Stored]) -> None:
        """Store outcomes. If the store refuses them, store each alone: a refused one becomes ``INTERNAL_ERROR``."""
        try:
            await self._finish(batch)
        except Exception as refused:  # _is_refusal() selects the exceptions for values
            if not _is_refusal(refused):
                raise
            logger.warning("batch_refused", error=str(refused), outcomes=len(batch))
            if len(batch) == 1:
                await self._finish([Stored.failure(batch[0].finished, str(refused))])
                return
            for each in batch:
                await self._store([each])

    async def _finish(self, batch: Sequence[Stored]) -> None:
        async with self._lock:
            results, own = await self._transact(lambda session: leases.finish(session, self.holder, batch))
            self.held |= {each.target: each for each in own}
            for each in batch:
                self.held.pop(each.finished.claim.target, None)
                self._unstored.pop(each.finished.claim.target, None)
        for each, result in zip(batch, results, strict=True):
            if result == "lost":
                self._lose(each.finished.claim)
            else:
                self.on_stored(each.finished)
        if own:
            self.on_claimed(own)

    def _lose(self, claim: Claim) -> None:
        logger.warning("lease_lost", job=claim.job, key=claim.key.hex())
        self.on_lost(claim)

    # Leases

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(min(TEND_SECONDS, self.holder.lease / 3))
            try:
                if lease_clock() - self._renewed >= self.holder.lease / 3:
                    await self._renew()
                await self._transact(lambda session: leases.expire(session, self.holder, self._clock.is_steady))
            except StoreUnavailable as error:
                self._tolerate(error)

    async def _renew(self) -> None:
        async with self._lock:
            missing: list[Claim] = []
            if claims := list(self.held.values()):
                kept = await self._transact(lambda session: leases.renew(session, self.holder, claims))
                # An outcome that was sent before an outage may be stored: only its repeated transaction shows this.
                missing = [c for c in claims if (c.job, c.key, c.tries) not in kept and c.target not in self._unstored]
            self._renewed = lease_clock()
            for each in missing:
                self.held.pop(each.target, None)
        for each in missing:
            self._lose(each)
