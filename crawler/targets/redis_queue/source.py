"""The target source of a queue's worker: takes targets, renews their leases, and completes the stored targets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import orjson
import structlog
from pydantic import ValidationError
from redis.exceptions import RedisError, ResponseError

from crawler.errors import InvalidRequest, ScrapeError, ServiceError
from crawler.jobs.clock import lease_clock
from crawler.storage.redis_client import QUEUE_OUTAGE_SECONDS, QUEUE_RETRY_SECONDS
from crawler.targets.redis_queue.stream import CompletedEntry, Entry, TargetStream
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, SavedTarget, Target, TargetParser, new_id

if TYPE_CHECKING:
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

OUTCOMES_PER_BATCH = 200
"""Maximum number of outcomes that are sent to Redis at once."""
CLOSE_TIMEOUT_SECONDS = 20.0
"""Maximum time for sending the last outcomes. Targets whose outcomes were not sent are scraped again."""
MAX_SHOWN_CHARACTERS = 1_000
"""Maximum characters of an invalid entry that are written to the failures feed."""


@dataclass
class StreamSource(TargetSource):
    """Takes targets from the queue until all are completed. With ``wait``, it then waits for new targets.

    A target's entry is completed when its outcome is stored. When the worker exits, it releases its other entries, so
    that other workers can take them. If a worker was suspended for longer than its lease, other workers may have taken
    its entries. Before it reports another outcome, it therefore checks which entries it still owns.
    """

    stream: TargetStream
    parser: TargetParser
    tries: int
    wait: bool = False
    keeps_followups: ClassVar[bool] = True
    taken: int = 0
    _leased: dict[str, int] = field(default_factory=dict)
    """Id of an entry that this worker owns -> the number of times that workers have taken the entry."""
    _entries: dict[int, str] = field(default_factory=dict)
    """Row number of a target that is not stored yet -> the id of its entry."""
    _abandoned: set[int] = field(default_factory=set)
    """Row numbers of targets that workers have taken more than ``tries`` times."""
    _buffered: dict[str, CompletedEntry] = field(default_factory=dict)
    """Entry id -> its outcome, for targets whose lines are in files that are not closed yet."""
    _unsent: list[CompletedEntry] = field(default_factory=list)
    """Completed entries whose outcomes have not been sent to Redis yet."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _claim_from: float = 0.0
    _leased_at: float = field(default_factory=lease_clock)
    """When the last successful heartbeat was sent. The leases are counted from this time."""
    _heartbeat_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> None:
        try:
            await self.stream.open()
        except RedisError as error:
            raise TargetsUnavailableError(f"the queue cannot be used: {error}") from error
        self._leased_at = lease_clock()
        self._tasks = [asyncio.create_task(self._send_outcomes()), asyncio.create_task(self._send_heartbeats())]

    async def close(self) -> None:
        """Send the last outcomes, and release the entries that have no outcome."""
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                while self._unsent:
                    await self._send_batch()
                await self.stream.release(self._leased)
        except (RedisError, TimeoutError) as error:
            logger.warning(
                "queue_not_closed", error=str(error), unsent=len(self._unsent), not_released=len(self._leased)
            )
        await self.stream.close()

    # Taking targets

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        loop = asyncio.get_running_loop()
        outage_since: float | None = None
        claim_at = 0.0
        while True:
            try:
                entries = []
                if loop.time() >= max(claim_at, self._claim_from):
                    entries = [each for each in await self.stream.claim() if each.id not in self._leased]
                    claim_at = loop.time() + self._heartbeat_interval
                if not entries:
                    entries = await self.stream.read()
                if not entries:
                    claim_at = 0.0
                    if not self.wait and await self.stream.finished():
                        return
            except RedisError as error:
                outage_since = outage_since or loop.time()
                self._tolerate_outage(error, loop.time() - outage_since)
                await asyncio.sleep(QUEUE_RETRY_SECONDS)
                continue
            outage_since = None
            self._leased |= {each.id: each.tries for each in entries}
            # This worker may take an entry that it lost again, while the target of the entry is still in flight.
            in_flight = set(self._entries.values())
            for each in entries:
                # A heartbeat may have shown that this worker lost the entry.
                if each.id not in in_flight and each.id in self._leased:
                    yield self._target(each)

    def _tolerate_outage(self, error: RedisError, seconds: float) -> None:
        """Log an outage of Redis, or end the run if it lasts too long.

        For some time after an outage, no entries of other workers are claimed, because those workers could not renew
        their leases.

        Raises:
            TargetsUnavailableError: the outage lasts too long, or the queue no longer exists.
        """
        if isinstance(error, ResponseError) and str(error).startswith("NOGROUP"):
            raise TargetsUnavailableError("the queue no longer exists: Redis lost its data, or the queue was deleted")
        if seconds > QUEUE_OUTAGE_SECONDS:
            raise TargetsUnavailableError(f"Redis was unavailable for {QUEUE_OUTAGE_SECONDS:.0f} s: {error}") from error
        logger.warning("queue_unavailable", error=str(error), seconds=round(seconds))
        self._claim_from = asyncio.get_running_loop().time() + self.stream.idle_ms / 1_000

    def _target(self, entry: Entry) -> Target | InvalidTarget:
        row = self.taken
        self.taken += 1
        self._entries[row] = entry.id
        try:
            saved = SavedTarget.model_validate_json(entry.text)
        except ValidationError:
            error: ScrapeError = InvalidRequest("An entry of the queue is not a target.")
            shown = entry.text[:MAX_SHOWN_CHARACTERS].decode(errors="replace")
            return InvalidTarget(new_id(), error, raw=shown, row=row)
        if entry.tries > self.tries:
            self._abandoned.add(row)
            error = ServiceError(f"{entry.tries - 1} workers exited while the target was in progress.")
            return InvalidTarget(saved.id, error, saved.scraper, saved.params, saved.line, row)
        return self.parser.load(saved, row=row)

    # Completing targets

    def owns(self, target: Target | InvalidTarget) -> bool:
        assert target.row is not None, "follow-ups return through the queue"
        return self._lease_valid and self._entries[target.row] in self._leased

    @property
    def _lease_valid(self) -> bool:
        """Whether the last heartbeat is so recent that no other worker can have taken this worker's entries."""
        return lease_clock() - self._leased_at < self.stream.idle_ms / 1_000

    async def confirm(self, target: Target | InvalidTarget) -> bool:
        waiting_since = lease_clock()
        while not self._lease_valid:
            try:
                await self._heartbeat()
            except RedisError as error:
                try:
                    self._tolerate_outage(error, lease_clock() - waiting_since)
                except TargetsUnavailableError:
                    return False  # the iteration over the source raises the same error, which ends the run
                await asyncio.sleep(QUEUE_RETRY_SECONDS)
        assert target.row is not None
        if self.owns(target):
            return True
        del self._entries[target.row]
        self._abandoned.discard(target.row)
        return False

    def buffered(self, outcome: Outcome) -> None:
        """Mark the entry of an outcome whose line is in files that are not closed yet."""
        assert outcome.target.row is not None
        self._buffered[self._entries[outcome.target.row]] = self._completed_entry(outcome)
        self._changed.set()

    def stored(self, outcome: Outcome) -> None:
        """Complete the entry of a stored outcome."""
        assert outcome.target.row is not None
        completed = self._completed_entry(outcome)
        del self._entries[outcome.target.row]
        self._abandoned.discard(outcome.target.row)
        self._buffered.pop(completed.entry, None)
        self._unsent.append(completed)
        self._changed.set()

    def _completed_entry(self, outcome: Outcome) -> CompletedEntry:
        row = outcome.target.row
        assert row is not None
        dead_reason = outcome.error.message if outcome.error and row in self._abandoned else ""
        followups = tuple(orjson.dumps(each.dump()) for each in outcome.followups)
        return CompletedEntry(self._entries[row], outcome.code, dead_reason, followups)

    async def _send_outcomes(self) -> None:
        known: set[str] = set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                while self._unsent:
                    await self._send_batch()
                fresh = {entry: outcome for entry, outcome in self._buffered.items() if entry not in known}
                if fresh:
                    await self.stream.buffer(fresh.values())
                known = (known | fresh.keys()) & self._buffered.keys()
            except RedisError as error:
                logger.warning("queue_unavailable", error=str(error), unsent=len(self._unsent))
                await asyncio.sleep(QUEUE_RETRY_SECONDS)
                self._changed.set()

    async def _send_batch(self) -> None:
        batch = self._unsent[:OUTCOMES_PER_BATCH]
        await self.stream.complete(batch)
        del self._unsent[: len(batch)]
        for each in batch:
            self._leased.pop(each.entry, None)

    @property
    def _heartbeat_interval(self) -> float:
        """Interval in seconds at which heartbeats are sent."""
        return self.stream.idle_ms / 3_000

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_interval)
            try:
                await self._heartbeat()
            except RedisError as error:
                logger.warning("queue_unavailable", error=str(error), leased=len(self._leased))

    async def _heartbeat(self) -> None:
        async with self._heartbeat_lock:
            sent_at = lease_clock()
            lost = await self.stream.heartbeat([entry for entry in self._leased if entry not in self._buffered])
            lost += await self.stream.heartbeat(list(self._buffered), buffered=True)
            # The outcome of an entry may have been sent to Redis during the heartbeat.
            finished = {each.entry for each in self._unsent}
            for entry in set(lost) - finished:
                if self._leased.pop(entry, None) is not None:
                    logger.warning("lease_lost", entry=entry)
            self._leased_at = sent_at
