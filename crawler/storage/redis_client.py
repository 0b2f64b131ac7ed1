"""Redis clients, and their timeouts. Needs the extra ``redis``.

Rate limits have a fallback while Redis is unavailable (each process's own share), so their timeouts are short. The
queue has no fallback: it waits.
"""

from __future__ import annotations

import asyncio

import structlog
from redis.asyncio import Redis

RESPONSE_TIMEOUT_SECONDS = 2.0
"""Timeout of Redis commands during a call."""
FALLBACK_SECONDS = 5.0
"""Time for which a process uses its own share after Redis failed, before it retries."""
QUEUE_RESPONSE_TIMEOUT_SECONDS = 10.0
"""Timeout of Redis commands of a queue worker."""
QUEUE_RETRY_SECONDS = 1.0
"""Delay before a queue worker retries after an error."""
QUEUE_OUTAGE_SECONDS = 600.0
"""Outage of Redis after which a queue worker ends its run."""

logger = structlog.get_logger(__name__)


def connect(url: str, response_timeout: float = RESPONSE_TIMEOUT_SECONDS) -> Redis:
    """Return a client. It connects when it is first used."""
    return Redis.from_url(url, socket_timeout=response_timeout, socket_connect_timeout=response_timeout)


class Availability:
    """Whether Redis should be tried. ``used_for`` is logged when it fails."""

    def __init__(self, **used_for: str) -> None:
        self.used_for = used_for
        self._retry_at = 0.0

    def __bool__(self) -> bool:
        return asyncio.get_running_loop().time() >= self._retry_at

    def failed(self, error: Exception) -> None:
        """Use the fallback for ``FALLBACK_SECONDS``."""
        self._retry_at = asyncio.get_running_loop().time() + FALLBACK_SECONDS
        logger.warning("redis_unavailable", **self.used_for, error=str(error), own_share_for_seconds=FALLBACK_SECONDS)
