"""Guest tokens, which a platform issues to every visitor. All crawlers in a process share one token per egress.

A token serves all targets until it expires or the platform rejects it. Only one request for a token is in flight; other
targets wait for its response. After a refusal no token is requested until a pause is over. A rate-limited token is kept
until its limit ends: a new token would evade the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from crawler.errors import ScrapeError, UpstreamBlocked, UpstreamRateLimited

LIMIT_WINDOW_SECONDS = 900.0
"""Seconds for which a rate limit is assumed to last if the response does not state its end: the platform's window."""


@dataclass
class SharedToken:
    """A platform's guest token, which all targets share.

    ``lifetime`` is the number of seconds for which a token is used. ``pause`` is the number of seconds without requests
    for a token after the platform refused one. ``max_limit`` is the setting ``RETRY_AFTER_MAX``: if the platform states
    a longer rate limit, the limit is assumed to end after this number of seconds.
    """

    lifetime: float
    pause: float = 0.0
    max_limit: float = 3_600.0
    _value: str = ""
    _until: float = 0.0
    _refusal: ScrapeError | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def value(self) -> str:
        """The current token, "" without a valid token."""
        return self._value if time.monotonic() < self._until and self._refusal is None else ""

    async def get(self, fetch: Callable[[], Awaitable[str]]) -> str:
        """Return the current token. If there is no valid token, await ``fetch`` for a new one.

        Raises:
            ScrapeError: ``fetch`` failed. If the platform refused a token, every call raises the same error until the
                pause ends.
        """
        async with self._lock:
            if time.monotonic() < self._until:
                if self._refusal is not None:
                    raise self._refusal
                return self._value
            try:
                self._value = await fetch()
            except (UpstreamBlocked, UpstreamRateLimited) as refusal:
                stated = min(refusal.retry_after or 0, self.max_limit)
                self._refusal, self._until = refusal, time.monotonic() + max(self.pause, stated)
                raise
            self._refusal, self._until = None, time.monotonic() + self.lifetime
            return self._value

    def keep(self, token: str, limit: UpstreamRateLimited) -> None:
        """Keep a rate-limited token until its limit ends, unless another target has already replaced it."""
        if token and token == self._value and self._refusal is None:
            stated = LIMIT_WINDOW_SECONDS if limit.retry_after is None else limit.retry_after
            self._until = max(self._until, time.monotonic() + min(stated, self.max_limit))

    def invalidate(self, token: str) -> None:
        """Discard a token that the platform rejected, unless another target has already replaced it."""
        if token == self._value and self._refusal is None:
            self._value, self._until = "", 0.0
