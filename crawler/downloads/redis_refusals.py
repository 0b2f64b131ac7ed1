"""The memory of refusals, which processes share through Redis. While it is unavailable, each uses its own memory."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, cast

from redis.exceptions import RedisError

from crawler.downloads.refusals import WALL_SECONDS, LocalRefusals
from crawler.storage.redis_client import Availability

if TYPE_CHECKING:
    from redis.asyncio import Redis


class RedisRefusals:
    """The memory of one platform's refusals. ``keep_seconds``: how long a refused target is remembered."""

    def __init__(self, redis: Redis, platform: str, keep_seconds: float) -> None:
        self.redis = redis
        self.keep_seconds = keep_seconds
        self.local = LocalRefusals(keep_seconds)
        self._prefix = f"crawler:refused:{platform}"
        self._available = Availability(refusals=platform)

    async def remember(self, key: str, egress: str) -> None:
        """See ``Refusals``."""
        await self.local.remember(key, egress)
        if self._available:
            try:
                await self.redis.set(f"{self._prefix}:{key}", egress, ex=math.ceil(self.keep_seconds))
            except RedisError as error:
                self._available.failed(error)

    def known(self, key: str) -> str | None:
        """See ``Refusals``."""
        return self.local.known(key)

    async def egress_of(self, key: str) -> str | None:
        """See ``Refusals``."""
        known = self.known(key)
        if known is not None or not self._available:
            return known
        try:
            found = cast("bytes | None", await self.redis.get(f"{self._prefix}:{key}"))
        except RedisError as error:
            self._available.failed(error)
            return None
        return found.decode() if found else None

    async def meet(self, wall: str, egress: str) -> int:
        """See ``Refusals``."""
        met = await self.local.meet(wall, egress)
        if not self._available:
            return met
        key, now = f"{self._prefix}:wall:{wall}", time.time()
        try:
            async with self.redis.pipeline() as steps:
                steps.zadd(key, {egress: now})
                steps.zremrangebyscore(key, "-inf", now - WALL_SECONDS)
                steps.zcard(key)
                steps.expire(key, math.ceil(WALL_SECONDS))
                return int((await steps.execute())[2])
        except RedisError as error:
            self._available.failed(error)
            return met

    async def forget(self, wall: str) -> None:
        """See ``Refusals``."""
        await self.local.forget(wall)
        if self._available:
            try:
                await self.redis.delete(f"{self._prefix}:wall:{wall}")
            except RedisError as error:
                self._available.failed(error)
