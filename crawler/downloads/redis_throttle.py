"""Turns that several processes share through Redis: each of them sees how many are taken and when the next may start.

A turn is a lease with an end: those of a process that was killed come free by themselves. While Redis is away every
process keeps to its own part of the whole, never to none.
"""

from __future__ import annotations

import asyncio
import math
import random
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import structlog
from redis.exceptions import RedisError

from crawler.errors import Overloaded, UpstreamTimeout
from crawler.storage.redis_client import Availability, connect

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from crawler.downloads.throttle import Throttle

logger = structlog.get_logger(__name__)

# KEYS: next start, leases by their end. ARGV: concurrency, seconds to the following start, lease's length, token.
# Returns "0" for a turn taken, "-1" while all places are, else the seconds until the next start.
TAKE = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local start = tonumber(redis.call('GET', KEYS[1]) or '0')
if start > now then return tostring(start - now) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[1]) then return '-1' end
local delay = tonumber(ARGV[2])
if delay > 0 then redis.call('SET', KEYS[1], tostring(now + delay), 'EX', math.ceil(delay) + 1) end
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[4])
redis.call('EXPIRE', KEYS[2], math.ceil(tonumber(ARGV[3])) + 1)
return '0'
"""

LOOK_AGAIN = 0.02
"""Seconds after which a process that found all places taken looks again; up to twice that, so that none keeps step."""


class Leases:
    """Places under one name, taken and given back by any process."""

    def __init__(self, redis: Redis, name: str, size: int, length: float) -> None:
        self.size = size
        self.length = length
        self.redis = redis
        self._take = redis.register_script(TAKE)
        self._keys = [f"crawler:{name}:next", f"crawler:{name}:taken"]
        self._giving: set[asyncio.Task[None]] = set()

    async def take(self, delay: float = 0.0) -> float | Callable[[], None]:
        """What gives the place back; or the seconds until the next one starts, -1 while all are taken.

        Raises:
            RedisError: Redis is away.
        """
        token = uuid.uuid4().hex
        answer = float(cast("bytes", await self._take(self._keys, [self.size, delay, self.length, token])))
        return answer or (lambda: self._give(token))

    async def close(self) -> None:
        """Gives back what is still to be given back, and leaves Redis."""
        await asyncio.gather(*self._giving)
        await self.redis.aclose()

    def _give(self, token: str) -> None:
        """Gives a place back, without keeping anybody waiting: a lease that is not given back ends by itself."""
        task = asyncio.ensure_future(self._forget(token))
        self._giving.add(task)
        task.add_done_callback(self._giving.discard)

    async def _forget(self, token: str) -> None:
        try:
            await self.redis.zrem(self._keys[1], token)
        except RedisError as error:
            logger.warning("lease_not_released", error=str(error), ends_in_seconds=self.length)


class RedisThrottle:
    """A platform's turns, shared; ``alone`` are this process's own while Redis is away."""

    def __init__(  # noqa: PLR0913  # the budget, and where it is
        self,
        url: str,
        name: str,
        concurrency: int,
        delay: float,
        *,
        longest: float,
        alone: Throttle,
        jitter: float = 0.5,
    ) -> None:
        self.concurrency = concurrency
        self.delay = delay
        self.jitter = jitter
        self.alone = alone
        self._leases = Leases(connect(url), name, concurrency, 2 * longest)
        self._next = 0.0
        self._available = Availability(turns=name)
        self.close = self._leases.close

    def earliest(self, ahead: int = 0) -> float:
        """As ``LocalThrottle``, by what this process has seen: others may come in between."""
        return max(asyncio.get_running_loop().time(), self._next) + ahead * self.delay * (1 - self.jitter)

    async def acquire(self, deadline: float | None = None) -> Callable[[], None]:
        """As ``LocalThrottle``; which process comes first is chance.

        Raises:
            Overloaded: as soon as it is known that the turn cannot come before the deadline.
            UpstreamTimeout: the deadline passed while all places were taken.
        """
        loop = asyncio.get_running_loop()
        while self._available:
            try:
                taken = await self._leases.take(self.delay * random.uniform(1 - self.jitter, 1 + self.jitter))  # noqa: S311  # no secret
            except RedisError as error:
                self._available.failed(error)
                break
            if not isinstance(taken, float):
                return taken
            if taken > 0:
                self._next = loop.time() + taken
            await self._wait(taken, deadline)
        return await self.alone.acquire(deadline)

    @staticmethod
    async def _wait(seconds: float, deadline: float | None) -> None:
        now = asyncio.get_running_loop().time()
        if deadline is not None and now >= deadline:
            raise UpstreamTimeout("The deadline passed while waiting for a turn.", reason="no_turn")
        if deadline is not None and now + seconds >= deadline:
            wait = math.ceil(seconds)
            raise Overloaded(f"This platform's next free turn is in {wait} s, after the deadline.", retry_after=wait)
        await asyncio.sleep(max(seconds, 0.0) + LOOK_AGAIN * random.uniform(0, 2))  # noqa: S311  # no secret
