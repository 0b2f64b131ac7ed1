"""Circuit breakers that several processes share through Redis.

While Redis is unavailable, each process uses its own circuit breakers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, cast

from redis.exceptions import RedisError

from crawler.downloads.breaker import (
    MAX_COOLDOWN_SECONDS,
    TRIAL_POLL_SECONDS,
    TRIAL_SECONDS,
    BreakerKey,
    BreakerPolicy,
    LocalBreaker,
    is_answer,
    is_block,
    refusal_reason,
)
from crawler.storage.redis_client import Availability

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from redis.asyncio import Redis

    from crawler.errors import ScrapeError

# Does the same as ``LocalBreaker``. KEYS: state (blocks, opened, open_until, trial_until, reason). ARGV: event,
# threshold, cooldown, maximum cooldown, Retry-After, seconds of a trial, seconds between polls, reason of a block.
# Closed breakers stay in Redis for a day: their keys show which sources were requested.
# Returns the seconds that the request must wait, the seconds until the cooldown ends, the seconds since the breaker
# opened (-1 if it is closed), the number of consecutive blocks, and the reason of the last one.
STEP = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local function get(name, default) return tonumber(redis.call('HGET', KEYS[1], name) or default) end
local blocks, opened = get('blocks', 0), get('opened', -1)
local open_until, trial_until = get('open_until', 0), get('trial_until', 0)
local current, wait = now >= open_until, 0
if ARGV[1] == 'enter' then
  if opened >= 0 and not current then wait = open_until - now
  elseif opened >= 0 and now < trial_until then wait = tonumber(ARGV[7])
  elseif opened >= 0 then trial_until = now + tonumber(ARGV[6]) end
else
  if current then trial_until = 0 end
  if ARGV[1] == 'block' then
    redis.call('HSET', KEYS[1], 'reason', ARGV[8])
    if current then blocks = blocks + 1 end
    local threshold, pause = tonumber(ARGV[2]), tonumber(ARGV[5])
    local reached = current and blocks >= threshold
    if pause > 0 or reached then
      if reached then
        pause = math.max(pause, math.min(tonumber(ARGV[3]) * 2 ^ math.min(blocks - threshold, 10), tonumber(ARGV[4])))
      end
      if opened < 0 then opened = now end
      open_until = math.max(open_until, now + pause)
    end
  elseif ARGV[1] == 'answer' and current then
    blocks, opened, open_until = 0, -1, 0
    redis.call('HDEL', KEYS[1], 'reason')
  end
end
local function text(number) return string.format('%.6f', number) end
redis.call('HSET', KEYS[1], 'blocks', blocks, 'opened', text(opened), 'open_until', text(open_until),
  'trial_until', text(trial_until))
redis.call('EXPIRE', KEYS[1], math.ceil(math.max(open_until - now, 0)) + 86400)
local since = -1
if opened >= 0 then since = now - opened end
return {tostring(wait), tostring(math.max(open_until - now, 0)), tostring(since), tostring(blocks),
  redis.call('HGET', KEYS[1], 'reason') or ''}
"""


PREFIX = "crawler:breaker:"


class SharedBreaker(NamedTuple):
    """A breaker in Redis."""

    cooldown_left: float
    """Seconds until a trial may be let through; 0 if the breaker is not open."""
    reason: str
    """The reason of the last block that the breaker has counted; empty if there was none."""


async def shared_breakers(redis: Redis) -> dict[BreakerKey, SharedBreaker]:
    """Return the breakers in Redis, which any process has used within the last day.

    Raises:
        RedisError: Redis is unavailable.
    """
    found: dict[BreakerKey, SharedBreaker] = {}
    seconds, microseconds = await redis.time()
    now = seconds + microseconds / 1_000_000
    async for key in redis.scan_iter(f"{PREFIX}*"):
        fields = redis.hmget(key, "open_until", "reason")
        until, reason = await cast("Awaitable[list[bytes | None]]", fields)
        left = max(0.0, float(until or 0) - now)
        found[BreakerKey.parse(key.decode().removeprefix(PREFIX))] = SharedBreaker(left, (reason or b"").decode())
    return found


class RedisBreaker:
    """The breaker of one source, shared through Redis."""

    def __init__(self, redis: Redis, key: BreakerKey, policy: BreakerPolicy) -> None:
        self.policy = policy
        self.local = LocalBreaker(policy)
        """The breaker that is used while Redis is unavailable. It counts only the results of this process."""
        self._step = redis.register_script(STEP)
        self._key = f"{PREFIX}{key}"
        self._available = Availability(breaker=str(key))
        self._open_until = 0.0
        self._opened: float | None = None
        self._reason: str | None = None
        self._counting = False
        """Whether Redis had counted blocks of the source when it was last used.

        Without blocks there is no count to reset, so answers are not sent to Redis.
        """

    @property
    def cooldown_left(self) -> float:
        return max(0.0, self._open_until - time.monotonic()) if self._available else self.local.cooldown_left

    @property
    def open_seconds(self) -> float | None:
        if not self._available:
            return self.local.open_seconds
        return None if self._opened is None else time.monotonic() - self._opened

    @property
    def reason(self) -> str | None:
        return self._reason if self._available else self.local.reason

    async def enter(self) -> float:
        """See ``CircuitBreaker``. Only one process may send the trial request."""
        if not self.policy.threshold:
            return 0.0
        wait = await self._send("enter")
        return await self.local.enter() if wait is None else wait

    async def record(self, error: ScrapeError | None) -> None:
        """See ``CircuitBreaker``."""
        if not self.policy.threshold:
            return
        await self.local.record(error)
        if error is not None and is_block(error):
            await self._send("block", self.policy.retry_after(error), refusal_reason(error))
        elif self._counting:
            await self._send("answer" if is_answer(error) else "failure")

    async def _send(self, event: str, retry_after: float = 0.0, reason: str = "") -> float | None:
        """Send an event to the breaker in Redis. Return the seconds to wait, or None while Redis is unavailable.

        ``event``: ``enter`` before a request; ``block``, ``answer`` or ``failure`` after it. ``reason``: of a block.
        """
        if not self._available:
            return None
        policy = self.policy
        arguments: list[str | float] = [
            event,
            policy.threshold,
            policy.cooldown,
            MAX_COOLDOWN_SECONDS,
            retry_after,
            TRIAL_SECONDS,
            TRIAL_POLL_SECONDS,
            reason,
        ]
        try:
            reply = cast("list[bytes]", await self._step([self._key], arguments))
        except RedisError as error:
            self._available.failed(error)
            return None
        wait, left, since, blocks = map(float, reply[:4])
        self._reason = reply[4].decode() or None
        now = time.monotonic()
        self._open_until = now + left if left else 0.0
        self._opened = None if since < 0 else now - since
        self._counting = blocks > 0 or since >= 0
        return wait
