"""A throttle whose download slots several processes share through Redis.

A slot is a lease that expires, so that a killed process does not keep its slots forever. While Redis is unavailable,
each process has its own share of the slots: at least one.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import structlog
from redis.exceptions import RedisError

from crawler.downloads.throttle import jittered, no_slot_before_deadline, no_slot_in_time
from crawler.storage.redis_client import Availability, connect

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from crawler.downloads.throttle import Throttle

logger = structlog.get_logger(__name__)

# KEYS: next start; leases by expiry. ARGV: concurrency, seconds to the following start, seconds of a lease, token.
# Returns "0" if this call took a slot, "-1" if no slot is free, else the seconds until the next download may start.
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

POLL_SECONDS = 0.02
"""Mean seconds between two attempts while no slot is free. The time varies, so that processes do not poll in step."""


class Leases:
    """Named sets of slots, which any process can take and release.

    ``length``: seconds after which a slot that was not released becomes free.
    """

    def __init__(self, redis: Redis, length: float) -> None:
        self.length = length
        self.redis = redis
        self._take = redis.register_script(TAKE)
        self._releasing: set[asyncio.Task[None]] = set()

    async def take(self, name: str, size: int, delay: float = 0.0) -> float | Callable[[], None]:
        """Try to take one of the ``size`` slots of the set ``name``. Return the function that releases it.

        If no slot can be taken now, return the seconds until the next may be taken, or -1 if no slot is free.

        Raises:
            RedisError: Redis is unavailable.
        """
        token = uuid.uuid4().hex
        keys = [f"crawler:{name}:next", f"crawler:{name}:taken"]
        result = float(cast("bytes", await self._take(keys, [size, delay, self.length, token])))
        return result or (lambda: self._release(keys[1], token))

    async def close(self) -> None:
        """Wait until all released slots are released in Redis, and disconnect."""
        await asyncio.gather(*self._releasing)
        await self.redis.aclose()

    def _release(self, key: str, token: str) -> None:
        """Release a slot in the background. If this fails, the lease expires later."""
        task = asyncio.ensure_future(self._delete(key, token))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _delete(self, key: str, token: str) -> None:
        try:
            await self.redis.zrem(key, token)
        except RedisError as error:
            logger.warning("lease_not_released", error=str(error), expires_in_seconds=self.length)


class RedisThrottle:
    """A platform's throttle, shared through Redis. While Redis is unavailable, the throttle ``local`` is used."""

    def __init__(  # noqa: PLR0913  # the limits, and where they are kept
        self,
        url: str,
        name: str,
        concurrency: int,
        delay: float,
        *,
        download_timeout: float,
        local: Throttle,
        jitter: float = 0.5,
    ) -> None:
        self.name = name
        self.concurrency = concurrency
        self.delay = delay
        self.jitter = jitter
        self.local = local
        self._leases = Leases(connect(url), 2 * download_timeout)
        self._next_start = 0.0
        self._waiting = 0
        """Number of downloads of this process that wait for a slot, except background downloads."""
        self._available = Availability(throttle=name)
        self.close = self._leases.close

    @property
    def shortest_delay(self) -> float:
        """The shortest time in seconds between the starts of two downloads."""
        return self.delay * (1 - self.jitter)

    def earliest(self, ahead: int = 0) -> float:
        """Estimate as in ``LocalThrottle``. Downloads that other processes start may delay it further."""
        ahead += self._waiting
        return max(asyncio.get_running_loop().time(), self._next_start) + ahead * self.shortest_delay

    def free_in(self) -> float:
        """Estimate as in ``LocalThrottle``. Other processes may have taken all slots."""
        return self.earliest() - asyncio.get_running_loop().time()

    async def acquire(self, deadline: float | None = None, *, background: bool = False) -> Callable[[], None]:
        """Wait for a slot, as in ``LocalThrottle``. Several waiting processes get slots in random order.

        ``background``: let the other downloads of this process start first.

        Raises:
            Overloaded: no download can start before the deadline. This is raised as soon as it is certain.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        if background:
            return await self._acquire(deadline, background=True)
        self._waiting += 1
        try:
            return await self._acquire(deadline)
        finally:
            self._waiting -= 1

    async def _acquire(self, deadline: float | None, *, background: bool = False) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        while self._available:
            if background and self._waiting:
                await self._wait(self.shortest_delay, deadline)
                continue
            delay = self.delay * jittered(self.jitter)
            try:
                taken = await self._leases.take(self.name, self.concurrency, delay)
            except RedisError as error:
                self._available.failed(error)
                break
            if not isinstance(taken, float):
                self._next_start = loop.time() + delay
                return taken
            if taken > 0:
                self._next_start = loop.time() + taken
            await self._wait(taken, deadline)
        return await self.local.acquire(deadline, background=background)

    @staticmethod
    async def _wait(seconds: float, deadline: float | None) -> None:
        now = asyncio.get_running_loop().time()
        if deadline is not None and now >= deadline:
            raise no_slot_in_time()
        if deadline is not None and now + seconds >= deadline:
            raise no_slot_before_deadline(seconds)
        await asyncio.sleep(max(seconds, 0.0) + POLL_SECONDS * random.uniform(0, 2))  # noqa: S311  # no secret
