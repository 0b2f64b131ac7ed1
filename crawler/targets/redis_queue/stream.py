"""A queue of one platform's targets, as a Redis stream. Needs the extra ``redis``.

A consumer group shares the entries out; an entry that was taken stays *pending* until its outcome is settled, and is
deleted then, so that the stream's length is what is not finished. Entries are JSON: who may write to Redis can put
targets there, and nothing else. What must not fall apart when a worker is killed happens in one script.
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
READ = 8
"""Entries that are taken at once. They wait in the worker: few, so that none sits on what others could do."""
BLOCK = 1_000
"""Milliseconds for which Redis keeps a question for new entries open."""
BUCKET = 10
"""Seconds of which the settled targets are counted together, for the rate."""
BUCKETS = 6
"""Whole buckets over which the rate is taken."""
BUFFERED = ":filed"
"""Ends the name under which a worker keeps entries whose outcome is in a file that it still writes."""
FREE = "free"
"""The name under which entries are that a worker gave back."""
FORGOTTEN = 24 * 3_600 * 1_000
"""Milliseconds after which a worker without entries is no longer listed."""

# KEYS: stream, led, counts, dead letters, bucket.
# ARGV: group, entry, code, why it is a dead letter or "", further targets.
# One that somebody else has settled meanwhile (this worker was taken for dead) counts once, and leads on once.
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

# KEYS: stream, led. ARGV: group, name, entry, further targets. What an outcome leads to does not wait for its file to
# be closed; where the file is lost with its worker, the target is done again, and must not lead there again.
BUFFER = """
if #redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'JUSTID') == 0 then return 0 end
if #ARGV > 3 and redis.call('HSETNX', KEYS[2], ARGV[3], 1) == 1 then
  for i = 4, #ARGV do redis.call('XADD', KEYS[1], '*', 'target', ARGV[i]) end
end
return 1
"""

# KEYS: stream. ARGV: group, worker, "" or FILED, entries. Returns the entries that are no longer the worker's.
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

# KEYS: stream. ARGV: group, worker, name of what is free, idle time, entry, how often it was taken.
RELEASE = """
local found = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[5], ARGV[5], 1)[1]
if found and (found[2] == ARGV[2] or found[2] == ARGV[2] .. ':filed') then
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[5], 'IDLE', ARGV[4], 'RETRYCOUNT', ARGV[6])
end
"""

# Removing a worker's name drops what it has pending, so that looking and removing must be one.
TIDY = """
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
    """A target as it was taken: its place in the stream, its JSON, and how often it was taken by now."""

    id: str
    text: bytes
    tries: int = 1


@dataclass(frozen=True, slots=True)
class CompletedEntry:
    """What Redis is told of an outcome."""

    entry: str
    code: str
    dead: str = ""
    """Why it is a dead letter; empty where it is none."""
    followups: tuple[bytes, ...] = ()
    """The targets that it led to, as JSON."""


@dataclass(frozen=True)
class Status:
    """How far a queue is."""

    waiting: int = 0
    running: int = 0
    buffered: int = 0
    """Done, in files that their workers have not closed yet."""
    workers: int = 0
    """That have targets out."""
    done: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Targets without data, by code."""
    dead: int = 0
    """Dead letters: targets whose workers died too often. Among the failed."""
    per_second: float = 0.0
    """Targets settled, over the last minute."""

    @property
    def seconds_left(self) -> int | None:
        """Until all is done, at this rate; None where it cannot be told."""
        left = self.waiting + self.running
        if not left:
            return 0
        return round(left / self.per_second) if self.per_second else None

    def as_dict(self) -> dict[str, Any]:
        """For a line of JSON."""
        return {**vars(self), "seconds_left": self.seconds_left}


class TargetStream:
    """One platform's part of a queue. All methods raise ``RedisError`` while Redis is away.

    ``idle`` are the seconds without a sign of life after which a worker is taken for dead.
    """

    def __init__(self, url: str, queue: str, platform: str, *, idle: float = 60.0, me: str = "") -> None:
        self.redis = connect(url, QUEUE_RESPONSE_TIMEOUT_SECONDS)
        self.idle = round(idle * 1_000)
        self.me = f"{me}-{uuid.uuid4().hex[:8]}"
        self.key = f"crawler:queue:{{{queue}:{platform}}}"  # in braces: all keys on the same node of a cluster
        self.counts = f"{self.key}:counts"
        self.dead = f"{self.key}:dead"
        self.followed = f"{self.key}:led"
        self.pushes = f"{self.key}:pushes"
        self._complete = self.redis.register_script(COMPLETE)
        self._buffer = self.redis.register_script(BUFFER)
        self._heartbeat = self.redis.register_script(HEARTBEAT)
        self._release = self.redis.register_script(RELEASE)
        self._tidy = self.redis.register_script(TIDY)
        self._cursor = "0-0"

    async def open(self) -> None:
        """Makes the queue where there is none."""
        try:
            await self.redis.xgroup_create(self.key, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        await self._tidy([self.key], [GROUP, FORGOTTEN])

    async def close(self) -> None:
        """Leaves Redis."""
        await self.redis.aclose()

    # Those who give

    async def push(self, targets: Iterable[bytes], progress: tuple[str, int] | None = None) -> None:
        """Adds targets as JSON. ``progress``: which push it is and how far it is, noted in the same moment."""
        async with self.redis.pipeline(transaction=True) as pipe:
            for target in targets:
                pipe.xadd(self.key, {"target": target})
            if progress:
                pipe.hset(self.pushes, *progress)
            await pipe.execute()

    async def pushed(self, name: str) -> int:
        """How far an interrupted push came."""
        return int(await self.redis.hget(self.pushes, name) or 0)

    async def forget_push(self, name: str) -> None:
        """The push is complete."""
        await self.redis.hdel(self.pushes, name)

    # Those who take

    async def read(self) -> list[Entry]:
        """Entries that nobody has taken yet; none after ``BLOCK`` without any."""
        answer: Any = await self.redis.xreadgroup(GROUP, self.me, {self.key: ">"}, count=READ, block=BLOCK)
        streams = answer.values() if isinstance(answer, dict) else (entries for _, entries in answer or ())
        return [_entry(each) for entries in streams for each in entries]

    async def claim(self) -> list[Entry]:
        """Entries of workers that gave no sign of life for ``idle``, or that gave them back."""
        answer: Any = await self.redis.xautoclaim(
            self.key, GROUP, self.me, self.idle, start_id=self._cursor, count=READ
        )
        self._cursor = answer[0].decode()
        taken = []
        for each in map(_entry, answer[1]):
            pending: Any = await self.redis.xpending_range(self.key, GROUP, each.id, each.id, 1)
            taken += [Entry(each.id, each.text, found["times_delivered"]) for found in pending]
        return taken

    async def heartbeat(self, entries: list[str], *, buffered: bool = False) -> list[str]:
        """Keep the entries of this worker, and return those that are another worker's by now, or finished.

        ``buffered``: they have outcomes, in files that are not closed.
        """
        lost: list[str] = []
        for start in range(0, len(entries), 1_000):
            part = entries[start : start + 1_000]
            answer = await self._heartbeat([self.key], [GROUP, self.me, BUFFERED if buffered else "", *part])
            lost += [each.decode() for each in answer]
        return lost

    async def buffer(self, outcomes: Iterable[CompletedEntry]) -> None:
        """The entries have outcomes, in files that are not closed; what they led to is in the queue."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for each in outcomes:
                args: list[str | bytes] = [GROUP, self.me + BUFFERED, each.entry, *each.followups]
                await self._buffer([self.key, self.followed], args, client=pipe)
            await pipe.execute()

    async def complete(self, outcomes: Iterable[CompletedEntry]) -> None:
        """The entries are finished, and what they led to is in the queue: both at once, and once."""
        keys = [self.key, self.followed, self.counts, self.dead, self._bucket(int(time.time()) // BUCKET)]
        async with self.redis.pipeline(transaction=False) as pipe:
            for each in outcomes:
                await self._complete(keys, [GROUP, each.entry, each.code, each.dead, *each.followups], client=pipe)
            await pipe.execute()

    async def release(self, tries: dict[str, int]) -> None:
        """Entries without an outcome, each with how often it was taken: others may have them at once, at no charge."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for entry, count in tries.items():
                args: list[str | int] = [GROUP, self.me, FREE, self.idle * 2, entry, count - 1]
                await self._release([self.key], args, client=pipe)
            await pipe.execute()

    async def finished(self) -> bool:
        """Whether all has an outcome. Those in files that are still open have; their workers close them in the end."""
        length, pending = await self._pending()
        return length == sum(count for name, count in pending.items() if name.endswith(BUFFERED))

    # Those who watch

    async def status(self) -> Status:
        """How far it is."""
        length, pending = await self._pending()
        found: Any = await self.redis.hgetall(self.counts)
        counts = {code.decode(): int(count) for code, count in found.items()}
        buffered = sum(count for name, count in pending.items() if name.endswith(BUFFERED))
        running = sum(pending.values()) - buffered
        return Status(
            waiting=length - running - buffered,
            running=running,
            buffered=buffered,
            workers=sum(not name.endswith(BUFFERED) and name != FREE for name in pending),
            done=sum(counts.values()),
            failed={code: count for code, count in sorted(counts.items()) if code != "OK"},
            dead=await self.redis.xlen(self.dead),
            per_second=await self._rate(),
        )

    async def dead_letters(self) -> list[dict[str, Any]]:
        """The targets whose workers died too often, with the reason."""
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
        newest = int(time.time()) // BUCKET
        found = await self.redis.mget([self._bucket(newest - back) for back in range(BUCKETS, 0, -1)])
        counts = [int(count or 0) for count in found]
        while counts and not counts[0]:  # before the first one it had not begun
            del counts[0]
        return round(sum(counts) / (BUCKET * len(counts)), 2) if counts else 0.0

    def _bucket(self, number: int) -> str:
        return f"{self.key}:settled:{number}"


def _entry(answer: tuple[bytes, dict[bytes, bytes]]) -> Entry:
    entry, fields = answer
    return Entry(entry.decode(), (fields or {}).get(b"target", b""))
