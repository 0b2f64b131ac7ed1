"""Limits of API keys: calls per period and calls in flight.

Calls are counted in memory, or in Redis if several processes share the limits.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError
from limits.storage import storage_from_string

from crawler.errors import ConcurrencyLimited, RateLimited

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.service.clients.keys import Holder

logger = structlog.get_logger(__name__)

MAX_CLOCK_DRIFT_SECONDS = 5.0
"""A larger change of the system's clock against the monotonic clock means that the clock was set."""

Result = TypeVar("Result")
Release = Callable[[], None]


@dataclass(frozen=True)
class RateLimitStatus:
    """The state of a key's rate limit."""

    quota: int
    """Number of calls that the key may make in the period, in all processes together."""
    window: int
    """Length of the period in seconds."""
    remaining: int
    """Number of further calls that are certainly allowed. Other processes may allow more."""
    reset: int
    """Seconds until the oldest counted call is older than the period."""
    allowed: bool
    processes: int = 1
    """Number of processes that divide the quota among them. 1: all processes share it."""

    @property
    def headers(self) -> dict[str, str]:
        """Response headers that show the rate limit: those of the IETF draft, and the common ``X-RateLimit-*``."""
        return {
            "RateLimit-Policy": f'"key";q={self.quota};w={self.window}',
            "RateLimit": f'"key";r={self.remaining};t={self.reset}',
            "X-RateLimit-Limit": str(self.quota),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def check(self) -> None:
        """Check that the call is within the limit.

        Raises:
            RateLimited: the call exceeds the limit. ``retry_after`` is the number of seconds until a call is allowed.
        """
        if not self.allowed:
            raise RateLimited(
                f"Rate limit exceeded: this key may make {self.quota} calls in {self.window} s"
                f"{_divided(self.processes)}.",
                retry_after=self.reset,
            )


class KeyLimits:
    """The limits of all keys. ``KEY_RATE`` and ``KEY_CONCURRENCY`` apply to keys without their own limits.

    Without Redis, and while Redis is unavailable, each of n processes allows one n-th of the limits.
    """

    def __init__(self, settings: BaseSettings) -> None:
        self.rate: str | None = settings.get("KEY_RATE")
        self.concurrency = settings.getint("KEY_CONCURRENCY")
        self.processes = settings.getint("PROCESSES")
        self._local_limiter = MovingWindowRateLimiter(MemoryStorage())
        self._clock_offset = _clock_offset()
        self._in_flight: Counter[str] = Counter()
        self._redis = _RedisLimits(settings["REDIS_URL"]) if settings.get("REDIS_URL") else None

    async def close(self) -> None:
        """Wait until the slots of completed calls are released, and disconnect from Redis."""
        if self._redis:
            await self._redis.close()

    async def count(self, holder: Holder) -> RateLimitStatus | None:
        """Count a call against the rate limit of its key. Return the new state, or None if the key has no limit."""
        rate = holder.rate or self.rate
        if not rate:
            return None
        item = parse(rate)
        if self._redis and self._redis.available:
            status = await self._redis.attempt(_hit(self._redis.limiter, item, holder.key_id))
            if status:
                return status
        self._forget_after_clock_change()
        share = type(item)(min(item.amount, max(1, item.amount // self.processes)), item.multiples)
        status = await _hit(self._local_limiter, share, holder.key_id)
        return replace(status, quota=item.amount, processes=self.processes)

    def _forget_after_clock_change(self) -> None:
        """Set all local counts to 0 if the system's clock was set.

        Otherwise, after the clock was set back, counted calls would lie in the future, and would count until that time.
        """
        offset = _clock_offset()
        if abs(offset - self._clock_offset) > MAX_CLOCK_DRIFT_SECONDS:
            logger.warning("clock_changed", seconds=round(offset - self._clock_offset))
            self._clock_offset = offset
            self._local_limiter = MovingWindowRateLimiter(MemoryStorage())

    async def acquire(self, holder: Holder) -> Release:
        """Count a call as in flight. Return a function to call when the call is completed.

        Raises:
            ConcurrencyLimited: the key already has its maximum of calls in flight.
        """
        slots = holder.concurrency or self.concurrency
        if not slots:
            return _release_nothing
        if self._redis and self._redis.available:
            release = await self._redis.attempt(self._redis.in_flight.take(f"calls:{holder.key_id}", slots))
            if callable(release):
                return release
            if release is not None:
                raise _concurrency_limited(slots)
        share = max(1, slots // self.processes)
        if self._in_flight[holder.key_id] >= share:
            raise _concurrency_limited(slots, self.processes)
        self._in_flight[holder.key_id] += 1
        return lambda: self._in_flight.subtract([holder.key_id])


class _RedisLimits:
    """Counts the calls of keys in Redis, so that several processes share the limits."""

    MAX_CALL_SECONDS = 150.0
    """Seconds after which a call no longer counts as in flight, in case its process was killed."""

    def __init__(self, url: str) -> None:
        from crawler.downloads.redis_throttle import Leases  # noqa: PLC0415  # needs the extra "redis"
        from crawler.storage.redis_client import Availability, connect  # noqa: PLC0415  # as above

        self.available = Availability(limits="keys")
        client = connect(url)
        pool: Any = client.connection_pool
        storage = storage_from_string(
            f"async+{url}", implementation="redispy", wrap_exceptions=True, connection_pool=pool
        )
        self.limiter = MovingWindowRateLimiter(storage)
        self.in_flight = Leases(client, self.MAX_CALL_SECONDS)
        self.close = self.in_flight.close

    async def attempt(self, operation: Coroutine[None, None, Result]) -> Result | None:
        """Run an operation in Redis. If it fails, return None and use the limits in memory for a while."""
        from redis.exceptions import RedisError  # noqa: PLC0415  # needs the extra "redis"

        try:
            return await operation
        except (RedisError, StorageError) as error:
            self.available.failed(error)
            return None


async def _hit(limiter: MovingWindowRateLimiter, item: RateLimitItem, key_id: str) -> RateLimitStatus:
    allowed = await limiter.hit(item, key_id)
    stats = await limiter.get_window_stats(item, key_id)
    reset = max(1, math.ceil(stats.reset_time - time.time()))
    return RateLimitStatus(item.amount, item.get_expiry(), stats.remaining, reset, allowed)


def _clock_offset() -> float:
    """Return the difference of the system's clock, which may be set, and the monotonic clock."""
    return time.time() - time.monotonic()


def _concurrency_limited(slots: int, processes: int = 1) -> ConcurrencyLimited:
    return ConcurrencyLimited(
        f"Concurrency limit reached: this key may have {slots} calls in flight{_divided(processes)}.", retry_after=1
    )


def _divided(processes: int) -> str:
    return f", of which each of {processes} processes allows an equal share" if processes > 1 else ""


def _release_nothing() -> None:
    """Do nothing: a key without a limit has no calls to count."""
