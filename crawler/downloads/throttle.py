"""Per-platform rate limiting and circuit breaking within this process. ``redis_throttle.py`` shares the limits."""

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
    """A platform's download slots, of this process alone or shared by several."""

    concurrency: int

    def earliest(self, ahead: int = 0) -> float:
        """See ``LocalThrottle``."""

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """See ``LocalThrottle``."""


@dataclass
class LocalThrottle:
    """One platform's slots: ``concurrency`` downloads at once at most, and ``delay`` seconds between their starts."""

    concurrency: int
    delay: float = 0.0
    jitter: float = 0.5
    """Share of the delay by which it varies up and down, so that requests have no fixed rhythm."""
    _next_start: float = 0.0
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    def earliest(self, ahead: int = 0) -> float:
        """The earliest start (event loop time) of a download that has ``ahead`` others before it."""
        return max(asyncio.get_running_loop().time(), self._next_start) + ahead * self.delay * (1 - self.jitter)

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """Wait for a slot, and return the function that releases it. ``deadline`` is event loop time.

        Raises:
            Overloaded: at once, where the download could not start before the deadline.
            UpstreamTimeout: the deadline passed while all slots were taken.
        """
        loop = asyncio.get_running_loop()
        start = max(loop.time(), self._next_start)
        if deadline is not None and start >= deadline:
            raise no_slot_before_deadline(start - loop.time())
        if self.delay:
            self._next_start = start + self.delay * jittered(self.jitter)
            await asyncio.sleep(start - loop.time())
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise no_slot_in_time() from None
        return self._slots.release

    def share(self, processes: int) -> LocalThrottle:
        """Return the equal share of one of several processes that do not coordinate: one slot at least."""
        return LocalThrottle(max(1, self.concurrency // processes), self.delay * processes, self.jitter)


def jittered(jitter: float) -> float:
    """A random factor between 1 - ``jitter`` and 1 + ``jitter``."""
    return random.uniform(1 - jitter, 1 + jitter)  # noqa: S311  # no secret


def no_slot_before_deadline(seconds: float) -> Overloaded:
    """The error of a request whose slot would come too late."""
    wait = math.ceil(seconds)
    return Overloaded(f"The platform's next download slot is free in {wait} s, after the deadline.", retry_after=wait)


def no_slot_in_time() -> UpstreamTimeout:
    """The error of a request that waited for a slot until its deadline."""
    return UpstreamTimeout("The deadline passed while waiting for a download slot.", reason="no_turn")


@dataclass
class CircuitBreaker:
    """Stops requests to a platform for ``cooldown`` seconds after ``threshold`` consecutive blocks.

    A block with ``retry_after`` opens the breaker at once, for that time. A ``threshold`` of 0 disables it.
    After the cooldown one target is let through: its outcome closes the breaker, or opens it for twice as long.
    """

    threshold: int
    cooldown: float
    max_cooldown: float = 900.0
    """Upper limit of the doubled cooldowns, in seconds."""
    _blocks: int = 0
    _open_until: float = 0.0
    _trial_in_flight: bool = False

    @property
    def remaining(self) -> float:
        """Seconds until a target may be tried; 0 where the breaker is closed."""
        if not self._open:
            return 0.0
        if self._trial_in_flight:
            return 1.0
        return max(0.0, self._open_until - time.monotonic())

    def check(self) -> None:
        """Let a target pass, or refuse it.

        Raises:
            CircuitOpen: with the seconds to wait.
        """
        wait = self.remaining
        if wait:
            raise CircuitOpen(
                "The platform has blocked the last requests; its circuit breaker is open.",
                retry_after=math.ceil(wait),
            )
        self._trial_in_flight = self._open

    @property
    def _open(self) -> bool:
        return 0 < self.threshold <= self._blocks

    async def wait(self) -> None:
        """Wait until a target may pass: for crawls, whose targets have no caller waiting."""
        while wait := self.remaining:  # noqa: ASYNC110  # it waits for time to pass; a block meanwhile adds to it
            await asyncio.sleep(wait)
        self.check()

    def record(self, error: ScrapeError | None) -> None:
        """Count a block. Other responses of the platform reset the count; failures to get or read one do not."""
        self._trial_in_flight = False
        if isinstance(error, UpstreamBlocked):
            retry_after = error.retry_after or 0
            self._blocks = max(self._blocks + 1, self.threshold if retry_after else 0)
            if self._open:
                doublings = min(self._blocks - self.threshold, 10)
                cooldown = min(self.cooldown * 2**doublings, self.max_cooldown)
                self._open_until = time.monotonic() + max(cooldown, retry_after)
        elif error is None or isinstance(error, TargetError):
            self._blocks = 0
