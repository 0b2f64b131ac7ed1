"""What one key may ask for: calls in a time, and calls at once. In memory, or in Redis for several processes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError
from limits.storage import storage_from_string

from crawler.errors import ConcurrencyLimited, RateLimited

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.downloads.redis_throttle import Leases
    from crawler.service.keys import Holder

Result = TypeVar("Result")
Leave = Callable[[], None]


@dataclass(frozen=True)
class RateLimitStatus:
    """Where a key stands in its window of calls."""

    quota: int
    window: int
    """Seconds."""
    remaining: int
    reset: int
    """Seconds until the oldest call is forgotten."""
    allowed: bool

    @property
    def headers(self) -> dict[str, str]:
        """What an answer says of it: the IETF's draft, and the names that most clients look for."""
        return {
            "RateLimit-Policy": f'"key";q={self.quota};w={self.window}',
            "RateLimit": f'"key";r={self.remaining};t={self.reset}',
            "X-RateLimit-Limit": str(self.quota),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def check(self) -> None:
        """Lets the call pass, or refuses it.

        Raises:
            RateLimited: with the seconds until the next one may come.
        """
        if not self.allowed:
            raise RateLimited(f"This key may make {self.quota} calls in {self.window} s.", retry_after=self.reset)


class KeyLimits:
    """The limits of all keys. A key without limits of its own has those of ``KEY_RATE`` and ``KEY_CONCURRENCY``.

    Without Redis each of several processes grants its part of them, and so it does while Redis is away.
    """

    def __init__(self, settings: BaseSettings) -> None:
        self.rate: str | None = settings.get("KEY_RATE")
        self.concurrency = settings.getint("KEY_CONCURRENCY")
        self.processes = settings.getint("PROCESSES")
        self._alone = MovingWindowRateLimiter(MemoryStorage())
        self._inside: Counter[str] = Counter()
        self._redis = _Shared(settings["REDIS_URL"]) if settings.get("REDIS_URL") else None

    async def close(self) -> None:
        """Leaves Redis."""
        if self._redis:
            await self._redis.close()

    async def count(self, holder: Holder) -> RateLimitStatus | None:
        """Counts a call against its key's rate, and says where that leaves the key; None where there is no limit."""
        rate = holder.rate or self.rate
        if not rate:
            return None
        item = parse(rate)
        if self._redis and self._redis.available:
            standing = await self._redis.attempt(_hit(self._redis.limiter, item, holder.key_id))
            if standing:
                return standing
        part = type(item)(max(1, item.amount // self.processes), item.multiples)
        return await _hit(self._alone, part, holder.key_id)

    async def enter(self, holder: Holder) -> Leave:
        """Takes one of the key's places for a call in flight. Returns what gives it back.

        Raises:
            ConcurrencyLimited: all are taken.
        """
        places = holder.concurrency or self.concurrency
        if not places:
            return _nothing
        if self._redis and self._redis.available:
            taken = await self._redis.attempt(self._redis.places(holder.key_id, places).take())
            if callable(taken):
                return taken
            if taken is not None:
                raise _too_many(places)
        part = max(1, places // self.processes)
        if self._inside[holder.key_id] >= part:
            raise _too_many(part)
        self._inside[holder.key_id] += 1
        return lambda: self._inside.subtract([holder.key_id])


class _Shared:
    """The limits' part in Redis."""

    LONGEST_CALL = 150.0
    """Seconds after which the place of a call whose process was killed comes free."""

    def __init__(self, url: str) -> None:
        from crawler.downloads.redis_throttle import Leases  # noqa: PLC0415  # likewise
        from crawler.storage.redis_client import Availability, connect  # noqa: PLC0415  # needs the extra "redis"

        self.available = Availability(limits="keys")
        self._client = connect(url)
        pool: Any = self._client.connection_pool
        storage = storage_from_string(
            f"async+{url}", implementation="redispy", wrap_exceptions=True, connection_pool=pool
        )
        self.limiter = MovingWindowRateLimiter(storage)
        self._leases = Leases
        self.close = self._client.aclose

    def places(self, key_id: str, size: int) -> Leases:
        """A key's places."""
        return self._leases(self._client, f"calls:{key_id}", size, self.LONGEST_CALL)

    async def attempt(self, asked: Coroutine[None, None, Result]) -> Result | None:
        """The answer, None where there is none: then the process is on its own for a while."""
        from redis.exceptions import RedisError  # noqa: PLC0415  # needs the extra "redis"

        try:
            return await asked
        except (RedisError, StorageError) as error:
            self.available.failed(error)
            return None


async def _hit(limiter: MovingWindowRateLimiter, item: RateLimitItem, key_id: str) -> RateLimitStatus:
    allowed = await limiter.hit(item, key_id)
    stats = await limiter.get_window_stats(item, key_id)
    reset = max(1, math.ceil(stats.reset_time - time.time()))
    return RateLimitStatus(item.amount, item.get_expiry(), stats.remaining, reset, allowed)


def _too_many(places: int) -> ConcurrencyLimited:
    return ConcurrencyLimited(f"This key has {places} calls in flight, which is all that it may have.", retry_after=1)


def _nothing() -> None:
    """Gives back the place of a call that took none."""
