"""Per-platform rate limiting and circuit breaking, of this process. ``redis_throttle.py`` shares it."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crawler.errors import CircuitOpen, Overloaded, ScrapeError, TargetError, UpstreamBlocked, UpstreamTimeout

ReleaseSlot = Callable[[], None]


class Throttle(Protocol):
    """Whoever gives a platform's turns out: this process, or several that share them."""

    concurrency: int

    def earliest(self, ahead: int = 0) -> float:
        """See ``LocalThrottle``."""

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """See ``LocalThrottle``."""


@dataclass
class LocalThrottle:
    """One platform's turns: at most ``concurrency`` downloads at once, and ``delay`` seconds between their starts."""

    concurrency: int
    delay: float = 0.0
    jitter: float = 0.5
    """Share of the delay by which it varies up and down, so that the requests keep no beat."""
    _next: float = 0.0
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.concurrency)

    def earliest(self, ahead: int = 0) -> float:
        """The moment of the event loop's clock before which no turn can start, with so many others still to come."""
        return max(asyncio.get_running_loop().time(), self._next) + ahead * self.delay * (1 - self.jitter)

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """Waits for a turn, and returns what ends it. ``deadline`` is a moment of the event loop's clock.

        Raises:
            Overloaded: at once, when the turn cannot come before the deadline.
            UpstreamTimeout: when the deadline passed while all places were taken.
        """
        loop = asyncio.get_running_loop()
        start = max(loop.time(), self._next)
        if deadline is not None and start >= deadline:
            wait = math.ceil(start - loop.time())
            raise Overloaded(f"This platform's next free turn is in {wait} s, after the deadline.", retry_after=wait)
        if self.delay:
            self._next = start + self.delay * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311  # no secret
            await asyncio.sleep(start - loop.time())
        try:
            async with asyncio.timeout_at(deadline):
                await self._places.acquire()
        except TimeoutError:
            raise UpstreamTimeout("The deadline passed while waiting for a turn.", reason="no_turn") from None
        return self._places.release

    def share(self, processes: int) -> LocalThrottle:
        """What each of several processes may take where they know nothing of one another; one place at least."""
        return LocalThrottle(max(1, self.concurrency // processes), self.delay * processes, self.jitter)


@dataclass
class CircuitBreaker:
    """Stops asking a platform that turns us away: after ``threshold`` walls in a row, for ``cooldown`` seconds.

    A wall that is known to last (it has a ``retry_after``) opens it at once, for as long. A ``threshold`` of 0: never.
    Then one target is let through to try; its outcome opens the platform again, or closes it for twice as long.
    """

    threshold: int
    cooldown: float
    longest: float = 900.0
    """The longest time for which it stays open, in seconds."""
    _walls: int = 0
    _until: float = 0.0
    _trying: bool = False

    @property
    def remaining(self) -> float:
        """Seconds until a target may try again; 0 where the circuit is closed."""
        if not self._open:
            return 0.0
        if self._trying:
            return 1.0
        return max(0.0, self._until - time.monotonic())

    def check(self) -> None:
        """Lets a target pass, or refuses it.

        Raises:
            CircuitOpen: with the seconds to wait.
        """
        wait = self.remaining
        if wait:
            raise CircuitOpen(
                "The platform has refused our last requests; it is left alone for a while.",
                retry_after=math.ceil(wait),
            )
        self._trying = self._open

    @property
    def _open(self) -> bool:
        return 0 < self.threshold <= self._walls

    async def wait(self) -> None:
        """Waits until a target may pass: for crawls, where nobody is kept waiting by it."""
        while wait := self.remaining:  # noqa: ASYNC110  # time is what it waits for; a wall met meanwhile adds to it
            await asyncio.sleep(wait)
        self.check()

    def record(self, error: ScrapeError | None) -> None:
        """Learns from an outcome: a wall counts, an answer of the platform's resets, a fault of ours says nothing."""
        self._trying = False
        if isinstance(error, UpstreamBlocked):
            lasts = error.retry_after or 0
            self._walls = max(self._walls + 1, self.threshold if lasts else 0)
            if self._open:
                doublings = min(self._walls - self.threshold, 10)
                self._until = time.monotonic() + max(min(self.cooldown * 2**doublings, self.longest), lasts)
        elif error is None or isinstance(error, TargetError):
            self._walls = 0
