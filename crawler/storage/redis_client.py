"""Redis clients, and their timeouts. Needs the extra ``redis``.

While Redis is unavailable, rate limits have a fallback (each process uses its own share of a limit), so their timeouts
are short. Queues have no fallback: their workers wait until Redis is available.
"""

from __future__ import annotations

import asyncio

import structlog
from redis.asyncio import Redis

RESPONSE_TIMEOUT_SECONDS = 2.0
"""Timeout of the Redis commands for throttles and for the limits of API keys."""
FALLBACK_SECONDS = 5.0
"""Seconds for which a process uses its own share of a limit after Redis has failed. It then tries Redis again."""
QUEUE_RESPONSE_TIMEOUT_SECONDS = 10.0
"""Timeout of Redis commands of a queue worker."""
QUEUE_RETRY_SECONDS = 1.0
"""Seconds that a queue worker waits after an error of Redis before it retries."""
QUEUE_OUTAGE_SECONDS = 600.0
"""If Redis is unavailable for longer than this, a queue worker ends its run."""

logger = structlog.get_logger(__name__)


def connect(url: str, response_timeout: float = RESPONSE_TIMEOUT_SECONDS) -> Redis:
    """Return a Redis client. It connects when it is first used."""
    return Redis.from_url(url, socket_timeout=response_timeout, socket_connect_timeout=response_timeout)


class Availability:
    """Is true if Redis should be used, and false for some time after it has failed.

    ``used_for``: fields that are logged when Redis fails.
    """

    def __init__(self, **used_for: str) -> None:
        self.used_for = used_for
        self._retry_at = 0.0

    def __bool__(self) -> bool:
        return asyncio.get_running_loop().time() >= self._retry_at

    def failed(self, error: Exception) -> None:
        """Record that Redis has failed. It is then not used for ``FALLBACK_SECONDS``."""
        self._retry_at = asyncio.get_running_loop().time() + FALLBACK_SECONDS
        logger.warning("redis_unavailable", **self.used_for, error=str(error), own_share_for_seconds=FALLBACK_SECONDS)
