"""The targets of a queue, as a source of a crawl: taken, kept while they are out, and settled when they are safe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import orjson
import structlog
from pydantic import ValidationError
from redis.exceptions import RedisError, ResponseError

from crawler.errors import InvalidRequest, ScrapeError, ServiceError
from crawler.targets.redis_queue.stream import CompletedEntry, Entry, TargetStream
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, SavedTarget, Target, TargetParser, new_id

if TYPE_CHECKING:
    from crawler.targets.target import Outcome

logger = structlog.get_logger(__name__)

BATCH = 200
"""Outcomes that Redis is told at once."""
AWAY = 1.0
"""Seconds after which a Redis that was away is asked again."""
PATIENCE = 600.0
"""Seconds after which a Redis that is away ends the run."""
CLOSING = 20.0
"""Seconds within which the last outcomes must be told. Those that are not are done once more."""
SHOWN = 1_000
"""Characters of an entry that is no target that its failure shows."""


def clock() -> float:
    """Seconds that also pass while the machine sleeps, as those of a lease do."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass
class StreamSource(TargetSource):
    """Takes targets until the queue is finished; with ``wait`` it stays for more.

    A target's entry is settled when its outcome is stored. Entries that have none when the worker exits are released
    to other workers. A worker that was frozen for longer than its lease may have lost its entries while it was:
    before it reports another outcome, it looks up which entries are still its own.
    """

    stream: TargetStream
    parser: TargetParser
    tries: int
    wait: bool = False
    keeps_followups: ClassVar[bool] = True
    taken: int = 0
    _mine: dict[str, int] = field(default_factory=dict)
    """Entries that are this worker's, with how often they were taken."""
    _out: dict[int, str] = field(default_factory=dict)
    """Row to entry, of targets that are not stored."""
    _abandoned: set[int] = field(default_factory=set)
    """Rows of targets that are given up."""
    _buffered: dict[str, CompletedEntry] = field(default_factory=dict)
    """Entries whose outcome is in files that must be closed first."""
    _completed: list[CompletedEntry] = field(default_factory=list)
    """What Redis is still to be told."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _claim_from: float = 0.0
    _leased_at: float = field(default_factory=clock)
    """When the heartbeat was sent that Redis answered last."""
    _beating: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> None:
        try:
            await self.stream.open()
        except RedisError as error:
            raise TargetsUnavailableError(f"the queue cannot be used: {error}") from error
        self._leased_at = clock()
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._keep())]

    async def close(self) -> None:
        """Tells the last outcomes, and gives back what has none."""
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(CLOSING):
                while self._completed:
                    await self._tell_some()
                await self.stream.release(self._mine)
        except (RedisError, TimeoutError) as error:
            logger.warning(
                "queue_not_closed", error=str(error), not_told=len(self._completed), not_released=len(self._mine)
            )
        await self.stream.close()

    # Targets come

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        loop = asyncio.get_running_loop()
        away_since: float | None = None
        claim_at = 0.0
        while True:
            try:
                entries = []
                if loop.time() >= max(claim_at, self._claim_from):
                    entries = [each for each in await self.stream.claim() if each.id not in self._mine]
                    claim_at = loop.time() + self._beat
                if not entries:
                    entries = await self.stream.read()
                if not entries:
                    claim_at = 0.0
                    if not self.wait and await self.stream.finished():
                        return
            except RedisError as error:
                away_since = away_since or loop.time()
                self._be_patient(error, loop.time() - away_since)
                await asyncio.sleep(AWAY)
                continue
            away_since = None
            self._mine |= {each.id: each.tries for each in entries}
            out = set(self._out.values())  # lost, and come back before its outcome was known
            for each in entries:
                if each.id not in out and each.id in self._mine:  # a heartbeat may have found it lost by now
                    yield self._target(each)

    def _be_patient(self, error: RedisError, seconds: float) -> None:
        """Lets Redis be away for a while. Workers that could not give a sign of life meanwhile are not dead.

        Raises:
            TargetsUnavailableError: it was long enough, or it is back without the queue.
        """
        if isinstance(error, ResponseError) and str(error).startswith("NOGROUP"):
            raise TargetsUnavailableError("the queue is gone: Redis was started without its data, or it was deleted")
        if seconds > PATIENCE:
            raise TargetsUnavailableError(f"Redis was away for {PATIENCE:.0f} s: {error}") from error
        logger.warning("queue_unavailable", error=str(error), seconds=round(seconds))
        self._claim_from = asyncio.get_running_loop().time() + self.stream.idle / 1_000

    def _target(self, entry: Entry) -> Target | InvalidTarget:
        row = self.taken
        self.taken += 1
        self._out[row] = entry.id
        try:
            read = SavedTarget.model_validate_json(entry.text)
        except ValidationError:
            error: ScrapeError = InvalidRequest("An entry of the queue is no target.")
            return InvalidTarget(new_id(), error, raw=entry.text[:SHOWN].decode(errors="replace"), row=row)
        if entry.tries > self.tries:
            self._abandoned.add(row)
            error = ServiceError(
                f"The target was out in {entry.tries - 1} workers that ended before they were done with it."
            )
            return InvalidTarget(read.id, error, read.scraper, read.params, read.line, row)
        return self.parser.load(read, row=row)

    # Outcomes go

    def holds(self, target: Target | InvalidTarget) -> bool:
        assert target.row is not None, "further targets come back through the queue"
        return self._lease_valid and self._out[target.row] in self._mine

    @property
    def _lease_valid(self) -> bool:
        """Whether no entry can have been taken over since the last heartbeat."""
        return clock() - self._leased_at < self.stream.idle / 1_000

    async def confirm(self, target: Target | InvalidTarget) -> bool:
        asked = clock()
        while not self._lease_valid:
            try:
                await self._heartbeat()
            except RedisError as error:
                try:
                    self._be_patient(error, clock() - asked)
                except TargetsUnavailableError:
                    return False  # the source says so, too, and ends the run
                await asyncio.sleep(AWAY)
        assert target.row is not None
        if self.holds(target):
            return True
        del self._out[target.row]
        self._abandoned.discard(target.row)
        return False

    def buffered(self, outcome: Outcome) -> None:
        """The outcome's line is in files that are not closed yet."""
        assert outcome.target.row is not None
        self._buffered[self._out[outcome.target.row]] = self._told(outcome)
        self._changed.set()

    def stored(self, outcome: Outcome) -> None:
        """The outcome's line cannot be lost any more: its entry is finished."""
        assert outcome.target.row is not None
        told = self._told(outcome)
        del self._out[outcome.target.row]
        self._abandoned.discard(outcome.target.row)
        self._buffered.pop(told.entry, None)
        self._completed.append(told)
        self._changed.set()

    def _told(self, outcome: Outcome) -> CompletedEntry:
        row = outcome.target.row
        assert row is not None
        dead = outcome.error.message if outcome.error and row in self._abandoned else ""
        return CompletedEntry(
            self._out[row], outcome.code, dead, tuple(orjson.dumps(each.dump()) for each in outcome.followups)
        )

    async def _tell(self) -> None:
        known: set[str] = set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                while self._completed:
                    await self._tell_some()
                fresh = {entry: told for entry, told in self._buffered.items() if entry not in known}
                if fresh:
                    await self.stream.buffer(fresh.values())
                known = (known | fresh.keys()) & self._buffered.keys()
            except RedisError as error:
                logger.warning("queue_unavailable", error=str(error), not_told=len(self._completed))
                await asyncio.sleep(AWAY)
                self._changed.set()

    async def _tell_some(self) -> None:
        batch = self._completed[:BATCH]
        await self.stream.complete(batch)
        del self._completed[: len(batch)]
        for each in batch:
            self._mine.pop(each.entry, None)

    @property
    def _beat(self) -> float:
        """Seconds between two signs of life."""
        return self.stream.idle / 3_000

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._beat)
            try:
                await self._heartbeat()
            except RedisError as error:
                logger.warning("queue_unavailable", error=str(error), kept=len(self._mine))

    async def _heartbeat(self) -> None:
        async with self._beating:
            at = clock()
            lost = await self.stream.heartbeat([entry for entry in self._mine if entry not in self._buffered])
            lost += await self.stream.heartbeat(list(self._buffered), buffered=True)
            finished = {each.entry for each in self._completed}  # by the task that tells Redis, meanwhile
            for entry in set(lost) - finished:
                if self._mine.pop(entry, None) is not None:
                    logger.warning("lease_lost", entry=entry)
            self._leased_at = at
