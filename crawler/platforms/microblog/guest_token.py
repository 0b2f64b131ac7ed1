"""Tokens that a platform hands to every visitor, kept outside the crawlers and shared by all of a process.

One token serves all targets until it is too old or the platform refuses it. Only one is asked for at a time: whoever
needs a token meanwhile waits for that one. A platform that hands out none is not asked again for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from crawler.errors import ScrapeError, UpstreamBlocked, UpstreamRateLimited


@dataclass
class SharedToken:
    """A platform's token. ``lifetime`` and ``pause`` (after a refusal) are in seconds."""

    lifetime: float
    pause: float = 0.0
    _value: str = ""
    _until: float = 0.0
    _refusal: ScrapeError | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def value(self) -> str:
        """The token as it is known now, "" where there is none."""
        return self._value if time.monotonic() < self._until and self._refusal is None else ""

    async def get(self, ask: Callable[[], Awaitable[str]]) -> str:
        """The token, or the one that ``ask`` brings where there is none yet.

        Raises:
            ScrapeError: as ``ask`` does; where that was a refusal, the same again until the pause is over.
        """
        async with self._lock:
            if time.monotonic() < self._until:
                if self._refusal is not None:
                    raise self._refusal
                return self._value
            try:
                self._value = await ask()
            except (UpstreamBlocked, UpstreamRateLimited) as refusal:
                self._refusal, self._until = refusal, time.monotonic() + self.pause
                raise
            self._refusal, self._until = None, time.monotonic() + self.lifetime
            return self._value

    def refused(self, token: str) -> None:
        """Forgets a token that the platform no longer takes; not the newer one of another target."""
        if token == self._value and self._refusal is None:
            self._until = 0.0
