"""Redis: clients, and the times that decide what a failing server means. Needs the extra ``redis``.

Rate limits have a fallback while Redis is unavailable, each process's own share, so they give up on it soon. The queue
has none: it waits.
"""

from __future__ import annotations

import asyncio

import structlog
from redis.asyncio import Redis

RESPONSE_TIMEOUT_SECONDS = 2.0
"""Within which Redis must answer where a call waits for it."""
FALLBACK_SECONDS = 5.0
"""For which a process uses its own share after Redis failed, before it tries again."""
QUEUE_RESPONSE_TIMEOUT_SECONDS = 10.0
"""Within which Redis must answer a worker of the queue."""
QUEUE_RETRY_SECONDS = 1.0
"""After which a worker of the queue tries again."""
QUEUE_OUTAGE_SECONDS = 600.0
"""After which a worker of the queue ends its run."""

logger = structlog.get_logger(__name__)


def connect(url: str, response_timeout: float = RESPONSE_TIMEOUT_SECONDS) -> Redis:
    """Return a client. It connects when it is first used."""
    return Redis.from_url(url, socket_timeout=response_timeout, socket_connect_timeout=response_timeout)


class Availability:
    """Whether Redis is worth trying. ``used_for`` is logged when it is not."""

    def __init__(self, **used_for: str) -> None:
        self.used_for = used_for
        self._retry_at = 0.0

    def __bool__(self) -> bool:
        return asyncio.get_running_loop().time() >= self._retry_at

    def failed(self, error: Exception) -> None:
        """Use the fallback for ``FALLBACK_SECONDS``."""
        self._retry_at = asyncio.get_running_loop().time() + FALLBACK_SECONDS
        logger.warning("redis_unavailable", **self.used_for, error=str(error), own_share_for_seconds=FALLBACK_SECONDS)
