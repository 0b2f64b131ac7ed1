"""The queue of one platform's targets, stored as a Redis stream. Needs the extra ``redis``.

A consumer group distributes the entries of the stream to workers. An entry that a worker has taken is *pending*. When
it is completed, it is deleted, so the length of the stream is the number of entries that are not completed. Entries are
JSON: a client with write access to Redis can add targets, but cannot make workers run code. Changes that must not be
left half done when a worker is killed are Lua scripts, which Redis runs atomically.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import ResponseError

from crawler.storage.redis_client import QUEUE_RESPONSE_TIMEOUT_SECONDS, connect

GROUP = "workers"
READ_COUNT = 8
"""Maximum number of entries taken at once. It is small, because idle workers cannot take entries that wait in
this worker."""
READ_BLOCK_MS = 1_000
"""Maximum milliseconds for which a read waits for new entries."""
RATE_BUCKET_SECONDS = 10
"""Completed targets are counted in periods of this length, from which the rate is computed."""
RATE_BUCKETS = 6
"""Number of past periods from which the rate is computed."""
BUFFERED_SUFFIX = ":filed"
"""Suffix of the name of a worker's second consumer.

The second consumer owns the entries whose outcomes are in files that are not closed yet.
"""
RELEASED = "free"
"""Name of the consumer that owns entries that a worker has released."""
CONSUMER_EXPIRY_MS = 24 * 3_600 * 1_000
"""A consumer that has no entries and was inactive for this time is removed."""

# KEYS: stream, followed, counts, dead letters, bucket.
# ARGV: group, entry, code, reason for a dead letter or "", follow-ups.
# If the lease had expired and another worker has completed the entry, nothing is counted or pushed a second time.
COMPLETE = """
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
if ARGV[4] ~= '' then
  local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
  if entry then redis.call('XADD', KEYS[4], '*', 'reason', ARGV[4], unpack(entry[2])) end
end
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[3], 1)
redis.call('INCR', KEYS[5])
redis.call('EXPIRE', KEYS[5], 120)
if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 then
  for i = 5, #ARGV do redis.call('XADD', KEYS[1], '*', 'target', ARGV[i]) end
end
return 1
"""

# KEYS: stream, followed. ARGV: group, consumer, entry, follow-ups. Follow-ups are pushed before the file is closed. If
# the worker is killed and its file is lost, the target is scraped again. "followed" lists the entries whose follow-ups
# have been pushed, so that they are not pushed a second time.
BUFFER = """
if #redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'JUSTID') == 0 then return 0 end
if #ARGV > 3 and redis.call('HSETNX', KEYS[2], ARGV[3], 1) == 1 then
  for i = 4, #ARGV do redis.call('XADD', KEYS[1], '*', 'target', ARGV[i]) end
end
return 1
"""

# KEYS: stream. ARGV: group, worker, "" or BUFFERED_SUFFIX, entries. Returns the entries that the worker no longer owns.
HEARTBEAT = """
local lost = {}
for i = 4, #ARGV do
  local found = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)[1]
  if found and (found[2] == ARGV[2] or found[2] == ARGV[2] .. ':filed') then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2] .. ARGV[3], 0, ARGV[i], 'JUSTID')
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
"""

# KEYS: stream. ARGV: group, worker, RELEASED, idle time, entry, number of times that it was taken.
RELEASE = """
local found = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[5], ARGV[5], 1)[1]
if found and (found[2] == ARGV[2] or found[2] == ARGV[2] .. ':filed') then
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[5], 'IDLE', ARGV[4], 'RETRYCOUNT', ARGV[6])
end
"""

# Redis drops the pending entries of a removed consumer, so the check and the removal must be atomic.
REMOVE_IDLE_CONSUMERS = """
for _, worker in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local is = {}
  for i = 1, #worker, 2 do is[worker[i]] = worker[i + 1] end
  if is.pending == 0 and is.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], is.name)
  end
end
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that this worker has taken: its id, the target as JSON, and how many times workers have taken it."""

    id: str
    text: bytes
    tries: int = 1


@dataclass(frozen=True, slots=True)
class CompletedEntry:
    """An entry whose target has an outcome."""

    entry: str
    code: str
    dead_reason: str = ""
    """Why the target becomes a dead letter; empty if it does not."""
    followups: tuple[bytes, ...] = ()
    """The follow-up targets, as JSON."""


@dataclass(frozen=True)
class Status:
    """The progress of a queue."""

    waiting: int = 0
    running: int = 0
    buffered: int = 0
    """Number of targets whose outcomes are in files that are not closed yet."""
    workers: int = 0
    """Number of workers that have targets in flight."""
    done: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Error code -> number of targets that failed with it."""
    dead: int = 0
    """Number of dead letters: targets that were given up because workers exited too often. ``failed`` includes them."""
    per_second: float = 0.0
    """Targets completed per second, averaged over the last minute."""

    @property
    def seconds_left(self) -> int | None:
        """Estimated seconds until the queue is empty, or None if the rate is 0."""
        left = self.waiting + self.running
        if not left:
            return 0
        return round(left / self.per_second) if self.per_second else None

    def as_dict(self) -> dict[str, Any]:
        """Return the status as JSON data. The field ``buffered`` has the key ``filed``, as in earlier versions."""
        fields = {"filed" if name == "buffered" else name: value for name, value in vars(self).items()}
        return {**fields, "seconds_left": self.seconds_left}


class TargetStream:
    """One platform's targets in a queue. All methods raise ``RedisError`` while Redis is unavailable.

    ``idle``: if a worker sends no heartbeat for this many seconds, other workers take over its entries.
    """

    def __init__(self, url: str, queue: str, platform: str, *, idle: float = 60.0, worker: str = "") -> None:
        self.redis = connect(url, QUEUE_RESPONSE_TIMEOUT_SECONDS)
        self.idle_ms = round(idle * 1_000)
        self.worker = f"{worker}-{uuid.uuid4().hex[:8]}"
        self.key = f"crawler:queue:{{{queue}:{platform}}}"  # the braces keep all keys on one node of a Redis cluster
        self.counts = f"{self.key}:counts"
        self.dead = f"{self.key}:dead"
        self.followed = f"{self.key}:led"
        self.pushes = f"{self.key}:pushes"
        self._complete = self.redis.register_script(COMPLETE)
        self._buffer = self.redis.register_script(BUFFER)
        self._heartbeat = self.redis.register_script(HEARTBEAT)
        self._release = self.redis.register_script(RELEASE)
        self._remove_idle_consumers = self.redis.register_script(REMOVE_IDLE_CONSUMERS)
        self._cursor = "0-0"

    async def open(self) -> None:
        """Create the queue if it does not exist."""
        try:
            await self.redis.xgroup_create(self.key, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        await self._remove_idle_consumers([self.key], [GROUP, CONSUMER_EXPIRY_MS])

    async def close(self) -> None:
        """Disconnect."""
        await self.redis.aclose()

    # Producers

    async def push(self, targets: Iterable[bytes], progress: tuple[str, int] | None = None) -> None:
        """Add targets, given as JSON.

        ``progress``: the name of the push and the number of its rows that are done, stored in the same transaction.
        """
        async with self.redis.pipeline(transaction=True) as pipe:
            for target in targets:
                pipe.xadd(self.key, {"target": target})
            if progress:
                pipe.hset(self.pushes, *progress)
            await pipe.execute()

    async def pushed(self, name: str) -> int:
        """Return how many rows an interrupted push has completed."""
        return int(await self.redis.hget(self.pushes, name) or 0)

    async def forget_push(self, name: str) -> None:
        """Delete the stored progress of a push that is complete."""
        await self.redis.hdel(self.pushes, name)

    # Workers

    async def read(self) -> list[Entry]:
        """Take entries that no worker has taken yet. Return an empty list if none arrive within ``READ_BLOCK_MS``."""
        new: Any = await self.redis.xreadgroup(GROUP, self.worker, {self.key: ">"}, READ_COUNT, READ_BLOCK_MS)
        streams = new.values() if isinstance(new, dict) else (entries for _, entries in new or ())
        return [_entry(each) for entries in streams for each in entries]

    async def claim(self) -> list[Entry]:
        """Take over entries that were released, or whose workers have sent no heartbeat for ``idle`` seconds."""
        answer: Any = await self.redis.xautoclaim(
            self.key, GROUP, self.worker, self.idle_ms, start_id=self._cursor, count=READ_COUNT
        )
        self._cursor = answer[0].decode()
        taken = []
        for each in map(_entry, answer[1]):
            pending: Any = await self.redis.xpending_range(self.key, GROUP, each.id, each.id, 1)
            taken += [Entry(each.id, each.text, found["times_delivered"]) for found in pending]
        return taken

    async def heartbeat(self, entries: list[str], *, buffered: bool = False) -> list[str]:
        """Renew this worker's leases of entries. Return the entries that it no longer owns.

        Another worker has taken over such an entry, or it is completed.
        ``buffered``: the outcomes of these entries are in files that are not closed yet.
        """
        lost: list[str] = []
        for start in range(0, len(entries), 1_000):
            part = entries[start : start + 1_000]
            answer = await self._heartbeat([self.key], [GROUP, self.worker, BUFFERED_SUFFIX if buffered else "", *part])
            lost += [each.decode() for each in answer]
        return lost

    async def buffer(self, outcomes: Iterable[CompletedEntry]) -> None:
        """Mark entries whose outcomes are in files that are not closed yet, and push their follow-up targets."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for each in outcomes:
                args: list[str | bytes] = [GROUP, self.worker + BUFFERED_SUFFIX, each.entry, *each.followups]
                await self._buffer([self.key, self.followed], args, client=pipe)
            await pipe.execute()

    async def complete(self, outcomes: Iterable[CompletedEntry]) -> None:
        """Complete entries and push their follow-up targets. Each entry is completed atomically and only once."""
        keys = [self.key, self.followed, self.counts, self.dead, self._bucket(int(time.time()) // RATE_BUCKET_SECONDS)]
        async with self.redis.pipeline(transaction=False) as pipe:
            for each in outcomes:
                args: list[str | bytes] = [GROUP, each.entry, each.code, each.dead_reason, *each.followups]
                await self._complete(keys, args, client=pipe)
            await pipe.execute()

    async def release(self, tries: dict[str, int]) -> None:
        """Release entries, so that other workers can take them. This worker's try is not counted.

        ``tries``: entry id -> the number of times that workers have taken the entry.
        """
        async with self.redis.pipeline(transaction=False) as pipe:
            for entry, count in tries.items():
                args: list[str | int] = [GROUP, self.worker, RELEASED, self.idle_ms * 2, entry, count - 1]
                await self._release([self.key], args, client=pipe)
            await pipe.execute()

    async def finished(self) -> bool:
        """Whether all entries have an outcome, even if it is in a file that its worker has not closed yet."""
        length, pending = await self._pending()
        return length == sum(count for name, count in pending.items() if name.endswith(BUFFERED_SUFFIX))

    # Monitoring

    async def status(self) -> Status:
        """Return the progress of the queue."""
        length, pending = await self._pending()
        found: Any = await self.redis.hgetall(self.counts)
        counts = {code.decode(): int(count) for code, count in found.items()}
        buffered = sum(count for name, count in pending.items() if name.endswith(BUFFERED_SUFFIX))
        running = sum(pending.values()) - buffered
        return Status(
            waiting=length - running - buffered,
            running=running,
            buffered=buffered,
            workers=sum(not name.endswith(BUFFERED_SUFFIX) and name != RELEASED for name in pending),
            done=sum(counts.values()),
            failed={code: count for code, count in sorted(counts.items()) if code != "OK"},
            dead=await self.redis.xlen(self.dead),
            per_second=await self._rate(),
        )

    async def dead_letters(self) -> list[dict[str, Any]]:
        """Return each dead letter (a target that was given up because workers exited too often) and its reason."""
        found: Any = await self.redis.xrange(self.dead)
        return [{"reason": fields[b"reason"].decode(), "target": fields[b"target"]} for _, fields in found]

    async def _pending(self) -> tuple[int, dict[str, int]]:
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.xlen(self.key)
            pipe.xpending(self.key, GROUP)
            length, summary = await pipe.execute(raise_on_error=False)
        if isinstance(summary, ResponseError):
            if not length and str(summary).startswith("NOGROUP"):
                return 0, {}
            raise summary
        return length, {each["name"].decode(): int(each["pending"]) for each in summary["consumers"]}

    async def _rate(self) -> float:
        newest = int(time.time()) // RATE_BUCKET_SECONDS
        found = await self.redis.mget([self._bucket(newest - back) for back in range(RATE_BUCKETS, 0, -1)])
        counts = [int(count or 0) for count in found]
        while counts and not counts[0]:  # ignore the periods before the first outcome
            del counts[0]
        return round(sum(counts) / (RATE_BUCKET_SECONDS * len(counts)), 2) if counts else 0.0

    def _bucket(self, number: int) -> str:
        return f"{self.key}:settled:{number}"


def _entry(answer: tuple[bytes, dict[bytes, bytes]]) -> Entry:
    entry, fields = answer
    return Entry(entry.decode(), (fields or {}).get(b"target", b""))
